//! The native half of createos-lease, from the top floor to the ground. Imports go down this list.
//!
//! * `binding`: the boundary to Node, and the only place that names it.
//! * `lease`: what happens to a lease: acquire, resume, release; and the probe.
//! * `process`: a command in a sandbox.
//! * `registry`: which calls run under which lease, and which leases are closing or unconfirmed.
//! * `http`: the provider's API.
//! * `pacing`: when a request may go out.
//! * `ownership`, `scope`, `config`: pure rules.
//! * `error`, `secret`, `text`, `clock`, `runtime`: the ground.

// Without the binding nobody calls the engine from outside; the Rust tests do.
#![cfg_attr(not(feature = "binding"), allow(dead_code))]

#[cfg(feature = "binding")]
mod binding;

mod clock;
mod config;
mod error;
mod http;
mod lease;
mod ownership;
mod pacing;
mod process;
mod registry;
mod runtime;
mod scope;
mod secret;
mod text;

#[cfg(test)]
mod tests;
