//! Histories of a registry, and the plainest account of what it should know after each action.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tokio::task::JoinHandle;
use tokio::time::advance;

use super::{let_run, scope};
use crate::clock::{Instant, millis, now};
use crate::error::Failure;
use crate::registry::{CallId, Closing, Drain, LeaseState, OnDeadline, Registry};
use crate::scope::ScopeKey;

/// What is done to a registry. Numbers choose among what there is at that moment.
#[derive(Debug, Clone)]
pub enum Action {
    Begin {
        scope: usize,
        timeout: u32,
        config_timeout: u32,
    },
    /// One of all calls there ever were: a settled one settles once more.
    Settle {
        call: usize,
        cleanup_failed: bool,
    },
    Close {
        scope: usize,
        every_account: bool,
    },
    /// The oldest guard or another one goes; its drain may go on.
    Lift {
        guard: usize,
    },
    /// Whoever waits stops waiting.
    StopWaiting {
        drain: usize,
    },
    Acquire,
    EndAcquisition,
    BoundPassed {
        scope: usize,
    },
    Destroyed {
        scope: usize,
    },
    /// Milliseconds.
    Advance(u32),
    ShutDown,
    Abandon,
}

pub fn action() -> impl Strategy<Value = Action> {
    let timeout = || prop::sample::select(&[1_u32, 2, 10, 1000, 30_000][..]);
    let scope = 0..SCOPES;
    let any_of = 0..64_usize;
    prop_oneof![
        80 => (scope.clone(), timeout(), timeout()).prop_map(|(scope, timeout, config_timeout)| {
            Action::Begin { scope, timeout, config_timeout }
        }),
        60 => (any_of.clone(), prop::bool::weighted(0.15))
            .prop_map(|(call, cleanup_failed)| Action::Settle { call, cleanup_failed }),
        30 => (scope.clone(), any::<bool>())
            .prop_map(|(scope, every_account)| Action::Close { scope, every_account }),
        30 => any_of.clone().prop_map(|guard| Action::Lift { guard }),
        5 => any_of.prop_map(|drain| Action::StopWaiting { drain }),
        5 => Just(Action::Acquire),
        5 => Just(Action::EndAcquisition),
        5 => scope.clone().prop_map(|scope| Action::BoundPassed { scope }),
        15 => scope.prop_map(|scope| Action::Destroyed { scope }),
        30 => prop::sample::select(&[1_u32, 9, 999, 5001, 7000, 20_000, 70_000][..])
            .prop_map(Action::Advance),
        2 => Just(Action::ShutDown),
        1 => Just(Action::Abandon),
    ]
}

/// Two leases, two accounts each.
const SCOPES: usize = 4;

fn scopes() -> [ScopeKey; SCOPES] {
    [("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")]
        .map(|(lease, account)| scope(lease, account))
}

const fn lease_of(scope: usize) -> usize {
    scope / 2
}

/// A call as the model knows it.
#[derive(Debug, Clone)]
struct Call {
    id: CallId,
    scope: usize,
    deadline: Instant,
    config_timeout: u32,
    running: bool,
    told: bool,
}

/// One scope that somebody waits for.
#[derive(Debug)]
struct Wait {
    scope: usize,
    bound: Instant,
    /// When its last call settled.
    drained: Option<Instant>,
}

#[derive(Debug)]
struct Waiting {
    task: JoinHandle<bool>,
    waits: Vec<Wait>,
}

/// The registry, and beside it the plainest account of what it should know.
pub struct World {
    registry: Registry,
    on_deadline: OnDeadline,
    told: Arc<Mutex<Vec<CallId>>>,
    scopes: [ScopeKey; SCOPES],
    calls: Vec<Call>,
    unconfirmed: [bool; SCOPES],
    guards: Vec<(usize, bool, Closing)>,
    acquisitions: Vec<Box<dyn Send>>,
    waiting: Vec<Waiting>,
    shut_down: bool,
}

impl World {
    pub fn new() -> Self {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        Self {
            registry: Registry::new(),
            on_deadline: OnDeadline::new(move |calls| {
                tell.lock().expect("no panic").extend(calls);
            }),
            told,
            scopes: scopes(),
            calls: Vec::new(),
            unconfirmed: [false; SCOPES],
            guards: Vec::new(),
            acquisitions: Vec::new(),
            waiting: Vec::new(),
            shut_down: false,
        }
    }

    fn running(&self, scope: usize) -> impl Iterator<Item = &Call> {
        self.calls
            .iter()
            .filter(move |call| call.running && call.scope == scope)
    }

    fn closing(&self, scope: usize) -> usize {
        self.guards
            .iter()
            .filter(|(covered, every, _)| !every && *covered == scope)
            .count()
    }

    fn destroying(&self, scope: usize) -> usize {
        let lease = lease_of(scope);
        self.guards
            .iter()
            .filter(|(of, every, _)| *every && lease_of(*of) == lease)
            .count()
    }

    fn is_closing(&self, scope: usize) -> bool {
        self.closing(scope) + self.destroying(scope) > 0
    }

    fn admits(&self, scope: usize) -> bool {
        !self.shut_down && !self.is_closing(scope) && !self.unconfirmed[scope]
    }

    pub async fn act(&mut self, action: Action) {
        match action {
            Action::Begin {
                scope,
                timeout,
                config_timeout,
            } => {
                self.begin(scope, timeout, config_timeout);
            }
            Action::Settle {
                call,
                cleanup_failed,
            } => {
                if !self.calls.is_empty() {
                    self.settle(call % self.calls.len(), cleanup_failed);
                }
            }
            Action::Close {
                scope,
                every_account,
            } => self.close(scope, every_account),
            Action::Lift { guard } => {
                if !self.guards.is_empty() {
                    self.guards.swap_remove(guard % self.guards.len());
                }
            }
            Action::StopWaiting { drain } => {
                if !self.waiting.is_empty() {
                    let stopped = self.waiting.swap_remove(drain % self.waiting.len());
                    stopped.task.abort();
                }
            }
            Action::Acquire => match self.registry.acquiring() {
                Ok(guard) => {
                    assert!(!self.shut_down, "4: acquired after a shutdown");
                    self.acquisitions.push(Box::new(guard));
                }
                Err(refused) => assert_eq!((refused, self.shut_down), (Failure::Closing, true)),
            },
            Action::EndAcquisition => drop(self.acquisitions.pop()),
            Action::BoundPassed { scope } => {
                self.registry.bound_passed(&self.scopes[scope]);
                self.unconfirmed[scope] = true;
            }
            Action::Destroyed { scope } => {
                self.registry.destroyed(&self.scopes[scope].lease);
                let first = lease_of(scope) * 2;
                self.unconfirmed[first..first + 2].fill(false);
            }
            Action::Advance(milliseconds) => advance(millis(milliseconds)).await,
            Action::ShutDown => {
                let (named, drain) = self.registry.shut_down();
                self.shut_down = true;
                self.wait(&named, drain, &[0, 1, 2, 3]);
            }
            Action::Abandon => {
                self.registry.abandon();
                self.shut_down = true;
                for call in 0..self.calls.len() {
                    self.settled(call, false);
                }
            }
        }
        let_run().await;
        self.check().await;
    }

    fn begin(&mut self, scope: usize, timeout: u32, config_timeout: u32) {
        let admitted = self.admits(scope);
        let key = self.scopes[scope].clone();
        assert_eq!(self.registry.admit(&key).is_ok(), admitted, "4");
        let tag = u32::try_from(self.calls.len()).expect("few calls");
        let begun = self
            .registry
            .begin(tag, key, timeout, config_timeout, &self.on_deadline);
        assert_eq!(begun.is_ok(), admitted, "4");
        let Ok(id) = begun else { return };
        assert_eq!(id.tag, tag);
        let deadline = now() + millis(timeout);
        let call = Call {
            id,
            scope,
            deadline,
            config_timeout,
            running: true,
            told: false,
        };
        self.calls.push(call);
    }

    fn settle(&mut self, call: usize, cleanup_failed: bool) {
        self.registry.settle(self.calls[call].id, cleanup_failed);
        self.settled(call, cleanup_failed);
    }

    fn settled(&mut self, call: usize, cleanup_failed: bool) {
        if !std::mem::take(&mut self.calls[call].running) {
            return;
        }
        let scope = self.calls[call].scope;
        self.unconfirmed[scope] |= cleanup_failed;
        if self.running(scope).next().is_none() {
            let waits = self
                .waiting
                .iter_mut()
                .flat_map(|waiting| &mut waiting.waits);
            for wait in waits.filter(|wait| wait.scope == scope) {
                wait.drained.get_or_insert(now());
            }
        }
    }

    fn close(&mut self, scope: usize, every_account: bool) {
        match self.registry.close(&self.scopes[scope], every_account) {
            Ok((guard, named, drain)) => {
                assert!(!self.is_closing(scope), "5: a second release");
                assert_eq!(*guard.scope(), self.scopes[scope]);
                self.guards.push((scope, every_account, guard));
                let first = lease_of(scope) * 2;
                let both = [first, first + 1];
                self.wait(
                    &named,
                    drain,
                    if every_account {
                        &both
                    } else {
                        &both[scope % 2..][..1]
                    },
                );
            }
            Err(refused) => {
                assert_eq!(
                    (refused, self.is_closing(scope)),
                    (Failure::ReleaseInProgress, true)
                );
            }
        }
    }

    fn wait(&mut self, named: &[CallId], drain: Drain, covered: &[usize]) {
        let calls = self
            .calls
            .iter()
            .filter(|call| call.running && covered.contains(&call.scope));
        let expected: Vec<_> = calls.map(|call| call.id).collect();
        assert_eq!(
            named, expected,
            "the calls to abort, in the order in which they began"
        );
        let wait = |scope: &usize| {
            let longest = self.running(*scope).map(|call| call.config_timeout).max()?;
            let bound = now() + millis(2 * longest + 5000);
            Some(Wait {
                scope: *scope,
                bound,
                drained: None,
            })
        };
        let waits = covered.iter().filter_map(wait).collect();
        self.waiting.push(Waiting {
            task: tokio::spawn(drain.wait()),
            waits,
        });
    }

    /// Compares all that can be seen.
    async fn check(&mut self) {
        self.registry.assert_invariants();
        for (at, key) in self.scopes.iter().enumerate() {
            let (marks, destroying) = self.registry.marks(key);
            assert_eq!(marks.running as usize, self.running(at).count(), "1");
            assert_eq!(marks.closing as usize, self.closing(at), "5");
            assert_eq!(destroying as usize, self.destroying(at), "5");
            assert_eq!(marks.unconfirmed, self.unconfirmed[at]);
            assert_eq!(self.registry.is_unconfirmed(key), self.unconfirmed[at]);
            let expected = match () {
                () if self.shut_down => LeaseState::Shutdown,
                () if self.is_closing(at) => LeaseState::Closing,
                () if self.unconfirmed[at] => LeaseState::Unconfirmed,
                () => LeaseState::Open,
            };
            assert_eq!(self.registry.state(key), expected);
        }
        let stored = self.registry.stored();
        assert_eq!(
            stored.calls,
            self.calls.iter().filter(|call| call.running).count(),
            "2"
        );
        assert_eq!(
            stored.busy as usize,
            self.guards.len() + self.acquisitions.len(),
            "5"
        );
        self.check_deadlines();
        self.check_waits().await;
    }

    /// Whoever's deadline has passed was told once, in order, and nobody else.
    fn check_deadlines(&mut self) {
        let due = |call: &&mut Call| call.running && !call.told && call.deadline <= now();
        let mut due: Vec<_> = self.calls.iter_mut().filter(due).collect();
        due.sort_by_key(|call| (call.deadline, call.id));
        let mut expected = Vec::new();
        for call in due {
            call.told = true;
            expected.push(call.id);
        }
        assert_eq!(*self.told.lock().expect("no panic"), expected);
        self.told.lock().expect("no panic").clear();
    }

    /// A wait is over when each scope has drained or has had its time; it is over by nothing else.
    async fn check_waits(&mut self) {
        let now = now();
        let mut at = 0;
        while let Some(Waiting { task, waits }) = self.waiting.get_mut(at) {
            let over = waits
                .iter()
                .all(|wait| wait.drained.is_some() || wait.bound <= now);
            assert_eq!(task.is_finished(), over, "6: {waits:?}");
            if !over {
                at += 1;
                continue;
            }
            let all = task.await.expect("no panic");
            // A scope that drained after its own bound, while another was waited for, may count.
            if waits.iter().any(|wait| wait.drained.is_none()) {
                assert!(!all, "6: {waits:?}");
            } else if waits
                .iter()
                .all(|wait| wait.drained.is_some_and(|at| at < wait.bound))
            {
                assert!(all, "6: {waits:?}");
            }
            self.waiting.swap_remove(at);
        }
    }

    /// When all is over, nothing is left.
    pub async fn end(&mut self) {
        for call in 0..self.calls.len() {
            self.settle(call, false);
        }
        self.guards.clear();
        self.acquisitions.clear();
        for scope in [0, 2] {
            self.act(Action::Destroyed { scope }).await;
        }
        assert!(self.waiting.is_empty(), "6: somebody waits for nothing");
        self.registry.assert_empty();
    }
}
