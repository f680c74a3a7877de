//! Which calls run under which lease, and which leases are closing or unconfirmed
//! (specification, sections 4 and 5).
//!
//! Invariants, which the tests assert by number after every action:
//!
//! 1. A call is in exactly one scope, and a scope's `running` is the number of its calls.
//! 2. A call that has settled is nowhere: not among the calls, not in its scope, not among the
//!    deadlines.
//! 3. A scope with nothing to remember is not stored, nor is a lease without scopes and destroys.
//! 4. No call begins in a scope that is closing, is unconfirmed or belongs to a lease being
//!    destroyed, nor in a registry that is shut down.
//! 5. `closing` and `destroying` are the number of living [`Closing`] guards that cover them.
//! 6. A waiter for a scope is woken when its last call settles, and by nothing else.
//! 7. A lease's works are its calls that are no resumes.
//!
//! One lock, held for a few map operations, never across an await and never while JavaScript runs.

mod deadlines;
mod drain;
#[cfg(test)]
mod invariants;
mod marks;
mod states;
mod timer;
mod works;

pub use drain::{Acquiring, Closing, Drain};
pub use marks::{Event, Marks};
#[cfg(test)]
pub use states::LeaseState;
pub use timer::OnDeadline;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::clock::{Instant, millis, now};
use crate::error::Failure;
use crate::runtime;
use crate::scope::{LeaseKey, ScopeKey};
use deadlines::Deadlines;
use works::{Kind, Works};

/// Keys come from callers: the hash is seeded, and quick.
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// One running call. Ordered as calls began, and unique within a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    sequence: u64,
    /// What the caller knows the call by; means nothing here.
    pub tag: u32,
}

/// The calls and marks of one driver. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Registry {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Guards everything below it in `State`.
    state: Mutex<State>,
    /// Woken when an earlier deadline than the timer's was added, and when the registry goes.
    timer: Arc<Notify>,
    /// Woken when a release or an acquisition has ended.
    idle: Notify,
    /// Cancelled by shutdown, and when the JavaScript environment ends: what is being acquired is
    /// given up and removed.
    ending: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    leases: Map<LeaseKey, Lease>,
    calls: Map<CallId, Call>,
    deadlines: Deadlines,
    next: u64,
    /// Releases and acquisitions under way: what shutdown waits for besides the calls.
    busy: BTreeSet<u64>,
    /// The number of the next of them.
    next_busy: u64,
    shut_down: bool,
    timer_runs: bool,
}

#[derive(Debug, Default)]
struct Lease {
    /// Destroys under way; they close every scope of the lease, those of other accounts too.
    destroying: u32,
    /// Whose calls run in its sandbox, of whatever account.
    works: Works,
    scopes: Vec<Scope>,
}

#[derive(Debug)]
struct Scope {
    account: Arc<str>,
    marks: Marks,
    calls: Vec<CallId>,
    /// There when somebody waits for the last call to settle.
    drained: Option<Arc<Notify>>,
}

#[derive(Debug)]
struct Call {
    scope: ScopeKey,
    /// Where its scope lists it.
    place: usize,
    deadline: Instant,
    /// The configuration's timeout, which bounds how long a release waits; milliseconds.
    config_timeout: u32,
    kind: Kind,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A registry without calls.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                timer: Arc::default(),
                idle: Notify::new(),
                ending: CancellationToken::new(),
            }),
        }
    }

    /// Registers a call, which ends by [`Registry::settle`]. `on_deadline` is told when it has run
    /// for `timeout` milliseconds.
    pub fn begin(
        &self,
        tag: u32,
        scope: ScopeKey,
        timeout: u32,
        config_timeout: u32,
        on_deadline: &OnDeadline,
    ) -> Result<CallId, Failure> {
        self.enter(false, tag, scope, [timeout, config_timeout], on_deadline)
    }

    /// Registers a resume, which is a call of its scope like any other, but does no work in the sandbox:
    /// see [`Registry::is_alone`].
    pub fn begin_resume(
        &self,
        tag: u32,
        scope: ScopeKey,
        config_timeout: u32,
        on_deadline: &OnDeadline,
    ) -> Result<CallId, Failure> {
        self.enter(true, tag, scope, [config_timeout; 2], on_deadline)
    }

    fn enter(
        &self,
        is_resume: bool,
        tag: u32,
        scope: ScopeKey,
        [timeout, config_timeout]: [u32; 2],
        on_deadline: &OnDeadline,
    ) -> Result<CallId, Failure> {
        let mut state = self.lock();
        if !state.admits(&scope) {
            return Err(Failure::Closing);
        }
        let starter = if state.timer_runs {
            None
        } else {
            Some(runtime::handle().ok_or(Failure::NoRuntime)?)
        };
        let call = CallId {
            sequence: state.next,
            tag,
        };
        state.next += 1;
        let deadline = now() + millis(timeout);
        let (place, kind) = {
            let (entry, works) = state.scope_and_works(&scope);
            entry.marks = entry
                .marks
                .after(Event::Begin)
                .map_err(|_| Failure::Closing)?;
            entry.calls.push(call);
            (entry.calls.len() - 1, works.begin(is_resume))
        };
        state.calls.insert(
            call,
            Call {
                scope,
                place,
                deadline,
                config_timeout,
                kind,
            },
        );
        let wake = state.deadlines.insert((deadline, call));
        state.timer_runs = true;
        drop(state);
        match starter {
            Some(runtime) => timer::start(&runtime, &self.shared, on_deadline),
            None if wake => self.shared.timer.notify_one(),
            None => {}
        }
        Ok(call)
    }

    /// Removes a call whose work has settled. By identity: a call that is gone stays gone, and no
    /// other is touched.
    pub fn settle(&self, call: CallId, cleanup_failed: bool) {
        let mut state = self.lock();
        let Some(Call {
            scope: key,
            place,
            deadline,
            kind,
            ..
        }) = state.calls.remove(&call)
        else {
            return;
        };
        state.deadlines.remove((deadline, call));
        let (scope, works) = state.scope_and_works(&key);
        works.settle(kind);
        scope.calls.swap_remove(place);
        let moved = scope.calls.get(place).copied();
        scope.marks = scope
            .marks
            .after(Event::Settle { cleanup_failed })
            .unwrap_or(scope.marks);
        let drained = if scope.calls.is_empty() {
            scope.drained.take()
        } else {
            None
        };
        if let Some(moved) = moved.and_then(|moved| state.calls.get_mut(&moved)) {
            moved.place = place;
        }
        state.forget(&key.lease);
        drop(state);
        if let Some(drained) = drained {
            drained.notify_waiters();
        }
    }

    /// A release for reuse gave up waiting: nobody can vouch for what still runs.
    pub fn bound_passed(&self, scope: &ScopeKey) {
        let mut state = self.lock();
        let entry = state.scope(scope);
        entry.marks = entry.marks.after(Event::BoundPassed).unwrap_or(entry.marks);
    }

    /// The provider confirmed that the sandbox is gone, for whichever account.
    pub fn destroyed(&self, lease: &LeaseKey) {
        let mut state = self.lock();
        if let Some(entry) = state.leases.get_mut(lease) {
            for scope in &mut entry.scopes {
                scope.marks = scope.marks.after(Event::Destroyed).unwrap_or(scope.marks);
            }
        }
        state.forget(lease);
    }

    /// Whether somebody else holds this registry too.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Cancelled by shutdown and by the environment's end.
    pub fn ending(&self) -> &CancellationToken {
        &self.shared.ending
    }

    /// The environment has ended, and with it every call's code: nothing will settle any more, so
    /// all count as settled. The timer goes with the registry.
    pub fn abandon(&self) {
        let calls: Vec<CallId> = {
            let mut state = self.lock();
            state.shut_down = true;
            state.calls.keys().copied().collect()
        };
        for call in calls {
            self.settle(call, false);
        }
        self.shared.ending.cancel();
        self.shared.timer.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }
}

impl Shared {
    /// A panic while the lock was held cannot have left the maps half changed in a way that
    /// matters more than refusing every later call would, so poisoning is passed over.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.timer.notify_one();
    }
}

impl State {
    /// The scope's entry, made when there is none.
    fn scope(&mut self, key: &ScopeKey) -> &mut Scope {
        self.scope_and_works(key).0
    }

    /// The same, and the works of its lease.
    fn scope_and_works(&mut self, key: &ScopeKey) -> (&mut Scope, &mut Works) {
        let lease = self.leases.entry(key.lease.clone()).or_default();
        let place = lease
            .scopes
            .iter()
            .position(|scope| scope.account == key.account);
        let place = place.unwrap_or_else(|| {
            lease.scopes.push(Scope {
                account: key.account.clone(),
                marks: Marks::default(),
                calls: Vec::new(),
                drained: None,
            });
            lease.scopes.len() - 1
        });
        (&mut lease.scopes[place], &mut lease.works)
    }

    /// Drops what there is nothing to remember of (invariant 3).
    fn forget(&mut self, key: &LeaseKey) {
        if let Entry::Occupied(mut entry) = self.leases.entry(key.clone()) {
            let lease = entry.get_mut();
            lease
                .scopes
                .retain(|scope| !scope.marks.is_default() || scope.drained.is_some());
            if lease.scopes.is_empty() && lease.destroying == 0 {
                entry.remove();
            }
        }
    }
}
