//! Making a persisted lease usable again (specification, section 8).
//!
//! ```text
//! plan: what was recorded against the configuration ── differs ──> expired, nothing was asked
//!   │
//!   v
//! settled state ──> egress ──> running ──> marker ──> commands of a crashed client ended ──> ready
//!   │                 │           │           │                     │
//!   └── destroyed, failed, 404 ───┴───────────┴──────┐              └── one still runs: the sandbox
//!                                          differs ──┴──> expired <──── is destroyed
//! ```

use std::time::Duration;

use super::orphans::{self, Orphans};
use super::workspace::{Marker, holds};
use crate::clock::millis;
use crate::config::{Config, Raw};
use crate::error::{Desired, Failure};
use crate::http::{Bound, Client, SandboxId};
use crate::registry::{CallId, Registry};
use crate::text::Text;

/// How long an aborted resume waits for the answer to a request that has left. Whoever aborts it, a
/// release above all, acts next, and a sandbox that resumes after it was seen paused would run for ever.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often egress may be refused because the sandbox has just left the state it was seen in.
const MOST_CONFLICTS: u32 = 3;

/// What a lease's metadata holds, as it came.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    pub marker: Raw<Text>,
    pub shape: Raw<Text>,
    pub rootfs: Raw<Text>,
    pub region: Raw<Text>,
    pub adapter: Raw<Text>,
    pub auto_pause_after_seconds: Raw<f64>,
    /// `None` for an element that is no string.
    pub base_egress: Raw<Vec<Option<Text>>>,
    /// `None` for an element that is no string.
    pub effective_egress: Raw<Vec<Option<Text>>>,
}

/// What a resume is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub marker: Marker,
    /// The rules that the lease runs under. Empty: none are set.
    pub egress: Vec<Text>,
}

/// What became of a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    /// The lease can be worked under.
    Ready,
    /// It can't be any more.
    Expired,
}

impl Plan {
    /// Holds what was recorded against the configuration. `None`: the lease does not fit it any more,
    /// which can be told without a request. What an older plugin did not record counts as absent.
    pub fn new(config: &Config, recorded: &Recorded) -> Option<Self> {
        let adapter = match &recorded.adapter {
            Raw::Given(adapter) => Some(adapter),
            Raw::Absent | Raw::Other => None,
        };
        let auto_pause = config
            .auto_pause_after_seconds
            .filter(|_| config.reuse_lease);
        let fits = is_text(&recorded.shape, Some(&config.shape))
            && is_text(&recorded.rootfs, config.rootfs_for(adapter))
            && is_text(&recorded.region, config.region.as_ref())
            && is_number(&recorded.auto_pause_after_seconds, auto_pause)
            && rules(&recorded.base_egress)? == config.egress_allowlist;
        let Raw::Given(marker) = &recorded.marker else {
            return None;
        };
        let marker = Marker::parse(marker)?;
        let egress = rules(&recorded.effective_egress)?;
        fits.then_some(Self { marker, egress })
    }
}

/// Brings the sandbox back, within `bound`. `call` is the resume itself, as a call of its scope.
pub async fn resume(
    registry: &Registry,
    call: CallId,
    client: &Client,
    sandbox: &SandboxId,
    plan: &Plan,
    bound: Bound,
) -> Result<Resumed, Failure> {
    let bound = bound.with_patience(PATIENCE);
    match bring_back(registry, call, client, sandbox, plan, &bound).await {
        Err(failure) if failure.is_not_found() => Ok(Resumed::Expired),
        // It was in no state for something: perhaps because it has just come to its end.
        Err(failure) if failure.is_conflict() || matches!(failure, Failure::State { .. }) => {
            if is_lost(client, sandbox, bound).await {
                Ok(Resumed::Expired)
            } else {
                Err(failure)
            }
        }
        outcome => outcome,
    }
}

async fn bring_back(
    registry: &Registry,
    call: CallId,
    client: &Client,
    sandbox: &SandboxId,
    plan: &Plan,
    bound: &Bound,
) -> Result<Resumed, Failure> {
    let found = client.settled(sandbox, bound.clone()).await?;
    if is_end(&found) {
        return Ok(Resumed::Expired);
    }
    if !plan.egress.is_empty() {
        set_egress(client, sandbox, &plan.egress, bound).await?;
    }
    client
        .transition(sandbox, Desired::Running, bound.clone())
        .await?;
    if !holds(client, sandbox, &plan.marker, bound.clone()).await? {
        // Nobody will use it under this lease. As it was found, it costs nothing more.
        if found == Desired::Paused.as_str() {
            client
                .transition(sandbox, Desired::Paused, bound.clone())
                .await?;
        }
        return Ok(Resumed::Expired);
    }
    let is_alone = || registry.is_alone(call);
    match orphans::end(client, sandbox, is_alone, bound).await? {
        Orphans::Ended => Ok(Resumed::Ready),
        // A provider without that list, or without that sandbox by now.
        Orphans::Unlisted => {
            let found = client.settled(sandbox, bound.clone()).await?;
            Ok(if is_end(&found) {
                Resumed::Expired
            } else {
                Resumed::Ready
            })
        }
        Orphans::Unconfirmed => {
            // Aborted, it leaves the lease unconfirmed, and whoever did so need not wait for it.
            let timeout = millis(client.config().timeout_ms);
            let destroying = bound.clone().and_once_sent(timeout);
            let destroyed = client.destroy_sandbox(sandbox, destroying).await;
            destroyed.map_err(|_| Failure::ProcessUnconfirmed)?;
            Ok(Resumed::Expired)
        }
    }
}

/// Sets the egress rules while the sandbox is in a state that lasts. One that has just begun to pause
/// by itself refuses them, and is waited for.
async fn set_egress(
    client: &Client,
    sandbox: &SandboxId,
    egress: &[Text],
    bound: &Bound,
) -> Result<(), Failure> {
    let mut conflicts = 0;
    loop {
        match client.set_egress(sandbox, egress, bound.clone()).await {
            Err(failure) if failure.is_conflict() && conflicts < MOST_CONFLICTS => conflicts += 1,
            outcome => return outcome,
        }
        client.settled(sandbox, bound.clone()).await?;
    }
}

/// Whether the provider shows the sandbox lost. A look that fails proves nothing.
async fn is_lost(client: &Client, sandbox: &SandboxId, bound: Bound) -> bool {
    match client.settled(sandbox, bound).await {
        Ok(status) => is_end(&status),
        Err(failure) => failure.is_not_found(),
    }
}

/// Whether nothing comes after that state.
fn is_end(status: &str) -> bool {
    matches!(status, "destroyed" | "failed")
}

fn is_text(recorded: &Raw<Text>, wanted: Option<&Text>) -> bool {
    match recorded {
        Raw::Absent => wanted.is_none(),
        Raw::Given(text) => wanted == Some(text),
        Raw::Other => false,
    }
}

fn is_number(recorded: &Raw<f64>, wanted: Option<u32>) -> bool {
    match recorded {
        Raw::Absent => wanted.is_none(),
        #[expect(clippy::float_cmp, reason = "as JavaScript's === compares numbers")]
        Raw::Given(number) => wanted.is_some_and(|wanted| f64::from(wanted) == *number),
        Raw::Other => false,
    }
}

/// Recorded egress rules; absent ones are none. `None` for what are no rules.
fn rules(recorded: &Raw<Vec<Option<Text>>>) -> Option<Vec<Text>> {
    match recorded {
        Raw::Absent => Some(Vec::new()),
        Raw::Given(rules) => rules.iter().cloned().collect(),
        Raw::Other => None,
    }
}
