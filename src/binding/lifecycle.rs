//! What takes longer than a tick: release, shutdown, acquire, probe (specification, sections 5 and 8).

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::client::Core;
use super::config::{optional_text, texts};
use super::driver::Driver;
use super::node::{Arguments, Js, Kind, Outcome};
use super::promise::{Survival, promise};
use super::track::scope;
use crate::error::{ConfigFault, ConfigField, Failure};
use crate::lease::acquire::{Handover, Plan, Wishes, acquire as acquire_lease};
use crate::lease::probe::probe as probe_provider;
use crate::lease::release::{Ending, Release};
use crate::registry::CallId;

/// Something that is begun in one call from a script and carried out by a second, between which the
/// script aborts calls. Dropped unused, it is taken back.
struct Begun<T>(Mutex<Option<T>>);

impl<T> Begun<T> {
    fn new(begun: T) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(begun))))
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The end of everything that a shutdown waits for.
type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;

/// `beginRelease(driver, core, company, environment, id, destroy, autoPause) -> [begun, slots]`: the
/// scope is closing from here on, and the script aborts the slots before anything else happens.
pub fn begin_release<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [
        driver,
        core,
        company,
        environment,
        id,
        destroy,
        recorded,
        ..,
    ] = arguments;
    let core: &Core = js.held(core)?;
    let ending = Ending::decide(
        js.to_boolean(destroy)?,
        core.client.config(),
        js.to_boolean(recorded)?,
    );
    let scope = scope(js, core, company, environment, id)?;
    let registry = &js.held::<Driver>(driver)?.registry;
    let (release, calls) = Release::begin(registry, &scope, ending)?;
    js.array([js.external(Begun::new(release)), slots(js, &calls)])
}

/// `finishRelease(begun, core, id, confirm) -> Promise<string | undefined>`: what the provider has shown
/// of the sandbox.
pub fn finish_release<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [begun, core, id, confirm, ..] = arguments;
    let core: &Core = js.held(core)?;
    let confirm = js.to_boolean(confirm)?;
    let Some(release) = js.held::<Begun<Release>>(begun)?.take() else {
        return js.undefined();
    };
    let (client, id) = (core.client.clone(), js.to_string(id)?);
    // The closing mark is lifted here, on JavaScript's thread, when the promise settles: whatever
    // else the caller does in the tick of its release still finds the scope closing.
    let hold = release.hold();
    let run = async move { Ok((hold, release.confirming(confirm).run(client, &id).await)) };
    promise(js, Survival::GoesOn, run, |js, (hold, outcome)| {
        drop(hold);
        match outcome? {
            Some(proof) => js.string(proof.as_str()),
            None => js.undefined(),
        }
    })
}

/// `beginShutdown(driver) -> [begun, slots]`: no call begins from here on.
pub fn begin_shutdown<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let registry = &js.held::<Driver>(arguments[0])?.registry;
    let idle = registry.idle();
    let (calls, drain) = registry.shut_down();
    let ended: Ended = Box::pin(async move {
        drain.wait().await;
        idle.await;
    });
    js.array([js.external(Begun::new(ended)), slots(js, &calls)])
}

/// `finishShutdown(begun) -> Promise<undefined>`: when the calls have settled, or their scopes'
/// bounds have passed, and the releases and acquisitions that were under way have ended.
pub fn finish_shutdown<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let Some(ended) = js.held::<Begun<Ended>>(arguments[0])?.take() else {
        return js.undefined();
    };
    let run = async move {
        ended.await;
        Ok(())
    };
    promise(js, Survival::EndsWithIt, run, |js, ()| js.undefined())
}

/// `refuseExpiry() -> Error`: no lease ends by itself at a given time.
pub fn refuse_expiry<'e>(js: Js<'e>, _: Arguments<'e>) -> Outcome<'e> {
    js.error(Failure::ExpiryUnsupported.into())
}

/// `acquire(driver, core, cancel, adapter, fqdns, cidrs, reusable) -> Promise<[id, marker, rootfs, egress,
/// autoPauseAfterSeconds]>`. The rules come as two arrays, or as anything else when they are none.
pub fn acquire<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [driver, core, cancel, adapter, fqdns, cidrs, reusable, ..] = arguments;
    let cancel = js.held::<CancellationToken>(cancel)?.clone();
    let client = js.held::<Core>(core)?.client.clone();
    if js.kind(fqdns)? != Kind::Object || js.kind(cidrs)? != Kind::Object {
        let (field, fault) = (ConfigField::NetworkEgress, ConfigFault::NetworkEgress);
        return Err(Failure::Config { field, fault }.into());
    }
    let wishes = Wishes {
        adapter: optional_text(js, adapter)?,
        allow_fqdns: texts(js, fqdns)?,
        allow_cidrs: texts(js, cidrs)?,
        reusable: js.to_boolean(reusable)?,
    };
    let plan = Plan::new(client.config(), &wishes)?;
    // Let go of on JavaScript's thread, so that no shutdown is seen to end before this is.
    let hold = js.held::<Driver>(driver)?.registry.acquiring()?;
    let planned = plan.clone();
    let run = async move {
        let acquired = acquire_lease(&hold, &client, planned, cancel).await;
        Ok((
            hold,
            acquired.map(|acquired| Handover::new(client, acquired)),
        ))
    };
    promise(js, Survival::GoesOn, run, move |js, (hold, handover)| {
        drop(hold);
        let handover = handover?;
        let acquired = handover.acquired().ok_or(Failure::Internal)?;
        let lease = js.array([
            js.string(acquired.sandbox.as_str()),
            js.string(acquired.marker.as_str()),
            js.optional_text(plan.rootfs.as_ref()),
            js.array(plan.egress.iter().map(|rule| js.text(rule.units()))),
            plan.auto_pause_after_seconds
                .map_or_else(|| js.null(), |seconds| js.integer(seconds)),
        ])?;
        handover.done();
        Ok(lease)
    })
}

/// `probe(driver, core, cancel) -> Promise<undefined>`.
pub fn probe<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [driver, core, cancel, ..] = arguments;
    let client = js.held::<Core>(core)?.client.clone();
    let hold = js.held::<Driver>(driver)?.registry.acquiring();
    let cancel = js.held::<CancellationToken>(cancel)?.clone();
    let run = async move {
        let hold = hold?;
        let probed = probe_provider(&hold, &client, cancel).await;
        Ok((hold, probed))
    };
    promise(js, Survival::GoesOn, run, |js, (hold, probed)| {
        drop(hold);
        probed?;
        js.undefined()
    })
}

fn slots<'e>(js: Js<'e>, calls: &[CallId]) -> Outcome<'e> {
    js.array(calls.iter().map(|call| js.integer(call.tag)))
}
