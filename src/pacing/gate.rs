//! One origin's queue: first come, first served (specification, section 6, pacing).
//!
//! Written by hand, since a semaphore queues a waiter when its future is first polled. Requests of
//! one JavaScript tick are polled by several threads in any order, so a place is taken by a plain
//! call (`Gate::enqueue`) and waited for later.
//!
//! Invariants of `Places`, all under its one lock, which is never held across an await:
//!
//! 1. Numbers in `queue` rise from front to back, and each belongs to one living `Ticket`.
//! 2. Only the front departs, so the order of departures is the order of `enqueue`.
//! 3. Whoever leaves the front, or frees a place, wakes the (new) front. A wake-up is remembered
//!    when its waiter is not listening yet, so none is lost.
//! 4. Every departure is one living `Slot`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::budget::{Budget, Turn};
use crate::clock::{Instant, now};

/// Every origin's gate, shared by the whole process: the provider counts by address, not by driver.
static GATES: LazyLock<Mutex<HashMap<String, Arc<Gate>>>> = LazyLock::new(Mutex::default);
/// From so many origins on, gates that nobody uses and that count nothing are forgotten.
const MANY_ORIGINS: usize = 64;

/// The gate of one origin.
#[derive(Debug, Default)]
pub struct Gate {
    /// Who waits, who is on the way, and until when the provider wants quiet.
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    budget: Budget,
    quiet_until: Option<Instant>,
    queue: VecDeque<Waiter>,
    next_number: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    wake: Arc<Notify>,
}

impl Gate {
    /// The one gate of an origin.
    pub fn of(origin: &str) -> Arc<Self> {
        let mut gates = lock(&GATES);
        if let Some(gate) = gates.get(origin) {
            return Arc::clone(gate);
        }
        if gates.len() >= MANY_ORIGINS {
            gates.retain(|_, gate| Arc::strong_count(gate) > 1 || gate.counts_something());
        }
        Arc::clone(gates.entry(origin.to_owned()).or_default())
    }

    /// Takes the next place in the queue, now. A ticket that is held and not waited for keeps the
    /// ones behind it waiting; dropping it gives the place up.
    pub fn enqueue(self: &Arc<Self>) -> Ticket {
        let wake = Arc::new(Notify::new());
        let mut places = lock(&self.places);
        let number = places.next_number;
        places.next_number += 1;
        places.queue.push_back(Waiter {
            number,
            wake: Arc::clone(&wake),
        });
        drop(places);
        Ticket {
            gate: Arc::clone(self),
            number,
            wake,
        }
    }

    /// The provider asked for quiet (a 429 with `Retry-After`): nothing departs before `moment`.
    pub fn pause_origin_until(&self, moment: Instant) {
        let mut places = lock(&self.places);
        places.quiet_until = places.quiet_until.max(Some(moment));
    }

    fn counts_something(&self) -> bool {
        let mut places = lock(&self.places);
        let now = now();
        let _ = places.budget.decide(now);
        places.budget.taken() > 0 || places.quiet_until.is_some_and(|until| until > now)
    }
}

impl Places {
    /// The whole decision for the front of the queue.
    fn decide(&mut self, now: Instant) -> Turn {
        match self.quiet_until {
            Some(until) if until > now => Turn::NotUntil(until),
            _ => self.budget.decide(now),
        }
    }

    fn wake_front(&self) {
        if let Some(front) = self.queue.front() {
            front.wake.notify_one();
        }
    }
}

/// A place in the queue.
#[derive(Debug)]
#[must_use = "dropping it gives the place up"]
pub struct Ticket {
    gate: Arc<Gate>,
    number: u64,
    wake: Arc<Notify>,
}

impl Ticket {
    /// Waits for the turn. Dropping the future gives the place up at once.
    pub async fn turn(self) -> Slot {
        loop {
            match self.step() {
                Step::Departed(slot) => return slot,
                Step::Wait => self.wake.notified().await,
                Step::WaitUntil(moment) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(moment) => {}
                        () = self.wake.notified() => {}
                    }
                }
            }
        }
    }

    fn step(&self) -> Step {
        let mut places = lock(&self.gate.places);
        if places
            .queue
            .front()
            .is_none_or(|front| front.number != self.number)
        {
            return Step::Wait;
        }
        match places.decide(now()) {
            Turn::NotUntil(moment) => Step::WaitUntil(moment),
            Turn::NotUntilOneEnds => Step::Wait,
            Turn::Go => {
                places.budget.depart();
                places.queue.pop_front();
                places.wake_front();
                Step::Departed(Slot {
                    gate: Arc::clone(&self.gate),
                    sent: true,
                })
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut places = lock(&self.gate.places);
        // A ticket that has departed is in the queue no more.
        if let Ok(at) = places
            .queue
            .binary_search_by_key(&self.number, |waiter| waiter.number)
        {
            places.queue.remove(at);
            if at == 0 {
                places.wake_front();
            }
        }
    }
}

enum Step {
    Departed(Slot),
    Wait,
    WaitUntil(Instant),
}

/// A request on its way. Dropping it says that the exchange is over: the answer's head is here, it
/// failed, or the caller gave up.
#[derive(Debug)]
#[must_use = "dropping it ends the exchange"]
pub struct Slot {
    gate: Arc<Gate>,
    sent: bool,
}

impl Slot {
    /// The request never left, so the provider cannot have counted it.
    pub fn unsent(mut self) {
        self.sent = false;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut places = lock(&self.gate.places);
        if self.sent {
            // Read under the lock, so that the log stays in order.
            places.budget.end(now());
        } else {
            places.budget.give_back();
        }
        places.wake_front();
    }
}

/// A panic elsewhere leaves the state whole: no operation here stops half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
