//! The registry's numbered invariants, as far as one look at its state can tell, and what the tests
//! compare with their models.

use std::collections::HashSet;

use super::works::Kind;
use super::{CallId, Lease, Marks, Registry, State};
use crate::clock::now;
use crate::scope::{LeaseKey, ScopeKey};

/// How much a registry keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stored {
    pub leases: usize,
    pub scopes: usize,
    pub calls: usize,
    pub deadlines: usize,
    /// Releases and acquisitions under way.
    pub busy: u32,
}

impl Registry {
    /// Panics with the number of an invariant that does not hold. Invariants 4 and 5, and the
    /// "woken" of 6, are about what happened before; a test that knows its history checks those.
    pub(crate) fn assert_invariants(&self) {
        let state = self.lock();
        let mut listed = HashSet::new();
        for (key, lease) in &state.leases {
            state.assert_lease(key, lease, &mut listed);
        }
        assert_eq!(listed.len(), state.calls.len(), "1: a call without a scope");
        state.assert_deadlines();
        let guards: u32 = state
            .leases
            .values()
            .map(|lease| {
                lease.destroying + lease.scopes.iter().map(|s| s.marks.closing).sum::<u32>()
            })
            .sum();
        assert!(
            guards as usize <= state.busy.len(),
            "5: more marks than guards"
        );
    }

    /// How much is kept at present.
    pub(crate) fn stored(&self) -> Stored {
        let state = self.lock();
        Stored {
            leases: state.leases.len(),
            scopes: state.leases.values().map(|lease| lease.scopes.len()).sum(),
            calls: state.calls.len(),
            deadlines: state.printed_deadlines().matches("CallId").count(),
            busy: u32::try_from(state.busy.len()).expect("a small number"),
        }
    }

    /// Panics when anything at all is kept.
    pub(crate) fn assert_empty(&self) {
        assert_eq!(self.stored(), Stored::default());
    }

    /// A scope's marks, and how many destroys of its lease are under way.
    pub(crate) fn marks(&self, scope: &ScopeKey) -> (Marks, u32) {
        let state = self.lock();
        let destroying = state
            .leases
            .get(&scope.lease)
            .map_or(0, |lease| lease.destroying);
        (state.marks(scope).0, destroying)
    }
}

impl State {
    fn assert_lease(&self, key: &LeaseKey, lease: &Lease, listed: &mut HashSet<CallId>) {
        let destroying = lease.destroying > 0;
        assert!(
            destroying || !lease.scopes.is_empty(),
            "3: an empty lease is stored"
        );
        let works = lease.scopes.iter().flat_map(|scope| &scope.calls);
        let works = works.filter(|call| {
            self.calls
                .get(call)
                .is_some_and(|call| call.kind == Kind::Work)
        });
        assert_eq!(
            lease.works.running as usize,
            works.count(),
            "7: `works` is wrong"
        );
        let mut accounts = HashSet::new();
        for scope in &lease.scopes {
            assert!(
                accounts.insert(&scope.account),
                "1: a scope is stored twice"
            );
            assert!(!scope.marks.is_default(), "3: an empty scope is stored");
            assert_eq!(
                scope.marks.running as usize,
                scope.calls.len(),
                "1: `running` is wrong"
            );
            assert!(
                scope.drained.is_none() || !scope.calls.is_empty(),
                "6: nobody will wake them"
            );
            for (place, id) in scope.calls.iter().enumerate() {
                assert!(listed.insert(*id), "1: a call is listed twice");
                let call = self
                    .calls
                    .get(id)
                    .expect("2: a settled call is in its scope");
                assert_eq!(call.place, place, "1: a call is not where it thinks");
                let home = (&call.scope.lease, &call.scope.account);
                assert_eq!(
                    home,
                    (key, &scope.account),
                    "1: a call is in another's scope"
                );
            }
        }
    }

    fn assert_deadlines(&self) {
        let printed = self.printed_deadlines();
        let mut ahead = 0;
        for (id, call) in &self.calls {
            let waits = printed.contains(&format!("{:?}", (call.deadline, *id)));
            assert!(
                waits || call.deadline <= now(),
                "2: a call has lost its deadline"
            );
            ahead += usize::from(waits);
        }
        let kept = printed.matches("CallId").count();
        assert_eq!(kept, ahead, "2: a settled call has a deadline");
    }

    /// The set of deadlines is its module's own, and looking must not arm the timer anew; but it
    /// can be printed.
    fn printed_deadlines(&self) -> String {
        format!("{:?}", self.deadlines)
    }
}
