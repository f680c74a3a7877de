//! Removing a sandbox that nobody has a lease of: one that could not be prepared, one whose creation
//! was never answered, one that only a probe wanted.

use std::time::Duration;

use crate::clock::millis;
use crate::error::Failure;
use crate::http::{Bound, Client, SandboxId};

/// The pauses between tries. A gateway that fails for a moment is no reason to leave a sandbox behind,
/// and a creation whose connection broke may take effect a little later.
const PAUSES: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_millis(1500),
];

/// Removes the sandbox, with a fresh deadline; [`Failure::SetupUnconfirmed`] when it may still be there.
pub async fn remove(client: &Client, sandbox: &SandboxId) -> Result<(), Failure> {
    for pause in PAUSES {
        tokio::time::sleep(pause).await;
        match client.destroy_sandbox(sandbox, fresh(client)).await {
            Ok(_) => return Ok(()),
            // In the middle of something, or failing for a moment.
            Err(failure) if failure.is_passing() || failure.is_conflict() => {}
            Err(_) => break,
        }
    }
    Err(Failure::SetupUnconfirmed {
        sandbox_id: sandbox.as_str().to_owned(),
    })
}

/// A creation failed that the provider may have carried out all the same: looks for the sandbox by its
/// name, and removes it. [`Failure::SetupUnconfirmed`] when one may be left.
pub async fn remove_lost(client: &Client, name: &str, failure: &Failure) -> Result<(), Failure> {
    let looks = looks_after(failure);
    // Until a look succeeds, the name is all that is known of it.
    let mut unseen = looks > 0;
    for pause in PAUSES.into_iter().take(looks) {
        tokio::time::sleep(pause).await;
        match client.find_sandbox(name, fresh(client)).await {
            Ok(Some(sandbox)) => return remove(client, &sandbox).await,
            Ok(None) => unseen = false,
            Err(failure) => {
                unseen = true;
                if !failure.is_passing() {
                    break;
                }
            }
        }
    }
    if unseen {
        return Err(Failure::SetupUnconfirmed {
            sandbox_id: name.to_owned(),
        });
    }
    Ok(())
}

/// How often a sandbox is looked for whose creation failed so.
fn looks_after(failure: &Failure) -> usize {
    match failure {
        // The name is taken, and only by a creation of ours that some gateway has repeated: it is there.
        Failure::Api { status: 409, .. } => 1,
        // A gateway's own deadline.
        Failure::Api { status: 408, .. } => PAUSES.len(),
        failure if failure.may_have_been_done() => PAUSES.len(),
        _ => 0,
    }
}

/// The configured timeout, from the moment the request leaves.
fn fresh(client: &Client) -> Bound {
    Bound::once_sent(millis(client.config().timeout_ms))
}
