//! What names the processes that this package started: a last argument, which the provider's list shows.

use uuid::Uuid;

/// How a command's marker begins; a UUID follows.
const MARKER: &str = "createos-lease-command-";

/// A marker that no other process has.
pub fn new_marker() -> String {
    format!("{MARKER}{}", Uuid::new_v4().hyphenated())
}

/// Whether an argument is a command's marker.
pub fn is_marker(argument: &str) -> bool {
    argument
        .strip_prefix(MARKER)
        .is_some_and(|id| Uuid::try_parse(id).is_ok_and(|uuid| uuid.hyphenated().to_string() == id))
}
