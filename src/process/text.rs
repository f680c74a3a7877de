//! Bytes into text, piece by piece: UTF-8 whose characters may lie across pieces.

use std::borrow::Cow;
use std::str;

use base64_simd::STANDARD;

/// The longest beginning of a character that can wait for its rest, in bytes.
const LONGEST_BEGINNING: usize = 3;

/// Decodes one stream. Invalid bytes become U+FFFD, as a `TextDecoder` replaces them; a byte order mark
/// is a character like any other.
#[derive(Default)]
pub struct Decoder {
    /// The beginning of a character, and while it is decoded the rest of a piece.
    pending: Vec<u8>,
}

/// What should be base64 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotBase64;

impl Decoder {
    /// Decodes a piece, given as padded base64, and hands its text on, if it completes any.
    pub fn decode(&mut self, base64: &[u8], emit: impl FnOnce(&str)) -> Result<(), NotBase64> {
        let start = self.pending.len();
        if STANDARD.decode_append(base64, &mut self.pending).is_err() {
            self.pending.truncate(start);
            return Err(NotBase64);
        }
        let end = self.pending.len() - beginning(&self.pending);
        let whole = &self.pending[..end];
        let text = match simdutf8::basic::from_utf8(whole) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(whole),
        };
        if !text.is_empty() {
            emit(&text);
        }
        drop(text);
        self.pending.drain(..end);
        Ok(())
    }

    /// The stream has ended: what waits for its rest is no character.
    pub fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.pending);
        (!rest.is_empty()).then(|| Cow::into_owned(String::from_utf8_lossy(&rest)))
    }
}

/// How many bytes at the end begin a character that is not there yet.
fn beginning(bytes: &[u8]) -> usize {
    for length in 1..=LONGEST_BEGINNING.min(bytes.len()) {
        let end = &bytes[bytes.len() - length..];
        let is_continuation = end[0] & 0b1100_0000 == 0b1000_0000;
        if is_continuation {
            continue;
        }
        let is_beginning = str::from_utf8(end)
            .is_err_and(|fault| fault.valid_up_to() == 0 && fault.error_len().is_none());
        return if is_beginning { length } else { 0 };
    }
    0
}
