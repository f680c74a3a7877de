//! A request's body on its way, each time the request is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::request::{Body, ByteStream, StreamBroken};

/// What is left to send.
pub enum Outgoing {
    Empty,
    Again(Bytes),
    /// `None` once it has been sent.
    Once(Option<ByteStream>),
}

/// One try to send it.
pub struct Try {
    pub payload: Option<reqwest::Body>,
    pub departure: Departure,
    /// Ends a stream when it is dropped: an answer may come long before the stream is through, and
    /// nobody wants the rest once that answer is done with.
    pub upload: Option<DropGuard>,
}

/// Whether a request may have left. HTTP/1 asks for the body once it has a connection and has put the
/// head into its buffer, before any byte of that is written, so a body that was never asked for
/// proves that nothing left.
#[derive(Clone)]
pub struct Departure(Arc<AtomicBool>);

impl Departure {
    /// Always possible for a request without a body.
    pub fn possible(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn notice(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl From<Body> for Outgoing {
    fn from(body: Body) -> Self {
        match body {
            Body::Empty => Self::Empty,
            Body::Bytes(bytes) if bytes.is_empty() => Self::Empty,
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

    /// The body of the next try.
    pub fn next_try(&mut self) -> Try {
        let departure = Departure(Arc::new(AtomicBool::new(false)));
        let (payload, upload) = match self {
            Self::Empty | Self::Once(None) => {
                departure.notice();
                (None, None)
            }
            Self::Again(bytes) => {
                let whole = Whole {
                    bytes: Some(bytes.clone()),
                    departure: departure.clone(),
                };
                (Some(reqwest::Body::wrap(whole)), None)
            }
            Self::Once(stream) => {
                let stop = CancellationToken::new();
                let stopped = Box::pin(stop.clone().cancelled_owned());
                let pieces = stream.take().map(|stream| Pieces {
                    stream,
                    stopped,
                    departure: departure.clone(),
                });
                (
                    pieces.map(reqwest::Body::wrap_stream),
                    Some(stop.drop_guard()),
                )
            }
        };
        Try {
            payload,
            departure,
            upload,
        }
    }
}

/// Bytes that are sent at once, after their length.
struct Whole {
    bytes: Option<Bytes>,
    departure: Departure,
}

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.departure.notice();
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.bytes.as_ref().map_or(0, Bytes::len);
        // A length in memory fits.
        SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
    }
}

/// A stream that can be ended from outside.
struct Pieces {
    stream: ByteStream,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    departure: Departure,
}

impl Stream for Pieces {
    type Item = Result<Bytes, StreamBroken>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.departure.notice();
        if self.stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(StreamBroken)));
        }
        self.stream.as_mut().poll_next(context)
    }
}
