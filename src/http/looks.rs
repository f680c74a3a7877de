//! When to look again at something that the provider is doing (specification, section 6, transition).

use std::time::Duration;

use tokio::time::sleep_until;

use super::bound::Bound;
use crate::clock::{Instant, millis, now};
use crate::error::Failure;

/// When to look again, in milliseconds from the beginning; then every `LATER`.
const FIRST_LOOKS: [u32; 4] = [25, 50, 100, 200];
const LATER: u32 = 250;
/// Every look comes so much later, in milliseconds. Transitions take round times, and a look that
/// comes a moment before the end costs the whole pause after it.
const SLACK: u32 = 5;

/// After so many looks, those that may take their time come every `CALM`.
const CALM_AFTER: u32 = 12;
const CALM: Duration = Duration::from_secs(1);

/// When the look after so many comes, from the beginning.
pub fn look_after(looks: u32) -> Duration {
    let first = usize::try_from(looks)
        .ok()
        .and_then(|at| FIRST_LOOKS.get(at));
    let [.., last] = FIRST_LOOKS;
    let later = || last + LATER * looks.saturating_sub(3);
    millis(first.copied().unwrap_or_else(later) + SLACK)
}

/// Looks at one thing, one after another.
#[derive(Debug)]
pub struct Looks {
    begun: Instant,
    taken: u32,
    is_patient: bool,
}

impl Looks {
    /// It has begun at this moment, or is first seen now.
    pub fn begin() -> Self {
        Self {
            begun: now(),
            taken: 0,
            is_patient: false,
        }
    }

    /// The same, but nobody waits for every moment of it: after a while there are fewer, since each is a
    /// request that others of the origin can't make.
    pub fn begin_patiently() -> Self {
        Self {
            is_patient: true,
            ..Self::begin()
        }
    }

    /// Whether only looks at the long, regular pauses are left.
    pub fn is_late(&self) -> bool {
        self.taken as usize > FIRST_LOOKS.len()
    }

    /// Waits for the next look, or for the end of `bound`.
    pub async fn pause(&mut self, bound: &Bound) -> Result<(), Failure> {
        // Slow answers do not make the next look come at once.
        let next = if self.is_patient && self.taken >= CALM_AFTER {
            now() + CALM
        } else {
            (self.begun + look_after(self.taken)).max(now() + millis(FIRST_LOOKS[0]))
        };
        self.taken += 1;
        let slept = bound.run(sleep_until(next)).await;
        slept.map_err(|ended| ended.failure(true))
    }
}
