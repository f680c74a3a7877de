//! What comes back.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio_util::sync::DropGuard;

use super::bound::Bound;
use crate::error::Failure;
use crate::runtime;

/// How long the rest of an answer is read that nobody wants.
const REST: Duration = Duration::from_millis(500);

/// A successful answer whose body is still to be read.
pub struct Answer {
    pub status: u16,
    /// As the provider phrased it, else the usual phrase. Each byte one character.
    pub status_text: String,
    /// Names in lower case, values as they came, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: AnswerBody,
}

impl Answer {
    pub(super) fn new(response: Response, bound: Bound, upload: Option<DropGuard>) -> Self {
        let headers = response.headers().iter();
        Self {
            status: response.status().as_u16(),
            status_text: status_text(&response),
            headers: headers
                .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
                .collect(),
            body: AnswerBody {
                response: Some(response),
                bound,
                _upload: upload,
            },
        }
    }
}

/// Neither headers nor body: both are the provider's.
impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Answer")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

fn status_text(response: &Response) -> String {
    response
        .extensions()
        .get::<hyper::ext::ReasonPhrase>()
        .map_or_else(
            || {
                response
                    .status()
                    .canonical_reason()
                    .unwrap_or_default()
                    .to_owned()
            },
            |phrase| {
                phrase
                    .as_bytes()
                    .iter()
                    .map(|byte| char::from(*byte))
                    .collect()
            },
        )
}

/// The rest of an answer. Dropping it gives up the connection, and stops an upload that is still
/// going on.
pub struct AnswerBody {
    /// `None` once it has ended, well or not.
    response: Option<Response>,
    bound: Bound,
    _upload: Option<DropGuard>,
}

impl AnswerBody {
    /// The next piece; `None` at the end. The request's own bound holds here too: after it, this
    /// fails as the request would have. A body that breaks midway is `Failure::BodyBroken`. After a
    /// failure there is nothing more.
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        let response = self.response.as_mut()?;
        let failure = match self.bound.run(response.chunk()).await {
            Ok(Ok(Some(piece))) => return Some(Ok(piece)),
            Ok(Ok(None)) => None,
            Ok(Err(_)) => Some(Failure::BodyBroken),
            Err(ended) => Some(ended.failure(true)),
        };
        self.response = None;
        failure.map(Err)
    }

    /// Reads what is left for a moment, of which nobody wants anything: a connection whose answer has been
    /// read to its end serves further requests.
    pub fn finish(mut self) {
        let rest = async move {
            let read = async { while let Some(Ok(_)) = self.next().await {} };
            let _ = tokio::time::timeout(REST, read).await;
        };
        if let Some(runtime) = runtime::handle() {
            runtime.spawn(rest);
        }
    }

    /// The whole rest, if it is at most `limit` bytes. Reading stops with the piece that passes it,
    /// or before the first one when the answer announces as much.
    pub(super) async fn collect(mut self, limit: usize) -> Result<Vec<u8>, Collect> {
        let announced = self
            .response
            .as_ref()
            .and_then(Response::content_length)
            .unwrap_or(0);
        let announced = usize::try_from(announced).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(Collect::Oversized);
        }
        let mut whole = Vec::with_capacity(announced.min(64 * 1024));
        while let Some(piece) = self.next().await {
            let piece = piece.map_err(Collect::Failed)?;
            if piece.len() > limit - whole.len() {
                return Err(Collect::Oversized);
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnswerBody").finish_non_exhaustive()
    }
}

/// Why a whole body could not be read.
#[derive(Debug)]
pub(super) enum Collect {
    Oversized,
    Failed(Failure),
}
