//! What a 429 means for the next try (specification, section 6, pacing).

use std::time::Duration;

/// A single wait longer than this is not made: the 429 surfaces instead.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The first wait after a 429 that names no time; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// "Again at once" is taken at its word so many times; after that it says nothing, since a request
/// that is refused and sent again without end would use up everyone's budget.
const IMMEDIATE_TRIES: u32 = 3;

/// How long to wait, and who does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The whole origin: the provider said when it takes requests again.
    Origin(Duration),
    /// Only this request: it may be a quota of its kind.
    Alone(Duration),
}

impl Wait {
    /// The length.
    pub fn duration(self) -> Duration {
        match self {
            Self::Origin(duration) | Self::Alone(duration) => duration,
        }
    }
}

/// The 429s that one request has seen.
#[derive(Debug, Default)]
pub struct Refusals {
    without_time: u32,
    immediate: u32,
}

impl Refusals {
    /// Counts one more, with what its `Retry-After` says.
    pub fn next(&mut self, retry_after: Option<Duration>) -> Wait {
        match retry_after {
            Some(Duration::ZERO) if self.immediate >= IMMEDIATE_TRIES => self.doubled(),
            Some(Duration::ZERO) => {
                self.immediate += 1;
                Wait::Origin(Duration::ZERO)
            }
            Some(stated) => Wait::Origin(stated),
            None => self.doubled(),
        }
    }

    fn doubled(&mut self) -> Wait {
        let factor = 1_u32.checked_shl(self.without_time).unwrap_or(u32::MAX);
        self.without_time = self.without_time.saturating_add(1);
        Wait::Alone(FIRST_WAIT.saturating_mul(factor))
    }
}
