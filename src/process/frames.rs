//! One line of a process's output stream: NDJSON (createos-api.md, section 9.4).

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Stream;
use crate::error::OutputFault;
use crate::http::{Exit, Loose, loose_fields};

/// The longest line, in bytes.
pub const LONGEST: usize = 1024 * 1024;
/// The largest integer that JavaScript counts exactly.
const MOST_EXACT: f64 = 9_007_199_254_740_991.0;
/// How the provider says that output was asked for which it keeps no more.
const EXPIRED: &str = "output_offset_expired";

/// What a line tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame<'line> {
    Data(Data<'line>),
    Heartbeat,
    Exit(Exit),
}

/// A piece of output.
#[derive(Clone, PartialEq)]
pub struct Data<'line> {
    /// From 1, without gaps, both streams together.
    pub sequence: u64,
    stream: Value<'line>,
    base64: Value<'line>,
}

impl Data<'_> {
    /// The stream it belongs to, and its bytes as base64. Not looked at before it is known that they are
    /// new.
    pub fn content(&self) -> Result<(Stream, &str), OutputFault> {
        let stream = match self.stream.text() {
            Some("stdout") => Stream::Stdout,
            Some("stderr") => Stream::Stderr,
            Some("pty") => return Err(OutputFault::Pty),
            _ => return Err(OutputFault::Data),
        };
        let base64 = self.base64.text().ok_or(OutputFault::Data)?;
        Ok((stream, base64))
    }
}

/// Not the bytes: they are the sandbox's.
impl fmt::Debug for Data<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Data")
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

impl<'line> Frame<'line> {
    /// Reads a line. One pass for nearly every line: no byte of it is looked at twice, nor copied.
    pub fn parse(line: &'line [u8]) -> Result<Self, OutputFault> {
        let Fields([kind, seq, stream, base64, exit_code, signal, error]) =
            match serde_json::from_slice(line) {
                Ok(fields) => fields,
                Err(_) => Fields::loose(line).ok_or(OutputFault::Frame)?,
            };
        match kind.text() {
            Some("data") => Ok(Self::Data(Data {
                sequence: seq.sequence().ok_or(OutputFault::Sequence)?,
                stream,
                base64,
            })),
            Some("heartbeat") => Ok(Self::Heartbeat),
            Some("exit") => {
                let exit = Exit::new(exit_code.number(), signal.text().map(str::to_owned));
                exit.map(Self::Exit).ok_or(OutputFault::StatusMissing)
            }
            Some("error") if error.text().is_some_and(is_expired) => Err(OutputFault::Evicted),
            Some("error") => Err(OutputFault::Reported),
            _ => Err(OutputFault::Event),
        }
    }
}

/// Some of the provider's answers spell it with spaces.
fn is_expired(error: &str) -> bool {
    error.trim().replace(' ', "_").eq_ignore_ascii_case(EXPIRED)
}

/// The fields of all kinds of lines.
const NAMES: [&str; 7] = [
    "type",
    "seq",
    "stream",
    "data_base64",
    "exit_code",
    "signal",
    "error",
];

/// Their values, in this order.
#[derive(Default)]
struct Fields<'line>([Value<'line>; NAMES.len()]);

impl Fields<'_> {
    /// Reads what `JSON.parse` takes and Rust's strings and numbers do not: lone surrogates, bytes that
    /// are no UTF-8, a byte order mark, numbers without end.
    fn loose(line: &[u8]) -> Option<Self> {
        loose_fields(line, NAMES).map(|fields| Self(fields.map(Value::from)))
    }
}

/// A field's value, as far as any field's matters.
#[derive(Clone, PartialEq, Default)]
enum Value<'line> {
    Text(Cow<'line, str>),
    Number(f64),
    #[default]
    Other,
}

impl From<Loose> for Value<'_> {
    fn from(value: Loose) -> Self {
        match value {
            Loose::Text(text) => Self::Text(Cow::Owned(text)),
            Loose::Number(number) => Self::Number(number),
            Loose::Other => Self::Other,
        }
    }
}

impl Value<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an exact integer of JavaScript's, from 1"
    )]
    fn sequence(&self) -> Option<u64> {
        self.number()
            .filter(|number| number.fract() == 0.0 && (1.0..=MOST_EXACT).contains(number))
            .map(|number| number as u64)
    }
}

// By hand, since a derived one refuses an object that names a field twice, of which the last counts.
impl<'de: 'line, 'line> Deserialize<'de> for Fields<'line> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields::default();
        while let Some(Value::Text(name)) = map.next_key()? {
            match NAMES.iter().position(|known| *known == name) {
                Some(place) => fields.0[place] = map.next_value()?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(fields)
    }
}

impl<'de: 'line, 'line> Deserialize<'de> for Value<'line> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Value::Number(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "as JavaScript reads it")]
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Value::Number(number as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "as JavaScript reads it")]
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}
