//! The end of a driver, and of the environment it lives in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{begin, let_run, reusing, scope};
use crate::clock::{millis, now};
use crate::error::{Code, Failure};
use crate::http::http_server::{Reply, Seen, Server};
use crate::lease::acquire::{Plan, Wishes, acquire};
use crate::lease::release::{Ending, Release};
use crate::registry::{LeaseState, OnDeadline, Registry};

const A_WHILE: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn no_call_begins_after_a_shutdown_in_any_scope() {
    let registry = Registry::new();
    assert_eq!(registry.admit(&scope("lease", "account")), Ok(()));
    registry.shut_down();
    for lease in ["lease", "never seen"] {
        let scope = scope(lease, "account");
        assert_eq!(registry.state(&scope), LeaseState::Shutdown);
        let refused = registry.begin(0, scope.clone(), 1, 1, &OnDeadline::new(|_| {}));
        let refused = refused.expect_err("it is shut down");
        assert_eq!(refused, Failure::Closing);
        assert_eq!(
            refused.to_string(),
            "CreateOS lease is closing or requires cleanup."
        );
        assert_eq!(refused.code(), Some(Code::LeaseClosing));
        assert_eq!(registry.admit(&scope), Err(Failure::Closing));
    }
    assert_eq!(registry.acquiring().map(drop), Err(Failure::Closing));
    registry.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_names_every_call_as_they_began_and_waits_for_all() {
    let registry = Registry::new();
    let places = [
        ("b", "one"),
        ("a", "one"),
        ("b", "two"),
        ("c", "one"),
        ("a", "one"),
    ];
    let calls = places.map(|(lease, account)| begin(&registry, &scope(lease, account), 1000));
    let (named, drain) = registry.shut_down();
    assert_eq!(named, calls);
    let waiting = tokio::spawn(drain.wait());
    for call in calls {
        let_run().await;
        assert!(!waiting.is_finished());
        registry.settle(call, false);
    }
    let start = now();
    assert!(waiting.await.expect("no panic"));
    assert_eq!(now(), start);
    registry.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn a_second_shutdown_waits_like_the_first() {
    let registry = Registry::new();
    let call = begin(&registry, &scope("lease", "account"), 1000);
    let shutdowns = [registry.shut_down(), registry.shut_down()];
    let waiting = shutdowns.map(|(named, drain)| {
        assert_eq!(named, [call]);
        tokio::spawn(drain.wait())
    });
    let_run().await;
    registry.settle(call, false);
    for waiting in waiting {
        assert!(waiting.await.expect("no panic"));
    }
    let (named, drain) = registry.shut_down();
    assert_eq!(named, []);
    assert!(drain.wait().await);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_each_scope_within_its_own_bound() {
    let registry = Registry::new();
    for (lease, config_timeout) in [("one", 1000), ("two", 30_000), ("three", 1)] {
        begin(&registry, &scope(lease, "account"), config_timeout);
    }
    let start = now();
    let (_, drain) = registry.shut_down();
    assert!(!drain.wait().await);
    assert_eq!(now() - start, millis(65_000));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_is_no_release_and_leaves_no_mark() {
    let registry = Registry::new();
    let (open, marked) = (scope("lease", "open"), scope("lease", "marked"));
    registry.bound_passed(&marked);
    registry.shut_down();
    assert!(registry.is_unconfirmed(&marked));
    assert!(!registry.is_unconfirmed(&open));
    registry.assert_invariants();
}

#[tokio::test(start_paused = true)]
async fn releases_and_acquisitions_are_waited_for_one_by_one() {
    let registry = Registry::new();
    assert!(
        timeout(A_WHILE, registry.idle()).await.is_ok(),
        "nothing is under way"
    );
    let (reuse, ..) = registry
        .close(&scope("a", "account"), false)
        .expect("it is open");
    let (destroy, ..) = registry
        .close(&scope("b", "account"), true)
        .expect("it is open");
    let acquiring = registry.acquiring().expect("it is not shut down");
    registry.shut_down();
    let waiter = registry.clone();
    let waiting = tokio::spawn(async move { waiter.idle().await });
    let guards: [Box<dyn Send>; 3] = [Box::new(acquiring), Box::new(reuse), Box::new(destroy)];
    for guard in guards {
        let_run().await;
        assert!(!waiting.is_finished());
        drop(guard);
    }
    let start = now();
    waiting.await.expect("no panic");
    assert_eq!(now(), start);
    registry.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_dropped_is_not_waited_for() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    begin(&registry, &scope, 1000);
    let (release, _) = Release::begin(&registry, &scope, Ending::Destroy).expect("it is open");
    let run = tokio::spawn(release.run(reusing("http://127.0.0.1:9", 1000), "sb-1"));
    let_run().await;
    assert!(timeout(millis(100), registry.idle()).await.is_err());
    run.abort();
    assert!(timeout(millis(100), registry.idle()).await.is_ok());
}

#[tokio::test]
async fn releases_still_work_after_a_shutdown() {
    let mut server = Server::start(|_| Reply::data("{}")).await;
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let call = begin(&registry, &scope, 1000);
    registry.bound_passed(&scope);
    registry.shut_down();
    let client = reusing(&server.origin, 1000);
    let (release, named) =
        Release::begin(&registry, &scope, Ending::Destroy).expect("shut down, not closing");
    assert_eq!(named, [call]);
    let refused = Release::begin(&registry, &scope, Ending::Destroy).map(|_| ());
    assert_eq!(refused, Err(Failure::ReleaseInProgress));
    registry.settle(call, false);
    assert_eq!(release.run(client.clone(), "sb-1").await, Ok(None));
    assert_eq!(server.seen().await.method, "DELETE");
    assert!(!registry.is_unconfirmed(&scope));
    let (warm, _) = Release::begin(&registry, &scope, Ending::KeepWarm).expect("it has ended");
    assert_eq!(warm.run(client, "sb-1").await, Ok(None));
    assert_eq!(registry.state(&scope), LeaseState::Shutdown);
    registry.assert_empty();
}

fn plan(client: &crate::http::Client) -> Plan {
    Plan::new(client.config(), &Wishes::default()).expect("a plan")
}

/// Answers an acquisition until its sandbox is looked at, and then as `look` says.
fn acquisition(
    mut look: impl FnMut() -> Reply + Send + 'static,
    removal: fn() -> Reply,
) -> impl FnMut(&Seen) -> Reply + Send + 'static {
    move |seen| match seen.method.as_str() {
        "GET" => look(),
        "DELETE" => removal(),
        "POST" if seen.target == "/v1/sandboxes" => Reply::data(r#"{"id":"sb-1"}"#),
        "POST" => Reply::data(r#"{"result":{"exit_code":0}}"#),
        _ => Reply::data("{}"),
    }
}

#[tokio::test]
async fn an_acquisition_after_a_shutdown_sends_nothing() {
    let mut server = Server::start(|_| Reply::data("{}")).await;
    let registry = Registry::new();
    registry.shut_down();
    assert_eq!(registry.acquiring().map(drop), Err(Failure::Closing));
    assert_eq!(server.seen_so_far(), 0);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_shutdown_gives_an_acquisition_up_and_waits_until_its_sandbox_is_removed() {
    for ends in [Registry::abandon as fn(&Registry), |registry| {
        drop(registry.shut_down());
    }] {
        let registry = Registry::new();
        let (ender, idle) = (registry.clone(), Arc::new(AtomicBool::new(false)));
        let look = move || {
            ends(&ender);
            Reply::data(r#"{"id":"sb-1","status":"creating"}"#)
        };
        let (removal, seen_idle) = (|| Reply::data("{}"), Arc::clone(&idle));
        let mut answer = acquisition(look, removal);
        let mut server = Server::start(move |seen| {
            if seen.method == "DELETE" {
                assert!(
                    !seen_idle.load(Ordering::SeqCst),
                    "somebody still removes a sandbox"
                );
            }
            answer(seen)
        })
        .await;
        let client = reusing(&server.origin, 5000);
        let waiter = registry.clone();
        let hold = registry.acquiring().expect("not shut down");
        let acquiring = async {
            let acquired = acquire(&hold, &client, plan(&client), CancellationToken::new()).await;
            drop(hold);
            acquired
        };
        let waiting = async {
            waiter.ending().cancelled().await;
            waiter.idle().await;
            idle.store(true, Ordering::SeqCst);
        };
        let (acquired, ()) = tokio::join!(acquiring, waiting);
        assert!(
            matches!(acquired, Err(Failure::Aborted { .. })),
            "{acquired:?}"
        );
        let mut seen = Vec::new();
        for _ in 0..3 {
            let Seen { method, target, .. } = server.seen().await;
            seen.push(format!("{method} {target}"));
        }
        assert_eq!(
            seen,
            [
                "POST /v1/sandboxes",
                "GET /v1/sandboxes/sb-1",
                "DELETE /v1/sandboxes/sb-1"
            ]
        );
        assert_eq!(server.seen_so_far(), 0);
        registry.assert_empty();
    }
}

#[tokio::test]
async fn a_sandbox_that_cannot_be_removed_is_named() {
    let registry = Registry::new();
    let ender = registry.clone();
    let look = move || {
        ender.shut_down();
        Reply::data(r#"{"id":"sb-1","status":"creating"}"#)
    };
    let server = Server::start(acquisition(look, || Reply::json(500, "{}"))).await;
    let client = reusing(&server.origin, 5000);
    let hold = registry.acquiring().expect("not shut down");
    let failure = acquire(&hold, &client, plan(&client), CancellationToken::new())
        .await
        .expect_err("it was shut down");
    assert_eq!(
        failure,
        Failure::SetupUnconfirmed {
            sandbox_id: "sb-1".to_owned()
        }
    );
    assert_eq!(
        failure.to_string(),
        "CreateOS setup failed and cleanup is unconfirmed for sandbox sb-1."
    );
    drop(hold);
    registry.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn an_environment_that_ends_settles_everything() {
    let registry = Registry::new();
    let (tell, mut told) = mpsc::unbounded_channel();
    let on_deadline = OnDeadline::new(move |calls| tell.send(calls).expect("a listener"));
    let scopes = [scope("a", "one"), scope("a", "two"), scope("b", "one")];
    for scope in &scopes {
        registry
            .begin(0, scope.clone(), 10, 1000, &on_deadline)
            .expect("it is open");
    }
    drop(on_deadline);
    let_run().await;
    let (closing, _, drain) = registry.close(&scopes[0], true).expect("it is open");
    let waiting = tokio::spawn(drain.wait());
    let_run().await;
    let start = now();
    registry.abandon();
    registry.assert_invariants();
    assert!(
        waiting.await.expect("no panic"),
        "a release under way goes on"
    );
    assert_eq!(now(), start);
    assert!(registry.ending().is_cancelled());
    assert_eq!(registry.state(&scopes[2]), LeaseState::Shutdown);
    assert_eq!(registry.admit(&scopes[2]), Err(Failure::Closing));
    drop(closing);
    registry.assert_empty();
    registry.abandon();
    // The timer, the last to hold the listener, goes with the registry, and has told nothing.
    drop(registry);
    assert_eq!(told.recv().await, None);
    let_run().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn settlements_that_come_after_the_environments_end_change_nothing() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let call = begin(&registry, &scope, 1000);
    registry.abandon();
    registry.settle(call, true);
    assert!(!registry.is_unconfirmed(&scope));
    registry.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_cancels_what_is_being_acquired_and_a_release_does_not() {
    let registry = Registry::new();
    let (closing, ..) = registry
        .close(&scope("lease", "account"), true)
        .expect("it is open");
    drop(closing);
    assert!(!registry.ending().is_cancelled());
    registry.shut_down();
    assert!(registry.ending().is_cancelled());
}
