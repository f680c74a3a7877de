//! Giving a lease back (specification, section 5).
//!
//! ```text
//! begin (JavaScript's thread, one tick)         run (the runtime)
//! mark closing -> abort every call      ->      wait for the calls, bounded
//!                                                 |
//!                              +------------------+-----------------+
//!                              v                  v                 v
//!                          destroy: DELETE     pause: to paused   keep warm: no request
//!                              |                  |                 |
//!                              +------------------+-----------------+
//!                                                 v
//!                                     lift the closing mark, always
//! ```

use std::sync::Arc;

use crate::config::Config;
use crate::error::{Desired, Failure};
use crate::http::{Client, Removal, SandboxId};
use crate::registry::{CallId, Closing, Drain, Registry};
use crate::scope::ScopeKey;

/// What becomes of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is removed, and with it everything that runs in it, for every account.
    Destroy,
    /// It is brought to `paused`, to be resumed later.
    Pause,
    /// It stays as it is: the provider pauses it by its own idle timer.
    KeepWarm,
}

impl Ending {
    /// Steps 5 and 6: what the request, the configuration and the idle timer that the lease was
    /// acquired with make of a release. `recorded_auto_pause` is whether the lease's metadata
    /// carries the very value of the configuration; without it the provider would never pause a
    /// sandbox left warm, so that is destroyed.
    pub fn decide(destroy: bool, config: &Config, recorded_auto_pause: bool) -> Self {
        match config.auto_pause_after_seconds {
            _ if destroy || !config.reuse_lease => Self::Destroy,
            None => Self::Pause,
            Some(_) if recorded_auto_pause => Self::KeepWarm,
            Some(_) => Self::Destroy,
        }
    }
}

/// What the provider has shown of a sandbox in which nothing runs any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It is destroyed or gone.
    Destroyed,
    /// It is paused.
    Stopped,
}

impl Proof {
    /// As JavaScript sees it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Destroyed => "destroyed",
            Self::Stopped => "stopped",
        }
    }
}

/// A release that has begun: its scope is closing until this and every [`Release::hold`] is dropped.
#[derive(Debug)]
pub struct Release {
    closing: Arc<Closing>,
    drain: Drain,
    ending: Ending,
    confirm: bool,
}

impl Release {
    /// Marks the scope closing and names the calls that must be aborted before anything else
    /// happens on this thread.
    pub fn begin(
        registry: &Registry,
        scope: &ScopeKey,
        ending: Ending,
    ) -> Result<(Self, Vec<CallId>), Failure> {
        let (closing, calls, drain) = registry.close(scope, ending == Ending::Destroy)?;
        Ok((
            Self {
                closing: Arc::new(closing),
                drain,
                ending,
                confirm: false,
            },
            calls,
        ))
    }

    /// Keeps the scope closing until it is dropped: for whoever has to tell the caller of the outcome
    /// first. Without it a call could begin between the end of the work and the end that is seen.
    pub fn hold(&self) -> Arc<Closing> {
        Arc::clone(&self.closing)
    }

    /// With `confirm` a removal is waited for until the provider shows it; else one that it has accepted
    /// is enough.
    #[must_use]
    pub fn confirming(mut self, confirm: bool) -> Self {
        self.confirm = confirm;
        self
    }

    /// Waits for the calls, then does what the ending says. `lease_id` is the provider's id as the
    /// host kept it; one that no provider gives fails here, after the calls were stopped.
    pub async fn run(self, client: Client, lease_id: &str) -> Result<Option<Proof>, Failure> {
        let Self {
            closing,
            drain,
            ending,
            confirm,
        } = self;
        let settled = drain.wait().await;
        let (registry, scope) = (closing.registry(), closing.scope());
        if ending == Ending::Destroy {
            let sandbox = SandboxId::parse(lease_id)?;
            let bound = client.default_bound();
            let proof = if confirm {
                client.see_destroyed(&sandbox, bound).await?
            } else {
                client.destroy_sandbox(&sandbox, bound).await? == Removal::Done
            };
            registry.destroyed(&scope.lease);
            return Ok(proof.then_some(Proof::Destroyed));
        }
        if !settled {
            registry.bound_passed(scope);
        }
        if registry.is_unconfirmed(scope) {
            return Err(Failure::Unconfirmed);
        }
        if ending == Ending::KeepWarm {
            return Ok(None);
        }
        let sandbox = SandboxId::parse(lease_id)?;
        let bound = client.default_bound();
        match client.transition(&sandbox, Desired::Paused, bound).await {
            Ok(()) => Ok(Some(Proof::Stopped)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}
