//! Where a lease's files are in its sandbox.

use uuid::Uuid;

use crate::error::{Desired, Failure, ResponseFault};
use crate::http::{Bound, Client, SandboxId};
use crate::process::WORKSPACE;
use crate::text::Text;

/// The folder that hosts leave out when they export the workspace.
const RUNTIME: &str = "/paperclip-workspace/.paperclip-runtime";
/// The file that holds the lease's marker.
const MARKER: &str = "/paperclip-workspace/.paperclip-runtime/.paperclip-createos-lease";

/// Exit codes from here on are of commands that were not found, could not be run, or were killed.
const NOT_RUN: f64 = 126.0;

/// By what a lease knows its sandbox again: 36 characters of `0-9a-f-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// A new one.
    pub fn random() -> Self {
        Self(Uuid::new_v4().hyphenated().to_string())
    }

    /// One that was recorded; `None` for what is none.
    pub fn parse(text: &Text) -> Option<Self> {
        let text = text.to_well_formed();
        let legal =
            |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) || byte == b'-';
        (text.len() == 36 && text.bytes().all(legal)).then_some(Self(text))
    }

    /// As the lease records it and the sandbox holds it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Brings a new sandbox to running, makes its workspace and leaves a marker there.
pub async fn prepare(
    client: &Client,
    sandbox: &SandboxId,
    bound: Bound,
) -> Result<Marker, Failure> {
    client
        .transition(sandbox, Desired::Running, bound.clone())
        .await?;
    let script = format!("mkdir -p -- '{WORKSPACE}' '{RUNTIME}'");
    let made = client
        .exec(sandbox, "/bin/bash", &["-lc", &script], bound.clone())
        .await?;
    if !made.succeeded() {
        return Err(Failure::WorkspaceUnprepared);
    }
    let marker = Marker::random();
    let content = marker.0.clone().into();
    client.upload(sandbox, MARKER, content, bound).await?;
    Ok(marker)
}

/// Whether a running sandbox holds the marker. Only a command that ran tells: one that could not start or
/// was killed is a failure, and an answer without its outcome can't be trusted.
pub async fn holds(
    client: &Client,
    sandbox: &SandboxId,
    marker: &Marker,
    bound: Bound,
) -> Result<bool, Failure> {
    let read = client.exec(sandbox, "/bin/cat", &[MARKER], bound).await?;
    match read.exit_code {
        None => Err(Failure::Response(ResponseFault::Data)),
        Some(code) if read.error || code >= NOT_RUN => Err(Failure::WorkspaceUnprepared),
        Some(0.0) => {
            let found = read.stdout.ok_or(Failure::Response(ResponseFault::Data))?;
            Ok(found == marker.as_str())
        }
        // There is none, or it cannot be read.
        Some(_) => Ok(false),
    }
}
