//! The provider's managed processes, as far as a resume needs them (specification, section 8).

use reqwest::Method;
use serde_json::value::RawValue;

use super::bound::Bound;
use super::client::Client;
use super::fields::{pick, string};
use super::id::{ProcessId, SandboxId};
use crate::error::{Failure, ResponseFault};

/// How long a process may take to end by itself before it is killed, in milliseconds.
const GRACE_MS: u32 = 1000;

/// A managed process, as the provider lists it.
#[derive(Clone, PartialEq, Eq)]
pub struct Process {
    /// `None` for one that is none, of which nothing can be asked.
    pub id: Option<ProcessId>,
    /// Those that are strings, lone surrogates replaced.
    pub args: Vec<String>,
    /// The command itself has ended, if perhaps not what it started.
    pub leader_exited: bool,
}

/// Not the arguments: they are the sandbox's.
impl std::fmt::Debug for Process {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Process")
            .field("id", &self.id)
            .field("leader_exited", &self.leader_exited)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// The processes that run, and those that have ended and are still kept.
    pub async fn list_processes(
        &self,
        id: &SandboxId,
        bound: Bound,
    ) -> Result<Vec<Process>, Failure> {
        let path = format!("/sandboxes/{id}/processes");
        let answer = self.json(Method::GET, path, None, bound).await?;
        let [processes] = answer.fields(["processes"]);
        let rows = processes
            .and_then(elements)
            .ok_or(Failure::Response(ResponseFault::Data))?;
        rows.into_iter()
            .map(|row| read(row).ok_or(Failure::Response(ResponseFault::Data)))
            .collect()
    }

    /// Ends a process and whatever it started. True when the provider vouches for that.
    pub async fn end_process(
        &self,
        id: &SandboxId,
        process: &ProcessId,
        bound: Bound,
    ) -> Result<bool, Failure> {
        let path = format!("/sandboxes/{id}/processes/{process}?grace_ms={GRACE_MS}");
        match self.json(Method::DELETE, path, None, bound).await {
            Ok(answer) => {
                let [id, tree_exited] = answer.fields(["process_id", "tree_exited"]);
                let is_it = id.is_none_or(|id| string(id).as_deref() == Some(process.as_str()));
                Ok(is_it && tree_exited.is_some_and(is_true))
            }
            Err(failure) if failure.is_not_found() => Ok(true),
            Err(failure) => Err(failure),
        }
    }
}

fn read(row: &RawValue) -> Option<Process> {
    let [id, args, leader_exited] = pick(row.get(), ["process_id", "args", "leader_exited"])?;
    Some(Process {
        id: id
            .and_then(string)
            .and_then(|id| ProcessId::parse(&id).ok()),
        args: args
            .and_then(elements)
            .unwrap_or_default()
            .into_iter()
            .filter_map(string)
            .collect(),
        leader_exited: leader_exited.is_some_and(is_true),
    })
}

fn is_true(value: &RawValue) -> bool {
    value.get() == "true"
}

/// An array's elements. `None` when it is no array.
fn elements(array: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(array.get()).ok()
}
