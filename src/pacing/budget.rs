//! How many requests an origin takes: 300 in any rolling 60 s window (specification, section 6).
//!
//! A sliding log, written by hand: the usual small algorithm (GCRA, a leaky bucket) lets a burst of
//! 300 and then a refill of up to 300 through, so nearly 600 in one window. A log of 300 instants is
//! small enough to be exact.
//!
//! The provider counts a request when it arrives, which this side cannot see. What it knows is that
//! the arrival lies between the departure and the end of the exchange (the answer's head, a failure
//! or the caller giving up), so a request occupies its place during all of that and `HOLD` longer.
//!
//! Why that is enough: say 301 requests arrive within one window, and call the one that departed last
//! `r`. Each of the other 300 departed before `r` and arrived inside the window, so its exchange
//! ended no earlier than the window's start, and its place is taken until after the window's end.
//! `r` departed before it arrived, so inside or before the window, when 300 places were taken, and
//! 300 taken places let nothing out.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Instant;

/// Requests in one window.
pub const LIMIT: usize = 300;
/// How long a place stays taken after its exchange: the window, what two clocks can drift apart in
/// it, and how late a request can still arrive whose caller gave up while it was under way.
pub const HOLD: Duration = Duration::from_millis(60_250);

/// Whether the next request may depart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It may.
    Go,
    /// Not before this moment, when a place becomes free.
    NotUntil(Instant),
    /// Every place is taken by an exchange that is still going on.
    NotUntilOneEnds,
}

/// The places of one origin.
///
/// 1. `ongoing` plus the length of `ended` is at most `LIMIT`.
/// 2. `ended` is in order, since it is only ever given the present.
#[derive(Debug, Default)]
pub struct Budget {
    ongoing: usize,
    ended: VecDeque<Instant>,
}

impl Budget {
    /// Decides for one request at the moment `now`, forgetting what no window holds any more.
    pub fn decide(&mut self, now: Instant) -> Turn {
        while self.ended.front().is_some_and(|ended| *ended + HOLD <= now) {
            self.ended.pop_front();
        }
        if self.taken() < LIMIT {
            return Turn::Go;
        }
        self.ended
            .front()
            .map_or(Turn::NotUntilOneEnds, |ended| Turn::NotUntil(*ended + HOLD))
    }

    /// A request departs. Only after `Turn::Go`.
    pub fn depart(&mut self) {
        debug_assert!(self.taken() < LIMIT, "invariant 1");
        self.ongoing += 1;
    }

    /// Its exchange ended at `now`: it cannot arrive later than that.
    pub fn end(&mut self, now: Instant) {
        debug_assert!(self.ongoing > 0, "an exchange ends once");
        debug_assert!(
            self.ended.back().is_none_or(|last| *last <= now),
            "invariant 2"
        );
        self.ongoing -= 1;
        self.ended.push_back(now);
    }

    /// It never left, so it cannot arrive: its place is free at once.
    pub fn give_back(&mut self) {
        debug_assert!(self.ongoing > 0, "an exchange ends once");
        self.ongoing -= 1;
    }

    /// Places taken, as of the last decision.
    pub fn taken(&self) -> usize {
        self.ongoing + self.ended.len()
    }
}
