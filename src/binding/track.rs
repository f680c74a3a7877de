//! The calls that a tracked call and a release make on JavaScript's thread (specification,
//! sections 3 to 5).

use std::sync::Arc;

use super::client::Core;
use super::config::Parsed;
use super::driver::Driver;
use super::node::{Arguments, Js, Kind, Outcome, Thrown, Value};
use crate::config::parse_timeout;
use crate::error::{Action, Failure};
use crate::ownership::{Claim, PROVIDER};
use crate::scope::ScopeKey;

/// What `begin` answers instead of a slot: the call is refused by a plain `TypeError` or by the
/// caller's own signal, which the script looks after.
const WORK_IS_NO_FUNCTION: f64 = -1.0;
const SIGNAL_IS_NONE: f64 = -2.0;
const SIGNAL_IS_ABORTED: f64 = -3.0;

/// `claim(id, provider, metadataCompany, company, metadataEnvironment, environment) -> mask`: a bit
/// for each field that does not match, in the order of the checks. 0: the lease may be theirs.
pub fn claim<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [
        id,
        provider,
        their_company,
        company,
        their_environment,
        environment,
        ..,
    ] = arguments;
    let claim = Claim {
        provider_lease_id: is_id(js, id)?,
        provider: is_provider(js, provider)?,
        company_id: is_same_id(js, their_company, company)?,
        environment_id: is_same_id(js, their_environment, environment)?,
    };
    js.integer(claim.mask())
}

/// `refuse(action, mask) -> Error`: the refusal that `claim`'s mask stands for; 0 stands for a
/// claim that held until the API origin was compared.
pub fn refuse<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [action, mask, ..] = arguments;
    let action = match js.to_integer(action)? {
        0 => Action::Track,
        1 => Action::Release,
        _ => Action::Workspace,
    };
    js.error(Claim::refusal(action, js.to_integer(mask)?).into())
}

/// `isOrigin(parsed, apiUrl) -> boolean`: whether the metadata's API origin is the configuration's.
pub fn is_origin<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [parsed, url, ..] = arguments;
    let Parsed { origin, .. } = js.held(parsed)?;
    let same = js.kind(url)? == Kind::Text && js.with_text(url, |url| url == origin.units())?;
    js.boolean(same)
}

/// `scopeKey(core, company, environment, id) -> string`.
pub fn scope_key<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [core, company, environment, id, ..] = arguments;
    let scope = scope(js, js.held(core)?, company, environment, id)?;
    js.string(&scope.to_json())
}

/// `leaseState(driver, core, company, environment, id) -> string`.
pub fn lease_state<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [driver, core, company, environment, id, ..] = arguments;
    let scope = scope(js, js.held(core)?, company, environment, id)?;
    js.string(js.held::<Driver>(driver)?.registry.state(&scope).as_str())
}

/// `admit(driver, core, company, environment, id)`: check 3 alone, before options are read.
pub fn admit<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [driver, core, company, environment, id, ..] = arguments;
    let scope = scope(js, js.held(core)?, company, environment, id)?;
    js.held::<Driver>(driver)?.registry.admit(&scope)?;
    js.undefined()
}

/// `begin(driver, core, company, environment, id, timeout, work, signal, aborted) -> slot`: checks
/// 3 to 5, and registers the call. Negative when it was refused by a reason that JavaScript holds.
pub fn begin<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [
        driver,
        core,
        company,
        environment,
        id,
        timeout,
        work,
        signal,
        aborted,
        ..,
    ] = arguments;
    let driver: &Driver = js.held(driver)?;
    let core: &Core = js.held(core)?;
    let scope = scope(js, core, company, environment, id)?;
    let configured = core.client.config().timeout_ms;
    let terms = terms(js, timeout, configured, work, [signal, aborted])?;
    let timeout = match terms {
        Terms::Timeout(timeout) => timeout,
        // The scope is looked at before the rest, and refused first.
        Terms::Invalid => {
            driver.registry.admit(&scope)?;
            return Err(Failure::TimeoutInvalid.into());
        }
        Terms::Refused(answer) => {
            driver.registry.admit(&scope)?;
            return js.number(answer);
        }
    };
    let slots = &js.house().slots;
    let slot = slots.borrow_mut().reserve();
    match driver
        .registry
        .begin(slot, scope, timeout, configured, &driver.on_deadline)
    {
        Ok(call) => slots.borrow_mut().fill(driver.registry.clone(), call),
        Err(failure) => {
            slots.borrow_mut().give_back(slot);
            return Err(failure.into());
        }
    }
    js.integer(slot)
}

/// On what terms a call is to run.
enum Terms {
    /// For so many milliseconds.
    Timeout(u32),
    /// Its timeout is none.
    Invalid,
    /// `begin`'s answer, for a reason that JavaScript holds.
    Refused(f64),
}

/// Checks 4 and 5, and the caller's signal.
fn terms<'e>(
    js: Js<'e>,
    timeout: Value<'e>,
    configured: u32,
    work: Value<'e>,
    [signal, aborted]: [Value<'e>; 2],
) -> Result<Terms, Thrown> {
    let timeout = match js.kind(timeout)? {
        Kind::Nothing => Ok(configured),
        Kind::Number => parse_timeout(js.to_number(timeout)?),
        _ => Err(Failure::TimeoutInvalid),
    };
    let Ok(timeout) = timeout else {
        return Ok(Terms::Invalid);
    };
    Ok(if js.kind(work)? != Kind::Function {
        Terms::Refused(WORK_IS_NO_FUNCTION)
    } else if !js.to_boolean(signal)? {
        Terms::Refused(SIGNAL_IS_NONE)
    } else if js.to_boolean(aborted)? {
        Terms::Refused(SIGNAL_IS_ABORTED)
    } else {
        Terms::Timeout(timeout)
    })
}

/// `end(slot, cleanupFailed)`: the call's work has settled.
pub fn end<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [slot, cleanup_failed, ..] = arguments;
    let call = js.house().slots.borrow_mut().remove(js.to_integer(slot)?);
    if let Some((registry, call)) = call {
        registry.settle(call, js.to_boolean(cleanup_failed)?);
    }
    js.undefined()
}

/// The scope of a lease whose ids have been proved to be strings.
pub fn scope<'e>(
    js: Js<'e>,
    core: &Core,
    company: Value<'e>,
    environment: Value<'e>,
    id: Value<'e>,
) -> Result<ScopeKey, Thrown> {
    let origin = &core.client.config().api_url;
    js.with_text(company, |company| {
        js.with_text(environment, |environment| {
            js.with_text(id, |id| {
                ScopeKey::new(company, environment, origin, Arc::clone(&core.account), id)
            })
        })
    })
    .flatten()
    .flatten()
}

fn is_id<'e>(js: Js<'e>, value: Value<'e>) -> Result<bool, Thrown> {
    Ok(js.kind(value)? == Kind::Text && js.text_length(value)? > 0)
}

fn is_provider<'e>(js: Js<'e>, value: Value<'e>) -> Result<bool, Thrown> {
    let named = |units: &[u16]| units.iter().copied().eq(PROVIDER.encode_utf16());
    Ok(js.kind(value)? == Kind::Text && js.with_text(value, named)?)
}

/// Both are the same non-empty string, as `===` compares them.
fn is_same_id<'e>(js: Js<'e>, one: Value<'e>, other: Value<'e>) -> Result<bool, Thrown> {
    Ok(js.same(one, other)? && is_id(js, one)?)
}
