//! Bringing a sandbox to a state (specification, section 6, transition).

use std::time::Duration;

use reqwest::Method;

use super::bound::Bound;
use super::client::Client;
use super::id::SandboxId;
use crate::clock::{millis, now};
use crate::error::{Desired, Failure};

/// The pauses before the second to fifth look, in milliseconds; each later one is `LATER`.
const FIRST_LOOKS: [u32; 4] = [25, 50, 100, 200];
const LATER: u32 = 250;
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

/// How long to wait after so many looks.
pub fn pause_after(looks: usize) -> Duration {
    millis(
        looks
            .checked_sub(1)
            .and_then(|at| FIRST_LOOKS.get(at))
            .copied()
            .unwrap_or(LATER),
    )
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
        let mut looks = 0;
        loop {
            let status = self.get_sandbox(id, bound.clone()).await?.status;
            looks += 1;
            match next(desired, &status, accepted_from.as_deref()) {
                Next::Done => return Ok(()),
                Next::Fail => return Err(Failure::State { desired }),
                Next::LookAgain => {}
                Next::Submit => {
                    if self.submit(id, desired, bound.clone()).await? {
                        accepted_from = Some(status);
                    }
                }
            }
            bound
                .run(tokio::time::sleep_until(now() + pause_after(looks)))
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
