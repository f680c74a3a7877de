//! The provider's HTTP API (specification, section 6).
//!
//! * `api`, `transition`, `removal`, `processes`: what the lifecycle asks for, typed.
//! * `looks`: when to look again.
//! * `client`: one request: its turn, its bound, its 429s.
//! * `request`, `outgoing`, `body`: what goes out and what comes back.
//! * `answer`, `fields`: reading JSON as `JSON.parse` would, and nothing more than is needed.
//! * `address`, `classify`, `id`, `bound`: the pure rules in between.
//! * `transport`, `tls`, `proxy`, `environment`: connections.

mod address;
mod answer;
mod api;
mod body;
mod bound;
mod classify;
mod client;
mod environment;
mod fields;
mod id;
mod looks;
mod outgoing;
mod processes;
mod proxy;
mod removal;
mod request;
mod tls;
mod transition;
mod transport;

pub use answer::{Loose, loose_fields};
pub use api::CreateSandbox;
pub use bound::{Bound, Ended};
pub use client::Client;
pub use id::{ProcessId, SandboxId};
pub use processes::{CreateProcess, Exit, Process, TreeEnd};
pub use removal::Removal;
// What a JavaScript caller's own requests need besides.
#[cfg_attr(
    not(feature = "binding"),
    allow(unused_imports, reason = "the binding's part")
)]
pub use {
    body::AnswerBody,
    request::{Body, BodySender, Request, StreamBroken},
    reqwest::Method,
};

#[cfg(test)]
#[path = "../tests/http_bodies.rs"]
mod http_bodies;
#[cfg(test)]
#[path = "../tests/http_bounds.rs"]
mod http_bounds;
#[cfg(test)]
#[path = "../tests/http_cancellation.rs"]
mod http_cancellation;
#[cfg(test)]
#[path = "../tests/http_failures.rs"]
mod http_failures;
#[cfg(test)]
#[path = "../tests/http_headers.rs"]
mod http_headers;
#[cfg(test)]
#[path = "../tests/http_json.rs"]
mod http_json;
#[cfg(test)]
#[path = "../tests/http_lifecycle.rs"]
mod http_lifecycle;
#[cfg(test)]
#[path = "../tests/http_paths.rs"]
mod http_paths;
#[cfg(test)]
#[path = "../tests/http_proxies.rs"]
mod http_proxies;
#[cfg(test)]
#[path = "../tests/http_server.rs"]
pub mod http_server;
#[cfg(test)]
#[path = "../tests/http_too_many.rs"]
mod http_too_many;
#[cfg(test)]
#[path = "../tests/http_transition_rules.rs"]
mod http_transition_rules;
#[cfg(test)]
#[path = "../tests/http_trust.rs"]
mod http_trust;
