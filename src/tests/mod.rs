//! The engine's tests: one file for each failure mode. Tests of `http` and `pacing` are declared
//! there.

mod acquire_plan;
mod api_urls;
mod configuration;
mod deadlines;
mod invariants;
mod late_settlement;
mod ownership;
mod release_order;
mod resume_plan;
mod resumes;
mod rotated_key;
mod scope_keys;
mod secrets;
mod shutdown;
mod texts;
mod world;

use std::sync::Arc;

use crate::config::{Config, Raw, RawConfig};
use crate::http::Client;
use crate::http::http_server::key;
use crate::registry::{CallId, OnDeadline, Registry};
use crate::scope::ScopeKey;
use crate::text::Text;

/// The longest timeout of a call, in milliseconds: longer than any test's clock runs.
const ONE_DAY: u32 = 86_400_000;

/// A lease of the one company that most tests are about, as an account uses it.
fn scope(lease: &str, account: &str) -> ScopeKey {
    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    ScopeKey::new(
        &units("company"),
        &units("environment"),
        "https://api.example.test",
        account,
        &units(lease),
    )
}

/// Begins a call whose deadline is far away. `config_timeout` in milliseconds.
fn begin(registry: &Registry, scope: &ScopeKey, config_timeout: u32) -> CallId {
    registry
        .begin(
            0,
            scope.clone(),
            ONE_DAY,
            config_timeout,
            &OnDeadline::new(|_| {}),
        )
        .expect("the scope is open")
}

/// A client of `origin` that reuses leases, with a timeout in milliseconds.
fn reusing(origin: &str, timeout_ms: u32) -> Client {
    let raw = RawConfig {
        api_url: Raw::Given(Text::from(origin)),
        shape: Raw::Given(Text::from("s-1vcpu-1gb")),
        reuse_lease: Raw::Given(true),
        timeout_ms: Raw::Given(f64::from(timeout_ms)),
        ..RawConfig::default()
    };
    let config = Config::parse(raw).expect("a configuration");
    Client::new(Arc::new(config), key("skp_test"))
}

/// Lets every other task run until all of them wait.
async fn let_run() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}
