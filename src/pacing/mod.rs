//! When a request may go out (specification, section 6, pacing).
//!
//! * `budget`: the pure decision of (state, now): go, or not until.
//! * `gate`: one origin's queue, which waits for that decision.
//! * `refusal`: the pure decision what a 429 means for the next try.
//! * `retry_after`: the header that a 429 may carry.

mod budget;
mod gate;
mod refusal;
mod retry_after;

pub use gate::{Gate, Slot, Ticket};
pub use refusal::{LONGEST_WAIT, Refusals, Wait};
pub use retry_after::retry_after;

#[cfg(test)]
#[path = "../tests/pacing_budget.rs"]
mod pacing_budget;
#[cfg(test)]
#[path = "../tests/pacing_queue.rs"]
mod pacing_queue;
#[cfg(test)]
#[path = "../tests/pacing_refusal.rs"]
mod pacing_refusal;
