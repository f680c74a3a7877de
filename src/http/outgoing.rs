//! A request's body on its way, each time the request is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
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

/// Whether a request has left. HTTP/1 asks for the body once it has a connection and has put the head
/// into its buffer, before any byte of that is written. So a body that was never asked for proves
/// that nothing left, and one that refuses from then on keeps it so, whatever the connection's own
/// task is about to do.
///
/// ```text
/// HERE --asked for--> LEFT
///   `----withheld---> WITHHELD
/// ```
#[derive(Clone)]
pub struct Departure(Arc<AtomicU8>);

const HERE: u8 = 0;
const LEFT: u8 = 1;
const WITHHELD: u8 = 2;

impl Departure {
    /// Of a request without a body nobody can tell, so it counts as one that has left.
    fn new(state: u8) -> Self {
        Self(Arc::new(AtomicU8::new(state)))
    }

    /// Keeps the request here, if it still is. `false` when it may have left.
    pub fn withhold(&self) -> bool {
        self.leave_for(WITHHELD) == WITHHELD
    }

    /// The body is asked for. `Err` when it has been withheld.
    fn ask(&self) -> Result<(), StreamBroken> {
        if self.leave_for(LEFT) == LEFT {
            Ok(())
        } else {
            Err(StreamBroken)
        }
    }

    /// Leaves `HERE`, and gives back where it is then.
    fn leave_for(&self, state: u8) -> u8 {
        match self
            .0
            .compare_exchange(HERE, state, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => state,
            Err(other) => other,
        }
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
        let mut departure = Departure::new(HERE);
        let (payload, upload) = match self {
            Self::Empty | Self::Once(None) => {
                departure = Departure::new(LEFT);
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
    type Error = StreamBroken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamBroken>>> {
        Poll::Ready(
            self.bytes
                .take()
                .map(|bytes| self.departure.ask().map(|()| Frame::data(bytes))),
        )
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
        if self.departure.ask().is_err() || self.stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(StreamBroken)));
        }
        self.stream.as_mut().poll_next(context)
    }
}
