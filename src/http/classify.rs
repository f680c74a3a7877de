//! What a request was for, and what its status means (specification, section 6).

use reqwest::StatusCode;

use crate::error::{Failure, Operation};

/// The operation an error names: the first that fits.
pub fn operation_of(path: &str) -> Operation {
    if path.contains("/files?") {
        Operation::FileTransfer
    } else if path.contains("/stdin/close") {
        Operation::StdinClose
    } else if path.contains("/connect?") {
        Operation::OutputConnection
    } else if path.ends_with("/processes") {
        Operation::ProcessCreation
    } else if path.contains("/processes/") {
        Operation::ProcessCleanup
    } else if path.ends_with("/exec") {
        Operation::WorkspaceCommand
    } else {
        Operation::SandboxLifecycle
    }
}

/// What makes a status a failure. `None` for a success. A redirect is never followed, since the key
/// would go along, and counts as a connection that failed.
pub fn failure_of(status: StatusCode, operation: Operation) -> Option<Failure> {
    match status.as_u16() {
        200..=299 => None,
        301 | 302 | 303 | 307 | 308 => Some(Failure::Connection { sent: true }),
        status => Some(Failure::Api { status, operation }),
    }
}
