//! What a look at a sandbox leads to.

use std::time::Duration;

use crate::error::Desired::{Paused, Running};
use crate::http::looks::look_after;
use crate::http::transition::{Next, next};

#[test]
fn a_state_that_is_reached_is_done_whatever_was_submitted() {
    for accepted in [None, Some("paused"), Some("running"), Some("error")] {
        assert_eq!(next(Running, "running", accepted), Next::Done);
        assert_eq!(next(Paused, "paused", accepted), Next::Done);
    }
}

#[test]
fn resume_is_submitted_from_paused_and_error_and_pause_from_running() {
    assert_eq!(next(Running, "paused", None), Next::Submit);
    assert_eq!(next(Running, "error", None), Next::Submit);
    assert_eq!(next(Paused, "running", None), Next::Submit);
    assert_eq!(next(Paused, "error", None), Next::Fail);
}

#[test]
fn the_old_state_is_read_again_and_nothing_is_submitted_twice() {
    assert_eq!(next(Running, "paused", Some("paused")), Next::LookAgain);
    assert_eq!(next(Running, "error", Some("error")), Next::LookAgain);
    assert_eq!(next(Paused, "running", Some("running")), Next::LookAgain);
    // Another state than the old one: the resume has failed.
    assert_eq!(next(Running, "error", Some("paused")), Next::Fail);
    assert_eq!(next(Running, "paused", Some("error")), Next::Fail);
}

#[test]
fn passing_states_are_waited_for_and_all_others_fail() {
    for desired in [Running, Paused] {
        for status in ["creating", "pausing", "resuming", "forking"] {
            assert_eq!(next(desired, status, None), Next::LookAgain);
        }
        for status in [
            "destroying",
            "destroyed",
            "failed",
            "",
            "Running",
            "RUNNING",
            "new",
        ] {
            assert_eq!(next(desired, status, None), Next::Fail);
            assert_eq!(next(desired, status, Some("running")), Next::Fail);
        }
    }
}

#[test]
fn looks_come_further_and_further_apart() {
    let moments: Vec<_> = (0..7).map(look_after).collect();
    assert_eq!(
        moments,
        [30, 55, 105, 205, 455, 705, 955].map(Duration::from_millis)
    );
}
