//! Bytes into text: characters that lie across pieces, invalid bytes, and the end that is kept.

use base64_simd::STANDARD;
use proptest::collection::vec;
use proptest::prelude::*;

use super::tail::{Kept, MOST_UNITS, Tail};
use super::text::{Decoder, NotBase64};

/// Decodes pieces, and the rest at the end.
fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut decoder = Decoder::default();
    let mut text = String::new();
    for piece in pieces {
        let base64 = STANDARD.encode_to_string(piece);
        decoder
            .decode(base64.as_bytes(), |piece| text.push_str(piece))
            .expect("base64");
    }
    text.extend(decoder.finish());
    text
}

/// Bytes with many characters of several bytes, whole ones and broken ones.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let character = prop_oneof![
        3 => any::<char>().prop_map(|character| character.to_string().into_bytes()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
        1 => (0xc0_u8..=0xff).prop_map(|byte| vec![byte]),
        1 => (0x80_u8..=0xbf).prop_map(|byte| vec![byte]),
    ];
    vec(character, 0..40).prop_map(|characters| characters.concat())
}

proptest! {
    #[test]
    fn pieces_decode_as_the_whole_does(bytes in bytes(), size in 1_usize..7) {
        prop_assert_eq!(decode(bytes.chunks(size)), String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_tail_keeps_everything_in_order(texts in vec(".{0,200}", 0..30)) {
        let mut tail = Tail::default();
        for text in &texts {
            tail.push(text);
        }
        let (kept, has_lost) = tail.finish();
        prop_assert!(kept == Kept::new(texts.concat()) && !has_lost);
    }
}

#[test]
fn only_padded_base64_of_the_standard_alphabet_is_decoded() {
    for base64 in [
        "a", "aGk", "aGk=a", "aG k=", "aGk=\n", "-_-_", "aGk*", "====",
    ] {
        let decoded = Decoder::default().decode(base64.as_bytes(), |_| ());
        assert_eq!(decoded, Err(NotBase64), "{base64:?}");
    }
    let nothing = |text: &str| panic!("{text:?} is nothing");
    assert_eq!(Decoder::default().decode(b"", nothing), Ok(()));
}

#[test]
fn a_byte_order_mark_is_a_character() {
    assert_eq!(decode([b"\xef\xbb".as_slice(), b"\xbfx"]), "\u{feff}x");
}

/// The units of what is kept.
fn units(kept: Kept) -> Vec<u16> {
    match kept {
        Kept::Ascii(bytes) => bytes.into_iter().map(u16::from).collect(),
        Kept::Utf16(units) => units,
    }
}

/// What is kept of a text that is given in pieces of so many characters.
fn tail_of(text: &str, size: usize) -> (Vec<u16>, bool) {
    let mut tail = Tail::default();
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(size) {
        tail.push(&piece.iter().collect::<String>());
    }
    let (kept, has_lost) = tail.finish();
    (units(kept), has_lost)
}

#[test]
fn the_last_units_are_kept_and_no_half_pair() {
    // Of one, two, three and four bytes, which are one unit, one, one and two.
    for filling in [
        "abcdefg",
        "\u{e9}",
        "\u{20ac}",
        "\u{1f600}",
        "a\u{1f600}\u{20ac}",
    ] {
        for excess in [0, 1, 70_000] {
            let mut text = String::new();
            let mut length = 0;
            for character in filling.chars().cycle() {
                if length >= MOST_UNITS + excess {
                    break;
                }
                length += character.len_utf16();
                text.push(character);
            }
            let all: Vec<u16> = text.encode_utf16().collect();
            let mut start = all.len() - MOST_UNITS.min(all.len());
            if (0xdc00..0xe000).contains(&all[start]) {
                start += 1;
            }
            let (kept, has_lost) = tail_of(&text, 30_011);
            assert!(kept == all[start..], "{filling:?} and {excess} more");
            assert_eq!(has_lost, start > 0, "{filling:?} and {excess} more");
        }
    }
}
