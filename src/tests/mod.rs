//! The engine's tests: one file for each failure mode. Tests of `http` and `pacing` are declared
//! there.

mod configuration;
mod deadlines;
mod late_settlement;
mod release_order;
mod rotated_key;
mod scope_keys;
