//! What ends a request before it leaves, and what after.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::clock::now;
use crate::http::Bound;
use crate::http::bound::Ended;

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_timeout_that_counts_from_the_departure_leaves_the_wait_before_it_alone() {
    let bound = Bound::once_sent(SECOND);
    assert_eq!(bound.while_unsent().run(sleep(HOUR)).await, Ok(()));
    let start = now();
    let departed = bound.departing();
    assert_eq!(departed.run(sleep(HOUR)).await, Err(Ended::DeadlinePassed));
    assert_eq!(now() - start, SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_departure_changes_no_deadline_that_was_fixed_before() {
    let start = now();
    let bound = Bound::until(start + SECOND);
    sleep(SECOND / 2).await;
    let departed = bound.departing();
    assert_eq!(departed.run(sleep(HOUR)).await, Err(Ended::DeadlinePassed));
    assert_eq!(now() - start, SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_that_counts_before_the_departure_ends_nothing_after_it() {
    let token = CancellationToken::new();
    let bound = Bound::until(now() + HOUR).and_cancelled_unsent_by(token.clone());
    token.cancel();
    let unsent = bound.while_unsent().run(sleep(SECOND)).await;
    assert_eq!(unsent, Err(Ended::Cancelled));
    assert_eq!(bound.departing().run(sleep(SECOND)).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_waited_for_a_little_longer_than_the_wish_for_it() {
    let token = CancellationToken::new();
    let bound = Bound::cancelled_by(token.clone()).with_patience(SECOND);
    token.cancel();
    let start = now();
    assert_eq!(bound.run(sleep(SECOND)).await, Err(Ended::Cancelled));
    let unsent = bound.while_unsent().run(sleep(SECOND)).await;
    assert_eq!(unsent, Err(Ended::Cancelled));
    assert_eq!(now(), start);
    // However many pieces the answer comes in.
    let departed = bound.departing();
    for _ in 0..4 {
        assert_eq!(departed.run(sleep(SECOND / 5)).await, Ok(()));
    }
    let last = departed.run(sleep(HOUR)).await;
    assert_eq!(last, Err(Ended::Cancelled));
    assert_eq!(now() - start, SECOND);
}

#[tokio::test(start_paused = true)]
async fn of_a_deadline_and_a_timeout_from_the_departure_the_first_counts() {
    for (deadline, timeout) in [(SECOND, HOUR), (HOUR, SECOND)] {
        let start = now();
        let bound = Bound::until(start + deadline).and_once_sent(timeout);
        let departed = bound.departing();
        assert_eq!(
            departed.run(sleep(2 * HOUR)).await,
            Err(Ended::DeadlinePassed)
        );
        assert_eq!(now() - start, SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_from_the_departure_is_counted_from_the_first_one() {
    let start = now();
    let counted = Bound::once_sent(SECOND).counted();
    sleep(SECOND / 2).await;
    let departed = counted.counted().departing();
    assert_eq!(departed.run(sleep(HOUR)).await, Err(Ended::DeadlinePassed));
    assert_eq!(now() - start, SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_too_passes_later_for_an_answer_that_is_waited_for() {
    let start = now();
    let bound = Bound::until(start + SECOND).with_patience(SECOND);
    let departed = bound.departing();
    assert_eq!(departed.run(sleep(HOUR)).await, Err(Ended::DeadlinePassed));
    assert_eq!(now() - start, 2 * SECOND);
    assert_eq!(bound.end(), Some(Ended::DeadlinePassed));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_has_come_can_be_asked_for() {
    let token = CancellationToken::new();
    let bound = Bound::cancelled_by(token.clone()).and_until(now() + SECOND);
    assert_eq!(bound.end(), None);
    sleep(SECOND).await;
    assert_eq!(bound.end(), Some(Ended::DeadlinePassed));
    token.cancel();
    assert_eq!(bound.end(), Some(Ended::Cancelled));
}
