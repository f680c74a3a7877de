//! A sandbox's id, which is part of request paths.

use std::fmt;

use crate::error::{Failure, ResponseFault};

/// The longest id there is.
const MAX_LENGTH: usize = 200;

/// An id of `[A-Za-z0-9_-]{1,200}` (specification, section 6). It needs no escaping in a path, and
/// can't leave its segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SandboxId(Box<str>);

impl SandboxId {
    /// Takes what the provider or a caller says. Anything else is `ResponseFault::Id`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(legal) {
            Ok(Self(text.into()))
        } else {
            Err(Failure::Response(ResponseFault::Id))
        }
    }

    /// As the provider spells it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
