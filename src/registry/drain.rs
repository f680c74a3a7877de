//! Closing scopes, and waiting until their calls have settled.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::futures::OwnedNotified;
use tokio::time::timeout_at;

use super::{Call, CallId, Event, Map, Registry, Scope, State};
use crate::clock::{Instant, millis, now};
use crate::error::Failure;
use crate::scope::ScopeKey;

/// What a release waits for beyond twice the longest timeout: time for the last request of a
/// clean-up that itself ran into its deadline.
const GRACE: Duration = Duration::from_secs(5);

/// A release under way. While it lives, no call begins in what it covers and no second release
/// does; dropping it lifts that, whatever came of the release.
#[derive(Debug)]
pub struct Closing {
    registry: Registry,
    scope: ScopeKey,
    every_account: bool,
    number: u64,
}

/// An acquisition or a probe under way: until it is dropped, no shutdown ends.
#[derive(Debug)]
pub struct Acquiring {
    registry: Registry,
    number: u64,
}

/// The calls that a release or a shutdown has to wait for.
#[derive(Debug)]
pub struct Drain {
    waits: Vec<Wait>,
}

#[derive(Debug)]
struct Wait {
    drained: Pin<Box<OwnedNotified>>,
    bound: Instant,
}

impl Registry {
    /// Marks a scope closing, or the whole lease with `every_account`, and names the calls to
    /// abort, in the order in which they began. One step: no call is missed between the two.
    pub fn close(
        &self,
        scope: &ScopeKey,
        every_account: bool,
    ) -> Result<(Closing, Vec<CallId>, Drain), Failure> {
        let mut state = self.lock();
        let (marks, destroying) = state.marks(scope);
        if destroying || marks.closing > 0 {
            return Err(Failure::ReleaseInProgress);
        }
        if every_account {
            let lease = state.leases.entry(scope.lease.clone()).or_default();
            lease.destroying += 1;
        } else {
            let entry = state.scope(scope);
            entry.marks = entry.marks.after(Event::Close).unwrap_or(entry.marks);
        }
        let number = state.occupy();
        let State { leases, calls, .. } = &mut *state;
        let lease = leases.get_mut(&scope.lease).into_iter();
        let covered = lease
            .flat_map(|lease| &mut lease.scopes)
            .filter(|covered| every_account || covered.account == scope.account);
        let (running, drain) = drain(covered, calls);
        drop(state);
        let closing = Closing {
            registry: self.clone(),
            scope: scope.clone(),
            every_account,
            number,
        };
        Ok((closing, running, drain))
    }

    /// Refuses calls from now on and names all that run. May be repeated.
    pub fn shut_down(&self) -> (Vec<CallId>, Drain) {
        let mut state = self.lock();
        state.shut_down = true;
        let State { leases, calls, .. } = &mut *state;
        let scopes = leases
            .values_mut()
            .flat_map(|lease| lease.scopes.iter_mut());
        let drained = drain(scopes, calls);
        drop(state);
        self.shared.ending.cancel();
        drained
    }

    /// A lease is being acquired: shutdown waits until the guard is dropped.
    pub fn acquiring(&self) -> Result<Acquiring, Failure> {
        let mut state = self.lock();
        if state.shut_down {
            return Err(Failure::Closing);
        }
        Ok(Acquiring {
            number: state.occupy(),
            registry: self.clone(),
        })
    }

    /// Waits until the releases and acquisitions that are under way now have ended. Each is bounded
    /// by its own requests; later ones are not waited for, so this ends whatever else begins.
    pub fn idle(&self) -> impl Future<Output = ()> + Send + use<> {
        let registry = self.clone();
        let later = self.lock().next_busy;
        async move {
            loop {
                let idle = registry.shared.idle.notified();
                let first = registry.lock().busy.first().copied();
                if first.is_none_or(|first| first >= later) {
                    return;
                }
                idle.await;
            }
        }
    }
}

impl State {
    /// The number of a release or an acquisition that begins.
    fn occupy(&mut self) -> u64 {
        let number = self.next_busy;
        self.next_busy += 1;
        self.busy.insert(number);
        number
    }
}

impl Closing {
    /// The scope whose release it is.
    pub fn scope(&self) -> &ScopeKey {
        &self.scope
    }

    /// The registry it closes a part of.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        state.busy.remove(&self.number);
        if self.every_account {
            if let Some(lease) = state.leases.get_mut(&self.scope.lease) {
                lease.destroying = lease.destroying.saturating_sub(1);
            }
        } else {
            let entry = state.scope(&self.scope);
            entry.marks = entry.marks.after(Event::Lift).unwrap_or(entry.marks);
        }
        state.forget(&self.scope.lease);
        drop(state);
        self.registry.shared.idle.notify_waiters();
    }
}

impl Acquiring {
    /// The registry whose shutdown waits for it.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        self.registry.lock().busy.remove(&self.number);
        self.registry.shared.idle.notify_waiters();
    }
}

impl Drain {
    /// Waits for every scope, each within its own bound. True when all calls have settled.
    pub async fn wait(self) -> bool {
        let mut all = true;
        for wait in self.waits {
            // A bound that has passed meanwhile still sees a scope that has drained.
            all &= timeout_at(wait.bound, wait.drained).await.is_ok();
        }
        all
    }
}

/// The calls of the scopes, in the order in which they began, and what to wait for. A scope is
/// waited for at most twice the longest timeout configured for one of its calls, and five seconds.
fn drain<'a>(
    scopes: impl Iterator<Item = &'a mut Scope>,
    calls: &Map<CallId, Call>,
) -> (Vec<CallId>, Drain) {
    let start = now();
    let mut running = Vec::new();
    let mut waits = Vec::new();
    for scope in scopes.filter(|scope| !scope.calls.is_empty()) {
        running.extend(scope.calls.iter().copied());
        let timeouts = scope.calls.iter().filter_map(|call| calls.get(call));
        let longest = timeouts.map(|call| call.config_timeout).max().unwrap_or(0);
        let drained = Arc::clone(scope.drained.get_or_insert_default()).notified_owned();
        waits.push(Wait {
            drained: Box::pin(drained),
            bound: start + millis(longest) * 2 + GRACE,
        });
    }
    running.sort_unstable();
    (running, Drain { waits })
}
