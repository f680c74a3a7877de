//! What a scope is in, looked at from outside.

use super::{Marks, Registry, State};
use crate::error::Failure;
use crate::scope::ScopeKey;

/// What a scope looks like from outside (`leaseState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    Open,
    Closing,
    Unconfirmed,
    Shutdown,
}

impl LeaseState {
    /// As JavaScript sees it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closing => "closing",
            Self::Unconfirmed => "unconfirmed",
            Self::Shutdown => "shutdown",
        }
    }
}

impl Registry {
    /// Whether a call may begin: check 3 of section 4 alone.
    pub fn admit(&self, scope: &ScopeKey) -> Result<(), Failure> {
        if self.lock().admits(scope) {
            Ok(())
        } else {
            Err(Failure::Closing)
        }
    }

    /// The same for a resume.
    pub fn admit_resume(&self, scope: &ScopeKey) -> Result<(), Failure> {
        self.admit(scope).map_err(|_| Failure::ClosingToResume)
    }

    /// The state of a scope as `leaseState` tells it.
    pub fn state(&self, scope: &ScopeKey) -> LeaseState {
        let state = self.lock();
        if state.shut_down {
            return LeaseState::Shutdown;
        }
        let (marks, destroying) = state.marks(scope);
        if destroying || marks.closing > 0 {
            LeaseState::Closing
        } else if marks.unconfirmed {
            LeaseState::Unconfirmed
        } else {
            LeaseState::Open
        }
    }

    /// Whether the scope's cleanup is unconfirmed.
    pub fn is_unconfirmed(&self, scope: &ScopeKey) -> bool {
        self.lock().marks(scope).0.unconfirmed
    }
}

impl State {
    pub(super) fn admits(&self, scope: &ScopeKey) -> bool {
        let (marks, destroying) = self.marks(scope);
        !self.shut_down && !destroying && marks.admits()
    }

    /// The scope's marks, and whether its lease is being destroyed.
    pub(super) fn marks(&self, key: &ScopeKey) -> (Marks, bool) {
        let Some(lease) = self.leases.get(&key.lease) else {
            return (Marks::default(), false);
        };
        let marks = lease
            .scopes
            .iter()
            .find(|scope| scope.account == key.account);
        (
            marks.map(|scope| scope.marks).unwrap_or_default(),
            lease.destroying > 0,
        )
    }
}
