//! A command in a sandbox (specification, section 9).
//!
//! * `execute`: from the command to its end, and whatever has to be cleaned up.
//! * `command`: what a caller may ask for, and the script that it becomes.
//! * `follow`: the process's output until its exit, through lost streams.
//! * `frames`, `plain`: one line of that stream.
//! * `text`, `tail`, `pieces`: bytes into text, the end of it that is kept, and the way to the caller.
//! * `marker`, `termination`: what names our processes, and what ends them.

mod command;
mod execute;
mod follow;
mod frames;
mod marker;
mod pieces;
mod plain;
mod tail;
mod termination;
mod text;

// What the binding runs commands with.
pub use marker::is_marker;
pub use termination::{StillRuns, terminate};
#[cfg_attr(
    not(feature = "binding"),
    allow(unused_imports, reason = "the binding's part")
)]
pub use {
    command::{Asked, Command},
    execute::{End, Terms, execute},
    pieces::Pieces,
    tail::Kept,
};

/// The folder of a lease's files in its sandbox, which its commands work in.
pub const WORKSPACE: &str = "/paperclip-workspace";

/// Which of a process's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

#[cfg(test)]
#[path = "../tests/process_commands.rs"]
mod process_commands;
#[cfg(test)]
#[path = "../tests/process_frames.rs"]
mod process_frames;
#[cfg(test)]
#[path = "../tests/process_pieces.rs"]
mod process_pieces;
#[cfg(test)]
#[path = "../tests/process_text.rs"]
mod process_text;
