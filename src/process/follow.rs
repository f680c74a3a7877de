//! A process's output until its exit, through lost streams (specification, section 9).
//!
//! ```text
//! round: connect after the last sequence ── exit ─────────────────────────────> done
//!   ^      │ lost: again after 250 ms, unless more than three in a row gave nothing new
//!   │      v
//!   │    wait for the tree's end (408: again) ── all was read ────────────────> done
//!   │      │ 408, and the command could not begin at all ──────────> the last failure
//!   │      │ more was written, once: after 1 s
//!   └──────┴───────────────────────────────── twice ──> output is lost
//! ```

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use memchr::memchr;
use tokio::time::{sleep, timeout};

use super::frames::{Frame, LONGEST};
use super::pieces::Pieces;
use super::tail::Tail;
use super::text::{Decoder, NotBase64};
use super::{Stream, plain};
use crate::clock::{Instant, now};
use crate::error::{Failure, OutputFault};
use crate::http::{Bound, Client, Exit, ProcessId, SandboxId, TreeEnd};

/// The pause before a lost stream is taken up again, or a request that failed for a moment is repeated.
const PAUSE: Duration = Duration::from_millis(250);
/// The pause before the last round: the provider may still be writing to its journal.
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// So many failures in a row are passed over.
const MOST_FAILURES: u32 = 3;
/// A stream that has lived so long was well, even if the process had nothing to say: some proxy has cut
/// it, as proxies do.
const LONG_LIFE: Duration = Duration::from_secs(10);
/// How long the answer to a wait may take, half of which the provider may wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Who reads a process's output. What has been read stays here, however the reading ends.
pub struct Follower {
    client: Client,
    sandbox: SandboxId,
    process: ProcessId,
    /// Where the output goes at once; nowhere, if the caller wants only the result.
    pieces: Option<Arc<Pieces>>,
    pub stdout: Output,
    pub stderr: Output,
    /// The sequence of the last output that was read.
    cursor: u64,
    /// The process's own standard input has been closed, which lets the command begin.
    is_open: bool,
    /// The beginning of a line whose rest is not there yet.
    line: Vec<u8>,
    /// What the last stream was lost by, unless it just ended.
    last_failure: Option<Failure>,
}

/// What has been read of one stream.
#[derive(Default)]
pub struct Output {
    decoder: Decoder,
    pub tail: Tail,
}

impl Follower {
    /// Of a process that waits for its standard input to be closed.
    pub fn new(
        client: Client,
        sandbox: SandboxId,
        process: ProcessId,
        pieces: Option<Arc<Pieces>>,
    ) -> Self {
        Self {
            client,
            sandbox,
            process,
            pieces,
            stdout: Output::default(),
            stderr: Output::default(),
            cursor: 0,
            is_open: false,
            line: Vec::new(),
            last_failure: None,
        }
    }

    /// Reads to the end. May be given up at any time.
    pub async fn follow(&mut self) -> Result<Exit, Failure> {
        if let Some(exit) = self.round().await? {
            return Ok(exit);
        }
        let TreeEnd {
            exit,
            newest_sequence,
        } = self.wait().await?;
        // Less than has been read is no journal's end.
        let newest = newest_sequence
            .filter(|newest| newest.fract() == 0.0 && *newest >= self.read_so_far())
            .ok_or(Failure::Output(OutputFault::Journal))?;
        let told = if self.read_so_far() < newest {
            sleep(LAST_PAUSE).await;
            self.round().await?
        } else {
            None
        };
        if self.read_so_far() < newest {
            return Err(Failure::Output(OutputFault::Unreplayed));
        }
        told.or(exit)
            .ok_or(Failure::Output(OutputFault::StatusMissing))
    }

    /// The streams have ended, however: what waits in them for its rest comes as it is, and nothing more.
    pub fn finish(&mut self) {
        for (stream, output) in [
            (Stream::Stdout, &mut self.stdout),
            (Stream::Stderr, &mut self.stderr),
        ] {
            if let Some(rest) = output.decoder.finish() {
                keep(&mut output.tail, self.pieces.as_deref(), stream, &rest);
            }
        }
        if let Some(pieces) = &self.pieces {
            pieces.close();
        }
    }

    /// Attaches and reads until the exit. `None` when too many streams in a row were lost.
    async fn round(&mut self) -> Result<Option<Exit>, Failure> {
        let mut failures = 0;
        loop {
            let before = self.cursor;
            let mut attached = None;
            match self.stream(&mut attached).await {
                Ok(Some(exit)) => return Ok(Some(exit)),
                Ok(None) => self.last_failure = None,
                Err(failure) if is_lost(&failure) => self.last_failure = Some(failure),
                Err(failure) => return Err(failure),
            }
            let has_lived = attached.is_some_and(|moment: Instant| moment.elapsed() >= LONG_LIFE);
            if self.cursor > before || has_lived {
                failures = 0;
            } else {
                failures += 1;
            }
            if failures > MOST_FAILURES {
                return Ok(None);
            }
            sleep(PAUSE).await;
        }
    }

    /// One stream, until the exit or its own end.
    async fn stream(&mut self, attached: &mut Option<Instant>) -> Result<Option<Exit>, Failure> {
        let body = self.client.connect_process(
            &self.sandbox,
            &self.process,
            self.cursor,
            // Whoever follows bounds the whole.
            Bound::default(),
        );
        let mut body = body.await?;
        *attached = Some(now());
        self.line.clear();
        // Lets the command begin, now that its output can be read. The stream is read meanwhile: the
        // answer may come late, or never.
        let (client, sandbox) = (self.client.clone(), self.sandbox.clone());
        let opening = open(client, sandbox, self.process.clone());
        let mut opening = pin!(opening);
        let outcome = loop {
            tokio::select! {
                opened = &mut opening, if !self.is_open => match opened {
                    Ok(()) => self.is_open = true,
                    Err(failure) => return Err(failure),
                },
                bytes = body.next() => match bytes {
                    Some(Ok(bytes)) => match self.read(&bytes).await {
                        Ok(None) => {}
                        outcome => break outcome,
                    },
                    Some(Err(failure)) => break Err(failure),
                    None => break self.last_line(),
                },
            }
        };
        if let Ok(Some(_)) = outcome {
            body.finish();
        }
        if !self.is_open && outcome.as_ref().err().is_none_or(is_lost) {
            // The answer is on its way, most likely.
            match timeout(PAUSE, opening).await {
                Ok(Ok(())) => self.is_open = true,
                Ok(Err(failure)) if !matches!(outcome, Ok(Some(_))) => return Err(failure),
                _ => {}
            }
        }
        outcome
    }

    /// The last line may lack its end; half a line is what was cut off.
    fn last_line(&mut self) -> Result<Option<Exit>, Failure> {
        let line = std::mem::take(&mut self.line);
        match Frame::parse(&line) {
            Err(OutputFault::Frame) => Ok(None),
            _ => self.take(&line),
        }
    }

    /// Reads what came, line by line.
    async fn read(&mut self, mut bytes: &[u8]) -> Result<Option<Exit>, Failure> {
        while let Some(end) = memchr(b'\n', bytes) {
            let (rest, after) = bytes.split_at(end);
            bytes = &after[1..];
            let exit = if self.line.is_empty() {
                self.take(rest)?
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(rest);
                let exit = self.take(&line)?;
                // Its memory serves the next one.
                line.clear();
                self.line = line;
                exit
            };
            if exit.is_some() {
                return Ok(exit);
            }
            if let Some(pieces) = &self.pieces {
                pieces.room().await;
            }
        }
        if self.line.len() + bytes.len() > LONGEST {
            return Err(Failure::Output(OutputFault::FrameTooLarge));
        }
        self.line.extend_from_slice(bytes);
        Ok(None)
    }

    /// Takes one line.
    fn take(&mut self, line: &[u8]) -> Result<Option<Exit>, Failure> {
        if line.len() > LONGEST {
            return Err(Failure::Output(OutputFault::FrameTooLarge));
        }
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        if let Some((sequence, stream, base64)) = plain::data(line)
            && sequence == self.cursor + 1
            && self.add(sequence, stream, base64).is_ok()
        {
            return Ok(None);
        }
        match Frame::parse(line).map_err(Failure::Output)? {
            Frame::Heartbeat => Ok(None),
            Frame::Exit(exit) => Ok(Some(exit)),
            Frame::Data(data) if data.sequence <= self.cursor => Ok(None),
            Frame::Data(data) if data.sequence > self.cursor + 1 => {
                Err(Failure::Output(OutputFault::Gap))
            }
            Frame::Data(data) => {
                let (stream, base64) = data.content().map_err(Failure::Output)?;
                self.add(data.sequence, stream, base64.as_bytes())
                    .map_err(|_| Failure::Output(OutputFault::Data))?;
                Ok(None)
            }
        }
    }

    /// Adds the next output to what has been read. Changes nothing when it is no base64.
    fn add(&mut self, sequence: u64, stream: Stream, base64: &[u8]) -> Result<(), NotBase64> {
        let output = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let (tail, pieces) = (&mut output.tail, self.pieces.as_deref());
        output
            .decoder
            .decode(base64, |text| keep(tail, pieces, stream, text))?;
        self.cursor = sequence;
        Ok(())
    }

    /// Waits until the process and all that it started have ended.
    async fn wait(&self) -> Result<TreeEnd, Failure> {
        let mut failures = 0;
        loop {
            let began = now();
            let bound = Bound::once_sent(LONGEST_WAIT);
            let (sandbox, process) = (&self.sandbox, &self.process);
            match self.client.wait_process(sandbox, process, bound).await {
                Ok(Some(end)) => return Ok(end),
                // Usually after half a minute. A command that has not begun would run to its deadline.
                Ok(None) => {
                    if let (false, Some(failure)) = (self.is_open, &self.last_failure) {
                        return Err(failure.clone());
                    }
                    failures = 0;
                    if began.elapsed() >= PAUSE {
                        continue;
                    }
                }
                Err(Failure::TimedOut { .. }) if failures < MOST_FAILURES => failures += 1,
                Err(failure) if is_lost(&failure) && failures < MOST_FAILURES => failures += 1,
                Err(Failure::TimedOut { sent }) => return Err(Failure::Connection { sent }),
                Err(failure) => return Err(failure),
            }
            sleep(PAUSE).await;
        }
    }

    /// The sequence of the last output that was read, as the provider tells it.
    #[expect(
        clippy::cast_precision_loss,
        reason = "sequences are integers that JavaScript counts exactly"
    )]
    fn read_so_far(&self) -> f64 {
        self.cursor as f64
    }
}

/// Text goes to the result, and at once to whoever wants it.
fn keep(tail: &mut Tail, pieces: Option<&Pieces>, stream: Stream, text: &str) {
    tail.push(text);
    if let Some(pieces) = pieces {
        pieces.push(stream, text);
    }
}

/// Closes a process's standard input, for which its command waits.
async fn open(client: Client, sandbox: SandboxId, process: ProcessId) -> Result<(), Failure> {
    let mut failures = 0;
    loop {
        match client
            .close_stdin(&sandbox, &process, Bound::default())
            .await
        {
            Err(failure) if is_lost(&failure) && failures < MOST_FAILURES => failures += 1,
            outcome => return outcome,
        }
        sleep(PAUSE).await;
    }
}

/// Whether a stream that failed so can be taken up again, or a request be repeated.
fn is_lost(failure: &Failure) -> bool {
    failure.is_too_many() || failure.is_passing()
}
