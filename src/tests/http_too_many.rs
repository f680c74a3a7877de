//! 429: sent again, or surfaced.

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::http_server::{Reply, Server};
use crate::clock::{millis, now};
use crate::error::{Failure, Operation};
use crate::http::{Body, Bound, Method, Request};

const TOO_MANY: Failure = Failure::Api {
    status: 429,
    operation: Operation::WorkspaceCommand,
};

fn post() -> Request {
    Request::new(Method::POST, "/sandboxes/a/exec").body(Body::Bytes(Bytes::from_static(b"{1}")))
}

/// Refuses so many times, then takes it.
async fn refusing(times: usize, headers: &'static str) -> Server {
    let mut left = times;
    Server::start(move |_| {
        if left == 0 {
            return Reply::data("{}");
        }
        left -= 1;
        Reply::with(429, headers, b"slow down")
    })
    .await
}

/// Refuses once, with a body that never comes: the client leaves that connection as soon as it has
/// read the refusal, which a test can wait for.
async fn refusing_visibly(headers: &'static str) -> Server {
    let mut first = true;
    Server::start(move |_| {
        if !std::mem::take(&mut first) {
            return Reply::data("{}");
        }
        let head = format!("HTTP/1.1 429 Said\r\n{headers}content-length: 9\r\n\r\n");
        Reply::ThenHold(head.into())
    })
    .await
}

#[tokio::test]
async fn a_refused_request_is_sent_again_whole() {
    let mut server = refusing(2, "retry-after: 0\r\n").await;
    let answer = server
        .client()
        .request(post(), Bound::default())
        .await
        .expect("an answer");
    assert_eq!(answer.status, 200);
    for _ in 0..3 {
        assert_eq!(server.seen().await.text(), "{1}");
    }
    assert_eq!(server.seen_so_far(), 0);
}

#[tokio::test]
async fn refusals_without_end_do_not_begin_a_timeout_anew() {
    let server = refusing(usize::MAX, "retry-after: 0\r\n").await;
    let bound = Bound::once_sent(millis(200));
    let refused = server.client().request(post(), bound).await;
    assert_eq!(refused.map(drop), Err(TOO_MANY));
}

#[tokio::test]
async fn a_stated_time_is_waited_and_others_wait_too() {
    let mut server = refusing_visibly("retry-after: 1\r\n").await;
    let client = server.client();
    let start = now();
    let refused = tokio::spawn(client.request(post(), Bound::default()));
    server.seen().await;
    server.left().await;
    client
        .request(post(), Bound::default())
        .await
        .expect("an answer");
    assert!(now() - start >= millis(1_000));
    refused.await.expect("no panic").expect("an answer");
}

#[tokio::test]
async fn without_a_time_others_do_not_wait() {
    let mut server = refusing_visibly("").await;
    let client = server.client();
    let start = now();
    let refused = tokio::spawn(client.request(post(), Bound::default()));
    server.seen().await;
    server.left().await;
    client
        .request(post(), Bound::default())
        .await
        .expect("an answer");
    assert!(now() - start < millis(900));
    refused.await.expect("no panic").expect("an answer");
    assert!(now() - start >= millis(1_000));
}

#[tokio::test]
async fn without_a_time_one_second_is_waited() {
    let mut server = refusing(1, "").await;
    let start = now();
    server
        .client()
        .request(post(), Bound::default())
        .await
        .expect("an answer");
    assert!(now() - start >= millis(1_000));
    assert_eq!(server.seen_so_far(), 2);
}

#[tokio::test]
async fn a_wait_past_a_minute_surfaces_at_once_and_holds_up_nobody() {
    for headers in [
        "retry-after: 61\r\n",
        "retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
        "retry-after: 99999999999999999999999\r\n",
    ] {
        let mut server = refusing(1, headers).await;
        let client = server.client();
        assert_eq!(
            client.request(post(), Bound::default()).await.err(),
            Some(TOO_MANY)
        );
        client
            .request(post(), Bound::default())
            .await
            .expect("nobody waits");
        assert_eq!(server.seen_so_far(), 2);
    }
}

#[tokio::test]
async fn a_wait_past_the_deadline_surfaces_at_once() {
    for headers in ["retry-after: 60\r\n", ""] {
        let server = refusing(1, headers).await;
        let bound = Bound::until(now() + millis(900));
        let start = now();
        assert_eq!(
            server.client().request(post(), bound).await.err(),
            Some(TOO_MANY)
        );
        assert!(now() - start < millis(800));
    }
}

#[tokio::test]
async fn an_abort_during_the_wait_surfaces_the_429() {
    for headers in ["retry-after: 30\r\n", ""] {
        let mut server = refusing_visibly(headers).await;
        let token = CancellationToken::new();
        let bound = Bound::cancelled_by(token.clone());
        let request = tokio::spawn(server.client().request(post(), bound));
        server.seen().await;
        server.left().await;
        token.cancel();
        assert_eq!(request.await.expect("no panic").err(), Some(TOO_MANY));
        assert_eq!(server.seen_so_far(), 0);
    }
}

#[tokio::test]
async fn a_stream_is_not_sent_twice() {
    let mut server = refusing(1, "retry-after: 0\r\n").await;
    let (pieces, body) = Body::channel(1);
    pieces
        .send(Ok(Bytes::from_static(b"x")))
        .await
        .expect("room");
    drop(pieces);
    let request = Request::new(Method::PUT, "/sandboxes/a/files?path=/x").body(body);
    assert_eq!(
        server
            .client()
            .request(request, Bound::default())
            .await
            .err(),
        Some(Failure::Api {
            status: 429,
            operation: Operation::FileTransfer
        })
    );
    assert_eq!(server.seen_so_far(), 1);
}

#[tokio::test]
async fn an_endless_429_body_is_not_read() {
    let mut first = true;
    let server = Server::start(move |_| {
        if !std::mem::take(&mut first) {
            return Reply::data("{}");
        }
        let head = b"HTTP/1.1 429 Said\r\nretry-after: 0\r\ncontent-length: 99999999999\r\n\r\n";
        Reply::Endless(head.into(), vec![b'x'; 64 * 1024])
    })
    .await;
    server
        .client()
        .request(post(), Bound::default())
        .await
        .expect("an answer");
}

#[tokio::test]
async fn a_burst_of_300_arrives_at_once_and_the_next_request_stays_here() {
    let mut server = Server::start(|_| Reply::data("{}")).await;
    let client = server.client();
    let burst: Vec<_> = (0..300)
        .map(|_| tokio::spawn(client.request(post(), Bound::default())))
        .collect();
    for request in burst {
        request.await.expect("no panic").expect("an answer");
    }
    // Another client of the same origin: the budget is the origin's.
    let bound = Bound::until(now() + millis(50));
    let late = server.client().request(post(), bound).await;
    assert_eq!(late.err(), Some(Failure::TimedOut { sent: false }));
    assert_eq!(server.seen_so_far(), 300);
}
