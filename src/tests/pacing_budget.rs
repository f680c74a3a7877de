//! Too many requests in one window.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use proptest::prelude::*;

use crate::clock::Instant;
use crate::pacing::budget::{Budget, HOLD, LIMIT, Turn};

const WINDOW: Duration = Duration::from_secs(60);

/// One request of a generated history; milliseconds.
#[derive(Debug, Clone)]
struct Exchange {
    /// After the one before it was let out, or wanted to be.
    gap: u64,
    /// From departure until the exchange is over.
    lasts: u64,
    /// When in between it arrives, in percent.
    arrives: u64,
    /// It could not be sent at all.
    unsent: bool,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let gap = prop_oneof![8 => Just(0), 2 => 0_u64..400, 1 => 0_u64..30_000];
    let lasts = prop_oneof![4 => 0_u64..50, 2 => 0_u64..5_000, 1 => 0_u64..90_000];
    (gap, lasts, 0_u64..=100, prop::bool::weighted(0.05)).prop_map(
        |(gap, lasts, arrives, unsent)| Exchange {
            gap,
            lasts,
            arrives,
            unsent,
        },
    )
}

/// Lets the exchanges out as early as the budget allows and gives back the arrivals, in order.
fn arrivals(exchanges: &[Exchange]) -> Vec<Instant> {
    let mut now = Instant::now();
    let mut budget = Budget::default();
    let mut ongoing: BinaryHeap<Reverse<(Instant, bool)>> = BinaryHeap::new();
    let mut arrivals = Vec::new();
    let end_until = |budget: &mut Budget, ongoing: &mut BinaryHeap<_>, now: Instant| {
        while let Some(Reverse((end, unsent))) = ongoing.peek().copied()
            && end <= now
        {
            ongoing.pop();
            if unsent {
                budget.give_back();
            } else {
                budget.end(end);
            }
        }
    };
    for exchange in exchanges {
        now += Duration::from_millis(exchange.gap);
        loop {
            end_until(&mut budget, &mut ongoing, now);
            assert!(budget.taken() <= LIMIT, "invariant 1");
            match budget.decide(now) {
                Turn::Go => break,
                Turn::NotUntil(moment) => {
                    assert!(moment > now, "a wait must lead somewhere");
                    let first_end = ongoing.peek().map_or(moment, |Reverse((end, _))| *end);
                    now = moment.min(first_end.max(now));
                }
                Turn::NotUntilOneEnds => now = ongoing.peek().expect("one goes on").0.0,
            }
        }
        budget.depart();
        let lasts = Duration::from_millis(exchange.lasts);
        ongoing.push(Reverse((now + lasts, exchange.unsent)));
        if !exchange.unsent {
            arrivals.push(now + lasts * u32::try_from(exchange.arrives).expect("percent") / 100);
        }
    }
    arrivals.sort_unstable();
    arrivals
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_window_of_arrivals_holds_301(
        exchanges in prop::collection::vec(exchange(), 2 * LIMIT..4 * LIMIT),
    ) {
        let arrivals = arrivals(&exchanges);
        for window in arrivals.windows(LIMIT + 1) {
            prop_assert!(window[LIMIT] - window[0] > WINDOW);
        }
    }
}

#[test]
fn a_burst_of_300_goes_out_at_once_and_the_next_one_a_window_later() {
    let now = Instant::now();
    let mut budget = Budget::default();
    for _ in 0..LIMIT {
        assert_eq!(budget.decide(now), Turn::Go);
        budget.depart();
        budget.end(now);
    }
    assert_eq!(budget.decide(now), Turn::NotUntil(now + HOLD));
    assert_eq!(budget.decide(now + WINDOW), Turn::NotUntil(now + HOLD));
    assert_eq!(budget.decide(now + HOLD), Turn::Go);
}

#[test]
fn a_request_counts_as_long_as_it_may_still_arrive() {
    let now = Instant::now();
    let mut budget = Budget::default();
    for _ in 0..LIMIT {
        budget.depart();
    }
    assert_eq!(budget.decide(now + 10 * WINDOW), Turn::NotUntilOneEnds);
    budget.end(now + 10 * WINDOW);
    assert_eq!(
        budget.decide(now + 10 * WINDOW),
        Turn::NotUntil(now + 10 * WINDOW + HOLD)
    );
}

#[test]
fn a_request_that_never_left_frees_its_place_at_once() {
    let now = Instant::now();
    let mut budget = Budget::default();
    for _ in 0..LIMIT {
        budget.depart();
    }
    budget.give_back();
    assert_eq!(budget.decide(now), Turn::Go);
}
