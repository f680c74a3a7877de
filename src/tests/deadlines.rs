//! Deadlines: told at their moment, in their order, and without a trace of calls that settled. All
//! on a paused clock.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::{self, UnboundedReceiver, error::TryRecvError};
use tokio::time::advance;

use super::{ONE_DAY, let_run, scope};
use crate::clock::{Instant, millis, now};
use crate::registry::{CallId, OnDeadline, Registry};

/// The calls of one deadline, and the moment at which they were told.
type Told = (Instant, Vec<CallId>);

fn listen() -> (OnDeadline, UnboundedReceiver<Told>) {
    let (tell, told) = mpsc::unbounded_channel();
    let on_deadline = OnDeadline::new(move |calls| {
        // Nobody listens any more at the end of a test.
        let _ = tell.send((now(), calls));
    });
    (on_deadline, told)
}

/// What is told next. `None` when nobody is left to tell, or nothing comes in a hundred days.
async fn next(told: &mut UnboundedReceiver<Told>) -> Option<Told> {
    tokio::time::timeout(100 * millis(ONE_DAY), told.recv())
        .await
        .ok()?
}

fn begin(registry: &Registry, timeout: u32, on_deadline: &OnDeadline) -> CallId {
    registry
        .begin(0, scope("lease", "account"), timeout, ONE_DAY, on_deadline)
        .expect("the scope is open")
}

#[tokio::test(start_paused = true)]
async fn a_call_is_told_exactly_at_its_deadline() {
    for timeout in [1, 2, 999, 60_000, 300_000, ONE_DAY] {
        let (on_deadline, mut told) = listen();
        let registry = Registry::new();
        let start = now();
        let call = begin(&registry, timeout, &on_deadline);
        // Nothing else runs, so the clock jumps from one timer to the next.
        assert_eq!(
            next(&mut told).await,
            Some((start + millis(timeout), vec![call]))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_told_a_millisecond_early() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let call = begin(&registry, 1000, &on_deadline);
    let_run().await;
    advance(millis(999)).await;
    let_run().await;
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
    advance(millis(1)).await;
    let_run().await;
    assert_eq!(told.try_recv(), Ok((now(), vec![call])));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_told_once_and_runs_on_until_it_settles() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let call = begin(&registry, 10, &on_deadline);
    assert!(next(&mut told).await.is_some());
    advance(millis(ONE_DAY)).await;
    let_run().await;
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
    registry.assert_invariants();
    assert_eq!(registry.stored().calls, 1);
    registry.settle(call, false);
    registry.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn calls_are_told_in_the_order_of_their_deadlines() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let start = now();
    let timeouts = [500, 20, 300, 7, 90_000, 8];
    let mut calls = timeouts.map(|timeout| (timeout, begin(&registry, timeout, &on_deadline)));
    calls.sort_unstable();
    for (timeout, call) in calls {
        assert_eq!(
            next(&mut told).await,
            Some((start + millis(timeout), vec![call]))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn deadlines_that_passed_together_come_together_and_in_order() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let late = begin(&registry, 30, &on_deadline);
    let early = begin(&registry, 20, &on_deadline);
    let _later = begin(&registry, 41, &on_deadline);
    let_run().await;
    advance(millis(40)).await;
    let_run().await;
    assert_eq!(told.try_recv(), Ok((now(), vec![early, late])));
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
}

#[tokio::test(start_paused = true)]
async fn of_equal_deadlines_the_earlier_call_comes_first() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let start = now();
    // Tags go down, so that only the order of beginning can be the order told.
    let at = |tag: u32, timeout| {
        let scope = scope(
            if tag.is_multiple_of(2) {
                "one"
            } else {
                "other"
            },
            "account",
        );
        registry
            .begin(tag, scope, timeout, ONE_DAY, &on_deadline)
            .expect("the scope is open")
    };
    let mut calls: Vec<_> = (0..8).rev().map(|tag| at(tag, 100)).collect();
    advance(millis(40)).await;
    // The same moment, by another timeout and from another beginning.
    calls.push(at(9, 60));
    assert_eq!(next(&mut told).await, Some((start + millis(100), calls)));
}

#[tokio::test(start_paused = true)]
async fn an_earlier_deadline_that_is_added_later_is_told_in_time() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let start = now();
    let mut expected = Vec::new();
    for timeout in [100_000, 10_000, 1_000, 100, 10, 1] {
        expected.push((
            start + millis(timeout),
            vec![begin(&registry, timeout, &on_deadline)],
        ));
        // The timer sleeps until the one before by now.
        let_run().await;
    }
    while let Some(expected) = expected.pop() {
        assert_eq!(next(&mut told).await, Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_after_a_quiet_time_is_told_too() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    for _ in 0..3 {
        let start = now();
        let call = begin(&registry, 10, &on_deadline);
        assert_eq!(
            next(&mut told).await,
            Some((start + millis(10), vec![call]))
        );
        registry.settle(call, false);
        advance(Duration::from_secs(3600)).await;
        let_run().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_settled_is_not_told() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let start = now();
    let first = begin(&registry, 10, &on_deadline);
    let second = begin(&registry, 10, &on_deadline);
    let third = begin(&registry, 20, &on_deadline);
    let_run().await;
    registry.settle(first, false);
    assert_eq!(
        next(&mut told).await,
        Some((start + millis(10), vec![second]))
    );
    registry.settle(third, true);
    advance(millis(ONE_DAY)).await;
    let_run().await;
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_settles_before_anyone_looks_at_its_deadline_is_not_told() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let call = begin(&registry, 10, &on_deadline);
    let_run().await;
    // The first poll moves the clock, and no task runs before the second.
    let mut moving = pin!(advance(millis(10)));
    assert!(
        moving
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    registry.settle(call, false);
    moving.await;
    let_run().await;
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
}

#[tokio::test(start_paused = true)]
async fn each_registry_tells_its_own() {
    let (one, mut told_one) = listen();
    let (two, mut told_two) = listen();
    let (first, second) = (Registry::new(), Registry::new());
    let start = now();
    let call = begin(&first, 10, &one);
    let other = begin(&second, 10, &two);
    assert_eq!(
        next(&mut told_one).await,
        Some((start + millis(10), vec![call]))
    );
    assert_eq!(
        next(&mut told_two).await,
        Some((start + millis(10), vec![other]))
    );
}

#[test]
fn the_timer_is_woken_for_an_earlier_deadline_and_for_no_other() {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime");
    // Nothing runs outside of `block_on`, so a task that was woken lies in the queue.
    let _inside = runtime.enter();
    let woken = || runtime.metrics().global_queue_depth();
    let (on_deadline, _told) = listen();
    let registry = Registry::new();
    let first = begin(&registry, 10_000, &on_deadline);
    assert_eq!(woken(), 1, "the first call starts the timer");
    runtime.block_on(let_run());
    assert_eq!(woken(), 0);

    for timeout in [10_000, 10_001, ONE_DAY] {
        let call = begin(&registry, timeout, &on_deadline);
        registry.settle(call, false);
        begin(&registry, timeout, &on_deadline);
        assert_eq!(woken(), 0, "{timeout} is no earlier than 10 s");
    }
    registry.settle(first, false);
    assert_eq!(woken(), 0, "a deadline less is no reason to look");
    begin(&registry, 10_500, &on_deadline);
    assert_eq!(woken(), 0, "it will look in time by itself");
    begin(&registry, 9_999, &on_deadline);
    assert_eq!(woken(), 1, "an earlier one");
    begin(&registry, 9_998, &on_deadline);
    assert_eq!(woken(), 1, "a task is woken once");
    runtime.block_on(let_run());
    begin(&registry, 9_998, &on_deadline);
    assert_eq!(woken(), 0, "it sleeps until that very moment");
}

#[test]
fn a_hundred_thousand_calls_leave_nothing_behind_and_wake_nobody() {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime");
    let _inside = runtime.enter();
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let first = begin(&registry, 300_000, &on_deadline);
    // The timer sleeps from here on; each call would let it sleep longer.
    runtime.block_on(let_run());
    registry.settle(first, false);
    for _ in 0..100_000 {
        registry.settle(begin(&registry, 300_000, &on_deadline), false);
    }
    registry.assert_empty();
    assert_eq!(runtime.metrics().global_queue_depth(), 0);
    assert_eq!(runtime.metrics().num_alive_tasks(), 1, "the timer");
    runtime.block_on(async {
        advance(millis(ONE_DAY)).await;
        let_run().await;
    });
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_are_all_told_and_all_go() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    let calls: Vec<_> = (0..1000)
        .map(|at| begin(&registry, 1 + at % 10, &on_deadline))
        .collect();
    registry.assert_invariants();
    let mut all = Vec::new();
    for _ in 0..10 {
        all.extend(next(&mut told).await.expect("the registry lives").1);
    }
    all.sort_unstable();
    assert_eq!(all, calls);
    // Out of the middle, from the front, from the back: no call takes another one's place along.
    for call in calls
        .iter()
        .skip(1)
        .step_by(2)
        .chain(calls.iter().step_by(2).rev())
    {
        registry.settle(*call, false);
    }
    registry.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn the_timer_goes_with_the_registry_and_its_pending_deadlines() {
    let (on_deadline, mut told) = listen();
    let registry = Registry::new();
    begin(&registry, 1000, &on_deadline);
    drop(on_deadline);
    let_run().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
    drop(registry);
    // Its listener was the last one.
    assert_eq!(next(&mut told).await, None);
    let_run().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}
