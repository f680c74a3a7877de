//! The provider client across the boundary (specification, section 6).

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::config::{Parsed, optional_text};
use super::node::{Arguments, Js, Kind, Outcome, Thrown, Value};
use super::promise::prepare;
use crate::error::{Desired, Failure};
use crate::http::{Bound, Client, CreateSandbox, Method, SandboxId};
use crate::lease::acquire::unique_name;
use crate::text::Text;

/// A client as the scripts hold it.
pub struct Core {
    pub client: Client,
    /// The hash of its key, for scope keys.
    pub account: Arc<str>,
}

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

/// `json(core, cancel, method, path, body) -> prepared Promise<string>`: the answer's data as JSON text.
pub fn json<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [core, cancel, method, path, body, ..] = arguments;
    let client = &js.held::<Core>(core)?.client;
    let method = to_method(js, method)?;
    let body = optional_text(js, body)?.map(|body| body.to_well_formed());
    let answer = client.json(
        method,
        js.to_string(path)?,
        body,
        bound(js, client, cancel)?,
    );
    prepare(js, answer, |js, answer| js.string(answer.data()))
}

/// `getSandbox(core, cancel, id) -> prepared Promise<string>`: its status.
pub fn get_sandbox<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let call = async move { client.get_sandbox(&id, bound).await };
    prepare(js, call, |js, sandbox| js.string(&sandbox.status))
}

/// `destroySandbox(core, cancel, id) -> prepared Promise<undefined>`.
pub fn destroy_sandbox<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let call = async move { client.destroy_sandbox(&id, bound).await };
    prepare(js, call, |js, _| js.undefined())
}

/// `transition(core, cancel, id, running) -> prepared Promise<undefined>`.
pub fn transition<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let running = js.to_boolean(arguments[3])?;
    let desired = if running {
        Desired::Running
    } else {
        Desired::Paused
    };
    let call = async move { client.transition(&id, desired, bound).await };
    prepare(js, call, |js, ()| js.undefined())
}

/// `setEgress(core, cancel, id, rules) -> prepared Promise<undefined>`.
pub fn set_egress<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let rules = to_texts(js, arguments[3])?;
    let call = async move { client.set_egress(&id, &rules, bound).await };
    prepare(js, call, |js, ()| js.undefined())
}

/// `upload(core, cancel, id, path, content) -> prepared Promise<undefined>`.
pub fn upload<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let (client, bound, id) = sandbox_call(js, &arguments)?;
    let [_, _, _, path, content, ..] = arguments;
    let path = js.to_string(path)?;
    let content = match js.kind(content)? {
        Kind::Text => js.to_string(content)?.into(),
        _ => js.to_bytes(content)?.into(),
    };
    let call = async move { client.upload(&id, &path, content, bound).await };
    prepare(js, call, |js, ()| js.undefined())
}

/// `createSandbox(core, cancel, rootfs, egress, autoPauseAfterSeconds) -> prepared Promise<string>`: its id.
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
    prepare(js, call, |js, id| js.string(id.as_str()))
}

/// The first three arguments of a call about one sandbox.
fn sandbox_call<'e>(
    js: Js<'e>,
    arguments: &Arguments<'e>,
) -> Result<(Client, Bound, SandboxId), Thrown> {
    let [core, cancel, id, ..] = *arguments;
    let client = js.held::<Core>(core)?.client.clone();
    let bound = bound(js, &client, cancel)?;
    Ok((client, bound, to_sandbox(js, id)?))
}

/// A sandbox's id as a caller gave it. What is no string is no id either.
pub fn to_sandbox<'e>(js: Js<'e>, id: Value<'e>) -> Result<SandboxId, Thrown> {
    let id = optional_text(js, id)?.unwrap_or_default().to_well_formed();
    Ok(SandboxId::parse(&id)?)
}

/// A request's method; one that cannot be sent fails as a connection does.
pub fn to_method<'e>(js: Js<'e>, method: Value<'e>) -> Result<Method, Thrown> {
    let method = Method::from_bytes(js.to_string(method)?.as_bytes());
    Ok(method.map_err(|_| Failure::Connection { sent: false })?)
}

/// A caller's signal alone bounds a request; without one, the configured timeout does.
pub fn bound<'e>(js: Js<'e>, client: &Client, cancel: Value<'e>) -> Result<Bound, Thrown> {
    Ok(match js.kind(cancel)? {
        Kind::Nothing => client.default_bound(),
        _ => Bound::cancelled_by(js.held::<CancellationToken>(cancel)?.clone()),
    })
}

/// The strings of an array; others have been refused by the script.
fn to_texts<'e>(js: Js<'e>, array: Value<'e>) -> Result<Vec<Text>, Thrown> {
    js.elements(array)?
        .into_iter()
        .map(|element| js.to_text(element))
        .collect()
}
