//! Waiting for a turn: order, giving up, and the provider's wish for quiet. All on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clock::now;
use crate::pacing::budget::{HOLD, LIMIT};
use crate::pacing::{Gate, Slot, Ticket};

/// Fills a gate: every place is taken by an exchange that is over.
async fn full() -> Arc<Gate> {
    let gate = Arc::new(Gate::default());
    for _ in 0..LIMIT {
        drop(gate.enqueue().turn().await);
    }
    gate
}

/// Waits in a task and reports its name at its turn.
fn wait(ticket: Ticket, name: usize, turns: &mpsc::UnboundedSender<usize>) -> JoinHandle<()> {
    let turns = turns.clone();
    tokio::spawn(async move {
        let _slot = ticket.turn().await;
        turns.send(name).expect("somebody listens");
    })
}

/// Lets every task run until all of them wait.
async fn settle() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_goes_out_without_waiting() {
    let start = now();
    let _gate = full().await;
    assert_eq!(now(), start);
}

#[tokio::test(start_paused = true)]
async fn the_next_one_goes_when_the_window_has_passed() {
    let gate = full().await;
    let start = now();
    drop(gate.enqueue().turn().await);
    assert!(now() - start >= HOLD);
    assert!(now() - start < HOLD + Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_place_is_taken_by_the_call_and_not_by_the_first_poll() {
    let gate = full().await;
    let (turns, mut heard) = mpsc::unbounded_channel();
    let first = gate.enqueue();
    let second = gate.enqueue();
    // The second one is polled first and by far.
    wait(second, 2, &turns);
    settle().await;
    wait(first, 1, &turns);
    assert_eq!(heard.recv().await, Some(1));
    assert_eq!(heard.recv().await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_lets_the_next_one_through_at_once() {
    let gate = Arc::new(Gate::default());
    let (turns, mut heard) = mpsc::unbounded_channel();
    let start = now();
    // Nobody polls the first one, so it holds everybody up.
    let first = gate.enqueue();
    let second = wait(gate.enqueue(), 2, &turns);
    wait(gate.enqueue(), 3, &turns);
    settle().await;
    assert!(heard.try_recv().is_err());
    second.abort();
    settle().await;
    assert!(heard.try_recv().is_err());
    drop(first);
    assert_eq!(heard.recv().await, Some(3));
    assert_eq!(now(), start);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_at_the_front_hands_its_wait_on() {
    let gate = full().await;
    let start = now();
    let (turns, mut heard) = mpsc::unbounded_channel();
    let front = wait(gate.enqueue(), 1, &turns);
    wait(gate.enqueue(), 2, &turns);
    settle().await;
    front.abort();
    assert_eq!(heard.recv().await, Some(2));
    assert!(now() - start < HOLD + Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn an_exchange_that_never_left_wakes_a_waiter_at_once() {
    let gate = Arc::new(Gate::default());
    let mut slots: Vec<Slot> = Vec::new();
    for _ in 0..LIMIT {
        slots.push(gate.enqueue().turn().await);
    }
    let (turns, mut heard) = mpsc::unbounded_channel();
    wait(gate.enqueue(), 1, &turns);
    settle().await;
    assert!(heard.try_recv().is_err());
    let start = now();
    slots.pop().expect("one of 300").unsent();
    assert_eq!(heard.recv().await, Some(1));
    assert_eq!(now(), start);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_frees_early_ends_a_wait_for_the_window() {
    let gate = Arc::new(Gate::default());
    let ongoing = gate.enqueue().turn().await;
    for _ in 1..LIMIT {
        drop(gate.enqueue().turn().await);
    }
    let (turns, mut heard) = mpsc::unbounded_channel();
    wait(gate.enqueue(), 1, &turns);
    settle().await;
    let start = now();
    ongoing.unsent();
    assert_eq!(heard.recv().await, Some(1));
    assert_eq!(now(), start);
}

#[tokio::test(start_paused = true)]
async fn quiet_holds_everyone_back_and_no_longer_than_asked() {
    let gate = Arc::new(Gate::default());
    let start = now();
    gate.pause_origin_until(start + Duration::from_secs(7));
    // A shorter wish does not shorten a longer one.
    gate.pause_origin_until(start + Duration::from_secs(3));
    let waits = [gate.enqueue(), gate.enqueue()];
    for ticket in waits {
        drop(ticket.turn().await);
        assert!(now() - start >= Duration::from_secs(7));
        assert!(now() - start < Duration::from_millis(7_010));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_the_exchanges_of_those_before() {
    let gate = Arc::new(Gate::default());
    gate.pause_origin_until(now() + Duration::from_secs(1));
    let (slots, mut heard) = mpsc::unbounded_channel();
    for _ in 0..3 {
        let ticket = gate.enqueue();
        let slots = slots.clone();
        tokio::spawn(async move { slots.send(ticket.turn().await) });
    }
    // Slots stay alive, so no exchange ends.
    let mut kept: Vec<Slot> = Vec::new();
    for _ in 0..3 {
        kept.push(heard.recv().await.expect("a slot"));
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_that_is_asked_for_during_a_wait_counts_too() {
    let gate = full().await;
    let start = now();
    let (turns, mut heard) = mpsc::unbounded_channel();
    wait(gate.enqueue(), 1, &turns);
    settle().await;
    gate.pause_origin_until(start + 2 * HOLD);
    assert_eq!(heard.recv().await, Some(1));
    assert!(now() - start >= 2 * HOLD);
}

#[tokio::test(start_paused = true)]
async fn one_origin_does_not_hold_up_another() {
    let gate = Gate::of("https://one.pacing-queue.test");
    gate.pause_origin_until(now() + HOLD);
    let start = now();
    drop(
        Gate::of("https://two.pacing-queue.test")
            .enqueue()
            .turn()
            .await,
    );
    assert_eq!(now(), start);
    assert!(Arc::ptr_eq(
        &gate,
        &Gate::of("https://one.pacing-queue.test")
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_between_threads() {
    let gate = Arc::new(Gate::default());
    let mut taken = Vec::new();
    for _ in 1..LIMIT {
        taken.push(gate.enqueue().turn().await);
    }
    // One place is left, through which all of these go, one after the other.
    let mut tasks = Vec::new();
    for number in 0..4_000 {
        let ticket = gate.enqueue();
        tasks.push(tokio::spawn(async move {
            let slot = ticket.turn().await;
            tokio::task::yield_now().await;
            slot.unsent();
        }));
        if number % 7 == 0 {
            tasks[number / 2].abort();
        }
    }
    for task in tasks {
        // Finished or aborted, but never waiting for ever.
        let _ = task.await;
    }
    gate.enqueue().turn().await.unsent();
}

/// What happens to one of many waiters.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Waits,
    GivesUp,
    IsNeverPolledAndDropped,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![3 => Just(Fate::Waits), 1 => Just(Fate::GivesUp), 1 => Just(Fate::IsNeverPolledAndDropped)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whoever_stays_is_served_in_the_order_of_arrival(
        fates in prop::collection::vec(fate(), 1..40),
        poll_backwards in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let served = runtime.block_on(async {
            let gate = full().await;
            let (turns, mut heard) = mpsc::unbounded_channel();
            let tickets: Vec<_> = fates.iter().map(|fate| (*fate, gate.enqueue())).collect();
            let mut named: Vec<_> = tickets.into_iter().enumerate().collect();
            if poll_backwards {
                named.reverse();
            }
            let mut leaving = Vec::new();
            for (name, (fate, ticket)) in named {
                match fate {
                    Fate::Waits => drop(wait(ticket, name, &turns)),
                    Fate::GivesUp => leaving.push(wait(ticket, name, &turns)),
                    Fate::IsNeverPolledAndDropped => drop(ticket),
                }
            }
            settle().await;
            for task in leaving {
                task.abort();
            }
            drop(turns);
            let mut served = Vec::new();
            while let Some(name) = heard.recv().await {
                served.push(name);
            }
            served
        });
        let expected: Vec<_> = (0..fates.len())
            .filter(|name| matches!(fates[*name], Fate::Waits))
            .collect();
        prop_assert_eq!(served, expected);
    }
}
