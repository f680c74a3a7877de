//! Requests, and bodies both ways, piece by piece (specification, section 6).

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use super::client::{Core, bound, to_method};
use super::node::{Arguments, Js, Kind, Outcome, Thrown, Value};
use super::promise::{Survival, prepare, promise};
use crate::error::Failure;
use crate::http::{AnswerBody, Body, BodySender, Bound, Request, StreamBroken};
use crate::runtime;

/// An answer's body that a script reads piece by piece.
struct Download {
    body: AsyncMutex<Reading>,
    /// Cancelled when the script wants no more of it, and when it has been collected.
    dropped: CancellationToken,
}

/// How far a body has been read.
enum Reading {
    Open(Box<AnswerBody>),
    /// Its request's bound has passed while nobody read: told at the next read.
    Failed(Failure),
    Ended,
}

impl Drop for Download {
    fn drop(&mut self) {
        self.dropped.cancel();
    }
}

/// A request body that a script fills piece by piece.
struct Upload {
    sender: Mutex<Option<BodySender>>,
    body: Mutex<Option<Body>>,
}

/// How many pieces of a request's body may wait to be sent.
const PIECES: usize = 4;

/// `request(core, cancel, method, path, headers, body) -> prepared Promise<[status, statusText, headers,
/// body]>`. Headers are flat arrays of names and values; the body is nothing, a string, bytes, or
/// what `createUpload` gave.
pub fn request<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [core, cancel, method, path, headers, body, ..] = arguments;
    let client = &js.held::<Core>(core)?.client;
    let method = to_method(js, method)?;
    let mut request = Request::new(method, js.to_string(path)?).body(to_body(js, body)?);
    let headers = js.elements(headers)?;
    for pair in headers.chunks_exact(2) {
        let value = js
            .with_text(pair[1], latin1)?
            .ok_or(Failure::Connection { sent: false })?;
        request.headers.push((js.to_string(pair[0])?, value));
    }
    let bound = bound(js, client, cancel)?;
    let answer = client.request(request, bound.clone());
    prepare(js, answer, move |js, answer| {
        let headers = answer.headers.iter().flat_map(|(name, value)| {
            let value: Vec<u16> = value.iter().copied().map(u16::from).collect();
            [js.string(name), js.text(&value)]
        });
        js.array([
            js.integer(u32::from(answer.status)),
            js.string(&answer.status_text),
            js.array(headers),
            js.external(download(answer.body, bound)?),
        ])
    })
}

/// Makes a body readable, and has its connection let go when the bound passes, read or not.
fn download(body: AnswerBody, bound: Bound) -> Result<Arc<Download>, Failure> {
    let dropped = CancellationToken::new();
    let download = Arc::new(Download {
        body: AsyncMutex::new(Reading::Open(Box::new(body))),
        dropped: dropped.clone(),
    });
    let watched = Arc::downgrade(&download);
    runtime::handle()
        .ok_or(Failure::NoRuntime)?
        .spawn(async move {
            let passed = dropped
                .run_until_cancelled(bound.run(pending::<()>()))
                .await;
            if let (Some(Err(ended)), Some(download)) = (passed, watched.upgrade()) {
                let mut body = download.body.lock().await;
                if matches!(*body, Reading::Open(_)) {
                    *body = Reading::Failed(ended.failure(true));
                }
            }
        });
    Ok(download)
}

/// `readBody(body) -> Promise<Uint8Array | undefined>`: the next piece; undefined at the end.
pub fn read_body<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let download = js.keep::<Download>(arguments[0])?;
    let read = async move {
        let mut body = download.body.lock().await;
        match &mut *body {
            Reading::Ended => Ok(None),
            Reading::Failed(failure) => Err(failure.clone()),
            Reading::Open(open) => {
                let piece = download.dropped.run_until_cancelled(open.next()).await;
                if !matches!(piece, Some(Some(Ok(_)))) {
                    *body = Reading::Ended;
                }
                piece.flatten().transpose()
            }
        }
    };
    promise(
        js,
        Survival::EndsWithIt,
        read,
        |js, piece: Option<Bytes>| match piece {
            Some(piece) => js.bytes(&piece),
            None => js.undefined(),
        },
    )
}

/// `dropBody(body)`: gives the connection up, if the body has not ended, also while it is read.
pub fn drop_body<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let download: &Download = js.held(arguments[0])?;
    download.dropped.cancel();
    // A reader that holds the lock has just been told.
    if let Ok(mut body) = download.body.try_lock() {
        *body = Reading::Ended;
    }
    js.undefined()
}

/// `createUpload() -> External`.
pub fn create_upload<'e>(js: Js<'e>, _: Arguments<'e>) -> Outcome<'e> {
    let (sender, body) = Body::channel(PIECES);
    let upload = Upload {
        sender: Mutex::new(Some(sender)),
        body: Mutex::new(Some(body)),
    };
    js.external(Arc::new(upload))
}

/// `pushUpload(upload, bytes) -> Promise<boolean>`: true once there is room for more, false when
/// nobody reads any more.
pub fn push_upload<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [upload, piece, ..] = arguments;
    let piece = Bytes::from(js.to_bytes(piece)?);
    let sender = lock(&js.held::<Upload>(upload)?.sender).clone();
    let send = async move {
        Ok(match sender {
            Some(sender) => sender.send(Ok(piece)).await.is_ok(),
            None => false,
        })
    };
    promise(js, Survival::EndsWithIt, send, |js, more| js.boolean(more))
}

/// `endUpload(upload, broken) -> Promise<undefined>`: no more pieces; `broken` when the stream
/// failed, so that the provider does not take a part for the whole.
pub fn end_upload<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [upload, broken, ..] = arguments;
    let sender = lock(&js.held::<Upload>(upload)?.sender).take();
    let broken = js.to_boolean(broken)?;
    let end = async move {
        if let Some(sender) = sender.filter(|_| broken) {
            // A reader that has gone needs no warning.
            let _ = sender.send(Err(StreamBroken)).await;
        }
        Ok(())
    };
    promise(js, Survival::EndsWithIt, end, |js, ()| js.undefined())
}

fn to_body<'e>(js: Js<'e>, value: Value<'e>) -> Result<Body, Thrown> {
    Ok(match js.kind(value)? {
        Kind::Nothing => Body::Empty,
        Kind::Text => Body::Bytes(js.to_string(value)?.into()),
        Kind::Object => Body::Bytes(js.to_bytes(value)?.into()),
        _ => lock(&js.held::<Upload>(value)?.body)
            .take()
            .unwrap_or(Body::Empty),
    })
}

/// A header's value as the `ByteString` that the Headers class made of it.
fn latin1(units: &[u16]) -> Option<Vec<u8>> {
    units.iter().map(|unit| u8::try_from(*unit).ok()).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
