//! What a resume makes of a recorded lease before it asks anybody.

use super::configuration::{parsed, right, texts};
use crate::config::{Config, Raw};
use crate::lease::resume::{Plan, Recorded};
use crate::text::Text;

const MARKER: &str = "00000000-aaaa-4bcd-8ef0-123456789abc";

fn given(text: &str) -> Raw<Text> {
    Raw::Given(Text::from(text))
}

fn rules(rules: &[&str]) -> Raw<Vec<Option<Text>>> {
    Raw::Given(texts(rules).into_iter().map(Some).collect())
}

/// A configuration with everything, and what acquire records of it.
fn full() -> (Config, Recorded) {
    let mut config = parsed(right());
    config.shape = Text::from("shape");
    config.rootfs = Some(Text::from("rootfs"));
    config.rootfs_by_adapter = vec![(Text::from("adapter-a"), Text::from("image-a"))];
    config.region = Some(Text::from("eu"));
    config.egress_allowlist = texts(&["a", "b"]);
    config.reuse_lease = true;
    config.auto_pause_after_seconds = Some(600);
    let recorded = Recorded {
        marker: given(MARKER),
        shape: given("shape"),
        rootfs: given("image-a"),
        region: given("eu"),
        adapter: given("adapter-a"),
        auto_pause_after_seconds: Raw::Given(600.0),
        base_egress: rules(&["a", "b"]),
        effective_egress: rules(&["a", "b", "c"]),
    };
    (config, recorded)
}

#[test]
fn a_lease_that_fits_is_brought_back_under_its_own_rules() {
    let (config, recorded) = full();
    let plan = Plan::new(&config, &recorded).expect("it fits");
    assert_eq!(plan.marker.as_str(), MARKER);
    assert_eq!(plan.egress, texts(&["a", "b", "c"]));
}

#[test]
fn a_lease_that_differs_in_one_field_has_expired() {
    type Change = fn(&mut Config, &mut Recorded);
    let changes: [Change; 22] = [
        |_, recorded| recorded.shape = given("Shape"),
        |_, recorded| recorded.shape = Raw::Absent,
        |_, recorded| recorded.shape = Raw::Other,
        |_, recorded| recorded.rootfs = given("rootfs"),
        |_, recorded| recorded.rootfs = Raw::Absent,
        |_, recorded| recorded.adapter = Raw::Absent,
        |_, recorded| recorded.adapter = given("adapter-b"),
        |_, recorded| recorded.region = given("us"),
        |_, recorded| recorded.region = Raw::Other,
        |config, _| config.region = None,
        |_, recorded| recorded.auto_pause_after_seconds = Raw::Given(601.0),
        |_, recorded| recorded.auto_pause_after_seconds = Raw::Absent,
        |_, recorded| recorded.auto_pause_after_seconds = Raw::Other,
        // It will not be left to the idle timer any more, though that is set.
        |config, _| config.reuse_lease = false,
        |_, recorded| recorded.base_egress = rules(&["b", "a"]),
        |_, recorded| recorded.base_egress = rules(&["a"]),
        |_, recorded| recorded.base_egress = Raw::Absent,
        |_, recorded| recorded.base_egress = Raw::Given(vec![Some(Text::from("a")), None]),
        |_, recorded| recorded.base_egress = Raw::Other,
        |config, _| config.egress_allowlist = Vec::new(),
        |_, recorded| recorded.effective_egress = Raw::Given(vec![None]),
        |_, recorded| recorded.effective_egress = Raw::Other,
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let (mut config, mut recorded) = full();
        change(&mut config, &mut recorded);
        assert_eq!(Plan::new(&config, &recorded), None, "change {place}");
    }
}

#[test]
fn a_marker_is_36_characters_of_a_uuid() {
    let (config, recorded) = full();
    let long = format!("{MARKER}0");
    for marker in [
        Raw::Absent,
        Raw::Other,
        given(""),
        given(&MARKER[1..]),
        given(&long),
        given(&MARKER.to_uppercase()),
        given("00000000-aaaa-4bcd-8ef0-123456789abg"),
        given("00000000-aaaa-4bcd-8ef0-123456789ab\n"),
        given("00000000-aaaa-4bcd-8ef0-12345678\u{e9}a"),
    ] {
        let recorded = Recorded {
            marker: marker.clone(),
            ..recorded.clone()
        };
        assert_eq!(Plan::new(&config, &recorded), None, "{marker:?}");
    }
    let dashes = Recorded {
        marker: given(&"-".repeat(36)),
        ..recorded
    };
    assert!(Plan::new(&config, &dashes).is_some());
}

#[test]
fn what_an_older_plugin_did_not_record_counts_as_absent() {
    let mut config = parsed(right());
    config.shape = Text::from("shape");
    let recorded = Recorded {
        marker: given(MARKER),
        shape: given("shape"),
        ..Recorded::default()
    };
    let plan = Plan::new(&config, &recorded).expect("it fits");
    assert_eq!(plan.egress, []);
    // Its idle timer was none, and the configuration's does not count without reuse.
    config.auto_pause_after_seconds = Some(600);
    assert!(Plan::new(&config, &recorded).is_some());
    config.reuse_lease = true;
    assert_eq!(Plan::new(&config, &recorded), None);
}
