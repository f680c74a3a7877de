//! The tokio runtime of the process: started at first use and never stopped, since the requests and
//! releases of one JavaScript environment may outlive another's end.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};

static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();

/// The runtime to spawn on: the one this thread is in, else the process's own. `None` when the
/// system gives no thread.
pub fn handle() -> Option<Handle> {
    Handle::try_current()
        .ok()
        .or_else(|| own().map(|runtime| runtime.handle().clone()))
}

fn own() -> Option<&'static Runtime> {
    let start = || {
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("createos-lease")
            .enable_all()
            .build()
            .ok()
    };
    RUNTIME.get_or_init(start).as_ref()
}
