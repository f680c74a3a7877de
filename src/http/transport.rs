//! Connections: made when needed, kept for a short while, shared by the whole process.

use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Proxy, retry};
use url::Url;

use super::environment::Environment;
use super::proxy::{Route, route};
use super::tls;

/// How long an unused connection is kept: less than the 5 s after which a Node server closes it,
/// so that a request and that close do not cross. undici keeps it as long.
const KEEP_ALIVE: Duration = Duration::from_secs(4);

static OF_PROCESS: LazyLock<Arc<Transport>> =
    LazyLock::new(|| Arc::new(Transport::new(Environment::of_process())));

/// The connections that one environment asks for.
pub struct Transport {
    environment: Environment,
    /// Each `None` when it could not be set up.
    direct: OnceLock<Option<Client>>,
    proxied: OnceLock<Option<Client>>,
}

impl Transport {
    /// Connects nowhere yet.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            direct: OnceLock::new(),
            proxied: OnceLock::new(),
        }
    }

    /// The process's own, with its environment as it was at first use.
    pub fn of_process() -> Arc<Self> {
        Arc::clone(&OF_PROCESS)
    }

    /// What sends requests to `url`; `None` when nothing can.
    pub fn client_for(&self, url: &Url) -> Option<&Client> {
        match route(url, &self.environment) {
            Route::Direct => self.direct.get_or_init(|| self.build(None)),
            // An environment has one proxy, so the first client fits all.
            Route::Proxy(proxy) => self.proxied.get_or_init(|| self.build(Some(proxy))),
            Route::Nowhere => return None,
        }
        .as_ref()
    }

    fn build(&self, proxy: Option<Url>) -> Option<Client> {
        let builder = Client::builder()
            .tls_backend_preconfigured(tls::config(&self.environment)?)
            .http1_only()
            .redirect(Policy::none())
            .retry(retry::never())
            .referer(false)
            .no_proxy()
            .tcp_nodelay(true)
            // The kernel's limit on unacknowledged data would also end an upload whose receiver
            // takes its time; only the request's own bound may.
            .tcp_user_timeout(None::<Duration>)
            .pool_idle_timeout(KEEP_ALIVE);
        let builder = match proxy {
            Some(proxy) => builder.proxy(Proxy::all(proxy).ok()?),
            None => builder,
        };
        builder.build().ok()
    }
}

/// A proxy's address may hold a password.
impl std::fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Transport").finish_non_exhaustive()
    }
}
