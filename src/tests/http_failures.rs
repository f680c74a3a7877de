//! Answers that are failures, connections that fail, redirects.

use tokio::net::TcpListener;

use super::http_server::{Reply, Server, client};
use crate::clock::{millis, now};
use crate::error::{Failure, Operation, ResponseFault};
use crate::http::{Body, Bound, Method, Request, StreamBroken};
use crate::pacing::Gate;

async fn failure(server: &Server, method: Method, path: &str) -> Failure {
    let request = Request::new(method, path);
    server
        .client()
        .request(request, Bound::default())
        .await
        .expect_err("a failure")
}

#[tokio::test]
async fn a_status_that_is_no_success_says_status_and_operation() {
    let server = Server::start(|seen| {
        let status = seen
            .target
            .rsplit('/')
            .next()
            .and_then(|status| status.parse().ok());
        Reply::json(
            status.expect("a status"),
            r#"{"status":"fail","data":"skp_test"}"#,
        )
    })
    .await;
    for status in [
        300, 304, 400, 401, 402, 404, 408, 409, 410, 418, 500, 502, 503, 599,
    ] {
        let failure = failure(&server, Method::GET, &format!("/sandboxes/{status}")).await;
        assert_eq!(
            failure,
            Failure::Api {
                status,
                operation: Operation::SandboxLifecycle
            }
        );
        assert!(!format!("{failure:?} {failure}").contains("skp_test"));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_is_no_api_failure() {
    let mut other = Server::start(|_| Reply::data("{}")).await;
    let target = other.origin.clone();
    let mut server = Server::start(move |seen| {
        let status = seen
            .target
            .rsplit('/')
            .next()
            .and_then(|status| status.parse().ok());
        Reply::with(
            status.expect("a status"),
            &format!("location: {target}/x\r\n"),
            b"",
        )
    })
    .await;
    for status in [301, 302, 303, 307, 308] {
        let failure = failure(&server, Method::GET, &format!("/{status}")).await;
        assert_eq!(failure, Failure::Connection { sent: true });
    }
    assert_eq!(server.seen_so_far(), 5);
    assert_eq!(other.seen_so_far(), 0);
}

#[tokio::test]
async fn a_refused_connection_was_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let request = Request::new(Method::GET, "/a");
    let failure = client(&origin)
        .request(request, Bound::default())
        .await
        .expect_err("nobody");
    assert_eq!(failure, Failure::Connection { sent: false });
    assert_eq!(failure.to_string(), "CreateOS connection failed.");
}

#[tokio::test]
async fn refused_connections_use_up_no_budget() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let client = client(&origin);
    for _ in 0..301 {
        let bound = Bound::until(now() + millis(10_000));
        let failure = client.request(Request::new(Method::GET, "/a"), bound).await;
        assert_eq!(failure.err(), Some(Failure::Connection { sent: false }));
    }
    // The next one would go at once, too.
    let turn = Bound::until(now() + millis(1_000))
        .run(Gate::of(&origin).enqueue().turn())
        .await;
    turn.expect("a free place").unsent();
}

#[tokio::test]
async fn a_name_that_does_not_resolve_was_not_sent() {
    let request = Request::new(Method::GET, "/a");
    let client = client("https://nowhere.invalid");
    let failure = client
        .request(request, Bound::default())
        .await
        .expect_err("nobody");
    assert_eq!(failure, Failure::Connection { sent: false });
}

#[tokio::test]
async fn a_connection_that_closes_before_the_answer_may_have_sent() {
    for half in ["", "HTTP/1.1 200 OK\r\ncontent-", "nonsense\r\n\r\n"] {
        let mut server = Server::start(|_| Reply::ThenClose(half.into())).await;
        let failure = failure(&server, Method::GET, "/a").await;
        assert_eq!(failure, Failure::Connection { sent: true }, "{half:?}");
        // Never sent again by itself: it may have been processed.
        assert_eq!(server.seen_so_far(), 1, "{half:?}");
    }
}

#[tokio::test]
async fn an_endless_error_body_is_not_read() {
    let mut server = Server::start(|_| {
        let head = b"HTTP/1.1 500 Said\r\ncontent-length: 99999999999\r\n\r\n".to_vec();
        Reply::Endless(head, vec![b'x'; 64 * 1024])
    })
    .await;
    let failure = failure(&server, Method::GET, "/a").await;
    assert_eq!(
        failure,
        Failure::Api {
            status: 500,
            operation: Operation::SandboxLifecycle
        }
    );
    server.left().await;
}

#[tokio::test]
async fn a_request_stream_that_breaks_fails_the_request() {
    let server = Server::start(|_| Reply::data("{}")).await;
    let (pieces, body) = Body::channel(1);
    pieces
        .send(Err(StreamBroken))
        .await
        .expect("somebody reads");
    let request = Request::new(Method::PUT, "/a").body(body);
    let failure = server
        .client()
        .request(request, Bound::default())
        .await
        .expect_err("broken");
    assert_eq!(failure, Failure::Connection { sent: true });
}

async fn json_fault(reply: fn() -> Reply) -> Failure {
    let server = Server::start(move |_| reply()).await;
    let answer = server
        .client()
        .json(Method::GET, "/a".into(), None, Bound::default())
        .await;
    answer.expect_err("a failure")
}

#[tokio::test]
async fn json_that_is_none_is_refused() {
    for reply in [
        (|| Reply::json(200, "")) as fn() -> Reply,
        || Reply::json(200, "<html>"),
        || Reply::Whole(b"HTTP/1.1 204 Said\r\n\r\n".into()),
    ] {
        assert_eq!(
            json_fault(reply).await,
            Failure::Response(ResponseFault::Json)
        );
    }
    for reply in [
        (|| Reply::ThenClose(b"HTTP/1.1 200 Said\r\ncontent-length: 9\r\n\r\n{".into()))
            as fn() -> Reply,
        || {
            let chunked = b"HTTP/1.1 200 Said\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"sta";
            Reply::ThenClose(chunked.into())
        },
    ] {
        let broken = json_fault(reply).await;
        assert_eq!(broken, Failure::Response(ResponseFault::BrokenOff));
        assert_eq!(broken.to_string(), ResponseFault::Json.to_string());
    }
    let unsuccessful = json_fault(|| Reply::json(200, r#"{"status":"fail","data":{}}"#)).await;
    assert_eq!(unsuccessful, Failure::Response(ResponseFault::Unsuccessful));
    assert_eq!(
        json_fault(|| Reply::data("[]")).await,
        Failure::Response(ResponseFault::Data)
    );
}

#[tokio::test]
async fn an_oversized_answer_is_refused_by_its_announcement() {
    let failure = json_fault(|| {
        Reply::ThenHold(b"HTTP/1.1 200 Said\r\ncontent-length: 67108865\r\n\r\n{".into())
    });
    assert_eq!(failure.await, Failure::Response(ResponseFault::Oversized));
}

#[tokio::test]
async fn an_oversized_answer_is_not_read_to_its_end() {
    let mut server = Server::start(|_| {
        let head = b"HTTP/1.1 200 Said\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let piece = [b"100000\r\n".as_slice(), &vec![b' '; 1024 * 1024], b"\r\n"].concat();
        Reply::Endless(head, piece)
    })
    .await;
    let answer = server
        .client()
        .json(Method::GET, "/a".into(), None, Bound::default())
        .await;
    assert_eq!(
        answer.err(),
        Some(Failure::Response(ResponseFault::Oversized))
    );
    server.left().await;
}

#[tokio::test]
async fn an_answer_of_exactly_64_mib_is_read() {
    let server = Server::start(|_| {
        let mut body = br#"{"status":"success","data":{}}"#.to_vec();
        body.resize(64 * 1024 * 1024, b' ');
        Reply::with(200, "", &body)
    })
    .await;
    let answer = server
        .client()
        .json(Method::GET, "/a".into(), None, Bound::default())
        .await;
    assert_eq!(answer.expect("an answer").data(), "{}");
}
