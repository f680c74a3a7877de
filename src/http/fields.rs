//! Picks single fields out of JSON text without reading it into memory twice.
//!
//! Only for text that `answer::is_json` has accepted: picking is laxer than `JSON.parse` about
//! control characters in names.

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The text of each named field of an object, the last one where a name occurs twice, as in
/// JavaScript. `None` when it is no object.
pub fn pick<'json, const N: usize>(
    json: &'json str,
    names: [&str; N],
) -> Option<[Option<&'json RawValue>; N]> {
    if !json
        .trim_start_matches([' ', '\t', '\n', '\r'])
        .starts_with('{')
    {
        return None;
    }
    serde_json::Deserializer::from_str(json)
        .deserialize_map(Fields(&names))
        .ok()
}

/// A string's value. `None` for any other kind. A lone surrogate becomes replacement characters.
pub fn string(value: &RawValue) -> Option<String> {
    if !value.get().starts_with('"') {
        return None;
    }
    // As bytes, since as a string serde_json refuses lone surrogates.
    let bytes = serde_json::Deserializer::from_str(value.get())
        .deserialize_bytes(Bytes)
        .ok()?;
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|fault| String::from_utf8_lossy(fault.as_bytes()).into_owned()),
    )
}

/// A number's value, infinite where JavaScript's is. `None` for any other kind.
pub fn number(value: &RawValue) -> Option<f64> {
    let text = value.get();
    // Rust reads more than JSON ("inf", "NaN"), none of which begins like a JSON number.
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// Whether JavaScript's `if (value)` takes it.
pub fn is_truthy(value: &RawValue) -> bool {
    match value.get() {
        "null" | "false" | "\"\"" => false,
        _ => number(value) != Some(0.0),
    }
}

struct Fields<'names, const N: usize>(&'names [&'names str; N]);

impl<'json, const N: usize> Visitor<'json> for Fields<'_, N> {
    type Value = [Option<&'json RawValue>; N];

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'json>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut picked = [None; N];
        while let Some(position) = map.next_key_seed(Position(self.0))? {
            match position {
                Some(position) => picked[position] = Some(map.next_value::<&RawValue>()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(picked)
    }
}

/// A name's place in the list. Read as bytes, since names may hold lone surrogates too.
struct Position<'names>(&'names [&'names str]);

impl<'json> DeserializeSeed<'json> for Position<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'json>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Position<'_> {
    type Value = Option<usize>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|wanted| wanted.as_bytes() == name))
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Self::Value, E> {
        Ok(value.to_vec())
    }
}
