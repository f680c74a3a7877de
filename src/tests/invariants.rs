//! The registry's numbered invariants after every action of generated histories, and its marks as
//! one total function.

use proptest::prelude::*;
use tokio::runtime::Builder;

use super::scope;
use super::world::{World, action};
use crate::error::Failure;
use crate::registry::{Event, Marks, OnDeadline, Registry};

const EVENTS: [Event; 7] = [
    Event::Begin,
    Event::Settle {
        cleanup_failed: false,
    },
    Event::Settle {
        cleanup_failed: true,
    },
    Event::Close,
    Event::BoundPassed,
    Event::Destroyed,
    Event::Lift,
];

/// Every state with at most three of each.
fn small_states() -> impl Iterator<Item = Marks> {
    (0..32).map(|bits| Marks {
        running: bits & 3,
        closing: bits >> 2 & 3,
        unconfirmed: bits >> 4 == 1,
    })
}

#[test]
fn marks_are_a_total_function() {
    for before in small_states() {
        let Marks {
            running,
            closing,
            unconfirmed,
        } = before;
        for event in EVENTS {
            let expected = match event {
                Event::Begin => (closing == 0 && !unconfirmed).then_some(Marks {
                    running: running + 1,
                    ..before
                }),
                Event::Settle { cleanup_failed } => (running > 0).then(|| Marks {
                    running: running - 1,
                    unconfirmed: unconfirmed || cleanup_failed,
                    ..before
                }),
                Event::Close => Some(Marks {
                    closing: closing + 1,
                    ..before
                }),
                Event::Lift => (closing > 0).then(|| Marks {
                    closing: closing - 1,
                    ..before
                }),
                Event::BoundPassed => Some(Marks {
                    unconfirmed: true,
                    ..before
                }),
                Event::Destroyed => Some(Marks {
                    unconfirmed: false,
                    ..before
                }),
            };
            assert_eq!(before.after(event).ok(), expected, "{before:?} {event:?}");
        }
    }
}

#[test]
fn a_call_begins_where_marks_admit_it() {
    for marks in small_states() {
        assert_eq!(
            marks.admits(),
            marks.after(Event::Begin).is_ok(),
            "{marks:?}"
        );
    }
}

#[test]
fn only_an_open_scope_without_calls_is_forgotten() {
    for marks in small_states() {
        let Marks {
            running,
            closing,
            unconfirmed,
        } = marks;
        assert_eq!(
            marks.is_default(),
            (running, closing, unconfirmed) == (0, 0, false)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_cannot_happen_leave_no_trace() {
    let registry = Registry::new();
    let own = scope("lease", "account");
    registry.destroyed(&own.lease);
    registry.assert_empty();
    let call = super::begin(&registry, &own, 1000);
    registry.settle(call, false);
    registry.settle(call, true);
    registry.assert_empty();
    registry.bound_passed(&own);
    let refused = registry.begin(0, own.clone(), 1, 1, &OnDeadline::new(|_| {}));
    assert_eq!(refused, Err(Failure::Closing));
    assert_eq!(registry.stored().calls, 0);
    assert_eq!(registry.stored().deadlines, 0);
    registry.destroyed(&own.lease);
    registry.assert_empty();
}

#[test]
fn threads_that_begin_settle_and_close_at_once_leave_nothing_behind() {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime");
    let registry = Registry::new();
    std::thread::scope(|threads| {
        for thread in 0..4_u32 {
            let (registry, handle) = (&registry, runtime.handle());
            threads.spawn(move || {
                let _inside = handle.enter();
                let own = scope("lease", if thread % 2 == 0 { "one" } else { "two" });
                for round in 0..500 {
                    let timeout = 1 + (thread * 7 + round) % 50;
                    let call = registry.begin(0, own.clone(), timeout, 1, &OnDeadline::new(|_| {}));
                    let closing = registry.close(&own, round % 3 == 0);
                    registry.assert_invariants();
                    if let Ok(call) = call {
                        registry.settle(call, false);
                    }
                    drop(closing);
                }
            });
        }
    });
    registry.assert_empty();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_invariants_hold_after_every_action(
        actions in prop::collection::vec(action(), 1..120),
    ) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let mut world = World::new();
            for action in actions {
                world.act(action).await;
            }
            world.end().await;
        });
    }
}
