//! Configurations that are wrong, and what a right one comes to.

use crate::config::{Config, Raw, RawConfig, parse_timeout};
use crate::error::{Code, ConfigFault, ConfigField, Failure};
use crate::text::Text;

pub fn given(text: &str) -> Raw<Text> {
    Raw::Given(Text::from(text))
}

pub fn texts(texts: &[&str]) -> Vec<Text> {
    texts.iter().copied().map(Text::from).collect()
}

pub fn right() -> RawConfig {
    RawConfig {
        api_url: given("https://api.example.test"),
        shape: given("s-1vcpu-1gb"),
        ..RawConfig::default()
    }
}

pub fn parsed(raw: RawConfig) -> Config {
    Config::parse(raw).expect("a configuration")
}

/// What is said about a field, and ways to earn it.
type Row = (ConfigField, &'static str, &'static [fn(&mut RawConfig)]);

/// The specification's table in the order of its checks.
const ROWS: &[Row] = &[
    (
        ConfigField::ApiUrl,
        "apiUrl must be a non-empty string.",
        &[
            |raw| raw.api_url = Raw::Other,
            |raw| raw.api_url = given("\u{feff}\n "),
            |raw| raw.api_url = given("https://api.example.test\0"),
        ],
    ),
    (
        ConfigField::ApiUrl,
        "CreateOS requires an API URL.",
        &[|raw| raw.api_url = Raw::Absent],
    ),
    (
        ConfigField::ApiUrl,
        "CreateOS API URL is invalid.",
        &[|raw| raw.api_url = given("nowhere")],
    ),
    (
        ConfigField::ApiUrl,
        "CreateOS API URL must be an HTTPS origin (optionally ending in /v1); HTTP is allowed on loopback only.",
        &[|raw| raw.api_url = given("http://api.example.test")],
    ),
    (
        ConfigField::Shape,
        "shape must be a non-empty string.",
        &[
            |raw| raw.shape = Raw::Other,
            |raw| raw.shape = given("\t"),
            |raw| raw.shape = given("a\0"),
        ],
    ),
    (
        ConfigField::Shape,
        "CreateOS requires a shape from its shape catalog.",
        &[|raw| raw.shape = Raw::Absent],
    ),
    (
        ConfigField::TimeoutMs,
        "timeoutMs must be an integer between 1 and 86400000.",
        &[
            |raw| raw.timeout_ms = Raw::Other,
            |raw| raw.timeout_ms = Raw::Given(0.0),
        ],
    ),
    (
        ConfigField::ReuseLease,
        "reuseLease must be a boolean.",
        &[|raw| raw.reuse_lease = Raw::Other],
    ),
    (
        ConfigField::AutoPauseAfterSeconds,
        "autoPauseAfterSeconds must be an integer between 60 and 86400.",
        &[
            |raw| raw.auto_pause_after_seconds = Raw::Other,
            |raw| raw.auto_pause_after_seconds = Raw::Given(59.0),
        ],
    ),
    (
        ConfigField::RootfsByAdapter,
        "rootfsByAdapter must be an object of adapter names to root filesystems.",
        &[|raw| raw.rootfs_by_adapter = Raw::Other],
    ),
    (
        ConfigField::RootfsByAdapter,
        "rootfsByAdapter must contain non-empty adapter and root filesystem strings.",
        &[|raw| raw.rootfs_by_adapter = Raw::Given(vec![(Text::from("adapter"), None)])],
    ),
    (
        ConfigField::EgressAllowlist,
        "egressAllowlist must be an array of non-empty host or CIDR strings.",
        &[
            |raw| raw.egress_allowlist = Raw::Other,
            |raw| raw.egress_allowlist = Raw::Given(vec![Some(Text::from("a.test")), None]),
        ],
    ),
    (
        ConfigField::ApiKey,
        "apiKey must be a non-empty string.",
        &[
            |raw| raw.api_key = Raw::Other,
            |raw| raw.api_key = given(""),
            |raw| raw.api_key = given("\0"),
        ],
    ),
    (
        ConfigField::Rootfs,
        "rootfs must be a non-empty string.",
        &[|raw| raw.rootfs = Raw::Other, |raw| raw.rootfs = given(" ")],
    ),
    (
        ConfigField::Region,
        "region must be a non-empty string.",
        &[
            |raw| raw.region = Raw::Other,
            |raw| raw.region = given("\r"),
        ],
    ),
];

/// A way to break a configuration, and what is said about it.
#[derive(Clone, Copy)]
struct Breach {
    break_it: fn(&mut RawConfig),
    field: ConfigField,
    message: &'static str,
}

/// All of the table's, in its order.
fn breaches() -> Vec<Breach> {
    let of = |&(field, message, ways): &Row| {
        ways.iter().map(move |&break_it| Breach {
            break_it,
            field,
            message,
        })
    };
    ROWS.iter().flat_map(of).collect()
}

fn assert_refused(raw: RawConfig, breach: Breach) {
    let failure = Config::parse(raw).expect_err(breach.message);
    assert_eq!(failure.to_string(), breach.message);
    assert_eq!(failure.code(), Some(Code::Config));
    let named = matches!(failure, Failure::Config { field, .. } if field == breach.field);
    assert!(named, "{}: another field", breach.message);
}

#[test]
fn every_row_of_the_table_is_refused_with_its_message_and_field() {
    for breach in breaches() {
        let mut raw = right();
        (breach.break_it)(&mut raw);
        assert_refused(raw, breach);
    }
}

#[test]
fn of_two_failures_the_earlier_row_wins() {
    let breaches = breaches();
    let mut pairs = 0;
    for (at, earlier) in breaches.iter().enumerate() {
        // A field has one value, so it breaks one row at a time.
        for later in breaches[at..]
            .iter()
            .filter(|later| later.field != earlier.field)
        {
            let mut raw = right();
            (later.break_it)(&mut raw);
            (earlier.break_it)(&mut raw);
            assert_refused(raw, *earlier);
            pairs += 1;
        }
    }
    assert!(pairs > 200, "{pairs}");
}

#[test]
fn fields_are_spelt_as_in_javascript() {
    let mut names: Vec<_> = ROWS.iter().map(|row| row.0.as_str()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "apiUrl",
            "shape",
            "timeoutMs",
            "reuseLease",
            "autoPauseAfterSeconds",
            "rootfsByAdapter",
            "egressAllowlist",
            "apiKey",
            "rootfs",
            "region"
        ]
    );
}

#[test]
fn what_is_absent_is_none_empty_or_the_default() {
    assert_eq!(
        parsed(right()),
        Config {
            api_url: "https://api.example.test".to_owned(),
            api_key: None,
            shape: Text::from("s-1vcpu-1gb"),
            rootfs: None,
            rootfs_by_adapter: Vec::new(),
            egress_allowlist: Vec::new(),
            region: None,
            timeout_ms: 300_000,
            reuse_lease: false,
            auto_pause_after_seconds: None,
        }
    );
}

#[test]
fn texts_are_trimmed_as_javascript_trims_and_otherwise_kept() {
    let config = parsed(RawConfig {
        api_url: given("\u{feff}https://api.example.test/v1\u{2028}"),
        shape: given("\u{3000} s hape\t"),
        api_key: given("\u{a0}key\u{202f}"),
        rootfs: given("\u{85}"),
        region: Raw::Given(Text::from_units(&[0x20, 0xd800, 0x20])),
        ..right()
    });
    assert_eq!(config.api_url, "https://api.example.test");
    assert_eq!(config.shape, Text::from("s hape"));
    assert_eq!(
        config.api_key.expect("a key").expose(),
        Text::from("key").units()
    );
    // U+0085 is white space to Rust alone.
    assert_eq!(config.rootfs, Some(Text::from("\u{85}")));
    assert_eq!(config.region, Some(Text::from_units(&[0xd800])));
}

const NO_INTEGERS: [f64; 8] = [
    0.5,
    1.5,
    60.5,
    -1.0,
    -60.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

#[test]
fn a_timeout_is_an_integer_of_milliseconds_up_to_a_day() {
    for (number, expected) in [(1.0, 1), (300_000.0, 300_000), (86_400_000.0, 86_400_000)] {
        let config = parsed(RawConfig {
            timeout_ms: Raw::Given(number),
            ..right()
        });
        assert_eq!(config.timeout_ms, expected);
        assert_eq!(parse_timeout(number), Ok(expected));
    }
    for number in NO_INTEGERS
        .into_iter()
        .chain([0.0, -0.0, 86_400_001.0, 86_399_999.5])
    {
        let refused = Config::parse(RawConfig {
            timeout_ms: Raw::Given(number),
            ..right()
        });
        let fault = ConfigFault::Timeout;
        assert_eq!(
            refused,
            Err(Failure::Config {
                field: ConfigField::TimeoutMs,
                fault
            })
        );
        assert_eq!(parse_timeout(number), Err(Failure::TimeoutInvalid));
    }
    assert_eq!(
        Failure::TimeoutInvalid.to_string(),
        "Invalid CreateOS command timeout."
    );
}

#[test]
fn an_idle_timer_is_an_integer_of_seconds_from_a_minute_to_a_day() {
    for (number, expected) in [(60.0, 60), (600.0, 600), (86_400.0, 86_400)] {
        let raw = RawConfig {
            auto_pause_after_seconds: Raw::Given(number),
            ..right()
        };
        assert_eq!(parsed(raw).auto_pause_after_seconds, Some(expected));
    }
    for number in NO_INTEGERS
        .into_iter()
        .chain([0.0, 59.0, 59.999, 86_400.5, 86_401.0])
    {
        let raw = RawConfig {
            auto_pause_after_seconds: Raw::Given(number),
            ..right()
        };
        let (field, fault) = (ConfigField::AutoPauseAfterSeconds, ConfigFault::AutoPause);
        assert_eq!(
            Config::parse(raw),
            Err(Failure::Config { field, fault }),
            "{number}"
        );
    }
}

#[test]
fn reuse_is_what_was_given() {
    for reuse in [false, true] {
        let raw = RawConfig {
            reuse_lease: Raw::Given(reuse),
            ..right()
        };
        assert_eq!(parsed(raw).reuse_lease, reuse);
    }
}

fn rootfs_map(entries: &[(&str, &str)]) -> RawConfig {
    let text = |(adapter, rootfs): &(&str, &str)| (Text::from(*adapter), Some(Text::from(*rootfs)));
    RawConfig {
        rootfs_by_adapter: Raw::Given(entries.iter().map(text).collect()),
        ..right()
    }
}

#[test]
fn root_filesystems_are_trimmed_and_keep_their_order() {
    let config = parsed(rootfs_map(&[(" b\u{feff}", "\u{a0}two "), ("a", "o ne")]));
    let pair = |adapter, rootfs| (Text::from(adapter), Text::from(rootfs));
    assert_eq!(
        config.rootfs_by_adapter,
        [pair("b", "two"), pair("a", "o ne")]
    );
    assert_eq!(parsed(rootfs_map(&[])).rootfs_by_adapter, []);
}

#[test]
fn of_two_adapters_alike_after_trimming_the_later_value_stands_in_the_earlier_place() {
    let config = parsed(rootfs_map(&[
        ("a", "1"),
        ("b", "2"),
        (" a", "3"),
        ("a ", "4"),
    ]));
    let pair = |adapter, rootfs| (Text::from(adapter), Text::from(rootfs));
    assert_eq!(config.rootfs_by_adapter, [pair("a", "4"), pair("b", "2")]);
}

#[test]
fn a_line_break_or_nul_is_looked_for_before_trimming() {
    for bad in ["", " ", "a\0", "a\rb", "a\n", "\na", "\n", "a\r\n"] {
        for entry in [(bad, "x"), ("x", bad)] {
            let (field, fault) = (ConfigField::RootfsByAdapter, ConfigFault::RootfsEntry);
            let refused = Config::parse(rootfs_map(&[("ok", "ok"), entry]));
            assert_eq!(refused, Err(Failure::Config { field, fault }), "{entry:?}");
        }
        let raw = RawConfig {
            egress_allowlist: Raw::Given(vec![Some(Text::from("ok")), Some(Text::from(bad))]),
            ..right()
        };
        let (field, fault) = (ConfigField::EgressAllowlist, ConfigFault::Egress);
        assert_eq!(
            Config::parse(raw),
            Err(Failure::Config { field, fault }),
            "{bad:?}"
        );
    }
}

#[test]
fn other_line_ends_of_javascript_are_white_space_and_no_line_breaks() {
    let config = parsed(rootfs_map(&[("\u{2028}a", "b\u{2029}c\u{b}")]));
    assert_eq!(
        config.rootfs_by_adapter,
        [(Text::from("a"), Text::from("b\u{2029}c"))]
    );
}

#[test]
fn egress_is_trimmed_and_each_rule_kept_once_in_order() {
    let rules = [
        "b.test ",
        "a.test",
        "b.test",
        "\u{feff}a.test",
        "A.test",
        "10.0.0.0/8",
    ];
    let raw = RawConfig {
        egress_allowlist: Raw::Given(rules.map(|rule| Some(Text::from(rule))).into()),
        ..right()
    };
    assert_eq!(
        parsed(raw).egress_allowlist,
        texts(&["b.test", "a.test", "A.test", "10.0.0.0/8"])
    );
}

#[test]
fn lone_surrogates_stay_what_they_are() {
    let lone = |unit: u16| Text::from_units(&[unit]);
    let raw = RawConfig {
        shape: Raw::Given(lone(0xd800)),
        api_key: Raw::Given(lone(0xdfff)),
        egress_allowlist: Raw::Given(vec![Some(lone(0xd800)), Some(lone(0xd801))]),
        rootfs_by_adapter: Raw::Given(vec![
            (lone(0xd800), Some(lone(0xdc00))),
            (lone(0xd801), Some(lone(0xdc01))),
        ]),
        ..right()
    };
    let config = parsed(raw);
    assert_eq!(config.shape, lone(0xd800));
    assert_eq!(config.api_key.as_ref().expect("a key").expose(), [0xdfff]);
    assert_eq!(config.egress_allowlist, [lone(0xd800), lone(0xd801)]);
    assert_eq!(config.rootfs_by_adapter.len(), 2);
    assert_eq!(config.rootfs_for(Some(&lone(0xd801))), Some(&lone(0xdc01)));
}

#[test]
fn an_adapter_without_a_root_filesystem_of_its_own_gets_the_general_one() {
    let mut config = parsed(rootfs_map(&[("a", "one")]));
    let (known, other) = (Text::from("a"), Text::from("A"));
    assert_eq!(config.rootfs_for(Some(&known)), Some(&Text::from("one")));
    assert_eq!(config.rootfs_for(Some(&other)), None);
    assert_eq!(config.rootfs_for(None), None);
    config.rootfs = Some(Text::from("general"));
    assert_eq!(config.rootfs_for(Some(&known)), Some(&Text::from("one")));
    assert_eq!(
        config.rootfs_for(Some(&other)),
        Some(&Text::from("general"))
    );
    assert_eq!(config.rootfs_for(None), Some(&Text::from("general")));
}
