//! Bringing a sandbox to a state (specification, section 6, transition).

use reqwest::Method;

use super::bound::Bound;
use super::client::Client;
use super::id::SandboxId;
use super::looks::Looks;
use crate::error::{Desired, Failure};

/// States that end by themselves, and in which a sandbox can be brought to another.
const PASSING: [&str; 4] = ["creating", "pausing", "resuming", "forking"];
/// The state that ends in the sandbox's end.
const DESTROYING: &str = "destroying";

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

impl Client {
    /// Brings a sandbox to `desired`, asking at most once accepted. Ends with `bound`.
    pub async fn transition(
        &self,
        id: &SandboxId,
        desired: Desired,
        bound: Bound,
    ) -> Result<(), Failure> {
        let mut accepted_from = None;
        // From the moment the provider took the request, or, where somebody else has begun it, from the
        // first look.
        let mut looks = Looks::begin();
        loop {
            let status = self.get_sandbox(id, bound.clone()).await?.status;
            match next(desired, &status, accepted_from.as_deref()) {
                Next::Done => return Ok(()),
                Next::Fail => return Err(Failure::State { desired }),
                Next::LookAgain => {}
                Next::Submit => {
                    if self.submit(id, desired, bound.clone()).await? {
                        accepted_from = Some(status);
                        looks = Looks::begin();
                    }
                }
            }
            looks.pause(&bound).await?;
        }
    }

    /// Looks at a sandbox until it is in a state that lasts, and gives that.
    pub async fn settled(&self, id: &SandboxId, bound: Bound) -> Result<String, Failure> {
        let mut looks = Looks::begin_patiently();
        loop {
            let status = self.get_sandbox(id, bound.clone()).await?.status;
            if !PASSING.contains(&status.as_str()) && status != DESTROYING {
                return Ok(status);
            }
            looks.pause(&bound).await?;
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
            Ok(_) => Ok(true),
            Err(failure) if failure.is_conflict() => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}
