//! Bringing a sandbox to a state (specification, section 6, transition).

use std::time::Duration;

use reqwest::Method;
use tokio::time::sleep_until;

use super::bound::Bound;
use super::client::Client;
use super::id::SandboxId;
use crate::clock::{millis, now};
use crate::error::{Desired, Failure};

/// When to look again, in milliseconds from the transition's beginning; then every `LATER`.
const FIRST_LOOKS: [u32; 4] = [25, 50, 100, 200];
const LATER: u32 = 250;
/// Every look comes so much later, in milliseconds. Transitions take round times, and a look that
/// comes a moment before the end costs the whole pause after it.
const SLACK: u32 = 5;
/// States that end by themselves.
const PASSING: [&str; 4] = ["creating", "pausing", "resuming", "forking"];

/// What a look at the sandbox leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is there.
    Done,
    /// Ask for it.
    Submit,
    /// Look again later.
    LookAgain,
    /// It won't get there by itself, and asking is not possible.
    Fail,
}

/// Decides after a look that found `status`. `accepted_from` is the state in which the provider took
/// the request, if it has: that one may be read again until the deadline, since the provider's reads
/// lag behind, and nothing is submitted twice.
pub fn next(desired: Desired, status: &str, accepted_from: Option<&str>) -> Next {
    if status == desired.as_str() {
        return Next::Done;
    }
    if PASSING.contains(&status) || accepted_from == Some(status) {
        return Next::LookAgain;
    }
    let starts = match desired {
        Desired::Running => matches!(status, "paused" | "error"),
        Desired::Paused => status == "running",
    };
    if starts && accepted_from.is_none() {
        Next::Submit
    } else {
        Next::Fail
    }
}

/// When the look after so many comes, from the transition's beginning: the moment the provider took
/// the request, or, where somebody else has begun it, the first look.
pub fn look_after(looks: u32) -> Duration {
    let first = usize::try_from(looks)
        .ok()
        .and_then(|at| FIRST_LOOKS.get(at));
    let [.., last] = FIRST_LOOKS;
    let later = || last + LATER * looks.saturating_sub(3);
    millis(first.copied().unwrap_or_else(later) + SLACK)
}

impl Client {
    /// Brings a sandbox to `desired`, asking at most once accepted. Ends with `bound`.
    pub async fn transition(
        &self,
        id: &SandboxId,
        desired: Desired,
        bound: Bound,
    ) -> Result<(), Failure> {
        let mut accepted_from = None;
        let mut begun = now();
        let mut looks = 0;
        loop {
            let status = self.get_sandbox(id, bound.clone()).await?.status;
            match next(desired, &status, accepted_from.as_deref()) {
                Next::Done => return Ok(()),
                Next::Fail => return Err(Failure::State { desired }),
                Next::LookAgain => {}
                Next::Submit => {
                    if self.submit(id, desired, bound.clone()).await? {
                        accepted_from = Some(status);
                        (begun, looks) = (now(), 0);
                    }
                }
            }
            // Slow answers do not make the next look come at once.
            let next = (begun + look_after(looks)).max(now() + millis(FIRST_LOOKS[0]));
            looks += 1;
            bound
                .run(sleep_until(next))
                .await
                .map_err(|ended| ended.failure(true))?;
        }
    }

    /// Asks once. `false` when the sandbox was in no state for it (HTTP 409): it has just changed.
    async fn submit(
        &self,
        id: &SandboxId,
        desired: Desired,
        bound: Bound,
    ) -> Result<bool, Failure> {
        let verb = match desired {
            Desired::Running => "resume",
            Desired::Paused => "pause",
        };
        match self
            .confirmed(Method::POST, format!("/sandboxes/{id}/{verb}"), None, bound)
            .await
        {
            Ok(()) => Ok(true),
            Err(Failure::Api { status: 409, .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}
