//! JavaScript's text: its white space, its JSON, its lone surrogates.

use proptest::prelude::*;

use crate::text::Text;

/// What ECMAScript's `trim` removes, unit by unit.
const WHITE_SPACE: [u16; 25] = [
    0x9, 0xa, 0xb, 0xc, 0xd, 0x20, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005,
    0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff,
];

const A: u16 = b'a' as u16;

/// Reads a JSON string as `JSON.parse` does, escapes of surrogates included.
fn parse_json(json: &str) -> Vec<u16> {
    let inner = json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let mut characters = inner.expect("quotes").chars();
    let mut units = Vec::new();
    while let Some(character) = characters.next() {
        assert!(
            character >= ' ' && character != '"',
            "{json}: has to be escaped"
        );
        if character != '\\' {
            units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
            continue;
        }
        units.push(match characters.next().expect("an escape") {
            'b' => 0x8,
            't' => 0x9,
            'n' => 0xa,
            'f' => 0xc,
            'r' => 0xd,
            'u' => {
                let digits: String = characters.by_ref().take(4).collect();
                u16::from_str_radix(&digits, 16).expect("four digits")
            }
            itself @ ('"' | '\\') => u16::try_from(u32::from(itself)).expect("one unit"),
            other => panic!("{json}: \\{other} is never printed"),
        });
    }
    units
}

/// Units of every kind that JSON or `trim` treats by a rule of its own.
fn unit() -> impl Strategy<Value = u16> {
    prop_oneof![
        4 => 0x20_u16..0x7f,
        3 => 0_u16..0x20,
        3 => 0xd800_u16..0xe000,
        2 => prop::sample::select(&WHITE_SPACE[..]),
        1 => prop::sample::select(&[0x22_u16, 0x5c, 0x7f, 0x85, 0x180e, 0x200b, 0xfffe, 0xffff][..]),
        2 => any::<u16>(),
    ]
}

pub fn units() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(unit(), 0..12)
}

#[test]
fn trim_removes_the_white_space_of_javascript_and_nothing_else() {
    for unit in 0..=u16::MAX {
        let white = WHITE_SPACE.contains(&unit);
        let alone = Text::from_units(&[unit]).trim();
        assert_eq!(alone.is_empty(), white, "U+{unit:04X}");
        let around = Text::from_units(&[unit, unit, A, unit, A, unit]).trim();
        let left: &[u16] = if white {
            &[A, unit, A]
        } else {
            &[unit, unit, A, unit, A, unit]
        };
        assert_eq!(around.units(), left, "U+{unit:04X}");
    }
}

#[test]
fn the_two_units_on_which_rust_and_javascript_disagree_go_javascripts_way() {
    assert_eq!(
        Text::from("\u{85}x\u{85}").trim(),
        Text::from("\u{85}x\u{85}")
    );
    assert_eq!(Text::from("\u{feff}x\u{feff}").trim(), Text::from("x"));
}

#[test]
fn every_unit_prints_as_json_stringify_prints_it() {
    for unit in 0..=u16::MAX {
        let expected = match unit {
            0x8 => "\\b".to_owned(),
            0x9 => "\\t".to_owned(),
            0xa => "\\n".to_owned(),
            0xc => "\\f".to_owned(),
            0xd => "\\r".to_owned(),
            0x22 => "\\\"".to_owned(),
            0x5c => "\\\\".to_owned(),
            0..0x20 | 0xd800..0xe000 => format!("\\u{unit:04x}"),
            other => char::from_u32(u32::from(other))
                .expect("no surrogate")
                .to_string(),
        };
        assert_eq!(
            Text::from_units(&[unit]).to_json(),
            format!("\"{expected}\"")
        );
    }
}

#[test]
fn only_surrogates_without_their_other_half_are_escaped() {
    for (units, json) in [
        (&[0xd83d, 0xde00][..], "\"\u{1f600}\""),
        (&[0xd800, 0xdc00], "\"\u{10000}\""),
        (&[0xdbff, 0xdfff], "\"\u{10ffff}\""),
        (&[0xde00, 0xd83d], r#""\ude00\ud83d""#),
        (&[0xd83d, 0xd83d, 0xde00], "\"\\ud83d\u{1f600}\""),
        (&[0xd83d, 0xde00, 0xde00], "\"\u{1f600}\\ude00\""),
        (&[0xd83d, A], r#""\ud83da""#),
        (&[0xdfff, A], r#""\udfffa""#),
        (&[0xdbff], r#""\udbff""#),
    ] {
        assert_eq!(Text::from_units(units).to_json(), json);
    }
}

#[test]
fn debug_prints_json_so_that_different_texts_never_print_alike() {
    assert_eq!(format!("{:?}", Text::from("a\"\n")), r#""a\"\n""#);
    let lone = [0xd800_u16, 0xd801].map(|unit| format!("{:?}", Text::from_units(&[unit])));
    assert_eq!(lone, [r#""\ud800""#, r#""\ud801""#]);
}

#[test]
fn a_well_formed_copy_replaces_lone_surrogates_only() {
    let text = Text::from_units(&[0xd83d, 0xde00, 0xd83d, A, 0xde00]);
    assert_eq!(text.to_well_formed(), "\u{1f600}\u{fffd}a\u{fffd}");
}

#[test]
fn contains_any_looks_at_units() {
    let text = Text::from("a\0b");
    assert!(text.contains_any(&['\r', '\0']));
    assert!(!text.contains_any(&['\r', '\n']));
    assert!(!text.contains_any(&[]));
    assert!(!Text::default().contains_any(&['\0']));
    // The low half of U+1000A is no line feed.
    assert!(!Text::from("\u{1000a}").contains_any(&['\n']));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn json_is_read_back_unit_for_unit(units in units()) {
        prop_assert_eq!(parse_json(&Text::from_units(&units).to_json()), units);
    }

    #[test]
    fn json_of_a_well_formed_text_is_what_a_library_prints(text in any::<String>()) {
        let expected = serde_json::to_string(&text).expect("JSON");
        prop_assert_eq!(Text::from(text.as_str()).to_json(), expected);
    }

    #[test]
    fn trim_leaves_the_longest_part_without_white_ends(units in units()) {
        let trimmed = Text::from_units(&units).trim();
        let mut expected = &units[..];
        while let [first, rest @ ..] = expected && WHITE_SPACE.contains(first) {
            expected = rest;
        }
        while let [rest @ .., last] = expected && WHITE_SPACE.contains(last) {
            expected = rest;
        }
        prop_assert_eq!(trimmed.units(), expected);
        prop_assert_eq!(trimmed.trim(), trimmed);
    }

    #[test]
    fn texts_are_equal_when_all_their_units_are(one in units(), other in units()) {
        let text = Text::from_units(&one);
        prop_assert_eq!(text == Text::from_units(&other), one == other);
        prop_assert_eq!(text.units(), one);
    }
}
