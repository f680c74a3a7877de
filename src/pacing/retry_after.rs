//! The `Retry-After` header: whole seconds, or an HTTP date (RFC 9110, section 10.2.3).

use std::time::{Duration, SystemTime};

/// How long the provider wants to be left alone, from `now` on. A date is told by the wall clock, the
/// only one it can be compared with; one that has passed means now. `None` for anything else.
pub fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a u64 takes is still a number of seconds: a wait that nobody makes.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}
