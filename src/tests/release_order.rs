//! What a release does and in which order: abort, wait, then the provider, and always lift the mark.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{begin, let_run, reusing, scope};
use crate::config::{Config, Raw, RawConfig};
use crate::error::{Desired, Failure, Operation, ResponseFault};
use crate::http::http_server::{Reply, Seen, Server};
use crate::http::{Bound, SandboxId};
use crate::lease::release::{Ending, Proof, Release};
use crate::registry::{LeaseState, Registry};
use crate::text::Text;

const ENDINGS: [Ending; 3] = [Ending::Destroy, Ending::Pause, Ending::KeepWarm];

const fn api(status: u16) -> Failure {
    Failure::Api {
        status,
        operation: Operation::SandboxLifecycle,
    }
}

fn state(status: &str) -> Reply {
    Reply::data(&format!(r#"{{"id":"sb-1","status":"{status}"}}"#))
}

/// Gives these replies, one to each request.
async fn answering(replies: Vec<Reply>) -> Server {
    let mut replies = replies.into_iter();
    Server::start(move |_| replies.next().expect("one reply for each request")).await
}

/// The requests that have arrived so far.
async fn requests(server: &mut Server, number: usize) -> Vec<String> {
    let mut requests = Vec::new();
    for _ in 0..number {
        let Seen { method, target, .. } = server.seen().await;
        requests.push(format!("{method} {target}"));
    }
    assert_eq!(server.seen_so_far(), 0);
    requests
}

/// Releases a scope without calls.
async fn release(
    registry: &Registry,
    ending: Ending,
    server: &Server,
) -> Result<Option<Proof>, Failure> {
    let (release, named) =
        Release::begin(registry, &scope("lease", "account"), ending).expect("it is open");
    assert_eq!(named, []);
    release.run(reusing(&server.origin, 60_000), "sb-1").await
}

#[test]
fn the_ending_follows_from_the_request_the_configuration_and_the_recorded_idle_timer() {
    let config = |reuse: bool, auto_pause: Raw<f64>| {
        let raw = RawConfig {
            api_url: Raw::Given(Text::from("https://api.example.test")),
            shape: Raw::Given(Text::from("s-1vcpu-1gb")),
            reuse_lease: Raw::Given(reuse),
            auto_pause_after_seconds: auto_pause,
            ..RawConfig::default()
        };
        Config::parse(raw).expect("a configuration")
    };
    for recorded in [false, true] {
        for timer in [Raw::Absent, Raw::Given(600.0)] {
            let (single, reused) = (config(false, timer.clone()), config(true, timer.clone()));
            assert_eq!(Ending::decide(true, &single, recorded), Ending::Destroy);
            assert_eq!(Ending::decide(true, &reused, recorded), Ending::Destroy);
            assert_eq!(Ending::decide(false, &single, recorded), Ending::Destroy);
            let expected = match (timer, recorded) {
                (Raw::Given(_), true) => Ending::KeepWarm,
                (Raw::Given(_), false) => Ending::Destroy,
                _ => Ending::Pause,
            };
            assert_eq!(Ending::decide(false, &reused, recorded), expected);
        }
    }
}

#[tokio::test]
async fn a_destroy_deletes_the_sandbox() {
    let mut server = answering(vec![Reply::data("{}")]).await;
    let registry = Registry::new();
    assert_eq!(release(&registry, Ending::Destroy, &server).await, Ok(None));
    assert_eq!(
        requests(&mut server, 1).await,
        ["DELETE /v1/sandboxes/sb-1"]
    );
    registry.assert_empty();
}

#[tokio::test]
async fn a_release_for_reuse_pauses_the_sandbox() {
    let mut server = answering(vec![
        state("running"),
        Reply::data("{}"),
        state("pausing"),
        state("paused"),
    ])
    .await;
    let registry = Registry::new();
    assert_eq!(
        release(&registry, Ending::Pause, &server).await,
        Ok(Some(Proof::Stopped))
    );
    assert_eq!(
        requests(&mut server, 4).await,
        [
            "GET /v1/sandboxes/sb-1",
            "POST /v1/sandboxes/sb-1/pause",
            "GET /v1/sandboxes/sb-1",
            "GET /v1/sandboxes/sb-1"
        ]
    );
    registry.assert_empty();
}

#[tokio::test]
async fn a_confirmed_destroy_looks_until_the_sandbox_is_gone() {
    for (replies, looks) in [
        (
            vec![Reply::data(r#"{"id":"sb-1","status":"destroyed"}"#)],
            0,
        ),
        (vec![Reply::data("{}"), state("destroyed")], 1),
        (
            vec![
                Reply::data("{}"),
                state("destroying"),
                Reply::json(404, "{}"),
            ],
            2,
        ),
        // What fails for a moment tells nothing.
        (
            vec![
                Reply::data("{}"),
                Reply::json(502, ""),
                Reply::ThenClose(Vec::new()),
                state("destroyed"),
            ],
            3,
        ),
    ] {
        let mut server = answering(replies).await;
        let registry = Registry::new();
        let scope = scope("lease", "account");
        let begun = Release::begin(&registry, &scope, Ending::Destroy);
        let (release, _) = begun.expect("it is open");
        let release = release.confirming(true);
        let proof = release.run(reusing(&server.origin, 60_000), "sb-1").await;
        assert_eq!(proof, Ok(Some(Proof::Destroyed)));
        let seen = requests(&mut server, looks + 1).await;
        assert_eq!(seen[0], "DELETE /v1/sandboxes/sb-1");
        assert!(
            seen[1..]
                .iter()
                .all(|seen| seen == "GET /v1/sandboxes/sb-1")
        );
        registry.assert_empty();
    }
}

#[tokio::test]
async fn an_absent_sandbox_is_released_and_proves_nothing() {
    let gone = || Reply::json(404, "{}");
    for (ending, replies) in [
        (Ending::Destroy, vec![gone()]),
        (Ending::Pause, vec![gone()]),
        (Ending::Pause, vec![state("running"), gone()]),
    ] {
        let server = answering(replies).await;
        let registry = Registry::new();
        let scope = scope("lease", "account");
        let (release, _) = Release::begin(&registry, &scope, ending).expect("it is open");
        let release = release.confirming(true);
        let released = release.run(reusing(&server.origin, 60_000), "sb-1").await;
        assert_eq!(released, Ok(None));
        registry.assert_empty();
    }
}

#[tokio::test]
async fn a_removal_that_has_stopped_is_asked_for_again() {
    let mut server = answering(vec![
        Reply::data("{}"),
        state("running"),
        state("error"),
        Reply::data("{}"),
        state("failed"),
        Reply::data(r#"{"id":"sb-1","status":"destroyed"}"#),
    ])
    .await;
    let client = reusing(&server.origin, 60_000);
    let sandbox = SandboxId::parse("sb-1").expect("an id");
    assert_eq!(
        client.see_destroyed(&sandbox, client.default_bound()).await,
        Ok(true)
    );
    let methods: Vec<String> = requests(&mut server, 6).await;
    let methods: Vec<_> = methods
        .iter()
        .filter_map(|seen| seen.split(' ').next())
        .collect();
    assert_eq!(methods, ["DELETE", "GET", "GET", "DELETE", "GET", "DELETE"]);
}

#[tokio::test]
async fn a_destroy_that_is_not_confirmed_leaves_the_mark() {
    let server = Server::start(|seen| match seen.method.as_str() {
        "DELETE" => Reply::data("{}"),
        _ => state("destroying"),
    })
    .await;
    let registry = Registry::new();
    let scope = scope("lease", "account");
    registry.bound_passed(&scope);
    let (release, _) = Release::begin(&registry, &scope, Ending::Destroy).expect("not closing");
    let release = release.confirming(true);
    let released = release.run(reusing(&server.origin, 80), "sb-1").await;
    assert!(
        matches!(released, Err(Failure::TimedOut { .. })),
        "{released:?}"
    );
    assert_eq!(registry.state(&scope), LeaseState::Unconfirmed);
}

#[tokio::test]
async fn a_sandbox_left_warm_hears_nothing() {
    let server = answering(Vec::new()).await;
    let registry = Registry::new();
    assert_eq!(
        release(&registry, Ending::KeepWarm, &server).await,
        Ok(None)
    );
    assert_eq!(server.connections(), 0);
    registry.assert_empty();
}

#[tokio::test]
async fn nothing_reaches_the_provider_before_the_last_call_has_settled() {
    for ending in [Ending::Destroy, Ending::Pause] {
        let settled = Arc::new(AtomicBool::new(false));
        let seen_settled = Arc::clone(&settled);
        let mut server = Server::start(move |seen| {
            if seen.target.ends_with("/other") {
                return Reply::data(r#"{"id":"other","status":"running"}"#);
            }
            assert!(seen_settled.load(Ordering::SeqCst), "a call still runs");
            state("paused")
        })
        .await;
        let client = reusing(&server.origin, 60_000);
        let registry = Registry::new();
        let scope = scope("lease", "account");
        let calls = [1, 2].map(|_| begin(&registry, &scope, 60_000));
        let (release, named) = Release::begin(&registry, &scope, ending).expect("it is open");
        assert_eq!(named, calls);
        assert_eq!(registry.admit(&scope), Err(Failure::Closing));
        let run = tokio::spawn(release.run(client.clone(), "sb-1"));
        // The client sends in order, so what the release had sent would have arrived before these.
        let other = SandboxId::parse("other").expect("an id");
        for call in calls {
            let_run().await;
            let looked = client.get_sandbox(&other, Bound::default()).await;
            assert!(looked.is_ok(), "{looked:?}");
            assert_eq!(requests(&mut server, 1).await, ["GET /v1/sandboxes/other"]);
            assert!(!run.is_finished());
            settled.store(call == calls[1], Ordering::SeqCst);
            registry.settle(call, false);
        }
        let proof = (ending == Ending::Pause).then_some(Proof::Stopped);
        assert_eq!(run.await.expect("no panic"), Ok(proof));
        assert_eq!(requests(&mut server, 1).await.len(), 1);
        registry.assert_empty();
    }
}

#[tokio::test]
async fn a_sandbox_that_is_gone_is_a_success() {
    let gone = || Reply::json(404, r#"{"status":"error"}"#);
    for (ending, replies) in [
        (Ending::Destroy, vec![gone()]),
        (Ending::Pause, vec![gone()]),
        (Ending::Pause, vec![state("running"), gone()]),
        (
            Ending::Pause,
            vec![state("running"), Reply::data("{}"), gone()],
        ),
    ] {
        let server = answering(replies).await;
        let registry = Registry::new();
        if ending == Ending::Destroy {
            registry.bound_passed(&scope("lease", "account"));
        }
        assert_eq!(release(&registry, ending, &server).await, Ok(None));
        registry.assert_empty();
    }
}

#[tokio::test]
async fn a_destroy_that_fails_keeps_the_mark_and_can_be_tried_again() {
    let refusal = || Reply::data("{}");
    let failures: [(fn() -> Reply, Failure); 5] = [
        (|| Reply::json(500, "{}"), api(500)),
        (|| Reply::json(409, "{}"), api(409)),
        // Words are no status.
        (|| Reply::json(400, "404 not found"), api(400)),
        (
            || Reply::json(200, r#"{"status":"error"}"#),
            Failure::Response(ResponseFault::Unsuccessful),
        ),
        (
            || Reply::ThenClose(Vec::new()),
            Failure::Connection { sent: true },
        ),
    ];
    for (reply, failure) in failures {
        let mut server = answering(vec![reply(), refusal()]).await;
        let registry = Registry::new();
        let own = scope("lease", "account");
        registry.bound_passed(&own);
        assert_eq!(
            release(&registry, Ending::Destroy, &server).await,
            Err(failure)
        );
        assert_eq!(registry.state(&own), LeaseState::Unconfirmed);
        registry.assert_invariants();
        assert_eq!(release(&registry, Ending::Destroy, &server).await, Ok(None));
        assert_eq!(registry.state(&own), LeaseState::Open);
        assert_eq!(
            requests(&mut server, 2).await,
            ["DELETE /v1/sandboxes/sb-1"; 2]
        );
        registry.assert_empty();
    }
}

#[tokio::test]
async fn a_pause_that_fails_surfaces_and_marks_nothing() {
    for (replies, failure) in [
        (vec![Reply::json(500, "{}")], api(500)),
        (vec![state("running"), Reply::json(402, "{}")], api(402)),
        (
            vec![state("destroyed")],
            Failure::State {
                desired: Desired::Paused,
            },
        ),
        (
            vec![Reply::data(r#"{"id":"sb-2","status":"paused"}"#)],
            Failure::Response(ResponseFault::Identity),
        ),
    ] {
        let server = answering(replies).await;
        let registry = Registry::new();
        assert_eq!(
            release(&registry, Ending::Pause, &server).await,
            Err(failure)
        );
        registry.assert_empty();
    }
}

#[tokio::test]
async fn a_pause_ends_with_the_configured_timeout() {
    let server = Server::start(|_| state("pausing")).await;
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let (release, _) = Release::begin(&registry, &scope, Ending::Pause).expect("it is open");
    let released = release.run(reusing(&server.origin, 60), "sb-1").await;
    assert!(
        matches!(released, Err(Failure::TimedOut { .. })),
        "{released:?}"
    );
    registry.assert_empty();
}

#[tokio::test]
async fn an_unconfirmed_scope_is_not_reused() {
    for ending in [Ending::Pause, Ending::KeepWarm] {
        let server = answering(Vec::new()).await;
        let registry = Registry::new();
        let own = scope("lease", "account");
        let call = begin(&registry, &own, 1000);
        let (release, named) = Release::begin(&registry, &own, ending).expect("it is open");
        assert_eq!(named, [call]);
        // Its clean-up fails while the release waits for it.
        registry.settle(call, true);
        let released = release.run(reusing(&server.origin, 1000), "sb-1").await;
        assert_eq!(released, Err(Failure::Unconfirmed));
        assert_eq!(registry.state(&own), LeaseState::Unconfirmed);
        assert_eq!(registry.admit(&own), Err(Failure::Closing));
        assert_eq!(server.connections(), 0);
        registry.assert_invariants();
    }
}

#[tokio::test]
async fn an_id_that_no_provider_gives_fails_after_the_calls_have_settled() {
    let long = "a".repeat(201);
    for id in ["", "a/b", "a b", "..", "\u{e9}", "a\0", long.as_str()] {
        for ending in [Ending::Destroy, Ending::Pause] {
            let server = answering(Vec::new()).await;
            let registry = Registry::new();
            let own = scope("lease", "account");
            let call = begin(&registry, &own, 60_000);
            let (release, named) = Release::begin(&registry, &own, ending).expect("it is open");
            assert_eq!(named, [call]);
            let client = reusing(&server.origin, 1000);
            let run = release.run(client, id);
            tokio::pin!(run);
            tokio::select! {
                biased;
                ended = &mut run => panic!("{ended:?} before the call settled"),
                () = let_run() => {}
            }
            registry.settle(call, false);
            assert_eq!(
                run.await,
                Err(Failure::Response(ResponseFault::Id)),
                "{id:?}"
            );
            assert_eq!(server.connections(), 0);
            registry.assert_empty();
        }
    }
}

#[tokio::test]
async fn an_id_matters_only_to_a_request() {
    let registry = Registry::new();
    let own = scope("lease", "account");
    let (warm, _) = Release::begin(&registry, &own, Ending::KeepWarm).expect("it is open");
    let server = answering(Vec::new()).await;
    assert_eq!(
        warm.run(reusing(&server.origin, 1000), "a/b").await,
        Ok(None)
    );
    registry.bound_passed(&own);
    let (pause, _) = Release::begin(&registry, &own, Ending::Pause).expect("it has ended");
    let refused = pause.run(reusing(&server.origin, 1000), "a/b").await;
    assert_eq!(refused, Err(Failure::Unconfirmed));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_never_runs_lifts_its_mark() {
    for ending in ENDINGS {
        let registry = Registry::new();
        let own = scope("lease", "account");
        let (release, _) = Release::begin(&registry, &own, ending).expect("it is open");
        assert_eq!(registry.state(&own), LeaseState::Closing);
        drop(release);
        assert_eq!(registry.state(&own), LeaseState::Open);
        registry.assert_empty();
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_dropped_while_it_waits_lifts_its_mark() {
    for ending in ENDINGS {
        let registry = Registry::new();
        let own = scope("lease", "account");
        let call = begin(&registry, &own, 1000);
        let (release, _) = Release::begin(&registry, &own, ending).expect("it is open");
        let run = tokio::spawn(release.run(reusing("http://127.0.0.1:9", 1000), "sb-1"));
        let_run().await;
        assert_eq!(registry.state(&own), LeaseState::Closing);
        run.abort();
        assert!(run.await.expect_err("it was dropped").is_cancelled());
        assert_eq!(registry.state(&own), LeaseState::Open);
        registry.assert_invariants();
        registry.settle(begin(&registry, &own, 1000), false);
        registry.settle(call, false);
        registry.assert_empty();
    }
}

#[tokio::test]
async fn a_release_that_is_dropped_during_its_request_lifts_its_mark() {
    for ending in [Ending::Destroy, Ending::Pause] {
        let mut server = answering(vec![Reply::ThenHold(Vec::new())]).await;
        let registry = Registry::new();
        let own = scope("lease", "account");
        registry.settle(begin(&registry, &own, 1000), ending == Ending::Destroy);
        let (release, _) = Release::begin(&registry, &own, ending).expect("it is open");
        let run = tokio::spawn(release.run(reusing(&server.origin, 60_000), "sb-1"));
        server.seen().await;
        assert_eq!(registry.state(&own), LeaseState::Closing);
        run.abort();
        assert!(run.await.expect_err("it was dropped").is_cancelled());
        server.left().await;
        let expected = match ending {
            Ending::Destroy => LeaseState::Unconfirmed,
            _ => LeaseState::Open,
        };
        assert_eq!(registry.state(&own), expected);
        registry.assert_invariants();
    }
}

#[tokio::test(start_paused = true)]
async fn a_destroy_stores_no_scope_without_anything_to_remember() {
    let registry = Registry::new();
    let _closing = registry
        .close(&scope("lease", "account"), true)
        .expect("it is open");
    assert_eq!(registry.stored().scopes, 0, "invariant 3");
}
