//! Keys that must not be printed, sent elsewhere or split a header.

use std::sync::Arc;

use crate::config::{Config, DEFAULT_ORIGIN, Raw, RawConfig};
use crate::error::Failure;
use crate::http::Client;
use crate::lease::release::{Ending, Release};
use crate::registry::Registry;
use crate::scope::ScopeKey;
use crate::secret::{ApiKey, Secret};
use crate::text::Text;

/// What must turn up nowhere.
const CANARY: &str = "skp_canary-7c1f";
const HOST: &str = "canary-host.example.test";

fn key(text: &str) -> Option<ApiKey> {
    ApiKey::parse(&Secret::new(&Text::from(text)))
}

fn raw(api_key: Raw<Text>) -> RawConfig {
    RawConfig {
        api_url: Raw::Given(Text::from(format!("https://{HOST}").as_str())),
        shape: Raw::Given(Text::from("s-1vcpu-1gb")),
        api_key,
        ..RawConfig::default()
    }
}

fn config() -> Config {
    Config::parse(raw(Raw::Given(Text::from(CANARY)))).expect("a configuration")
}

/// Everything that a formatter makes of a value.
fn printed(value: &impl std::fmt::Debug) -> String {
    format!("{value:?} {value:#?}")
}

#[test]
fn no_debug_form_prints_a_key() {
    let api_key = key(CANARY).expect("a key");
    let client = Client::new(Arc::new(config()), api_key.clone());
    for form in [
        printed(&Secret::new(&Text::from(CANARY))),
        printed(&api_key),
        printed(&Some((1, api_key))),
        printed(&config()),
        printed(&Arc::new(config())),
        printed(&client),
        printed(&client.default_bound()),
        printed(&client.config()),
        printed(&client.api_key()),
    ] {
        assert!(!form.contains("canary-7c1f"), "{form}");
    }
}

#[test]
fn a_secret_prints_as_three_stars_whatever_the_width() {
    let secret = Secret::new(&Text::from(CANARY));
    assert_eq!(format!("{secret:?}"), "***");
    assert_eq!(format!("{:?}", key(CANARY).expect("a key")), "ApiKey(***)");
    assert_eq!(format!("{:?}", config().api_key), "Some(***)");
}

#[test]
fn a_registry_knows_the_account_by_its_hash_only() {
    let account = key(CANARY).expect("a key").account();
    let lease: Vec<u16> = "lease".encode_utf16().collect();
    let scope = ScopeKey::new(
        &lease,
        &lease,
        "https://example.test",
        account.as_str(),
        &lease,
    );
    let registry = Registry::new();
    let (release, _) = Release::begin(&registry, &scope, Ending::Destroy).expect("it is open");
    for form in [
        printed(&scope),
        printed(&registry),
        printed(&release),
        scope.to_json(),
    ] {
        assert!(!form.contains("canary-7c1f"), "{form}");
    }
}

#[test]
fn a_raw_configuration_does_not_print_its_key() {
    let form = printed(&raw(Raw::Given(Text::from(CANARY))));
    assert!(!form.contains("canary-7c1f"), "{form}");
}

#[test]
fn no_debug_form_prints_the_configured_host() {
    let lease: Vec<u16> = "lease".encode_utf16().collect();
    let scope = ScopeKey::new(&lease, &lease, &config().api_url, "account", &lease);
    for form in [printed(&config()), printed(&scope)] {
        assert!(!form.contains(HOST), "{form}");
    }
}

#[test]
fn a_refused_configuration_says_nothing_of_its_values() {
    let blank = || Raw::Given(Text::from(" "));
    let canary = || Text::from(CANARY);
    let broken = [
        RawConfig {
            region: blank(),
            ..raw(Raw::Given(canary()))
        },
        RawConfig {
            shape: Raw::Absent,
            ..raw(Raw::Given(canary()))
        },
        RawConfig {
            api_url: Raw::Given(canary()),
            ..raw(Raw::Absent)
        },
        RawConfig {
            api_url: Raw::Given(Text::from(format!("https://u:{CANARY}@{HOST}").as_str())),
            ..raw(Raw::Absent)
        },
        RawConfig {
            egress_allowlist: Raw::Given(vec![Some(Text::from(format!("{CANARY}\n").as_str()))]),
            ..raw(Raw::Absent)
        },
        raw(Raw::Given(Text::from(format!("{CANARY}\0").as_str()))),
    ];
    for raw in broken {
        let failure = Config::parse(raw).expect_err("it is broken");
        let form = format!("{failure} {}", printed(&failure));
        assert!(!form.contains("canary"), "{form}");
    }
}

#[test]
fn an_account_is_the_sha_256_of_the_keys_utf_8() {
    let of = |text: &str| key(text).expect("a key").account();
    assert_eq!(
        of("abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        of("\u{e9}"),
        "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"
    );
    // JavaScript hashes a lone surrogate as U+FFFD, since UTF-8 has no other way to write it.
    let lone = ApiKey::parse(&Secret::new(&Text::from_units(&[0xd800]))).expect("a key");
    assert_eq!(lone.account(), of("\u{fffd}"));
    assert_ne!(of("abc"), of("abd"));
}

#[test]
fn a_key_that_could_split_a_header_is_none() {
    for bad in ["", "\r", "a\nb", "a\r", "\0", "a\0b"] {
        assert_eq!(key(bad), None, "{bad:?}");
    }
    for good in ["a", " ", "a b", "\u{1f600}", "\u{85}"] {
        assert_eq!(key(good).expect("a key").expose(), Text::from(good).units());
    }
}

#[test]
fn a_header_carries_one_byte_for_each_unit_or_is_not_made() {
    let bytes = |text: &str| {
        key(text)
            .expect("a key")
            .header_bytes()
            .map(|bytes| bytes.to_vec())
    };
    assert_eq!(bytes("a\tb~"), Some(b"a\tb~".to_vec()));
    assert_eq!(bytes("\u{80}\u{ff}"), Some(vec![0x80, 0xff]));
    for bad in ["\u{100}", "\u{1}", "\u{1f}", "\u{7f}", "a\u{1f600}"] {
        assert_eq!(bytes(bad), None, "{bad:?}");
    }
}

/// What the environment holds, and nobody may ask for it in vain.
fn environment(key: &'static str) -> impl FnOnce() -> Result<Option<Text>, Failure> {
    move || Ok(Some(Text::from(key)))
}

fn nobody_asks() -> Result<Option<Text>, Failure> {
    panic!("the environment is not to be looked at")
}

fn at(origin: &str, api_key: Option<&str>) -> Config {
    let given = |text: &str| Raw::Given(Text::from(text));
    let raw = RawConfig {
        api_url: given(origin),
        ..raw(api_key.map_or(Raw::Absent, given))
    };
    Config::parse(raw).expect("a configuration")
}

#[test]
fn the_configurations_own_key_comes_first_wherever_it_goes() {
    for origin in [DEFAULT_ORIGIN, "https://example.test"] {
        let resolved = at(origin, Some(" own ")).resolve_api_key(nobody_asks);
        assert_eq!(resolved, Ok(key("own").expect("a key")));
    }
}

#[test]
fn the_environments_key_goes_to_the_default_origin_only() {
    let trimmed = at("HTTPS://API.SB.CREATEOS.SH:443/v1/", None)
        .resolve_api_key(environment("\u{feff} env\n"));
    assert_eq!(trimmed, Ok(key("env").expect("a key")));
    for origin in [
        "https://example.test",
        "https://api.sb.createos.sh:8443",
        "https://api.sb.createos.sh.",
        "https://api.sb.createos.sh.example.test",
        "http://localhost",
    ] {
        let refused = at(origin, None).resolve_api_key(nobody_asks);
        assert_eq!(refused, Err(Failure::ApiKeyNotForOrigin), "{origin}");
    }
}

#[test]
fn an_unusable_key_is_missing_and_is_not_replaced_by_another() {
    for bad in ["a\nb", "a\rb"] {
        let refused = at(DEFAULT_ORIGIN, Some(bad)).resolve_api_key(nobody_asks);
        assert_eq!(refused, Err(Failure::ApiKeyMissing), "{bad:?}");
    }
    for bad in ["", " \u{feff}", "a\nb", "a\rb", "a\0"] {
        let refused = at(DEFAULT_ORIGIN, None).resolve_api_key(environment(bad));
        assert_eq!(refused, Err(Failure::ApiKeyMissing), "{bad:?}");
    }
    let none = at(DEFAULT_ORIGIN, None).resolve_api_key(|| Ok::<_, Failure>(None));
    assert_eq!(none, Err(Failure::ApiKeyMissing));
}

#[test]
fn what_the_environment_throws_is_passed_on() {
    let thrown = at(DEFAULT_ORIGIN, None).resolve_api_key(|| Err(Failure::Internal));
    assert_eq!(thrown, Err(Failure::Internal));
}
