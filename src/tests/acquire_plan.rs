//! What a lease is acquired with: the configuration's wishes and the run's.

use super::configuration::{parsed, right, texts};
use crate::error::Code;
use crate::lease::acquire::{Plan, Wishes};
use crate::text::Text;

fn wishes(fqdns: &[&str], cidrs: &[&str]) -> Wishes {
    let some = |rules: &[&str]| rules.iter().map(|rule| Some(Text::from(*rule))).collect();
    Wishes {
        allow_fqdns: some(fqdns),
        allow_cidrs: some(cidrs),
        ..Wishes::default()
    }
}

#[test]
fn a_leases_egress_is_the_configurations_and_the_runs_each_rule_once() {
    let egress = |own: &[&str], fqdns: &[&str], cidrs: &[&str]| {
        let mut config = parsed(right());
        config.egress_allowlist = texts(own);
        Plan::new(&config, &wishes(fqdns, cidrs))
            .expect("a plan")
            .egress
    };
    assert_eq!(egress(&[], &[], &[]), []);
    assert_eq!(
        egress(&["b", "a"], &["c ", "a"], &["10.0.0.0/8", "c"]),
        texts(&["b", "a", "c", "10.0.0.0/8"])
    );
    // A rule for everything would undo the others, and stands only alone.
    assert_eq!(egress(&["*"], &[], &[" * "]), texts(&["*"]));
    assert_eq!(egress(&["*"], &["a"], &["*"]), texts(&["a"]));
    assert_eq!(egress(&["*", "a", "*.b"], &[], &[]), texts(&["a", "*.b"]));
}

#[test]
fn a_run_whose_rules_are_no_lines_is_refused() {
    let config = parsed(right());
    let mut all = vec![
        wishes(&[""], &[]),
        wishes(&["a"], &[" "]),
        wishes(&[], &["a\n"]),
    ];
    all.push(Wishes {
        allow_cidrs: vec![None],
        ..Wishes::default()
    });
    for wishes in all {
        let failure = Plan::new(&config, &wishes).expect_err("a rule that is none");
        assert_eq!(
            failure.to_string(),
            "networkEgress allowlists must contain non-empty strings."
        );
        assert_eq!(failure.code(), Some(Code::Config));
    }
}

#[test]
fn only_a_lease_that_something_will_reuse_pauses_by_itself() {
    for (reuse_lease, reusable, expected) in [
        (true, true, Some(600)),
        (true, false, None),
        (false, true, None),
        (false, false, None),
    ] {
        let mut config = parsed(right());
        config.reuse_lease = reuse_lease;
        config.auto_pause_after_seconds = Some(600);
        let plan = Plan::new(
            &config,
            &Wishes {
                reusable,
                ..Wishes::default()
            },
        );
        assert_eq!(plan.expect("a plan").auto_pause_after_seconds, expected);
    }
}
