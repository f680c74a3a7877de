//! The one way from a future to a Promise.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use super::node::{Arguments, Js, Outcome};
use crate::error::Failure;
use crate::runtime;

/// What becomes of the future when its environment ends before it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// It is dropped: it did something for that environment alone.
    EndsWithIt,
    /// It goes on: a sandbox is to be removed, and nobody else would.
    GoesOn,
}

/// Runs the future on the runtime and gives a Promise of its converted output. The event loop waits
/// for it. Errors are built here, on JavaScript's thread, so that class, code and identity survive.
pub fn promise<'e, T, F, C>(js: Js<'e>, survival: Survival, future: F, convert: C) -> Outcome<'e>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
    C: for<'a> FnOnce(Js<'a>, T) -> Outcome<'a> + Send + 'static,
{
    let runtime = runtime::handle().ok_or(Failure::NoRuntime)?;
    let (deferred, promise) = js.promise()?;
    let house = js.house();
    house.hold(js);
    let (wake, ended) = (house.wake().clone(), house.ended().clone());
    let running = runtime.spawn(async move {
        match survival {
            Survival::GoesOn => Some(future.await),
            Survival::EndsWithIt => ended.run_until_cancelled(future).await,
        }
    });
    runtime.spawn(async move {
        // A future that panicked settles its promise too: nothing hangs.
        let output = match running.await {
            Ok(Some(output)) => output,
            Ok(None) => return,
            Err(_) => Err(Failure::Internal),
        };
        wake.post(Box::new(move |js| {
            js.house().let_go(js);
            let outcome = output
                .map_err(Into::into)
                .and_then(|output| convert(js, output));
            deferred.settle(js, outcome)
        }));
    });
    Ok(promise)
}

/// A promise that has not been made yet: what it stands for has not begun.
struct Prepared(Mutex<Option<Begin>>);

type Begin = Box<dyn for<'e> FnOnce(Js<'e>) -> Outcome<'e> + Send>;

/// Puts a future off until the script runs it with `run`, a microtask later: a request takes its
/// place in the queue at the call, but an abort in the same tick still finds it unsent.
pub fn prepare<'e, T, F, C>(js: Js<'e>, future: F, convert: C) -> Outcome<'e>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
    C: for<'a> FnOnce(Js<'a>, T) -> Outcome<'a> + Send + 'static,
{
    let begin: Begin = Box::new(move |js| promise(js, Survival::EndsWithIt, future, convert));
    js.external(Arc::new(Prepared(Mutex::new(Some(begin)))))
}

/// `run(prepared) -> Promise`.
pub fn run<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let prepared: &Prepared = js.held(arguments[0])?;
    let begin = prepared
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    begin.map_or_else(|| js.undefined(), |begin| begin(js))
}
