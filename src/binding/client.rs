//! The provider client across the boundary (specification, section 6).

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use super::config::{Parsed, optional_text};
use super::js::{Arguments, Js, Kind, Outcome, Thrown, Value};
use super::promise::{Survival, promise};
use crate::error::{Desired, Failure};
use crate::http::{
    AnswerBody, Body, BodySender, Bound, Client, CreateSandbox, Method, Request, SandboxId,
    StreamBroken,
};
use crate::lease::acquire::unique_name;
use crate::text::Text;

/// A client as the scripts hold it.
pub struct Core {
    pub client: Client,
    /// The hash of its key, for scope keys.
    pub account: Box<str>,
}

/// An answer's body that a script reads piece by piece.
struct Download {
    body: AsyncMutex<Option<AnswerBody>>,
    /// Cancelled when the script wants no more of it.
    dropped: CancellationToken,
}

/// A request body that a script fills piece by piece.
struct Upload {
    sender: Mutex<Option<BodySender>>,
    body: Mutex<Option<Body>>,
}

/// How many pieces of a request's body may wait to be sent.
const PIECES: usize = 4;

/// `createClient(parsed, environmentKey) -> External`: resolves the key.
pub fn create<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [parsed, environment, ..] = arguments;
    let config = Arc::clone(&js.held::<Parsed>(parsed)?.config);
    let key = config.resolve_api_key(|| optional_text(js, environment))?;
    let account = key.account().into();
    js.external(Arc::new(Core {
        client: Client::new(config, key),
        account,
    }))
}

/// `clientKey(core) -> string`: for the client's own getter.
pub fn key<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    js.text(js.held::<Core>(arguments[0])?.client.api_key().expose())
}

/// `createCancel() -> External`: what a signal cancels.
pub fn create_cancel<'e>(js: Js<'e>, _: Arguments<'e>) -> Outcome<'e> {
    js.external(Arc::new(CancellationToken::new()))
}

/// `cancel(cancel)`.
pub fn cancel<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    js.held::<CancellationToken>(arguments[0])?.cancel();
    js.undefined()
}

/// `request(core, cancel, method, path, headers, body) -> Promise<[status, statusText, headers,
/// body]>`. Headers are flat arrays of names and values; the body is nothing, a string, bytes, or
/// what `createUpload` gave.
pub fn request<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [core, cancel, method, path, headers, body, ..] = arguments;
    let client = &js.held::<Core>(core)?.client;
    let method = Method::from_bytes(js.to_string(method)?.as_bytes())
        .map_err(|_| Failure::Connection { sent: false })?;
    let mut request = Request::new(method, js.to_string(path)?).body(to_body(js, body)?);
    let headers = js.elements(headers)?;
    for pair in headers.chunks_exact(2) {
        let value = js
            .with_text(pair[1], latin1)?
            .ok_or(Failure::Connection { sent: false })?;
        request.headers.push((js.to_string(pair[0])?, value));
    }
    let answer = client.request(request, bound(js, client, cancel)?);
    promise(js, Survival::EndsWithIt, answer, |js, answer| {
        let headers = answer.headers.iter().flat_map(|(name, value)| {
            let value: Vec<u16> = value.iter().copied().map(u16::from).collect();
            [js.string(name), js.text(&value)]
        });
        js.array([
            js.integer(u32::from(answer.status)),
            js.string(&answer.status_text),
            js.array(headers),
            js.external(Arc::new(Download {
                body: AsyncMutex::new(Some(answer.body)),
                dropped: CancellationToken::new(),
            })),
        ])
    })
}

/// `readBody(body) -> Promise<Uint8Array | undefined>`: the next piece; undefined at the end.
pub fn read_body<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let download = js.keep::<Download>(arguments[0])?;
    let read = async move {
        let mut body = download.body.lock().await;
        let Some(reading) = &mut *body else {
            return Ok(None);
        };
        let piece = download
            .dropped
            .run_until_cancelled(reading.next())
            .await
            .flatten();
        if download.dropped.is_cancelled() {
            body.take();
        }
        piece.transpose()
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
        body.take();
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

/// `json(core, cancel, method, path, body) -> Promise<string>`: the answer's data as JSON text.
pub fn json<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [core, cancel, method, path, body, ..] = arguments;
    let client = &js.held::<Core>(core)?.client;
    let method = Method::from_bytes(js.to_string(method)?.as_bytes())
        .map_err(|_| Failure::Connection { sent: false })?;
    let body = optional_text(js, body)?.map(|body| body.to_well_formed());
    let answer = client.json(
        method,
        js.to_string(path)?,
        body,
        bound(js, client, cancel)?,
    );
    promise(js, Survival::EndsWithIt, answer, |js, answer| {
        js.string(answer.data())
    })
}

/// `getSandbox(core, cancel, id) -> Promise<string>`: its status.
pub fn get_sandbox<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let call = async move { client.get_sandbox(&id, bound).await };
    promise(js, Survival::EndsWithIt, call, |js, sandbox| {
        js.string(&sandbox.status)
    })
}

/// `destroySandbox(core, cancel, id) -> Promise<undefined>`.
pub fn destroy_sandbox<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let call = async move { client.destroy_sandbox(&id, bound).await };
    promise(js, Survival::EndsWithIt, call, |js, ()| js.undefined())
}

/// `transition(core, cancel, id, running) -> Promise<undefined>`.
pub fn transition<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let running = js.to_boolean(arguments[3])?;
    let desired = if running {
        Desired::Running
    } else {
        Desired::Paused
    };
    let call = async move { client.transition(&id, desired, bound).await };
    promise(js, Survival::EndsWithIt, call, |js, ()| js.undefined())
}

/// `setEgress(core, cancel, id, rules) -> Promise<undefined>`.
pub fn set_egress<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let rules = to_texts(js, arguments[3])?;
    let call = async move { client.set_egress(&id, &rules, bound).await };
    promise(js, Survival::EndsWithIt, call, |js, ()| js.undefined())
}

/// `upload(core, cancel, id, path, content) -> Promise<undefined>`.
pub fn upload<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let [_, _, _, path, content, ..] = arguments;
    let path = js.to_string(path)?;
    let content = match js.kind(content)? {
        Kind::Text => js.to_string(content)?.into(),
        _ => js.to_bytes(content)?.into(),
    };
    let call = async move { client.upload(&id, &path, content, bound).await };
    promise(js, Survival::EndsWithIt, call, |js, ()| js.undefined())
}

/// `createSandbox(core, cancel, rootfs, egress, autoPauseAfterSeconds) -> Promise<string>`: its id.
pub fn create_sandbox<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [core, cancel, rootfs, egress, auto_pause, ..] = arguments;
    let client = js.held::<Core>(core)?.client.clone();
    let bound = bound(js, &client, cancel)?;
    let wanted = CreateSandbox {
        shape: client.config().shape.clone(),
        rootfs: optional_text(js, rootfs)?,
        name: unique_name(),
        region: client.config().region.clone(),
        egress: to_texts(js, egress)?,
        auto_pause_after_seconds: match js.kind(auto_pause)? {
            Kind::Number => Some(js.to_integer(auto_pause)?),
            _ => None,
        },
    };
    let call = async move { client.create_sandbox(&wanted, bound).await };
    promise(js, Survival::EndsWithIt, call, |js, id| {
        js.string(id.as_str())
    })
}

/// The first three arguments of a call about one sandbox.
fn sandbox_call<'e>(
    js: Js<'e>,
    arguments: &Arguments<'e>,
) -> Result<(Client, Bound, SandboxId), Thrown> {
    let [core, cancel, id, ..] = *arguments;
    // An id that is no string is no id either.
    let id = optional_text(js, id)?.unwrap_or_default().to_well_formed();
    let client = js.held::<Core>(core)?.client.clone();
    let bound = bound(js, &client, cancel)?;
    Ok((client, bound, SandboxId::parse(&id)?))
}

/// A caller's signal alone bounds a request; without one, the configured timeout does.
fn bound<'e>(js: Js<'e>, client: &Client, cancel: Value<'e>) -> Result<Bound, Thrown> {
    Ok(match js.kind(cancel)? {
        Kind::Nothing => client.default_bound(),
        _ => Bound::cancelled_by(js.held::<CancellationToken>(cancel)?.clone()),
    })
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

/// The strings of an array; others have been refused by the script.
fn to_texts<'e>(js: Js<'e>, array: Value<'e>) -> Result<Vec<Text>, Thrown> {
    js.elements(array)?
        .into_iter()
        .map(|element| js.to_text(element))
        .collect()
}

/// A header's value as the `ByteString` that the Headers class made of it.
fn latin1(units: &[u16]) -> Option<Vec<u8>> {
    units.iter().map(|unit| u8::try_from(*unit).ok()).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
