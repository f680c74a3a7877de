//! The task that tells of deadlines: one for each registry, started with its first call.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::sleep_until;

use super::{CallId, Shared};
use crate::clock::now;

/// Told of calls whose deadline has passed. They may have settled meanwhile.
#[derive(Clone)]
pub struct OnDeadline(Arc<dyn Fn(Vec<CallId>) + Send + Sync>);

impl OnDeadline {
    /// Wraps the function, which is called on a thread of the runtime.
    pub fn new(told: impl Fn(Vec<CallId>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }
}

impl fmt::Debug for OnDeadline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OnDeadline")
    }
}

/// Starts the timer, which ends with the registry.
pub(super) fn start(runtime: &Handle, shared: &Arc<Shared>, on_deadline: &OnDeadline) {
    let registry = Arc::downgrade(shared);
    let woken = Arc::clone(&shared.timer);
    let on_deadline = on_deadline.clone();
    runtime.spawn(async move {
        // The registry is held only for a look, so that it can go while the timer sleeps.
        while let Some((expired, next)) = registry
            .upgrade()
            .map(|shared| shared.lock().deadlines.expire(now()))
        {
            if !expired.is_empty() {
                (on_deadline.0)(expired);
            }
            match next {
                Some(moment) => tokio::select! {
                    () = sleep_until(moment) => {}
                    () = woken.notified() => {}
                },
                None => woken.notified().await,
            }
        }
    });
}
