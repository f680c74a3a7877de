//! Ending a process with all that it started.

use std::time::Duration;

use crate::error::Failure;
use crate::http::{Bound, Client, ProcessId, SandboxId};

/// The pauses before each try to end a process.
const PAUSES: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(250),
    Duration::from_secs(1),
];

/// How long the provider may take for an answer to one try. It has ended a process, or killed it, long
/// before.
const LONGEST_TRY: Duration = Duration::from_secs(10);

/// What to make of an answer that some of it still runs, although it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StillRuns {
    /// It is the last word.
    IsTold,
    /// It may be over in a moment.
    IsAskedAgain,
}

/// Ends one process with all that it started. True when the provider vouches for that. Tries again where
/// no answer came that tells.
pub async fn terminate(
    client: &Client,
    sandbox: &SandboxId,
    process: &ProcessId,
    still_runs: StillRuns,
    bound: &Bound,
) -> Result<bool, Failure> {
    for pause in PAUSES {
        bound
            .run(tokio::time::sleep(pause))
            .await
            .map_err(|ended| ended.failure(true))?;
        let once = bound.clone().and_once_sent(LONGEST_TRY);
        match client.end_process(sandbox, process, once).await {
            Ok(true) => return Ok(true),
            Ok(false) if still_runs == StillRuns::IsTold => return Ok(false),
            Err(failure @ Failure::Aborted { .. }) => return Err(failure),
            Ok(false) | Err(_) => {}
        }
    }
    Ok(false)
}
