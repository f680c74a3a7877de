//! Removing a sandbox, and seeing it gone (specification, sections 5 and 8).

use reqwest::Method;

use super::bound::Bound;
use super::client::Client;
use super::fields::string;
use super::id::SandboxId;
use super::looks::Looks;
use crate::error::Failure;

/// The state of a sandbox that is no more.
const DESTROYED: &str = "destroyed";
/// States from which a removal that was accepted does not go on by itself.
const STOPPED: [&str; 2] = ["error", "failed"];

/// What the provider says of a removal that it has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is under way.
    Begun,
    /// The sandbox is destroyed.
    Done,
    /// There is no such sandbox (HTTP 404): it is gone, or it never was this account's.
    Absent,
}

impl Client {
    /// Asks for a sandbox's removal. HTTP 404 is a success: it is gone.
    pub async fn destroy_sandbox(&self, id: &SandboxId, bound: Bound) -> Result<Removal, Failure> {
        let path = format!("/sandboxes/{id}");
        match self.confirmed(Method::DELETE, path, None, bound).await {
            Ok(answer) => {
                let shown = answer.map(|answer| {
                    answer
                        .fields(["id", "status"])
                        .map(|field| field.and_then(string))
                });
                // Only what names this very sandbox proves anything.
                Ok(match shown {
                    Some([Some(shown), Some(status)])
                        if shown == id.as_str() && status == DESTROYED =>
                    {
                        Removal::Done
                    }
                    _ => Removal::Begun,
                })
            }
            Err(failure) if failure.is_not_found() => Ok(Removal::Absent),
            Err(failure) => Err(failure),
        }
    }

    /// Removes a sandbox and looks at it until the provider shows it destroyed or gone. Once the removal
    /// is accepted, a request that fails for a moment is no answer: the next look tells. True when that proves its end: HTTP 404 does
    /// only after a removal was accepted, since another account's sandbox is as absent.
    pub async fn see_destroyed(&self, id: &SandboxId, bound: Bound) -> Result<bool, Failure> {
        let mut removal = self.destroy_sandbox(id, bound.clone()).await?;
        if removal == Removal::Absent {
            return Ok(false);
        }
        let mut looks = Looks::begin_patiently();
        while removal == Removal::Begun {
            looks.pause(&bound).await?;
            let status = match self.get_sandbox(id, bound.clone()).await {
                Ok(sandbox) => sandbox.status,
                Err(failure) if failure.is_not_found() => return Ok(true),
                Err(failure) if failure.is_passing() => continue,
                Err(failure) => return Err(failure),
            };
            if status == DESTROYED {
                return Ok(true);
            }
            // Removals may be repeated. Right after the first the old state may still be read.
            let stands = status != "destroying" && looks.is_late();
            if stands || STOPPED.contains(&status.as_str()) {
                removal = match self.destroy_sandbox(id, bound.clone()).await {
                    Err(failure) if failure.is_passing() || failure.is_conflict() => continue,
                    removal => removal?,
                };
            }
        }
        Ok(true)
    }
}
