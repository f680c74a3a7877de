//! Commands that a crashed client of this package left running in a sandbox (specification, section 8).
//!
//! Each command carries a marker among its arguments, which the provider's list shows. A process with
//! one whose leader has not exited, while the driver has no call that could own it, is nobody's: its
//! client has died. What a command that ended has left in the background is the sandbox's own business,
//! and so is what somebody else started.

use tokio::task::JoinSet;

use crate::error::Failure;
use crate::http::{Bound, Client, Process, SandboxId};
use crate::process::{StillRuns, is_marker, terminate};

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
    /// None runs any more, or none did.
    Ended,
    /// One may still run.
    Unconfirmed,
    /// There is no list of them (HTTP 404).
    Unlisted,
}

/// Finds the orphans of a running sandbox and ends them. `is_alone` tells whether no call of the driver
/// has run in the sandbox since before this; what was listed until then is of no living call.
pub async fn end(
    client: &Client,
    sandbox: &SandboxId,
    is_alone: impl Fn() -> bool,
    bound: &Bound,
) -> Result<Orphans, Failure> {
    let processes = match client.list_processes(sandbox, bound.clone()).await {
        Err(failure) if failure.is_not_found() => return Ok(Orphans::Unlisted),
        processes => processes?,
    };
    if !is_alone() {
        return Ok(Orphans::Ended);
    }
    let mut endings = JoinSet::new();
    for process in processes.into_iter().filter(is_orphan) {
        let Some(id) = process.id else {
            return Ok(Orphans::Unconfirmed);
        };
        let (client, sandbox, bound) = (client.clone(), sandbox.clone(), bound.clone());
        endings.spawn(async move {
            terminate(&client, &sandbox, &id, StillRuns::IsAskedAgain, &bound).await
        });
    }
    let mut orphans = Orphans::Ended;
    while let Some(ended) = endings.join_next().await {
        if !ended.map_err(|_| Failure::Internal)?? {
            orphans = Orphans::Unconfirmed;
        }
    }
    Ok(orphans)
}

fn is_orphan(process: &Process) -> bool {
    !process.leader_exited && process.args.iter().any(|argument| is_marker(argument))
}
