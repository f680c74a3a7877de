//! What goes out.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use reqwest::Method;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use thiserror::Error;
use tokio::sync::mpsc;

use crate::secret::ApiKey;

/// What a request calls itself, unless its caller names something else.
const AGENT: &str = concat!("createos-lease/", env!("CARGO_PKG_VERSION"));

/// Headers of a caller that do not travel: other credentials (the provider resolves them before the
/// key, so one of them could act for another account), the connection's own, and an encoding that
/// nobody here would decode.
const DROPPED: [&str; 19] = [
    "x-api-key",
    "authorization",
    "x-auth-token",
    "x-access-token",
    "cookie",
    "cookie2",
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "expect",
    "accept-encoding",
];

/// One request. The path is relative to `<apiUrl>/v1` and begins with a slash.
pub struct Request {
    pub method: Method,
    pub path: String,
    /// Names and values as they are to be sent, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Body,
}

impl Request {
    /// A request without headers of its own and without a body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Body::Empty,
        }
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    /// With this body.
    #[must_use]
    pub fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }
}

/// Neither path nor headers nor body: each may hold what nobody should read.
impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Request")
            .field("method", &self.method)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

/// What a request carries.
pub enum Body {
    /// Nothing. A POST sends `{}` all the same: some gateways refuse one without a length.
    Empty,
    /// These bytes, which can be sent again after a 429.
    Bytes(Bytes),
    /// Whatever the stream gives. It can't be sent twice, so its 429 surfaces.
    Stream(ByteStream),
}

/// Bytes that come piece by piece.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, StreamBroken>> + Send>>;

/// The caller's stream broke. Its own reason stays with the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the request's body broke")]
pub struct StreamBroken;

/// The end of a body's channel that a caller fills.
pub type BodySender = mpsc::Sender<Result<Bytes, StreamBroken>>;

impl Body {
    /// A body that is filled through a channel of so many pieces. It ends when the sender is
    /// dropped, so whoever gives up half-way sends `StreamBroken` first.
    pub fn channel(pieces: usize) -> (BodySender, Self) {
        let (sender, receiver) = mpsc::channel(pieces);
        (sender, Self::Stream(Box::pin(Channel(receiver))))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Empty => "Empty",
            Self::Bytes(_) => "Bytes",
            Self::Stream(_) => "Stream",
        })
    }
}

struct Channel(mpsc::Receiver<Result<Bytes, StreamBroken>>);

impl Stream for Channel {
    type Item = Result<Bytes, StreamBroken>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

/// The headers to send: the caller's without `DROPPED`, and ours. `None` when a name, a value or the
/// key is no legal header.
pub fn headers(given: &[(String, Vec<u8>)], key: &ApiKey) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(given.len() + 3);
    for (name, value) in given {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        if !DROPPED.contains(&name.as_str()) {
            headers.append(name, HeaderValue::from_bytes(value).ok()?);
        }
    }
    let mut key = HeaderValue::from_bytes(&key.header_bytes()?).ok()?;
    key.set_sensitive(true);
    headers.insert(HeaderName::from_static("x-api-key"), key);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    // Some gateways turn requests without one away.
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(AGENT));
    Some(headers)
}

/// Gives a request without a body the one it needs: `{}` for a POST, a length for PUT and PATCH (as
/// fetch sends it), nothing for the others.
pub fn fill_empty(method: &Method, headers: &mut HeaderMap, body: Body) -> Body {
    match body {
        Body::Empty if method == Method::POST => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Body::Bytes(Bytes::from_static(b"{}"))
        }
        Body::Bytes(bytes) if bytes.is_empty() => {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            Body::Empty
        }
        Body::Empty if method == Method::PUT || method == Method::PATCH => {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            Body::Empty
        }
        other => other,
    }
}
