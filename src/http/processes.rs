//! The provider's managed processes (specification, sections 8 and 9).

use reqwest::Method;
use serde_json::value::RawValue;

use super::answer::JsonAnswer;
use super::api::{begin_command, push_field};
use super::body::AnswerBody;
use super::bound::Bound;
use super::client::{Client, json_request};
use super::fields::{number, pick, string};
use super::id::{ProcessId, SandboxId};
use super::request::Request;
use crate::error::{Failure, OutputFault, ResponseFault};
use crate::text::{Text, push_json};

/// How long a process may take to end by itself before it is killed, in milliseconds.
const GRACE_MS: u32 = 1000;
/// How long the provider may wait for a process's end before it answers that it still runs, in
/// milliseconds.
const WAIT_MS: u32 = 30_000;

/// HTTP's name for "not yet".
const STILL_RUNS: u16 = 408;
/// HTTP's name for "not any more".
const EVICTED: u16 = 410;

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

/// How a process ended: by an exit code, a signal, or both as the provider tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exit {
    /// An integer.
    pub code: Option<f64>,
    /// As the provider spells it: `SIGKILL`.
    pub signal: Option<String>,
}

impl Exit {
    /// `None` for what tells neither.
    pub fn new(code: Option<f64>, signal: Option<String>) -> Option<Self> {
        let code = code.filter(|code| code.is_finite() && code.fract() == 0.0);
        let signal = signal.filter(|signal| !signal.is_empty());
        (code.is_some() || signal.is_some()).then_some(Self { code, signal })
    }
}

/// A process whose tree has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeEnd {
    /// `None` when the provider tells neither code nor signal.
    pub exit: Option<Exit>,
    /// The sequence of its last output. `None` for what is none.
    pub newest_sequence: Option<f64>,
}

/// What is to be started: `command` is a program, no line for a shell.
#[derive(Clone, Copy)]
pub struct CreateProcess<'a> {
    pub command: &'a str,
    pub arguments: &'a [&'a str],
    /// Absolute.
    pub cwd: &'a str,
}

impl CreateProcess<'_> {
    fn to_json(self) -> String {
        let mut json = begin_command(self.command, self.arguments);
        push_field(&mut json, "cwd");
        push_json(&mut json, Text::from(self.cwd).units());
        json.push('}');
        json
    }
}

impl Client {
    /// Starts a process. Never sent twice, except after a 429.
    pub async fn create_process(
        &self,
        id: &SandboxId,
        wanted: CreateProcess<'_>,
        bound: Bound,
    ) -> Result<ProcessId, Failure> {
        let path = format!("/sandboxes/{id}/processes");
        let body = Some(wanted.to_json());
        let answer = self.json(Method::POST, path, body, bound).await?;
        let [id] = answer.fields(["process_id"]);
        ProcessId::parse(&id.and_then(string).unwrap_or_default())
    }

    /// Attaches to a process's output, from the piece after `sequence` on.
    pub async fn connect_process(
        &self,
        id: &SandboxId,
        process: &ProcessId,
        sequence: u64,
        bound: Bound,
    ) -> Result<AnswerBody, Failure> {
        let path = format!("/sandboxes/{id}/processes/{process}/connect?after={sequence}");
        let request = Request::new(Method::GET, path);
        match self.request(request, bound).await {
            Ok(answer) => Ok(answer.body),
            Err(Failure::Api {
                status: EVICTED, ..
            }) => Err(Failure::Output(OutputFault::Evicted)),
            Err(failure) => Err(failure),
        }
    }

    /// Closes a process's standard input. One that is closed already, or a process that has ended, is fine.
    pub async fn close_stdin(
        &self,
        id: &SandboxId,
        process: &ProcessId,
        bound: Bound,
    ) -> Result<(), Failure> {
        let path = format!("/sandboxes/{id}/processes/{process}/stdin/close");
        let request = json_request(Method::POST, path, None);
        match self.acknowledged(request, bound).await {
            Err(failure) if failure.is_conflict() || failure.is_not_found() => Ok(()),
            outcome => outcome,
        }
    }

    /// Waits until a process and all that it started have ended. `None` when the provider has waited long
    /// enough.
    pub async fn wait_process(
        &self,
        id: &SandboxId,
        process: &ProcessId,
        bound: Bound,
    ) -> Result<Option<TreeEnd>, Failure> {
        let path =
            format!("/sandboxes/{id}/processes/{process}/wait?scope=tree&timeout_ms={WAIT_MS}");
        match self.json(Method::GET, path, None, bound).await {
            Ok(answer) if is_ended(&answer, process) => Ok(Some(read_end(&answer))),
            Ok(_) => Err(Failure::Response(ResponseFault::Data)),
            Err(Failure::Api {
                status: STILL_RUNS, ..
            }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

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
            Ok(answer) => Ok(is_ended(&answer, process)),
            Err(failure) if failure.is_not_found() => Ok(true),
            Err(failure) => Err(failure),
        }
    }
}

/// Whether an answer vouches for it that this process and all that it started have ended.
fn is_ended(answer: &JsonAnswer, process: &ProcessId) -> bool {
    let [id, tree_exited] = answer.fields(["process_id", "tree_exited"]);
    let is_it = id.is_none_or(|id| string(id).as_deref() == Some(process.as_str()));
    is_it && tree_exited.is_some_and(is_true)
}

fn read_end(answer: &JsonAnswer) -> TreeEnd {
    let [exit_code, signal, output] = answer.fields(["exit_code", "signal", "output"]);
    let newest = output.and_then(|output| pick(output.get(), ["newest_seq"]));
    TreeEnd {
        exit: Exit::new(exit_code.and_then(number), signal.and_then(string)),
        newest_sequence: newest.and_then(|[sequence]| number(sequence?)),
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
