//! When running calls have to be aborted: one ordered set, and the moment its timer sleeps until.
//!
//! A timer that already sleeps until an earlier moment is left alone: it looks at the set again
//! when it wakes. So a call that settles long before its deadline costs an insertion and a
//! removal, and wakes no thread.

use std::collections::BTreeSet;

use super::CallId;
use crate::clock::Instant;

/// A call in the deadline order. Of calls due at one moment, the earlier comes first.
pub type Due = (Instant, CallId);

/// The deadlines of a registry's calls.
#[derive(Debug, Default)]
pub struct Deadlines {
    due: BTreeSet<Due>,
    /// The moment until which the timer sleeps; `None` when it waits to be woken.
    armed: Option<Instant>,
}

impl Deadlines {
    /// Adds a deadline. True when the timer has to be woken for it.
    pub fn insert(&mut self, due: Due) -> bool {
        self.due.insert(due);
        let earlier = self.armed.is_none_or(|armed| due.0 < armed);
        if earlier {
            self.armed = Some(due.0);
        }
        earlier
    }

    /// Takes a deadline out, if it is still in.
    pub fn remove(&mut self, due: Due) {
        self.due.remove(&due);
    }

    /// Takes out what is due, and arms the timer for the next deadline.
    pub fn expire(&mut self, now: Instant) -> (Vec<CallId>, Option<Instant>) {
        let mut expired = Vec::new();
        while let Some(&(moment, call)) = self.due.first() {
            if moment > now {
                break;
            }
            self.due.pop_first();
            expired.push(call);
        }
        self.armed = self.due.first().map(|&(moment, _)| moment);
        (expired, self.armed)
    }
}
