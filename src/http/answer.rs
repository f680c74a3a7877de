//! Reading a JSON answer: whatever `JSON.parse` of the decoded text takes, and then the envelope
//! (specification, section 6).

use std::fmt;
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::fields::{number, pick, string};
use crate::error::{Failure, ResponseFault};

/// The largest JSON answer, in bytes.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The byte order mark, which a `TextDecoder` drops.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A successful JSON answer. Its text is proved to be what `JSON.parse` takes, its `status` to be
/// `success` and its `data` to be an object.
pub struct JsonAnswer {
    text: String,
    data: Range<usize>,
}

impl JsonAnswer {
    /// Reads the bytes of a body.
    pub fn read(bytes: Vec<u8>) -> Result<Self, Failure> {
        let text = decode(bytes);
        let fault = |fault| Err(Failure::Response(fault));
        if !is_json(&text) {
            return fault(ResponseFault::Json);
        }
        let Some([status, data]) = pick(&text, ["status", "data"]) else {
            return fault(ResponseFault::Json);
        };
        if status.and_then(string).as_deref() != Some("success") {
            return fault(ResponseFault::Unsuccessful);
        }
        let Some(data) = data.map(RawValue::get).filter(|data| data.starts_with('{')) else {
            return fault(ResponseFault::Data);
        };
        // `data` is a part of `text`, so the difference of their addresses is its place.
        let start = data.as_ptr().addr() - text.as_ptr().addr();
        let data = start..start + data.len();
        Ok(Self { text, data })
    }

    /// Its `data`, an object: JSON that `JSON.parse` takes.
    pub fn data(&self) -> &str {
        &self.text[self.data.clone()]
    }

    /// The named fields of `data`.
    pub fn fields<const N: usize>(&self, names: [&str; N]) -> [Option<&RawValue>; N] {
        // An object can be picked from, so the default never comes.
        pick(self.data(), names).unwrap_or([None; N])
    }
}

/// Not the text: it is the provider's.
impl fmt::Debug for JsonAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JsonAnswer")
            .field("bytes", &self.text.len())
            .finish_non_exhaustive()
    }
}

/// A field's value, as far as any field's matters.
pub enum Loose {
    /// Lone surrogates replaced.
    Text(String),
    Number(f64),
    Other,
}

/// The named fields of an object that stands alone, as `JSON.parse` of the decoded text reads it. `None`
/// for what is no object.
pub fn loose_fields<const N: usize>(bytes: &[u8], names: [&str; N]) -> Option<[Loose; N]> {
    let text = decode(bytes.to_vec());
    if !is_json(&text) {
        return None;
    }
    let fields = pick(&text, names)?;
    Some(fields.map(|field| {
        let Some(field) = field else {
            return Loose::Other;
        };
        let text = string(field).map(Loose::Text);
        text.or_else(|| number(field).map(Loose::Number))
            .unwrap_or(Loose::Other)
    }))
}

/// Whether an acknowledgement whose payload nobody needs says itself that nothing was done. Any
/// other text is fine, also none.
pub fn is_refusal(bytes: &[u8]) -> bool {
    let text = decode(bytes.to_vec());
    is_json(&text)
        && pick(&text, ["status"])
            .and_then(|[status]| string(status?))
            .is_some_and(|status| status != "success")
}

/// As `new TextDecoder().decode` does: without a byte order mark, invalid sequences replaced.
fn decode(mut bytes: Vec<u8>) -> String {
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|fault| String::from_utf8_lossy(fault.as_bytes()).into_owned())
}

/// Whether `JSON.parse` takes it. Skipping a value is `serde_json`'s strictest and laxest way at once:
/// the grammar is checked to the letter, while numbers may be huge, surrogates may be alone and
/// nesting uses no stack.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}
