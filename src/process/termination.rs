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

/// Ends one process with all that it started. True when the provider vouches for that.
pub async fn terminate(
    client: &Client,
    sandbox: &SandboxId,
    process: &ProcessId,
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
            Err(failure @ Failure::Aborted { .. }) => return Err(failure),
            Ok(false) | Err(_) => {}
        }
    }
    Ok(false)
}
