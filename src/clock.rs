//! The one clock: monotonic, and paused by tests.

use std::time::Duration;
pub use tokio::time::Instant;

/// The present moment of the monotonic clock.
pub fn now() -> Instant {
    Instant::now()
}

/// A number of milliseconds as every setting of the package gives it.
pub fn millis(milliseconds: u32) -> Duration {
    Duration::from_millis(u64::from(milliseconds))
}
