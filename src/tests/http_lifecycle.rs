//! The provider's operations: what they send, and which answers they refuse.

use bytes::Bytes;

use super::http_server::{Reply, Server};
use crate::clock::{millis, now};
use crate::error::{Desired, Failure, Operation, ResponseFault};
use crate::http::{Bound, CreateSandbox, Removal, SandboxId};
use crate::text::Text;

fn id() -> SandboxId {
    SandboxId::parse("sb-1").expect("an id")
}

async fn answering(replies: Vec<Reply>) -> Server {
    let mut replies = replies.into_iter();
    Server::start(move |_| replies.next().expect("one reply for each request")).await
}

fn state(status: &str) -> Reply {
    Reply::data(&format!(r#"{{"id":"sb-1","status":"{status}"}}"#))
}

const fn api(status: u16) -> Failure {
    Failure::Api {
        status,
        operation: Operation::SandboxLifecycle,
    }
}

#[tokio::test]
async fn a_sandbox_is_looked_at() {
    let mut server = answering(vec![state("anything")]).await;
    let sandbox = server
        .client()
        .get_sandbox(&id(), Bound::default())
        .await
        .expect("a sandbox");
    assert_eq!((sandbox.id, sandbox.status.as_str()), (id(), "anything"));
    let seen = server.seen().await;
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str()),
        ("GET", "/v1/sandboxes/sb-1")
    );
    assert_eq!(seen.header("accept"), Some("application/json"));
}

#[tokio::test]
async fn another_identity_or_no_state_is_refused() {
    for data in [
        r#"{"id":"sb-2","status":"running"}"#,
        r#"{"status":"running"}"#,
        r#"{"id":"sb-1"}"#,
        r#"{"id":"sb-1","status":1}"#,
        r#"{"id":["sb-1"],"status":"running"}"#,
        r#"{"id":"sb-1","status":null}"#,
    ] {
        let server = answering(vec![Reply::data(data)]).await;
        let answer = server.client().get_sandbox(&id(), Bound::default()).await;
        assert_eq!(
            answer,
            Err(Failure::Response(ResponseFault::Identity)),
            "{data}"
        );
    }
}

#[tokio::test]
async fn a_sandbox_is_created_with_what_is_given_and_nothing_else() {
    let mut server = answering(vec![
        Reply::data(r#"{"id":"sb_9"}"#),
        Reply::data(r#"{"id":"sb_9"}"#),
    ])
    .await;
    let client = server.client();
    let mut wanted = CreateSandbox {
        name: "n".into(),
        shape: Text::from("s-1vcpu-1gb"),
        ..CreateSandbox::default()
    };
    let made = client
        .create_sandbox(&wanted, Bound::default())
        .await
        .expect("an id");
    assert_eq!(made.as_str(), "sb_9");
    let seen = server.seen().await;
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str()),
        ("POST", "/v1/sandboxes")
    );
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(
        seen.text(),
        r#"{"name":"n","shape":"s-1vcpu-1gb","ingress_enabled":false}"#
    );

    wanted.rootfs = Some(Text::from("a\"b"));
    wanted.region = Some(Text::from_units(&[0xd800]));
    wanted.egress = vec![Text::from("a.test"), Text::from("10.0.0.0/8")];
    wanted.auto_pause_after_seconds = Some(600);
    client
        .create_sandbox(&wanted, Bound::default())
        .await
        .expect("an id");
    assert_eq!(
        server.seen().await.text(),
        "{\"name\":\"n\",\"shape\":\"s-1vcpu-1gb\",\"rootfs\":\"a\\\"b\",\"region\":\"\\ud800\",\
         \"egress\":[\"a.test\",\"10.0.0.0/8\"],\"ingress_enabled\":false,\
         \"auto_pause_after_seconds\":600}"
    );
}

#[tokio::test]
async fn an_id_that_is_none_is_refused() {
    for data in [
        "{}",
        r#"{"id":""}"#,
        r#"{"id":7}"#,
        r#"{"id":"a/b"}"#,
        r#"{"id":null}"#,
    ] {
        let server = answering(vec![Reply::data(data)]).await;
        let wanted = CreateSandbox::default();
        let made = server
            .client()
            .create_sandbox(&wanted, Bound::default())
            .await;
        assert_eq!(made, Err(Failure::Response(ResponseFault::Id)), "{data}");
    }
}

#[tokio::test]
async fn a_sandbox_that_is_gone_is_destroyed_and_other_failures_surface() {
    let gone = || Reply::json(404, r#"{"status":"fail","data":null}"#);
    for (reply, expected) in [
        (gone(), Ok(Removal::Absent)),
        (Reply::data("{}"), Ok(Removal::Begun)),
        (
            Reply::data(r#"{"id":"sb-1","status":"destroying"}"#),
            Ok(Removal::Begun),
        ),
        (
            Reply::data(r#"{"id":"sb-1","status":"destroyed"}"#),
            Ok(Removal::Done),
        ),
        (
            Reply::data(r#"{"id":"sb-2","status":"destroyed"}"#),
            Ok(Removal::Begun),
        ),
        (Reply::data(r#"{"status":"destroyed"}"#), Ok(Removal::Begun)),
        (
            Reply::Whole(b"HTTP/1.1 204 No Content\r\n\r\n".into()),
            Ok(Removal::Begun),
        ),
        (
            Reply::with(200, "", b""),
            Err(Failure::Response(ResponseFault::Json)),
        ),
        (
            Reply::with(200, "", b"<html>"),
            Err(Failure::Response(ResponseFault::Json)),
        ),
        (
            Reply::data("null"),
            Err(Failure::Response(ResponseFault::Data)),
        ),
        (
            Reply::json(200, r#"{"status":"fail","data":"404 not found"}"#),
            Err(Failure::Response(ResponseFault::Unsuccessful)),
        ),
        (Reply::json(500, "404 not found"), Err(api(500))),
        (Reply::json(403, ""), Err(api(403))),
        (Reply::json(410, ""), Err(api(410))),
    ] {
        let mut server = answering(vec![reply]).await;
        let destroyed = server
            .client()
            .destroy_sandbox(&id(), Bound::default())
            .await;
        assert_eq!(destroyed, expected);
        let seen = server.seen().await;
        assert_eq!(
            (seen.method.as_str(), seen.target.as_str()),
            ("DELETE", "/v1/sandboxes/sb-1")
        );
    }
}

#[tokio::test]
async fn a_command_runs_and_its_end_is_read() {
    for (result, succeeded) in [
        (r#"{"exit_code":0,"stdout":"x","stderr":""}"#, true),
        (r#"{"exit_code":0.0,"error":null}"#, true),
        (r#"{"exit_code":0,"error":""}"#, true),
        (r#"{"exit_code":0,"error":"no such file"}"#, false),
        (r#"{"exit_code":1}"#, false),
        (r#"{"exit_code":"0"}"#, false),
        ("{}", false),
    ] {
        let data = format!(r#"{{"result":{result},"exec_ms":1.5}}"#);
        let mut server = answering(vec![Reply::data(&data)]).await;
        let client = server.client();
        let ended = client
            .exec(&id(), "/bin/echo", &["a b", "\""], Bound::default())
            .await;
        assert_eq!(ended.expect("a result").succeeded(), succeeded, "{result}");
        let seen = server.seen().await;
        assert_eq!(
            (seen.method.as_str(), seen.target.as_str()),
            ("POST", "/v1/sandboxes/sb-1/exec")
        );
        assert_eq!(seen.text(), r#"{"cmd":"/bin/echo","args":["a b","\""]}"#);
    }
}

#[tokio::test]
async fn a_commands_output_comes_back() {
    let data = r#"{"result":{"exit_code":3,"stdout":"out\n","stderr":"err","error":"why"}}"#;
    let server = answering(vec![Reply::data(data)]).await;
    let ended = server
        .client()
        .exec(&id(), "x", &[], Bound::default())
        .await
        .expect("a result");
    assert_eq!(ended.exit_code, Some(3.0));
    assert_eq!(ended.stdout.as_deref(), Some("out\n"));
    assert_eq!(ended.stderr.as_deref(), Some("err"));
    assert!(ended.error);
    assert!(!format!("{ended:?}").contains("out"));
}

#[tokio::test]
async fn a_command_without_a_result_is_an_invalid_response() {
    for data in [
        "{}",
        r#"{"result":null}"#,
        r#"{"result":[]}"#,
        r#"{"result":"0"}"#,
    ] {
        let server = answering(vec![Reply::data(data)]).await;
        let ended = server
            .client()
            .exec(&id(), "x", &[], Bound::default())
            .await;
        assert_eq!(ended, Err(Failure::Response(ResponseFault::Data)), "{data}");
    }
}

#[tokio::test]
async fn a_file_goes_up_under_its_exact_path() {
    let mut server = answering(vec![Reply::data("{}")]).await;
    let path = "/paperclip-workspace/a b+c&d=\u{e9}%?#.txt";
    let content = Bytes::from_static(b"\0\xff");
    server
        .client()
        .upload(&id(), path, content, Bound::default())
        .await
        .expect("uploaded");
    let seen = server.seen().await;
    assert_eq!(seen.method, "PUT");
    assert_eq!(
        seen.target,
        "/v1/sandboxes/sb-1/files?path=%2Fpaperclip-workspace%2Fa%20b%2Bc%26d%3D%C3%A9%25%3F%23.txt"
    );
    assert_eq!(
        seen.header("content-type"),
        Some("application/octet-stream")
    );
    assert_eq!(seen.body, b"\0\xff");
}

#[tokio::test]
async fn an_upload_is_done_when_its_status_says_so_and_its_envelope_does_not_deny_it() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{";
    for (reply, expected) in [
        (Reply::data("null"), Ok(())),
        (Reply::with(201, "", b""), Ok(())),
        (Reply::with(200, "", b"stored"), Ok(())),
        (Reply::with(200, "", &vec![b' '; 100_000]), Ok(())),
        (Reply::ThenClose(cut.into()), Ok(())),
        (
            Reply::json(200, r#"{"status":"fail","data":null}"#),
            Err(Failure::Response(ResponseFault::Unsuccessful)),
        ),
    ] {
        let server = answering(vec![reply]).await;
        let done = server
            .client()
            .upload(&id(), "/x", Bytes::new(), Bound::default())
            .await;
        assert_eq!(done, expected);
    }
}

#[tokio::test]
async fn a_failed_upload_is_a_file_transfer() {
    let server = answering(vec![Reply::json(413, "")]).await;
    let failed = server
        .client()
        .upload(&id(), "/x", Bytes::new(), Bound::default())
        .await;
    assert_eq!(
        failed,
        Err(Failure::Api {
            status: 413,
            operation: Operation::FileTransfer
        })
    );
}

#[tokio::test]
async fn egress_is_replaced_whole() {
    let mut server = answering(vec![Reply::data("{}"), Reply::data("{}")]).await;
    let client = server.client();
    let rules = [Text::from("*.test"), Text::from("1.2.3.4:80")];
    client
        .set_egress(&id(), &rules, Bound::default())
        .await
        .expect("set");
    client
        .set_egress(&id(), &[], Bound::default())
        .await
        .expect("set");
    let seen = server.seen().await;
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str()),
        ("PUT", "/v1/sandboxes/sb-1/egress")
    );
    assert_eq!(seen.text(), r#"{"egress":["*.test","1.2.3.4:80"]}"#);
    assert_eq!(server.seen().await.text(), r#"{"egress":[]}"#);
}

/// Runs a transition against these answers and gives back how it ended and what was asked.
async fn transition(desired: Desired, replies: Vec<Reply>) -> (Result<(), Failure>, Vec<String>) {
    let count = replies.len();
    let mut server = answering(replies).await;
    let ended = server
        .client()
        .transition(&id(), desired, Bound::default())
        .await;
    let mut asked = Vec::new();
    for _ in 0..count {
        let seen = server.seen().await;
        if seen.method == "POST" {
            assert_eq!(seen.text(), "{}");
        }
        let last = seen.target.rsplit('/').next().expect("a segment");
        asked.push(if seen.method == "GET" {
            "look".into()
        } else {
            last.to_owned()
        });
    }
    (ended, asked)
}

#[tokio::test]
async fn a_state_that_is_reached_needs_one_look() {
    let (ended, asked) = transition(Desired::Running, vec![state("running")]).await;
    assert_eq!((ended, asked), (Ok(()), vec!["look".to_owned()]));
}

#[tokio::test]
async fn an_accepted_pause_is_not_submitted_again_while_reads_lag_behind() {
    let accepted = Reply::json(202, r#"{"status":"success","data":{"status":"pausing"}}"#);
    let replies = vec![
        state("running"),
        accepted,
        state("running"),
        state("running"),
        state("pausing"),
        state("paused"),
    ];
    let (ended, asked) = transition(Desired::Paused, replies).await;
    assert_eq!(ended, Ok(()));
    assert_eq!(asked, ["look", "pause", "look", "look", "look", "look"]);
}

#[tokio::test]
async fn a_conflict_means_look_again_and_submit_again() {
    let replies = vec![
        state("error"),
        Reply::json(409, ""),
        state("paused"),
        Reply::Whole(b"HTTP/1.1 204 No Content\r\n\r\n".into()),
        state("running"),
    ];
    let (ended, asked) = transition(Desired::Running, replies).await;
    assert_eq!(ended, Ok(()));
    assert_eq!(asked, ["look", "resume", "look", "resume", "look"]);
}

#[tokio::test]
async fn a_dead_end_says_which_state_was_not_reached() {
    let (ended, _) = transition(Desired::Paused, vec![state("destroyed")]).await;
    assert_eq!(
        ended,
        Err(Failure::State {
            desired: Desired::Paused
        })
    );
    let failure = ended.expect_err("a failure");
    assert_eq!(
        failure.to_string(),
        "CreateOS sandbox did not reach paused."
    );
}

#[tokio::test]
async fn a_failed_look_or_submission_surfaces() {
    let (ended, _) = transition(Desired::Paused, vec![Reply::json(404, "")]).await;
    assert_eq!(ended, Err(api(404)));
    let (ended, _) = transition(
        Desired::Running,
        vec![state("paused"), Reply::json(402, "")],
    )
    .await;
    assert_eq!(ended, Err(api(402)));
    let refused = Reply::json(200, r#"{"status":"fail","data":null}"#);
    let (ended, _) = transition(Desired::Running, vec![state("paused"), refused]).await;
    assert_eq!(ended, Err(Failure::Response(ResponseFault::Unsuccessful)));
}

#[tokio::test]
async fn a_transition_ends_with_its_bound() {
    let server = Server::start(|_| state("creating")).await;
    let bound = Bound::until(now() + millis(120));
    let ended = server
        .client()
        .transition(&id(), Desired::Running, bound)
        .await;
    assert_eq!(ended, Err(Failure::TimedOut { sent: true }));
}
