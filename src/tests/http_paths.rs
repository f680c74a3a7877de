//! Paths that lead elsewhere, and what a path says of its request.

use proptest::prelude::*;
use reqwest::StatusCode;

use crate::error::{Failure, Operation};
use crate::http::address::address;
use crate::http::classify::{failure_of, operation_of};

const ORIGIN: &str = "https://api.example.test";

#[test]
fn a_plain_path_is_below_v1() {
    for (path, expected) in [
        ("/sandboxes", "/v1/sandboxes"),
        ("/", "/v1/"),
        ("/a/../b", "/v1/b"),
        ("//evil.test/x", "/v1//evil.test/x"),
        ("/@evil.test", "/v1/@evil.test"),
        ("/a b", "/v1/a%20b"),
        (
            "/files?path=%2Ftmp%2Fa&x=1",
            "/v1/files?path=%2Ftmp%2Fa&x=1",
        ),
        ("/a#fragment", "/v1/a#fragment"),
        ("/https://evil.test/", "/v1/https://evil.test/"),
        ("/a?b=/../../..", "/v1/a?b=/../../.."),
        ("/v1/../x", "/v1/x"),
    ] {
        let url = address(ORIGIN, path).expect(path);
        assert_eq!(url.as_str(), format!("{ORIGIN}{expected}"), "{path}");
    }
}

#[test]
fn a_path_that_leaves_v1_goes_nowhere() {
    for path in [
        "",
        "sandboxes",
        "@evil.test/",
        ".evil.test",
        ":8080/",
        "\\evil.test",
        "?a",
        "#a",
        " /a",
        "/..",
        "/../",
        "/../admin",
        "/../v1",
        "/../v1x/a",
        "/a/../../b",
        "/%2e%2e/b",
        "/.%2E/b",
        "/..\\b",
        "/\t../b",
        "/.\n./b",
        "/a/..\\..\\b",
        "https://evil.test/",
    ] {
        assert!(address(ORIGIN, path).is_none(), "{path:?}");
    }
}

proptest! {
    #[test]
    fn no_path_changes_the_origin(path in "[/\\\\.@:?#%2eE a\t\n-]{0,24}|\\PC{0,16}") {
        if let Some(url) = address(ORIGIN, &path) {
            prop_assert_eq!(url.origin().ascii_serialization(), ORIGIN);
            prop_assert!(url.path().starts_with("/v1/"));
            prop_assert!(url.username().is_empty() && url.password().is_none());
        }
    }
}

#[test]
fn the_first_operation_that_fits_is_named() {
    for (path, operation) in [
        ("/sandboxes/a/files?path=/x", Operation::FileTransfer),
        ("/sandboxes/a/processes/p/files?x", Operation::FileTransfer),
        (
            "/sandboxes/a/processes/p/stdin/close",
            Operation::StdinClose,
        ),
        (
            "/sandboxes/a/processes/p/connect?after=0",
            Operation::OutputConnection,
        ),
        ("/sandboxes/a/processes", Operation::ProcessCreation),
        ("/sandboxes/a/processes/p", Operation::ProcessCleanup),
        (
            "/sandboxes/a/processes/p/connect",
            Operation::ProcessCleanup,
        ),
        ("/sandboxes/a/processes/p/exec", Operation::ProcessCleanup),
        ("/sandboxes/a/exec", Operation::WorkspaceCommand),
        ("/sandboxes/a/exec?stream=true", Operation::SandboxLifecycle),
        ("/sandboxes/a/files", Operation::SandboxLifecycle),
        ("/sandboxes/a/processes?x", Operation::SandboxLifecycle),
        ("/sandboxes/a", Operation::SandboxLifecycle),
    ] {
        assert_eq!(operation_of(path), operation, "{path}");
    }
}

#[test]
fn every_status_but_2xx_is_a_failure_and_a_redirect_is_no_answer() {
    for status in 100..=999 {
        let failure = failure_of(
            StatusCode::from_u16(status).expect("a status"),
            Operation::WorkspaceCommand,
        );
        let expected = match status {
            200..=299 => None,
            301 | 302 | 303 | 307 | 308 => Some(Failure::Connection { sent: true }),
            _ => Some(Failure::Api {
                status,
                operation: Operation::WorkspaceCommand,
            }),
        };
        assert_eq!(failure, expected, "{status}");
    }
}
