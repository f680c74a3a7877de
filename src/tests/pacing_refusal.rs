//! 429: how long to wait, and who does.

use std::time::{Duration, SystemTime};

use crate::pacing::{LONGEST_WAIT, Refusals, Wait, retry_after};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_stated_time_is_waited_by_the_whole_origin() {
    let mut refusals = Refusals::default();
    for stated in [seconds(5), seconds(1), seconds(60), seconds(61)] {
        assert_eq!(refusals.next(Some(stated)), Wait::Origin(stated));
    }
}

#[test]
fn without_one_only_this_request_waits_and_each_time_twice_as_long() {
    let mut refusals = Refusals::default();
    for expected in [1, 2, 4, 8, 16, 32, 64] {
        assert_eq!(refusals.next(None), Wait::Alone(seconds(expected)));
    }
    for _ in 0..100 {
        assert!(refusals.next(None).duration() > LONGEST_WAIT);
    }
}

#[test]
fn a_stated_time_does_not_lengthen_the_unstated_ones() {
    let mut refusals = Refusals::default();
    assert_eq!(refusals.next(None), Wait::Alone(seconds(1)));
    assert_eq!(refusals.next(Some(seconds(9))), Wait::Origin(seconds(9)));
    assert_eq!(refusals.next(None), Wait::Alone(seconds(2)));
}

#[test]
fn at_once_is_believed_a_few_times_only() {
    let mut refusals = Refusals::default();
    for _ in 0..3 {
        assert_eq!(
            refusals.next(Some(Duration::ZERO)),
            Wait::Origin(Duration::ZERO)
        );
    }
    assert_eq!(refusals.next(Some(Duration::ZERO)), Wait::Alone(seconds(1)));
    assert_eq!(refusals.next(Some(Duration::ZERO)), Wait::Alone(seconds(2)));
}

#[test]
fn whole_seconds_are_read() {
    let now = SystemTime::now();
    assert_eq!(retry_after(b"0", now), Some(Duration::ZERO));
    assert_eq!(retry_after(b"17", now), Some(seconds(17)));
    assert_eq!(retry_after(b" 17\t", now), Some(seconds(17)));
    assert_eq!(
        retry_after(b"99999999999999999999999999", now),
        Some(seconds(u64::MAX))
    );
}

#[test]
fn dates_are_read_in_all_three_spellings() {
    // One minute before the date below.
    let now = SystemTime::UNIX_EPOCH + seconds(784_111_777 - 60);
    for date in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(
            retry_after(date.as_bytes(), now),
            Some(seconds(60)),
            "{date}"
        );
    }
}

#[test]
fn a_date_that_has_passed_means_now() {
    let value = b"Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(retry_after(value, SystemTime::now()), Some(Duration::ZERO));
}

#[test]
fn anything_else_is_no_time() {
    let now = SystemTime::now();
    for junk in [
        "", " ", "-1", "+1", "1.5", "1e3", "0x10", "soon", "5 s", "1, 2", "\u{661}",
    ] {
        assert_eq!(retry_after(junk.as_bytes(), now), None, "{junk:?}");
    }
    assert_eq!(retry_after(b"\xff", now), None);
}
