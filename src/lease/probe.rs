//! Trying a configuration out (specification, section 8): a sandbox is created, a command run in it,
//! and the sandbox removed, whatever came of it.

use tokio_util::sync::CancellationToken;

use super::acquire::{Plan, Wishes, acquire};
use super::removal::remove;
use crate::error::Failure;
use crate::http::Client;
use crate::registry::Acquiring;

/// What the command prints.
const READY: &str = "createos-lease-ready";

/// Acquires a sandbox, has it echo a word, and removes it. [`Failure::SetupUnconfirmed`] when the sandbox
/// may still be there; else what failed first. Given up by a shutdown or `cancel`, as an acquisition is.
pub async fn probe(
    acquiring: &Acquiring,
    client: &Client,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let ending = acquiring.registry().ending().clone();
    let plan = Plan::new(client.config(), &Wishes::default())?;
    let acquired = acquire(acquiring, client, plan, cancel.clone()).await?;
    let sandbox = acquired.sandbox;
    let bound = client
        .default_bound()
        .and_cancelled_by(ending)
        .and_cancelled_by(cancel);
    let echoed = client.exec(&sandbox, "/bin/echo", &[READY], bound).await;
    remove(client, &sandbox).await?;
    let echoed = echoed?;
    let said = echoed.stdout.as_deref().map(str::trim_end);
    if echoed.succeeded() && said == Some(READY) {
        Ok(())
    } else {
        Err(Failure::ProbeFailed)
    }
}
