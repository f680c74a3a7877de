//! A resume as a call of its scope: alone with its sandbox or not.

use super::{begin, scope};
use crate::error::Failure;
use crate::process::is_marker;
use crate::registry::{CallId, OnDeadline, Registry};
use crate::scope::ScopeKey;

fn begin_resume(registry: &Registry, scope: &ScopeKey) -> CallId {
    registry
        .begin_resume(0, scope.clone(), 60_000, &OnDeadline::new(|_| {}))
        .expect("the scope is open")
}

#[tokio::test]
async fn a_resume_is_alone_until_work_begins_under_its_lease() {
    let registry = Registry::new();
    let own = scope("lease", "account");
    let resume = begin_resume(&registry, &own);
    assert!(registry.is_alone(resume));
    // Another lease's work is nothing to it, and other resumes are no work.
    begin(&registry, &scope("other", "account"), 1000);
    let second = begin_resume(&registry, &own);
    assert!(registry.is_alone(resume) && registry.is_alone(second));
    // Work that has come and gone may have left something that is not a crashed client's.
    let work = begin(&registry, &own, 1000);
    registry.assert_invariants();
    assert!(!registry.is_alone(resume) && !registry.is_alone(second));
    registry.settle(work, false);
    assert!(!registry.is_alone(resume) && !registry.is_alone(second));
    let third = begin_resume(&registry, &own);
    assert!(registry.is_alone(third));
    for resume in [resume, second, third] {
        registry.settle(resume, false);
        assert!(!registry.is_alone(resume));
    }
    registry.assert_invariants();
}

#[tokio::test]
async fn a_resume_that_began_beside_work_is_not_alone_after_it_either() {
    let registry = Registry::new();
    // Under another key, but in the same sandbox.
    let work = begin(&registry, &scope("lease", "rotated"), 1000);
    let resume = begin_resume(&registry, &scope("lease", "account"));
    assert!(!registry.is_alone(resume));
    registry.settle(work, false);
    assert!(!registry.is_alone(resume));
    registry.settle(resume, false);
    registry.assert_empty();
}

#[tokio::test]
async fn a_resume_is_named_by_a_release_and_refused_while_one_is_under_way() {
    let registry = Registry::new();
    let own = scope("lease", "account");
    let resume = begin_resume(&registry, &own);
    let (closing, named, drain) = registry.close(&own, false).expect("it is open");
    assert_eq!(named, [resume]);
    let refused = registry.begin_resume(0, own.clone(), 1, &OnDeadline::new(|_| {}));
    assert_eq!(refused, Err(Failure::Closing));
    assert_eq!(registry.admit_resume(&own), Err(Failure::ClosingToResume));
    registry.settle(resume, true);
    assert!(drain.wait().await);
    drop(closing);
    assert!(registry.is_unconfirmed(&own));
    assert_eq!(registry.admit_resume(&own), Err(Failure::ClosingToResume));
}

#[test]
fn only_a_whole_marker_marks_a_command() {
    let id = "6f8fdd7e-4a6c-4f4e-9a0b-0123456789ab";
    assert!(is_marker(&format!("createos-lease-command-{id}")));
    for other in [
        String::new(),
        id.to_owned(),
        "createos-lease-command-".to_owned(),
        format!("createos-lease-command-{id} "),
        format!(" createos-lease-command-{id}"),
        format!("echo createos-lease-command-{id}"),
        format!("createos-lease-command-{}", id.to_uppercase()),
        format!("createos-lease-command-{}", id.replace('-', "")),
        format!("createos-lease-command-{{{id}}}"),
        format!("createos-lease-{id}"),
    ] {
        assert!(!is_marker(&other), "{other:?}");
    }
}
