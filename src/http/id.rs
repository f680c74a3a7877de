//! Ids of the provider's, which are parts of request paths.

use std::fmt;

use crate::error::{Failure, ResponseFault};

/// The longest id there is.
const MAX_LENGTH: usize = 200;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        ///
        /// `[A-Za-z0-9_-]{1,200}` (specification, section 6). It needs no escaping in a path, and can't
        /// leave its segment.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Takes what the provider or a caller says. Anything else is `ResponseFault::Id`.
            pub fn parse(text: &str) -> Result<Self, Failure> {
                if is_id(text) {
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

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// A sandbox's id.
    SandboxId,
    /// The id of a managed process in a sandbox.
    ProcessId,
}

fn is_id(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(legal)
}
