//! One request: its turn, its bound, its 429s.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Method, Response};
use url::Url;

use super::address::address;
use super::answer::{self, JsonAnswer};
use super::body::{Answer, Collect};
use super::bound::Bound;
use super::classify::{failure_of, operation_of};
use super::outgoing::{Departure, Outgoing, Try};
use super::request::{self, Body, Request};
use super::transport::Transport;
use crate::clock::{millis, now};
use crate::config::Config;
use crate::error::{Failure, Operation, ResponseFault};
use crate::pacing::{Gate, LONGEST_WAIT, Refusals, Slot, Ticket, Wait, retry_after};
use crate::secret::ApiKey;

/// HTTP's name for "not now".
const TOO_MANY_REQUESTS: u16 = 429;

/// The provider, as one account sees it. Cheap to clone.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    config: Arc<Config>,
    api_key: ApiKey,
    gate: Arc<Gate>,
    transport: Arc<Transport>,
}

impl Client {
    /// A client of the configured origin. Connects nowhere yet.
    pub fn new(config: Arc<Config>, api_key: ApiKey) -> Self {
        Self::with_transport(config, api_key, Transport::of_process())
    }

    /// The same over connections of one's own.
    pub(super) fn with_transport(
        config: Arc<Config>,
        api_key: ApiKey,
        transport: Arc<Transport>,
    ) -> Self {
        let gate = Gate::of(&config.api_url);
        Self(Arc::new(Inner {
            config,
            api_key,
            gate,
            transport,
        }))
    }

    /// The configuration it was made from.
    pub fn config(&self) -> &Arc<Config> {
        &self.0.config
    }

    /// The key it sends.
    pub fn api_key(&self) -> &ApiKey {
        &self.0.api_key
    }

    /// The bound of a request without a caller's signal: the configured timeout, from now on.
    pub fn default_bound(&self) -> Bound {
        Bound::until(now() + millis(self.0.config.timeout_ms))
    }

    /// Sends a request and waits for the head of its answer. Whatever is no success is a failure,
    /// and its body is dropped unread: it may echo keys or input.
    ///
    /// The place in the origin's queue is taken by this call itself, so requests leave in the order
    /// of the calls. An unpolled future keeps the ones behind it waiting; dropping it gives the
    /// place up, at any time.
    pub fn request(
        &self,
        request: Request,
        bound: Bound,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send + use<> {
        let client = self.clone();
        let prepared = self
            .prepare(request)
            .map(|prepared| (prepared, self.0.gate.enqueue()));
        async move {
            let (prepared, ticket) = prepared.ok_or(Failure::Connection { sent: false })?;
            client.send(prepared, ticket, bound).await
        }
    }

    /// Sends a request and reads its whole answer as JSON. Queues like `request`.
    pub fn json(
        &self,
        method: Method,
        path: String,
        body: Option<String>,
        bound: Bound,
    ) -> impl Future<Output = Result<JsonAnswer, Failure>> + Send + use<> {
        let answer = self.request(json_request(method, path, body), bound);
        async move { read_json(answer.await?).await }
    }

    /// `None` for a request that may not leave: its path leads elsewhere, or a header is not legal.
    fn prepare(&self, request: Request) -> Option<Prepared> {
        // As fetch refuses them: neither is a request to the provider.
        if matches!(request.method, Method::CONNECT | Method::TRACE) {
            return None;
        }
        let url = address(&self.0.config.api_url, &request.path)?;
        let mut headers = request::headers(&request.headers, &self.0.api_key)?;
        let body = request::fill_empty(&request.method, &mut headers, request.body);
        let operation = operation_of(&request.path);
        let head = Head {
            method: request.method,
            url,
            headers,
            operation,
        };
        Some(Prepared {
            head,
            body: Outgoing::from(body),
        })
    }

    async fn send(
        &self,
        Prepared { head, mut body }: Prepared,
        first: Ticket,
        bound: Bound,
    ) -> Result<Answer, Failure> {
        let mut ticket = first;
        let mut refusals = Refusals::default();
        let mut bound = bound;
        let mut refused = None;
        loop {
            let unsent = bound.while_unsent();
            // A request that was refused and is not sent again was answered with 429, which tells
            // its caller more than that it ended: nothing was done.
            let slot = unsent
                .run(ticket.turn())
                .await
                .map_err(|ended| refused.clone().unwrap_or_else(|| ended.failure(false)))?;
            bound = bound.counted();
            let unsent = bound.while_unsent();
            let departed = bound.departing();
            let Try {
                payload,
                departure,
                upload,
            } = body.next_try();
            let response = self
                .exchange(&head, payload, &departure, slot, &departed)
                .await?;
            let Some(failure) = failure_of(response.status(), head.operation) else {
                return Ok(Answer::new(response, departed, upload));
            };
            if response.status().as_u16() != TOO_MANY_REQUESTS {
                return Err(failure);
            }
            let stated = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| retry_after(value.as_bytes(), SystemTime::now()));
            drop(response);
            let repeats = body.can_be_sent_again();
            let wait = refusals.next(stated);
            self.wait_after(wait, repeats, &unsent)
                .await
                .ok_or_else(|| failure.clone())?;
            refused = Some(failure);
            ticket = self.0.gate.enqueue();
        }
    }

    /// From departure to the head of the answer. The place in the budget is held exactly as long.
    async fn exchange(
        &self,
        head: &Head,
        payload: Option<reqwest::Body>,
        departure: &Departure,
        slot: Slot,
        bound: &Bound,
    ) -> Result<Response, Failure> {
        let Some(http) = self.0.transport.client_for(&head.url) else {
            slot.unsent();
            return Err(Failure::Connection { sent: false });
        };
        let builder = http
            .request(head.method.clone(), head.url.clone())
            .headers(head.headers.clone());
        let builder = match payload {
            Some(payload) => builder.body(payload),
            None => builder,
        };
        let (failure, unsent) = match bound.run(builder.send()).await {
            Ok(Ok(response)) => return Ok(response),
            // The error names hosts and paths, so it goes no further.
            Ok(Err(error)) => {
                let unsent = error.is_connect() || error.is_builder() || departure.withhold();
                (Failure::Connection { sent: !unsent }, unsent)
            }
            Err(ended) => {
                let unsent = departure.withhold();
                (ended.failure(!unsent), unsent)
            }
        };
        if unsent {
            slot.unsent();
        }
        Err(failure)
    }

    /// Waits out a 429. `None` when it surfaces instead.
    async fn wait_after(&self, wait: Wait, repeats: bool, bound: &Bound) -> Option<()> {
        if wait.duration() > LONGEST_WAIT {
            return None;
        }
        let until = now() + wait.duration();
        if matches!(wait, Wait::Origin(_)) {
            self.0.gate.pause_origin_until(until);
        }
        if !repeats || bound.passes_before(until) {
            return None;
        }
        match wait {
            // The gate holds the whole origin back; this request queues for that at once.
            Wait::Origin(_) => Some(()),
            Wait::Alone(_) => bound.run(tokio::time::sleep_until(until)).await.ok(),
        }
    }
}

/// Neither the key nor the configured host.
impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").finish_non_exhaustive()
    }
}

/// A request that carries JSON, if anything, and wants JSON.
pub(super) fn json_request(method: Method, path: String, body: Option<String>) -> Request {
    let request = Request::new(method, path).header("accept", "application/json");
    match body {
        Some(json) => request
            .header("content-type", "application/json")
            .body(Body::Bytes(Bytes::from(json))),
        None => request,
    }
}

/// Reads a whole answer as JSON.
pub(super) async fn read_json(answer: Answer) -> Result<JsonAnswer, Failure> {
    match answer.body.collect(answer::MAX_BYTES).await {
        Ok(bytes) => JsonAnswer::read(bytes),
        Err(Collect::Oversized) => Err(Failure::Response(ResponseFault::Oversized)),
        // Half an answer is no JSON, and JavaScript is told no more.
        Err(Collect::Failed(Failure::BodyBroken)) => {
            Err(Failure::Response(ResponseFault::BrokenOff))
        }
        Err(Collect::Failed(failure)) => Err(failure),
    }
}

/// A request that may leave.
struct Prepared {
    head: Head,
    body: Outgoing,
}

/// All of it but the body, the same on each try.
struct Head {
    method: Method,
    url: Url,
    headers: HeaderMap,
    operation: Operation,
}
