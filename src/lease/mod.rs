//! What happens to a lease: it is acquired, resumed and released; and what goes with that.

pub mod acquire;
pub mod orphans;
pub mod probe;
pub mod release;
mod removal;
pub mod resume;
mod workspace;
