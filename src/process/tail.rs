//! The end of an output, as much of it as a result holds (specification, section 9).
//!
//! Text is kept in chunks, of which whole ones are let go at the front, so that a byte is copied once
//! however long the output is.

use std::collections::VecDeque;

use encoding_rs::mem::convert_str_to_utf16;

/// The most UTF-16 units that are kept of a stream.
pub const MOST_UNITS: usize = 4 * 1024 * 1024;
/// What a chunk holds, in bytes of UTF-8.
const CHUNK: usize = 64 * 1024;

/// The end of one stream's text.
#[derive(Default)]
pub struct Tail {
    chunks: VecDeque<Chunk>,
    /// UTF-16 units in all chunks.
    units: usize,
    has_lost: bool,
}

struct Chunk {
    text: String,
    units: usize,
}

/// What was kept, in one piece: as JavaScript stores it.
#[derive(Clone, PartialEq, Eq)]
pub enum Kept {
    /// ASCII, each byte one unit.
    Ascii(Vec<u8>),
    Utf16(Vec<u16>),
}

impl Tail {
    /// Adds text to the end.
    pub fn push(&mut self, mut text: &str) {
        while !text.is_empty() {
            let last = self.last_with_room();
            let end = boundary(text, CHUNK - last.text.len());
            let (fits, rest) = text.split_at(end);
            last.text.push_str(fits);
            let units = units(fits);
            last.units += units;
            self.units += units;
            text = rest;
            self.shorten();
        }
    }

    /// What is left, and whether anything is not.
    pub fn finish(self) -> (Kept, bool) {
        let mut has_lost = self.has_lost;
        let mut excess = self.units.saturating_sub(MOST_UNITS);
        let is_ascii = self.chunks.iter().all(|chunk| chunk.text.is_ascii());
        let (mut ascii, mut utf16) = (Vec::new(), Vec::new());
        if is_ascii {
            ascii.reserve_exact(self.units - excess);
        } else {
            utf16.reserve_exact(self.units - excess);
        }
        for Chunk { text, .. } in self.chunks {
            let mut kept = text.chars();
            while excess > 0
                && let Some(character) = kept.next()
            {
                // A pair goes as a whole.
                excess = excess.saturating_sub(character.len_utf16());
                has_lost = true;
            }
            if is_ascii {
                ascii.extend_from_slice(kept.as_str().as_bytes());
            } else {
                append(&mut utf16, kept.as_str());
            }
        }
        let kept = if is_ascii {
            Kept::Ascii(ascii)
        } else {
            Kept::Utf16(utf16)
        };
        (kept, has_lost)
    }

    /// The last chunk, or a new one where a character might not fit any more.
    fn last_with_room(&mut self) -> &mut Chunk {
        let has_room = |chunk: &Chunk| CHUNK - chunk.text.len() >= char::MAX.len_utf8();
        if !self.chunks.back().is_some_and(has_room) {
            self.chunks.push_back(Chunk {
                text: String::with_capacity(CHUNK),
                units: 0,
            });
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }

    /// Lets go of chunks that no result can hold any more.
    fn shorten(&mut self) {
        while let Some(first) = self.chunks.front()
            && self.units - first.units >= MOST_UNITS
        {
            self.units -= first.units;
            self.has_lost = true;
            self.chunks.pop_front();
        }
    }
}

impl Kept {
    /// Text that is to be handed to JavaScript.
    pub fn new(text: String) -> Self {
        if text.is_ascii() {
            Self::Ascii(text.into_bytes())
        } else {
            let mut units = Vec::new();
            append(&mut units, &text);
            Self::Utf16(units)
        }
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self::Ascii(Vec::new())
    }
}

/// Not the text: it is the sandbox's.
impl std::fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Ascii(_) => "Ascii",
            Self::Utf16(_) => "Utf16",
        })
    }
}

/// Adds a text's UTF-16 units.
fn append(units: &mut Vec<u16>, text: &str) {
    let start = units.len();
    // No text has more units than bytes.
    units.resize(start + text.len(), 0);
    let written = convert_str_to_utf16(text, &mut units[start..]);
    units.truncate(start + written);
}

/// How many UTF-16 units a text has: one for each first byte, and one more for a character of four bytes.
fn units(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    // Counted in bytes, of which the processor adds many at once, and so few that none overflows.
    let blocks = text.as_bytes().chunks(usize::from(u8::MAX / 2));
    let units =
        |byte: &u8| u8::from(byte & 0b1100_0000 != 0b1000_0000) + u8::from(*byte >= 0b1111_0000);
    blocks
        .map(|block| usize::from(block.iter().map(units).sum::<u8>()))
        .sum()
}

/// The end of the last character within the first `most` bytes, which hold at least one.
pub fn boundary(text: &str, most: usize) -> usize {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}
