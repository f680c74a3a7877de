//! Resuming a lease (specification, section 8).

use tokio_util::sync::CancellationToken;

use super::client::Core;
use super::config::{list, number, text};
use super::driver::Driver;
use super::node::{Arguments, Js, Outcome};
use super::promise::{Survival, promise};
use super::track::scope;
use crate::http::{Bound, SandboxId};
use crate::lease::resume::{Plan, Recorded, Resumed, resume as resume_lease};

/// `resume(driver, core, company, environment, id, cancel, aborted, marker, shape, rootfs, region,
/// adapter, autoPauseAfterSeconds, baseEgress, effectiveEgress) -> [slot, Promise<boolean>]`: whether the
/// lease can be worked under. The resume is registered as a call from here on. `undefined` when it has
/// expired already, `null` when the caller's signal is aborted.
pub fn resume<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [
        driver,
        core,
        company,
        environment,
        id,
        cancel,
        aborted,
        marker,
        shape,
        rootfs,
        region,
        adapter,
        auto_pause,
        base_egress,
        effective_egress,
        ..,
    ] = arguments;
    let driver: &Driver = js.held(driver)?;
    let core: &Core = js.held(core)?;
    let client = core.client.clone();
    let cancel = js.held::<CancellationToken>(cancel)?.clone();
    let scope = scope(js, core, company, environment, id)?;
    let recorded = Recorded {
        marker: text(js, marker)?,
        shape: text(js, shape)?,
        rootfs: text(js, rootfs)?,
        region: text(js, region)?,
        adapter: text(js, adapter)?,
        auto_pause_after_seconds: number(js, auto_pause)?,
        base_egress: list(js, base_egress)?,
        effective_egress: list(js, effective_egress)?,
    };
    driver.registry.admit_resume(&scope)?;
    let Some(plan) = Plan::new(client.config(), &recorded) else {
        return js.undefined();
    };
    let sandbox = SandboxId::parse(&js.to_string(id)?)?;
    if js.to_boolean(aborted)? {
        return js.null();
    }
    let slots = &js.house().slots;
    let slot = slots.borrow_mut().reserve();
    let timeout = client.config().timeout_ms;
    let begun = driver
        .registry
        .begin_resume(slot, scope, timeout, &driver.on_deadline);
    let call = match begun {
        Ok(call) => call,
        Err(failure) => {
            slots.borrow_mut().give_back(slot);
            return Err(failure.into());
        }
    };
    slots.borrow_mut().fill(driver.registry.clone(), call);
    let registry = driver.registry.clone();
    let bound = Bound::cancelled_by(cancel);
    let run = async move { resume_lease(&registry, call, &client, &sandbox, &plan, bound).await };
    let resumed = promise(js, Survival::EndsWithIt, run, |js, resumed| {
        js.boolean(resumed == Resumed::Ready)
    })
    .and_then(|promise| js.array([js.integer(slot), Ok(promise)]));
    if resumed.is_err() {
        slots.borrow_mut().remove(slot);
        driver.registry.settle(call, false);
    }
    resumed
}
