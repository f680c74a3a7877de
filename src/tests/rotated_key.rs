//! One lease under several API keys: a destroy ends the sandbox for all of them, a release for
//! reuse is one account's own business.

use super::{begin, let_run, reusing, scope};
use crate::error::{Failure, Operation};
use crate::http::http_server::{Reply, Server};
use crate::lease::release::{Ending, Release};
use crate::registry::{LeaseState, Registry};
use crate::scope::ScopeKey;

#[tokio::test(start_paused = true)]
async fn a_destroy_closes_every_account_and_names_their_calls_as_they_began() {
    let registry = Registry::new();
    let (old, new) = (scope("lease", "old"), scope("lease", "new"));
    let calls = [&old, &new, &new, &old, &new].map(|scope| begin(&registry, scope, 1000));
    let (closing, named, drain) = registry.close(&new, true).expect("it is open");
    assert_eq!(named, calls);
    for scope in [&old, &new] {
        assert_eq!(registry.state(scope), LeaseState::Closing);
        assert_eq!(registry.admit(scope), Err(Failure::Closing));
    }
    let waiting = tokio::spawn(drain.wait());
    for call in [calls[1], calls[2], calls[4], calls[0]] {
        registry.settle(call, false);
        let_run().await;
        assert!(!waiting.is_finished(), "the old key's call still runs");
    }
    registry.settle(calls[3], false);
    assert!(waiting.await.expect("no panic"));
    drop(closing);
    registry.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn a_destroy_covers_accounts_that_turn_up_while_it_runs() {
    let registry = Registry::new();
    let (closing, named, drain) = registry
        .close(&scope("lease", "new"), true)
        .expect("it is open");
    assert_eq!(named, []);
    let later = scope("lease", "later");
    assert_eq!(registry.state(&later), LeaseState::Closing);
    assert_eq!(registry.admit(&later), Err(Failure::Closing));
    for every_account in [false, true] {
        let refused = registry.close(&later, every_account).map(|_| ());
        assert_eq!(refused, Err(Failure::ReleaseInProgress));
    }
    assert!(drain.wait().await);
    registry.assert_invariants();
    drop(closing);
    assert_eq!(registry.state(&later), LeaseState::Open);
    registry.assert_empty();
}

/// Leases that differ from `scope("lease", _)` in one part other than the account.
fn strangers() -> [ScopeKey; 4] {
    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    let of = |company: &str, environment: &str, origin: &str, lease: &str| {
        ScopeKey::new(
            &units(company),
            &units(environment),
            origin,
            "account",
            &units(lease),
        )
    };
    let origin = "https://api.example.test";
    [
        of("another company", "environment", origin, "lease"),
        of("company", "another environment", origin, "lease"),
        of(
            "company",
            "environment",
            "https://another.example.test",
            "lease",
        ),
        of("company", "environment", origin, "another lease"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_destroy_touches_no_other_lease() {
    let registry = Registry::new();
    for stranger in strangers() {
        begin(&registry, &stranger, 1000);
        registry.bound_passed(&stranger);
    }
    let own = begin(&registry, &scope("lease", "account"), 1000);
    let (_closing, named, drain) = registry
        .close(&scope("lease", "account"), true)
        .expect("it is open");
    assert_eq!(named, [own]);
    registry.settle(own, false);
    assert!(drain.wait().await);
    registry.destroyed(&scope("lease", "account").lease);
    registry.assert_invariants();
    for stranger in strangers() {
        assert_eq!(registry.state(&stranger), LeaseState::Unconfirmed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_for_reuse_leaves_other_accounts_alone() {
    let registry = Registry::new();
    let (own, other) = (scope("lease", "own"), scope("lease", "other"));
    let call = begin(&registry, &own, 1000);
    let others = begin(&registry, &other, 1000);
    let (closing, named, drain) = registry.close(&own, false).expect("it is open");
    assert_eq!(named, [call]);
    assert_eq!(registry.state(&other), LeaseState::Open);
    registry.settle(begin(&registry, &other, 1000), false);
    registry.settle(call, false);
    assert!(
        drain.wait().await,
        "the other account's call is not waited for"
    );
    registry.bound_passed(&own);
    drop(closing);
    assert_eq!(registry.state(&own), LeaseState::Unconfirmed);
    assert_eq!(registry.state(&other), LeaseState::Open);
    let (_closing, named, _) = registry
        .close(&other, false)
        .expect("the first one has ended");
    assert_eq!(named, [others]);
}

#[tokio::test(start_paused = true)]
async fn each_of_two_releases_lifts_its_own_mark() {
    for destroy_ends_first in [false, true] {
        let registry = Registry::new();
        let (own, other) = (scope("lease", "own"), scope("lease", "other"));
        let (reuse, ..) = registry.close(&other, false).expect("it is open");
        // Another account's release is no reason to refuse a destroy.
        let (destroy, ..) = registry.close(&own, true).expect("it is open");
        registry.assert_invariants();
        if destroy_ends_first {
            drop(destroy);
            registry.assert_invariants();
            assert_eq!(registry.state(&own), LeaseState::Open);
            assert_eq!(registry.state(&other), LeaseState::Closing);
            drop(reuse);
        } else {
            drop(reuse);
            registry.assert_invariants();
            assert_eq!(registry.state(&own), LeaseState::Closing);
            assert_eq!(registry.state(&other), LeaseState::Closing);
            drop(destroy);
        }
        for scope in [&own, &other] {
            assert_eq!(registry.state(scope), LeaseState::Open);
        }
        registry.assert_empty();
    }
}

#[tokio::test]
async fn a_destroy_that_succeeds_lifts_every_accounts_mark() {
    let mut server = Server::start(|_| Reply::data("{}")).await;
    let registry = Registry::new();
    let accounts = ["one", "two", "three"].map(|account| scope("lease", account));
    for scope in &accounts {
        registry.bound_passed(scope);
    }
    let late = begin(&registry, &scope("lease", "four"), 1000);
    let (release, named) =
        Release::begin(&registry, &accounts[1], Ending::Destroy).expect("it is open");
    assert_eq!(named, [late]);
    registry.settle(late, true);
    assert_eq!(
        release.run(reusing(&server.origin, 1000), "sb-1").await,
        Ok(None)
    );
    assert_eq!(server.seen().await.method, "DELETE");
    assert_eq!(server.seen_so_far(), 0);
    for scope in &accounts {
        assert_eq!(registry.state(scope), LeaseState::Open);
    }
    registry.assert_empty();
}

#[tokio::test]
async fn a_destroy_that_fails_leaves_every_accounts_mark() {
    let server = Server::start(|_| Reply::json(503, "{}")).await;
    let registry = Registry::new();
    let [own, marked, unmarked] = ["one", "two", "three"].map(|account| scope("lease", account));
    registry.bound_passed(&own);
    registry.bound_passed(&marked);
    let (release, _) = Release::begin(&registry, &own, Ending::Destroy).expect("it is open");
    let failure = Failure::Api {
        status: 503,
        operation: Operation::SandboxLifecycle,
    };
    assert_eq!(
        release.run(reusing(&server.origin, 1000), "sb-1").await,
        Err(failure)
    );
    assert_eq!(registry.state(&own), LeaseState::Unconfirmed);
    assert_eq!(registry.state(&marked), LeaseState::Unconfirmed);
    assert_eq!(registry.state(&unmarked), LeaseState::Open);
    registry.assert_invariants();
}
