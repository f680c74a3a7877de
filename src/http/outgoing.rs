//! A request's body on its way, each time the request is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::request::{Body, ByteStream, StreamBroken};

/// What is left to send.
pub enum Outgoing {
    Empty,
    Again(Bytes),
    /// `None` once it has been sent.
    Once(Option<ByteStream>),
}

impl From<Body> for Outgoing {
    fn from(body: Body) -> Self {
        match body {
            Body::Empty => Self::Empty,
            Body::Bytes(bytes) => Self::Again(bytes),
            Body::Stream(stream) => Self::Once(Some(stream)),
        }
    }
}

impl Outgoing {
    /// Whether a refused request can be sent once more.
    pub fn can_be_sent_again(&self) -> bool {
        !matches!(self, Self::Once(_))
    }

    /// The body of one try, and for a stream the guard that ends it: an answer may come long before
    /// the stream is through, and nobody wants the rest once that answer is done with.
    pub fn next_try(&mut self) -> (Option<reqwest::Body>, Option<DropGuard>) {
        match self {
            Self::Empty => (None, None),
            Self::Again(bytes) => (Some(reqwest::Body::from(bytes.clone())), None),
            Self::Once(stream) => {
                let Some(stream) = stream.take() else {
                    return (None, None);
                };
                let stop = CancellationToken::new();
                let stopped = Box::pin(stop.clone().cancelled_owned());
                let body = reqwest::Body::wrap_stream(Stoppable { stream, stopped });
                (Some(body), Some(stop.drop_guard()))
            }
        }
    }
}

struct Stoppable {
    stream: ByteStream,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Stream for Stoppable {
    type Item = Result<Bytes, StreamBroken>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(StreamBroken)));
        }
        self.stream.as_mut().poll_next(context)
    }
}
