//! What happens to a lease: it is acquired, and released.

pub mod acquire;
pub mod release;
