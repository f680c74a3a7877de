//! Calls that settle late, or never, while a release waits for them. All on a paused clock.

use std::time::Duration;

use tokio::time::{advance, timeout};

use super::{begin, let_run, reusing, scope};
use crate::clock::{millis, now};
use crate::error::{Code, Failure, ResponseFault};
use crate::lease::release::{Ending, Release};
use crate::registry::{LeaseState, Registry};

/// What a release waits for beyond twice the longest configured timeout.
const GRACE: Duration = Duration::from_secs(5);

/// No test waits this long for anything that comes.
const FOR_EVER: Duration = Duration::from_secs(100 * 24 * 3600);

#[tokio::test(start_paused = true)]
async fn a_scope_is_waited_for_twice_its_longest_configured_timeout_and_five_seconds() {
    for config_timeouts in [&[1][..], &[1000], &[1000, 3000, 2000], &[86_400_000, 1]] {
        let registry = Registry::new();
        let scope = scope("lease", "account");
        for config_timeout in config_timeouts {
            begin(&registry, &scope, *config_timeout);
        }
        let longest = config_timeouts.iter().max().expect("there is one");
        // The bound counts from the release, however long the calls have run.
        advance(Duration::from_secs(77)).await;
        for every_account in [false, true] {
            let start = now();
            let (_closing, _, drain) = registry.close(&scope, every_account).expect("it is open");
            assert!(!drain.wait().await);
            assert_eq!(
                now() - start,
                millis(*longest) * 2 + GRACE,
                "{config_timeouts:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_calls_own_timeout_and_calls_that_have_settled_do_not_lengthen_the_wait() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    // `begin` gives each call a day of its own.
    let settled = begin(&registry, &scope, 50_000);
    begin(&registry, &scope, 10);
    registry.settle(settled, false);
    let start = now();
    let (_closing, _, drain) = registry.close(&scope, false).expect("it is open");
    assert!(!drain.wait().await);
    assert_eq!(now() - start, millis(20) + GRACE);
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_with_the_last_call() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let calls = [1, 2, 3].map(|_| begin(&registry, &scope, 1000));
    let (_closing, named, drain) = registry.close(&scope, false).expect("it is open");
    assert_eq!(named, calls);
    let waiting = tokio::spawn(drain.wait());
    for call in [calls[1], calls[2]] {
        registry.settle(call, true);
        let_run().await;
        assert!(!waiting.is_finished());
    }
    let start = now();
    registry.settle(calls[0], false);
    assert!(waiting.await.expect("no panic"));
    assert_eq!(now(), start);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_settles_a_millisecond_before_the_bound_is_in_time() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let call = begin(&registry, &scope, 1000);
    let (_closing, _, drain) = registry.close(&scope, false).expect("it is open");
    let waiting = tokio::spawn(drain.wait());
    let_run().await;
    advance(millis(6999)).await;
    let_run().await;
    assert!(!waiting.is_finished());
    registry.settle(call, false);
    assert!(waiting.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn calls_that_settle_before_anyone_waits_are_not_waited_for() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let call = begin(&registry, &scope, 1000);
    let (_closing, _, drain) = registry.close(&scope, false).expect("it is open");
    registry.settle(call, false);
    let start = now();
    assert!(drain.wait().await);
    assert_eq!(now(), start);
}

#[tokio::test(start_paused = true)]
async fn a_scope_without_calls_is_not_waited_for() {
    let registry = Registry::new();
    begin(&registry, &scope("lease", "other account"), 1000);
    begin(&registry, &scope("other lease", "account"), 1000);
    let (_closing, named, drain) = registry
        .close(&scope("lease", "account"), false)
        .expect("it is open");
    assert_eq!(named, []);
    let start = now();
    assert!(drain.wait().await);
    assert_eq!(now(), start);
}

#[tokio::test(start_paused = true)]
async fn each_scope_has_its_own_bound() {
    let registry = Registry::new();
    let (short, long) = (scope("lease", "one"), scope("lease", "two"));
    begin(&registry, &short, 1000);
    let patient = begin(&registry, &long, 10_000);
    let start = now();
    let (_closing, _, drain) = registry.close(&short, true).expect("it is open");
    let waiting = tokio::spawn(drain.wait());
    let_run().await;
    // The first one's bound has long passed, and the second one's has not.
    advance(millis(24_999)).await;
    let_run().await;
    assert!(!waiting.is_finished());
    registry.settle(patient, false);
    assert!(!waiting.await.expect("no panic"));
    assert_eq!(now() - start, millis(24_999));
}

#[tokio::test(start_paused = true)]
async fn the_longest_bound_of_several_scopes_ends_the_wait() {
    let registry = Registry::new();
    for (account, config_timeout) in [("one", 3000), ("two", 20_000), ("three", 1)] {
        begin(&registry, &scope("lease", account), config_timeout);
    }
    let start = now();
    let (_closing, _, drain) = registry
        .close(&scope("lease", "four"), true)
        .expect("it is open");
    assert!(!drain.wait().await);
    assert_eq!(now() - start, millis(40_000) + GRACE);
}

#[tokio::test(start_paused = true)]
async fn a_reuse_past_the_bound_is_refused_and_marks_the_scope() {
    for ending in [Ending::Pause, Ending::KeepWarm] {
        let registry = Registry::new();
        let scope = scope("lease", "account");
        let call = begin(&registry, &scope, 1000);
        let (release, named) = Release::begin(&registry, &scope, ending).expect("it is open");
        assert_eq!(named, [call]);
        let start = now();
        // Nobody listens there; nothing is sent.
        let released = release
            .run(reusing("http://127.0.0.1:9", 1000), "sb-1")
            .await;
        let failure = released.expect_err("a call still runs");
        assert_eq!(failure, Failure::Unconfirmed);
        assert_eq!(
            failure.to_string(),
            "CreateOS process cleanup is unconfirmed; destroy this lease before reusing it."
        );
        assert_eq!(failure.code(), Some(Code::CleanupUnconfirmed));
        assert_eq!(now() - start, millis(2000) + GRACE);
        assert_eq!(registry.state(&scope), LeaseState::Unconfirmed);
        assert_eq!(registry.admit(&scope), Err(Failure::Closing));

        registry.settle(call, false);
        registry.assert_invariants();
        assert_eq!(
            registry.state(&scope),
            LeaseState::Unconfirmed,
            "only a destroy lifts it"
        );
        let (again, named) = Release::begin(&registry, &scope, ending).expect("it has ended");
        assert_eq!(named, []);
        let released = again.run(reusing("http://127.0.0.1:9", 1000), "sb-1").await;
        assert_eq!(released, Err(Failure::Unconfirmed));

        registry.destroyed(&scope.lease);
        assert_eq!(registry.state(&scope), LeaseState::Open);
        registry.assert_empty();
    }
}

#[tokio::test(start_paused = true)]
async fn a_destroy_goes_on_past_the_bound() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    begin(&registry, &scope, 1000);
    let (release, _) = Release::begin(&registry, &scope, Ending::Destroy).expect("it is open");
    let start = now();
    // The id is looked at right before the request, which a paused clock cannot make.
    let released = release
        .run(reusing("http://127.0.0.1:9", 1000), "no id")
        .await;
    assert_eq!(released, Err(Failure::Response(ResponseFault::Id)));
    assert_eq!(now() - start, millis(2000) + GRACE);
    // A destroy that failed leaves no mark of its own: the call may still settle in time.
    assert_eq!(registry.state(&scope), LeaseState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_fails_late_marks_the_scope_until_a_destroy() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let late = begin(&registry, &scope, 1000);
    let (closing, _, drain) = registry.close(&scope, true).expect("it is open");
    assert!(!drain.wait().await);
    registry.destroyed(&scope.lease);
    drop(closing);
    assert_eq!(registry.state(&scope), LeaseState::Open);
    registry.settle(late, true);
    assert_eq!(registry.state(&scope), LeaseState::Unconfirmed);
    registry.destroyed(&scope.lease);
    registry.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn a_late_settlement_removes_its_own_call_only() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let late = begin(&registry, &scope, 1000);
    let (closing, _, drain) = registry.close(&scope, true).expect("it is open");
    assert!(!drain.wait().await);
    registry.destroyed(&scope.lease);
    drop(closing);

    let next = begin(&registry, &scope, 1000);
    registry.settle(late, false);
    registry.settle(late, true);
    registry.assert_invariants();
    assert_eq!(
        registry.state(&scope),
        LeaseState::Open,
        "the second settlement says nothing"
    );
    let (_closing, named, drain) = registry.close(&scope, false).expect("it is open");
    assert_eq!(named, [next]);
    let waiting = tokio::spawn(drain.wait());
    registry.settle(late, false);
    let_run().await;
    assert!(!waiting.is_finished());
    registry.settle(next, false);
    assert!(waiting.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlives_one_release_is_waited_for_by_the_next() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let call = begin(&registry, &scope, 1000);
    let (closing, _, drain) = registry.close(&scope, false).expect("it is open");
    assert!(!drain.wait().await);
    drop(closing);
    let (_closing, named, drain) = registry.close(&scope, true).expect("it has ended");
    assert_eq!(named, [call]);
    let waiting = tokio::spawn(drain.wait());
    let_run().await;
    registry.settle(call, false);
    assert!(waiting.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn everyone_who_waits_for_a_scope_is_woken() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    let call = begin(&registry, &scope, 1000);
    let (_own, _, drain) = registry.close(&scope, false).expect("it is open");
    let (_others, _, other_drain) = registry
        .close(&super::scope("lease", "other account"), true)
        .expect("only the own scope is closing");
    let (_, shutdown_drain) = registry.shut_down();
    let waiting = [drain, other_drain, shutdown_drain].map(|drain| tokio::spawn(drain.wait()));
    let_run().await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    let start = now();
    registry.settle(call, false);
    for waiting in waiting {
        assert!(waiting.await.expect("no panic"));
    }
    assert_eq!(now(), start);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_waits_refuses_another_which_does_not_wait() {
    let registry = Registry::new();
    let scope = scope("lease", "account");
    begin(&registry, &scope, 1000);
    let (release, _) = Release::begin(&registry, &scope, Ending::Pause).expect("it is open");
    let run = tokio::spawn(release.run(reusing("http://127.0.0.1:9", 1000), "sb-1"));
    let_run().await;
    let start = now();
    for ending in [Ending::Pause, Ending::KeepWarm, Ending::Destroy] {
        let refused = Release::begin(&registry, &scope, ending).expect_err("one is under way");
        assert_eq!(refused, Failure::ReleaseInProgress);
        assert_eq!(
            refused.to_string(),
            "CreateOS lease cleanup is already in progress."
        );
        assert_eq!(refused.code(), Some(Code::ReleaseInProgress));
    }
    assert_eq!(now(), start);
    assert!(timeout(FOR_EVER, run).await.is_ok());
}
