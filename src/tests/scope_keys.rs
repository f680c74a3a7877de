//! Two leases that must not be taken for one another.

use proptest::prelude::*;

use super::texts::units;
use crate::scope::ScopeKey;
use crate::secret::{ApiKey, Secret};
use crate::text::Text;

const ORIGIN: &str = "https://api.example.test";

fn encode(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// Company, environment, origin, account, lease.
type Parts = (Vec<u16>, Vec<u16>, String, String, Vec<u16>);

fn key((company, environment, origin, account, lease): &Parts) -> ScopeKey {
    ScopeKey::new(company, environment, origin, account.as_str(), lease)
}

/// Ids that try to look like the JSON around them, and any others.
fn id() -> impl Strategy<Value = Vec<u16>> {
    let odd = [
        "", "a", "b", "a\"", "\",\"", "a\",\"b", "]", "[", "\\", "\\\"", "a,b", ",", "\"",
        "\\u0000", "\0", "\u{feff}", "null",
    ];
    let odd: Vec<_> = odd.iter().copied().map(encode).collect();
    prop_oneof![
        3 => prop::sample::select(odd),
        1 => prop::sample::select(vec![vec![0xd800], vec![0xd801], vec![0xdc00], vec![0xd800, 0xdc00]]),
        2 => units(),
    ]
}

fn parts() -> impl Strategy<Value = Parts> {
    let origins = vec![
        ORIGIN,
        "https://api.example.test:8443",
        "http://[::1]:1",
        "http://localhost",
    ];
    let origin = prop::sample::select(origins).prop_map(str::to_owned);
    let account = prop::sample::select(&["0a", "0b"][..]).prop_map(|hex| hex.repeat(32));
    (id(), id(), origin, account, id())
}

#[test]
fn a_key_prints_as_json_stringify_prints_the_list() {
    let account = ApiKey::parse(&Secret::new(&Text::from("skp_test")))
        .expect("a key")
        .account();
    let lone = [0xd83d_u16, u16::from(b'"')];
    let key = ScopeKey::new(
        &encode("co\n"),
        &lone,
        ORIGIN,
        account.as_str(),
        &encode("\u{1f600}\u{7f}"),
    );
    assert_eq!(
        key.to_json(),
        format!(
            "[\"co\\n\",\"\\ud83d\\\"\",\"https://api.example.test\",\"{account}\",\"\u{1f600}\u{7f}\"]"
        )
    );
}

#[test]
fn different_lone_surrogates_are_different_leases() {
    let of = |unit: u16| {
        ScopeKey::new(
            &encode("company"),
            &encode("environment"),
            ORIGIN,
            "account",
            &[unit],
        )
    };
    assert_ne!(of(0xd800), of(0xd801));
    assert_ne!(of(0xd800).to_json(), of(0xd801).to_json());
    assert_ne!(of(0xd800), of(0xfffd));
}

#[test]
fn a_boundary_between_two_parts_cannot_be_moved() {
    let of = |company: &str, environment: &str, lease: &str| {
        ScopeKey::new(
            &encode(company),
            &encode(environment),
            ORIGIN,
            "account",
            &encode(lease),
        )
    };
    assert_ne!(of("ab", "c", "d"), of("a", "bc", "d"));
    assert_ne!(of("a\",\"b", "c", "d"), of("a", "b\",\"c", "d"));
    assert_ne!(of("a", "b", "c").lease, of("b", "a", "c").lease);
    assert_ne!(of("a", "b", "c").lease, of("c", "b", "a").lease);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn keys_are_equal_when_all_their_parts_are(one in parts(), other in parts()) {
        prop_assert_eq!(key(&one) == key(&other), one == other);
        prop_assert_eq!(key(&one).to_json() == key(&other).to_json(), one == other);
        prop_assert_eq!(key(&one), key(&one.clone()));
    }

    #[test]
    fn a_key_that_differs_in_one_part_is_another(one in parts(), other in parts(), part in 0..5) {
        let mut mixed = one.clone();
        match part {
            0 => mixed.0 = other.0,
            1 => mixed.1 = other.1,
            2 => mixed.2 = other.2,
            3 => mixed.3 = other.3,
            _ => mixed.4 = other.4,
        }
        prop_assert_eq!(key(&one) == key(&mixed), one == mixed);
        prop_assert_eq!(key(&one).to_json() == key(&mixed).to_json(), one == mixed);
        // The account alone does not make another lease of it.
        let same_lease = part == 3 || one == mixed;
        prop_assert_eq!(key(&one).lease == key(&mixed).lease, same_lease);
    }
}
