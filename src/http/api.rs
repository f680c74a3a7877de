//! The provider's operations that the lifecycle needs, typed.

use std::fmt::Write as _;

use bytes::Bytes;
use reqwest::Method;
use serde_json::value::RawValue;
use url::form_urlencoded::byte_serialize;

use super::answer::{JsonAnswer, is_refusal};
use super::body::{Answer, Collect};
use super::bound::Bound;
use super::client::{Client, json_request, read_json};
use super::fields::{is_truthy, number, pick, string};
use super::id::SandboxId;
use super::request::{Body, Request};
use crate::error::{Failure, ResponseFault};
use crate::text::{Text, push_json};

/// The most of an acknowledgement that is looked at, in bytes.
const MAX_ACKNOWLEDGEMENT: usize = 64 * 1024;

/// How many sandboxes a page of the list has: the most that the provider gives.
const PAGE: u32 = 500;
/// The most pages that are read: more sandboxes than any account has had.
const MOST_PAGES: u32 = 400;

/// A sandbox, as far as anybody here needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    pub id: SandboxId,
    /// As the provider spells it; unknown ones are kept.
    pub status: String,
}

/// What a sandbox is to be. Absent and empty fields are left out of the request.
#[derive(Debug, Clone, Default)]
pub struct CreateSandbox {
    /// Unique among the account's living sandboxes.
    pub name: String,
    pub shape: Text,
    pub rootfs: Option<Text>,
    pub region: Option<Text>,
    pub egress: Vec<Text>,
    /// Seconds, 60 to 86,400.
    pub auto_pause_after_seconds: Option<u32>,
}

impl CreateSandbox {
    fn to_json(&self) -> String {
        let mut json = String::from("{\"name\":");
        push_json(&mut json, Text::from(self.name.as_str()).units());
        push_field(&mut json, "shape");
        push_json(&mut json, self.shape.units());
        for (name, text) in [("rootfs", &self.rootfs), ("region", &self.region)] {
            if let Some(text) = text {
                push_field(&mut json, name);
                push_json(&mut json, text.units());
            }
        }
        if !self.egress.is_empty() {
            push_field(&mut json, "egress");
            push_list(&mut json, &self.egress);
        }
        json.push_str(",\"ingress_enabled\":false");
        if let Some(seconds) = self.auto_pause_after_seconds {
            push_field(&mut json, "auto_pause_after_seconds");
            // Writing to a String cannot fail.
            let _ = write!(json, "{seconds}");
        }
        json.push('}');
        json
    }
}

/// How a command in a sandbox ended.
#[derive(Clone, PartialEq)]
pub struct ExecResult {
    /// `None` when the provider names none.
    pub exit_code: Option<f64>,
    /// Lone surrogates replaced. `None` when there is none.
    pub stdout: Option<String>,
    pub stderr: Option<String>,
    /// The command could not start, whatever its exit code says.
    pub error: bool,
}

impl ExecResult {
    /// Whether it ran and exited with zero.
    pub fn succeeded(&self) -> bool {
        self.exit_code == Some(0.0) && !self.error
    }
}

/// Not the output: it is the sandbox's.
impl std::fmt::Debug for ExecResult {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ExecResult")
            .field("exit_code", &self.exit_code)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Looks at a sandbox. An answer about another one, or without a state, is
    /// `ResponseFault::Identity`.
    pub async fn get_sandbox(&self, id: &SandboxId, bound: Bound) -> Result<Sandbox, Failure> {
        let answer = self
            .json(Method::GET, format!("/sandboxes/{id}"), None, bound)
            .await?;
        let [found, status] = answer.fields(["id", "status"]);
        match (found.and_then(string), status.and_then(string)) {
            (Some(found), Some(status)) if found == id.as_str() => Ok(Sandbox {
                id: id.clone(),
                status,
            }),
            _ => Err(Failure::Response(ResponseFault::Identity)),
        }
    }

    /// Creates a sandbox. Never sent twice, except after a 429.
    pub async fn create_sandbox(
        &self,
        wanted: &CreateSandbox,
        bound: Bound,
    ) -> Result<SandboxId, Failure> {
        let body = Some(wanted.to_json());
        let answer = self
            .json(Method::POST, "/sandboxes".to_owned(), body, bound)
            .await?;
        let [id] = answer.fields(["id"]);
        SandboxId::parse(&id.and_then(string).unwrap_or_default())
    }

    /// The sandbox of that name, unless it is gone or about to be: for one whose creation was never
    /// answered.
    pub async fn find_sandbox(
        &self,
        name: &str,
        bound: Bound,
    ) -> Result<Option<SandboxId>, Failure> {
        let mut offset: u32 = 0;
        let mut first = None;
        let mut bound = bound;
        for _ in 0..MOST_PAGES {
            let path = format!("/sandboxes?limit={PAGE}&offset={offset}");
            let answer = self.json(Method::GET, path, None, bound.clone()).await?;
            let [rows, pagination] = answer.fields(["data", "pagination"]);
            let rows: Vec<&RawValue> = rows
                .and_then(|rows| serde_json::from_str(rows.get()).ok())
                .ok_or(Failure::Response(ResponseFault::Data))?;
            if let Some(id) = rows.iter().find_map(|row| id_of_named(row, name)) {
                return SandboxId::parse(&id).map(Some);
            }
            // All pages together have the time that one has.
            bound = bound.departing();
            // A server that knows no pages gives the same one again and again: all there is, if it is short.
            let begins = rows.first().map(|row| row.get().to_owned());
            if begins.is_some() && begins == first {
                let is_whole = rows.len() < PAGE as usize;
                return if is_whole {
                    Ok(None)
                } else {
                    Err(Failure::Response(ResponseFault::Data))
                };
            }
            first = begins;
            offset = offset.saturating_add(u32::try_from(rows.len()).unwrap_or(u32::MAX));
            let total = pagination
                .and_then(|pagination| pick(pagination.get(), ["total"]))
                .and_then(|[total]| number(total?));
            // A page may be shorter than was asked for, so only its end or the total is the end.
            if rows.is_empty() || total.is_some_and(|total| f64::from(offset) >= total) {
                return Ok(None);
            }
        }
        Err(Failure::Response(ResponseFault::Data))
    }

    /// Runs a command to its end. It is no shell: `command` is a program.
    pub async fn exec(
        &self,
        id: &SandboxId,
        command: &str,
        arguments: &[&str],
        bound: Bound,
    ) -> Result<ExecResult, Failure> {
        let mut body = begin_command(command, arguments);
        body.push('}');
        let path = format!("/sandboxes/{id}/exec");
        let answer = self.json(Method::POST, path, Some(body), bound).await?;
        read_exec(&answer).ok_or(Failure::Response(ResponseFault::Data))
    }

    /// Writes a file. `path` is absolute, in the sandbox.
    pub async fn upload(
        &self,
        id: &SandboxId,
        path: &str,
        content: Bytes,
        bound: Bound,
    ) -> Result<(), Failure> {
        let path = format!("/sandboxes/{id}/files?path={}", encode_component(path));
        let request = Request::new(Method::PUT, path)
            .header("accept", "application/json")
            .header("content-type", "application/octet-stream")
            .body(Body::Bytes(content));
        self.acknowledged(request, bound).await
    }

    /// Sends a request of whose answer nothing is needed but that it is a yes.
    pub(super) async fn acknowledged(&self, request: Request, bound: Bound) -> Result<(), Failure> {
        let Answer { body, .. } = self.request(request, bound).await?;
        match body.collect(MAX_ACKNOWLEDGEMENT).await {
            Ok(bytes) if is_refusal(&bytes) => Err(Failure::Response(ResponseFault::Unsuccessful)),
            // The status has said yes, and what servers add to it differs.
            Ok(_) | Err(Collect::Oversized | Collect::Failed(Failure::BodyBroken)) => Ok(()),
            Err(Collect::Failed(failure)) => Err(failure),
        }
    }

    /// Replaces the hosts that the sandbox may reach.
    pub async fn set_egress(
        &self,
        id: &SandboxId,
        egress: &[Text],
        bound: Bound,
    ) -> Result<(), Failure> {
        let mut body = String::from("{\"egress\":");
        push_list(&mut body, egress);
        body.push('}');
        let path = format!("/sandboxes/{id}/egress");
        let set = self.confirmed(Method::PUT, path, Some(body), bound).await;
        set.map(drop)
    }

    /// Sends a request that changes a sandbox, of whose answer the envelope matters: it has to say that
    /// the provider did it, and not some gateway. Nothing at all (HTTP 204, 205) is a yes.
    pub(super) async fn confirmed(
        &self,
        method: Method,
        path: String,
        body: Option<String>,
        bound: Bound,
    ) -> Result<Option<JsonAnswer>, Failure> {
        let answer = self
            .request(json_request(method, path, body), bound)
            .await?;
        if matches!(answer.status, 204 | 205) {
            return Ok(None);
        }
        read_json(answer).await.map(Some)
    }
}

/// The row's id, if it has that name and there is something to remove; an empty one where it shows none.
fn id_of_named(row: &RawValue, name: &str) -> Option<String> {
    let [id, found, status] = pick(row.get(), ["id", "name", "status"])?;
    let status = status.and_then(string).unwrap_or_default();
    let is_gone = matches!(status.as_str(), "destroying" | "destroyed" | "failed");
    (found.and_then(string)? == name && !is_gone).then(|| id.and_then(string).unwrap_or_default())
}

fn read_exec(answer: &JsonAnswer) -> Option<ExecResult> {
    let [result] = answer.fields(["result"]);
    let [exit_code, stdout, stderr, error] =
        pick(result?.get(), ["exit_code", "stdout", "stderr", "error"])?;
    Some(ExecResult {
        exit_code: exit_code.and_then(number),
        stdout: stdout.and_then(string),
        stderr: stderr.and_then(string),
        error: error.is_some_and(|value: &RawValue| is_truthy(value)),
    })
}

/// The beginning of what starts a program: an object that is still to be closed.
pub(super) fn begin_command(command: &str, arguments: &[&str]) -> String {
    let mut json = String::from("{\"cmd\":");
    push_json(&mut json, Text::from(command).units());
    push_field(&mut json, "args");
    let arguments: Vec<_> = arguments.iter().copied().map(Text::from).collect();
    push_list(&mut json, &arguments);
    json
}

pub(super) fn push_field(json: &mut String, name: &str) {
    json.push_str(",\"");
    json.push_str(name);
    json.push_str("\":");
}

fn push_list(json: &mut String, texts: &[Text]) {
    json.push('[');
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        push_json(json, text.units());
    }
    json.push(']');
}

/// As `encodeURIComponent` reads at the other end: forms write a space as `+`, which no other
/// character turns into.
fn encode_component(text: &str) -> String {
    byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}
