//! Commands that a crashed client of this package left running in a sandbox (specification, section 8).
//!
//! Each command carries a marker among its arguments, which the provider's list shows. A process with
//! one whose leader has not exited, while the driver has no call that could own it, is nobody's: its
//! client has died. What a command that ended has left in the background is the sandbox's own business,
//! and so is what somebody else started.

use std::time::Duration;

use tokio::task::JoinSet;
use uuid::Uuid;

use crate::error::Failure;
use crate::http::{Bound, Client, Process, ProcessId, SandboxId};

/// How a command's marker begins; a UUID follows.
const MARKER: &str = "createos-lease-command-";

/// The pauses before each try to end a process.
const PAUSES: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(250),
    Duration::from_secs(1),
];

/// How long the provider may take for an answer to one try. It has ended a process, or killed it, long
/// before.
const LONGEST_TRY: Duration = Duration::from_secs(10);

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

/// Whether an argument is a command's marker.
pub fn is_marker(argument: &str) -> bool {
    argument
        .strip_prefix(MARKER)
        .is_some_and(|id| Uuid::try_parse(id).is_ok_and(|uuid| uuid.hyphenated().to_string() == id))
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
        endings.spawn(end_one(client.clone(), sandbox.clone(), id, bound.clone()));
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

/// Ends one process with all that it started. True when the provider vouches for that.
async fn end_one(
    client: Client,
    sandbox: SandboxId,
    process: ProcessId,
    bound: Bound,
) -> Result<bool, Failure> {
    for pause in PAUSES {
        bound
            .run(tokio::time::sleep(pause))
            .await
            .map_err(|ended| ended.failure(true))?;
        let once = bound.clone().and_once_sent(LONGEST_TRY);
        match client.end_process(&sandbox, &process, once).await {
            Ok(true) => return Ok(true),
            Err(failure @ Failure::Aborted { .. }) => return Err(failure),
            Ok(false) | Err(_) => {}
        }
    }
    Ok(false)
}
