//! The API key, which prints as `***` wherever it turns up (specification, section 7).

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::text::Text;

/// A text that nobody prints. Overwritten in memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u16>>);

impl Secret {
    /// Keeps a copy of the text.
    pub fn new(text: &Text) -> Self {
        Self(Zeroizing::new(text.units().to_vec()))
    }

    /// The text itself.
    pub fn expose(&self) -> &[u16] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// An API key: not empty, and without CR, LF or NUL (specification, section 2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKey(Secret);

impl ApiKey {
    /// Takes a trimmed text for a key. `None` when it is empty or could split a header.
    pub fn parse(secret: &Secret) -> Option<Self> {
        let splits = |unit: &u16| [u16::from(b'\r'), u16::from(b'\n'), 0].contains(unit);
        let usable = !secret.0.is_empty() && !secret.0.iter().any(splits);
        usable.then(|| Self(secret.clone()))
    }

    /// The key itself: for the request header, the account's hash and the client's own getter.
    pub fn expose(&self) -> &[u16] {
        self.0.expose()
    }

    /// The header's bytes: each code unit one byte, as fetch sends a `ByteString`. `None` for a key
    /// that is no legal header value.
    pub fn header_bytes(&self) -> Option<Zeroizing<Vec<u8>>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.expose().len()));
        for unit in self.expose() {
            let byte = u8::try_from(*unit).ok()?;
            if byte != b'\t' && (byte < 0x20 || byte == 0x7f) {
                return None;
            }
            bytes.push(byte);
        }
        Some(bytes)
    }

    /// The account: SHA-256 of the key's UTF-8, in lower-case hexadecimal (section 4).
    pub fn account(&self) -> String {
        let utf8 = Zeroizing::new(String::from_utf16_lossy(self.expose()));
        let digest = Sha256::digest(utf8.as_bytes());
        let mut hex = String::with_capacity(digest.len() * 2);
        for byte in digest {
            for nibble in [byte >> 4, byte & 15] {
                hex.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
        }
        hex
    }
}
