//! JavaScript text: UTF-16 code units, which may hold lone surrogates.
//!
//! Ids are compared unit by unit as `===` does, and a round trip through UTF-8 would turn two
//! different lone surrogates into the same replacement character (specification, section 3).

use std::fmt::{self, Write as _};

/// A JavaScript string. Not a Rust `String`, since it need not be well-formed.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Text(Box<[u16]>);

impl Text {
    /// Takes the units as they are.
    pub fn from_units(units: &[u16]) -> Self {
        Self(units.into())
    }

    /// The code units.
    pub fn units(&self) -> &[u16] {
        &self.0
    }

    /// Whether there is no unit at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Without ECMAScript white space and line terminators at both ends, as `trim` does.
    #[must_use]
    pub fn trim(&self) -> Self {
        let start = self.0.iter().position(|unit| !is_white_space(*unit));
        let Some(start) = start else {
            return Self::default();
        };
        let end = self
            .0
            .iter()
            .rposition(|unit| !is_white_space(*unit))
            .map_or(start, |at| at + 1);
        Self::from_units(&self.0[start..end])
    }

    /// Whether one of the characters occurs. Only for characters of the Basic Multilingual Plane.
    pub fn contains_any(&self, characters: &[char]) -> bool {
        self.0
            .iter()
            .any(|unit| characters.iter().any(|c| u32::from(*c) == u32::from(*unit)))
    }

    /// As a Rust string, lone surrogates replaced, as every Web API that takes a `USVString` does.
    pub fn to_well_formed(&self) -> String {
        String::from_utf16_lossy(&self.0)
    }

    /// As JSON, exactly as `JSON.stringify` prints it.
    pub fn to_json(&self) -> String {
        let mut json = String::with_capacity(self.0.len() + 2);
        push_json(&mut json, &self.0);
        json
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.encode_utf16().collect())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_json())
    }
}

/// Appends the units as a JSON string. Lone surrogates become lower-case escapes, as well-formed
/// `JSON.stringify` prints them, so different texts never print alike.
pub fn push_json(json: &mut String, units: &[u16]) {
    json.push('"');
    // Nearly every text is plain: ids, names.
    if units.iter().all(|unit| is_plain(*unit)) {
        json.extend(
            units
                .iter()
                .filter_map(|unit| char::from_u32(u32::from(*unit))),
        );
        json.push('"');
        return;
    }
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok('"') => json.push_str("\\\""),
            Ok('\\') => json.push_str("\\\\"),
            Ok('\u{8}') => json.push_str("\\b"),
            Ok('\t') => json.push_str("\\t"),
            Ok('\n') => json.push_str("\\n"),
            Ok('\u{c}') => json.push_str("\\f"),
            Ok('\r') => json.push_str("\\r"),
            Ok(control) if control < ' ' => {
                push_escape(json, u16::try_from(u32::from(control)).unwrap_or(0));
            }
            Ok(character) => json.push(character),
            Err(lone) => push_escape(json, lone.unpaired_surrogate()),
        }
    }
    json.push('"');
}

/// Printable ASCII that JSON does not escape.
const fn is_plain(unit: u16) -> bool {
    matches!(unit, 0x20..=0x7e) && unit != b'"' as u16 && unit != b'\\' as u16
}

fn push_escape(json: &mut String, unit: u16) {
    // Writing to a String cannot fail.
    let _ = write!(json, "\\u{unit:04x}");
}

/// ECMAScript `WhiteSpace` and `LineTerminator`: not the same set as Rust's `char::is_whitespace`,
/// which has U+0085 and lacks U+FEFF.
fn is_white_space(unit: u16) -> bool {
    matches!(unit, 0x09..=0x0d | 0x20 | 0xa0 | 0x1680 | 0x2000..=0x200a | 0x2028 | 0x2029 | 0x202f | 0x205f | 0x3000 | 0xfeff)
}
