//! From a command to its end, and whatever has to be cleaned up (specification, section 9).
//!
//! Whatever becomes of it, either the process and all that it started have ended, or the failure says
//! that they may not have.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::command::{Command, Launch, Upload};
use super::follow::Follower;
use super::marker::new_marker;
use super::pieces::Pieces;
use super::tail::Kept;
use super::termination::{StillRuns, terminate};
use crate::clock::{millis, now};
use crate::error::Failure;
use crate::http::{Bound, Client, CreateProcess, Ended, Exit, ProcessId, SandboxId};

/// The shell that runs a command's script.
const SHELL: &str = "/bin/bash";

/// How long a command that has come to its end waits for the answer to its process's creation: only the
/// answer tells what is to be ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a command that has come to its end waits for the answer to an upload: one that takes effect
/// later would not be removed.
const UPLOAD_PATIENCE: Duration = Duration::from_secs(1);

/// How long a caller may take for the rest of its command's output, once its time is over.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(5);

/// The least time for the end of a process tree, which alone may take a second.
const LEAST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the removal of a command's own files may take.
const LONGEST_REMOVAL: Duration = Duration::from_secs(5);

/// What became of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// It has ended by itself.
    Exited(Exit),
    /// It has been ended, with all that it started.
    Ended(Ended),
}

/// A command's result.
#[derive(Debug)]
pub struct Finished {
    pub end: End,
    /// `None` when none had been created yet.
    pub process: Option<ProcessId>,
    pub stdout: Kept,
    pub stderr: Kept,
    /// The output was longer than what is kept of it.
    pub is_truncated: bool,
}

/// How a command is run.
pub struct Terms {
    /// Given its output while it runs; the end waits until it has been delivered.
    pub pieces: Option<Arc<Pieces>>,
    /// What ends it early.
    pub bound: Bound,
    /// Cancelled when nobody is left to be told anything.
    pub ending: CancellationToken,
}

/// Runs a command until it exits or its terms end it.
pub async fn execute(
    client: &Client,
    sandbox: &SandboxId,
    command: &Command,
    Terms {
        pieces,
        bound,
        ending,
    }: Terms,
) -> Result<Finished, Failure> {
    let bound = bound.and_cancelled_by(ending.clone());
    let Launch { script, uploads } = command.launch();
    let mut traces = Traces {
        client,
        sandbox,
        uploads: &uploads,
        sent: 0,
    };
    let created = match traces.upload(&bound).await {
        Ok(()) => create(client, sandbox, command, &script, &bound).await,
        Err(failure) => Err(failure),
    };
    let process = match created {
        Ok(process) => process,
        Err(failure) => {
            if let Some(pieces) = pieces {
                pieces.close();
            }
            let end = bound.end();
            traces.remove().await;
            return match end {
                Some(ended) if failure != Failure::CreationUnconfirmed => {
                    Ok(Finished::without_process(ended))
                }
                _ => Err(failure),
            };
        }
    };
    let mut follower = Follower::new(
        client.clone(),
        sandbox.clone(),
        process.clone(),
        pieces.clone(),
    );
    let outcome = bound.run(follower.follow()).await;
    follower.finish();
    let end = match outcome {
        Ok(Ok(exit)) => {
            // Only a script that ran to its last line has certainly removed them itself.
            if exit.code != Some(0.0) {
                traces.remove().await;
            }
            Ok(End::Exited(exit))
        }
        Ok(Err(failure)) => traces.end(&process).await.and(Err(failure)),
        Err(ended) => traces.end(&process).await.map(|()| End::Ended(ended)),
    };
    if let Some(pieces) = pieces {
        let is_over = matches!(end, Ok(End::Exited(_)));
        let is_wanted = deliver(&pieces, is_over.then_some(&bound), ending).await;
        if is_over && !is_wanted {
            // Its caller has failed, or has given it up: nothing that it started goes on.
            traces.end(&process).await?;
        }
    }
    let (stdout, has_lost_stdout) = follower.stdout.tail.finish();
    let (stderr, has_lost_stderr) = follower.stderr.tail.finish();
    Ok(Finished {
        end: end?,
        process: Some(process),
        stdout,
        stderr,
        is_truncated: has_lost_stdout || has_lost_stderr,
    })
}

/// Waits until the caller has dealt with all output. A command that has ended by itself still has the time
/// that is its own, and every one some time more; whoever never comes to an end with its output is not
/// waited for. False when the caller wants no more of it.
async fn deliver(pieces: &Pieces, own: Option<&Bound>, ending: CancellationToken) -> bool {
    if let Some(own) = own
        && let Ok(is_wanted) = own.run(pieces.delivered()).await
    {
        return is_wanted;
    }
    let patience = Bound::until(now() + DELIVERY_PATIENCE).and_cancelled_by(ending);
    patience.run(pieces.delivered()).await.unwrap_or(true)
}

/// The bound of what has to be done when the command's own has passed: the configured timeout, but no less
/// than any answer takes.
fn fresh(client: &Client) -> Bound {
    Bound::until(now() + millis(client.config().timeout_ms).max(LEAST_TIMEOUT))
}

impl Finished {
    fn without_process(ended: Ended) -> Self {
        Self {
            end: End::Ended(ended),
            process: None,
            stdout: Kept::default(),
            stderr: Kept::default(),
            is_truncated: false,
        }
    }
}

/// Starts the process, which waits until its standard input is closed.
async fn create(
    client: &Client,
    sandbox: &SandboxId,
    command: &Command,
    script: &str,
    bound: &Bound,
) -> Result<ProcessId, Failure> {
    let wanted = CreateProcess {
        command: SHELL,
        arguments: &["-lc", script, &new_marker()],
        cwd: command.cwd(),
    };
    let bound = bound.clone().with_patience(PATIENCE);
    let created = client.create_process(sandbox, wanted, bound).await;
    created.map_err(|failure| {
        if failure.may_have_been_done() {
            Failure::CreationUnconfirmed
        } else {
            failure
        }
    })
}

/// What a command leaves in the sandbox while it runs: files of its own, and its process.
struct Traces<'a> {
    client: &'a Client,
    sandbox: &'a SandboxId,
    uploads: &'a [Upload],
    /// So many of them may be there.
    sent: usize,
}

impl Traces<'_> {
    async fn upload(&mut self, bound: &Bound) -> Result<(), Failure> {
        let bound = bound.clone().with_patience(UPLOAD_PATIENCE);
        for Upload { path, content } in self.uploads {
            let (content, bound) = (content.clone(), bound.clone());
            let uploaded = self.client.upload(self.sandbox, path, content, bound).await;
            let may_be_there = match &uploaded {
                Ok(()) => true,
                Err(failure) => failure.may_have_been_done(),
            };
            self.sent += usize::from(may_be_there);
            uploaded?;
        }
        Ok(())
    }

    /// Ends the command's process with all that it started, and removes its files.
    async fn end(&self, process: &ProcessId) -> Result<(), Failure> {
        let (client, sandbox, fresh) = (self.client, self.sandbox, fresh(self.client));
        let terminated = terminate(client, sandbox, process, StillRuns::IsTold, &fresh);
        let (is_gone, ()) = tokio::join!(terminated, self.remove());
        if is_gone.is_ok_and(|is_gone| is_gone) {
            Ok(())
        } else {
            Err(Failure::ProcessUnconfirmed)
        }
    }

    /// Removes those that the command may not have come to removing itself.
    async fn remove(&self) {
        let sent = &self.uploads[..self.sent];
        if sent.is_empty() {
            return;
        }
        let paths = sent.iter().map(|upload| upload.path.as_str());
        let arguments: Vec<&str> = ["-f", "--"].into_iter().chain(paths).collect();
        let bound = Bound::until(now() + LONGEST_REMOVAL);
        // A file that stays is the sandbox's like any other, and no reason to tell less of the failure
        // that is under way.
        let _ = self
            .client
            .exec(self.sandbox, "/bin/rm", &arguments, bound)
            .await;
    }
}
