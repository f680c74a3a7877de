//! Lines of output in the form in which servers write nearly all of them: read by hand, since each byte
//! that is looked at twice costs a part of the connection's speed. Whatever differs is read as JSON.

use super::Stream;

/// More digits may be more than JavaScript counts exactly.
const MOST_DIGITS: usize = 15;

/// A line of output: its sequence, its stream, and its bytes as base64, which nobody has looked at yet.
/// `None` for any other line, and for one that is written in any other way.
pub fn data(line: &[u8]) -> Option<(u64, Stream, &[u8])> {
    let rest = line.strip_prefix(b"{\"type\":\"data\",\"seq\":")?;
    let rest = rest.trim_ascii_start();
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at(count);
    if count > MOST_DIGITS || digits.first().is_none_or(|first| *first == b'0') {
        return None;
    }
    let sequence = str::from_utf8(digits).ok()?.parse().ok()?;
    let rest = rest.strip_prefix(b",\"stream\":\"std")?;
    let (stream, rest) = match rest.split_at_checked(3)? {
        (b"out", rest) => (Stream::Stdout, rest),
        (b"err", rest) => (Stream::Stderr, rest),
        _ => return None,
    };
    let base64 = rest
        .strip_prefix(b"\",\"data_base64\":\"")?
        .strip_suffix(b"\"}")?;
    Some((sequence, stream, base64))
}
