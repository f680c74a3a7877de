//! What the process environment says about connections.
//!
//! A value, not look-ups all over: tests give their own, and a Worker's private copy of
//! `process.env` has no say, just as Node itself reads these when the process starts.

use std::env;
use std::ffi::OsString;

/// The variables that count. Others (`HTTP_PROXY`, `ALL_PROXY`) never do.
#[derive(Clone, Default)]
pub struct Environment {
    /// `NODE_EXTRA_CA_CERTS`: a PEM file.
    pub extra_ca_certs: Option<OsString>,
    /// `NODE_USE_SYSTEM_CA=1`.
    pub use_system_ca: bool,
    /// `https_proxy`, else `HTTPS_PROXY`.
    pub https_proxy: Option<String>,
    /// `no_proxy`, else `NO_PROXY`.
    pub no_proxy: Option<String>,
}

impl Environment {
    /// As the process has it now.
    pub fn of_process() -> Self {
        Self {
            extra_ca_certs: env::var_os("NODE_EXTRA_CA_CERTS").filter(|path| !path.is_empty()),
            use_system_ca: env::var_os("NODE_USE_SYSTEM_CA").is_some_and(|value| value == "1"),
            https_proxy: either("https_proxy", "HTTPS_PROXY"),
            no_proxy: either("no_proxy", "NO_PROXY"),
        }
    }
}

/// A proxy's address may hold a password.
impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Environment")
            .finish_non_exhaustive()
    }
}

/// The lower-case spelling wins, as in curl.
fn either(lower: &str, upper: &str) -> Option<String> {
    [lower, upper]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
}
