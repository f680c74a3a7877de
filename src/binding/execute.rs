//! Commands in a sandbox (specification, section 9).

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::client::{Core, to_sandbox};
use super::config::{list, pairs, text};
use super::node::{Arguments, Js, Kind, Outcome};
use super::promise::{Survival, promise};
use crate::clock::{millis, now};
use crate::config::parse_timeout;
use crate::error::Failure;
use crate::http::{Bound, Client, Ended, SandboxId};
use crate::process::{
    Asked, Command, End, Kept, Pieces, Stream, Terms, execute as execute_command,
};

/// How a command ended, as the script knows it.
const EXITED: u32 = 0;
const CANCELLED: u32 = 1;
const DEADLINE_PASSED: u32 = 2;

/// A command that can be run.
struct Prepared {
    client: Client,
    sandbox: SandboxId,
    command: Command,
    /// Milliseconds; `None` where its caller's signal alone ends it.
    timeout: Option<u32>,
}

/// `prepareCommand(core, id, command, args, env, cwd, stdin, timeout, hasSignal) -> External`: all checks,
/// and no request.
pub fn prepare<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [
        core,
        id,
        command,
        args,
        env,
        cwd,
        stdin,
        timeout,
        has_signal,
        ..,
    ] = arguments;
    let client = js.held::<Core>(core)?.client.clone();
    let sandbox = to_sandbox(js, id)?;
    let asked = Asked {
        command: text(js, command)?,
        args: list(js, args)?,
        env: pairs(js, env)?,
        cwd: text(js, cwd)?,
        stdin: text(js, stdin)?,
    };
    let command = Command::parse(&asked)?;
    let configured = client.config().timeout_ms;
    let timeout = match js.kind(timeout)? {
        Kind::Nothing if js.to_boolean(has_signal)? => None,
        Kind::Nothing => Some(configured),
        Kind::Number => Some(parse_timeout(js.to_number(timeout)?)?),
        _ => return Err(Failure::TimeoutInvalid.into()),
    };
    js.external(Arc::new(Prepared {
        client,
        sandbox,
        command,
        timeout,
    }))
}

/// `createOutput() -> External`: where a command's output waits for whoever wants it.
pub fn create_output<'e>(js: Js<'e>, _: Arguments<'e>) -> Outcome<'e> {
    js.external(Arc::new(Pieces::default()))
}

/// `execute(prepared, cancel, output) -> Promise<[end, processId, exitCode, signal, stdout, stderr,
/// outputTruncated]>`. The output is undefined when it is not wanted.
pub fn execute<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [prepared, cancel, output, ..] = arguments;
    let prepared = js.keep::<Prepared>(prepared)?;
    let bound = Bound::cancelled_by(js.held::<CancellationToken>(cancel)?.clone());
    let bound = match prepared.timeout {
        Some(timeout) => bound.and_until(now() + millis(timeout)),
        None => bound,
    };
    let pieces = match js.kind(output)? {
        Kind::Nothing => None,
        _ => Some(js.keep::<Pieces>(output)?),
    };
    let terms = Terms {
        pieces,
        bound,
        // When the environment ends, its commands are ended too, though nobody is told any more.
        ending: js.house().ended().clone(),
    };
    let run = async move {
        let Prepared {
            client,
            sandbox,
            command,
            ..
        } = &*prepared;
        execute_command(client, sandbox, command, terms).await
    };
    promise(js, Survival::GoesOn, run, |js, finished| {
        let (end, exit) = match finished.end {
            End::Exited(exit) => (EXITED, Some(exit)),
            End::Ended(Ended::Cancelled) => (CANCELLED, None),
            End::Ended(Ended::DeadlinePassed) => (DEADLINE_PASSED, None),
        };
        let (code, signal) = exit.map_or((None, None), |exit| (exit.code, exit.signal));
        js.array([
            js.integer(end),
            finished
                .process
                .map_or_else(|| js.null(), |process| js.string(process.as_str())),
            code.map_or_else(|| js.null(), |code| js.number(code)),
            signal.map_or_else(|| js.null(), |signal| js.string(&signal)),
            kept(js, &finished.stdout),
            kept(js, &finished.stderr),
            js.boolean(finished.is_truncated),
        ])
    })
}

/// `awaitOutput(output) -> Promise<boolean>`: true once there is some to take; false at the end.
pub fn await_output<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let pieces = js.keep::<Pieces>(arguments[0])?;
    let filled = async move { Ok(pieces.filled().await) };
    promise(js, Survival::EndsWithIt, filled, |js, is_filled| {
        js.boolean(is_filled)
    })
}

/// `takeOutput(output) -> [stream, text] | undefined`: the next piece, 0 standing for stdout and 1 for
/// stderr; undefined when there is none. Says too that the one before has been delivered.
pub fn take_output<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let Some((stream, text)) = js.held::<Pieces>(arguments[0])?.take() else {
        return js.undefined();
    };
    let stream = match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    };
    js.array([js.integer(stream), kept(js, &text)])
}

/// `dropOutput(output)`: nobody wants any more of it.
pub fn drop_output<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    js.held::<Pieces>(arguments[0])?.give_up();
    js.undefined()
}

/// `refuseCancelled() -> Error`: what a command that a release or a shutdown has ended rejects with.
pub fn refuse_cancelled<'e>(js: Js<'e>, _: Arguments<'e>) -> Outcome<'e> {
    js.error(Failure::CommandCancelled.into())
}

fn kept<'e>(js: Js<'e>, text: &Kept) -> Outcome<'e> {
    match text {
        Kept::Ascii(bytes) => js.ascii(bytes),
        Kept::Utf16(units) => js.text(units),
    }
}
