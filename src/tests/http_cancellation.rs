//! Requests that end early: where they were, and what they leave behind.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::http_server::{Reply, Server};
use super::outgoing::{Outgoing, Try};
use super::transport::Transport;
use crate::clock::{millis, now};
use crate::error::Failure;
use crate::http::{Body, Bound, Method, Request};

fn get() -> Request {
    Request::new(Method::GET, "/a")
}

async fn silent() -> Server {
    Server::start(|_| Reply::ThenHold(Vec::new())).await
}

#[tokio::test]
async fn what_is_cancelled_already_is_not_sent() {
    let mut server = silent().await;
    let token = CancellationToken::new();
    token.cancel();
    let answer = server
        .client()
        .request(get(), Bound::cancelled_by(token))
        .await;
    assert_eq!(answer.err(), Some(Failure::Aborted { sent: false }));
    assert_eq!(server.seen_so_far(), 0);
}

#[tokio::test]
async fn what_is_late_already_is_not_sent() {
    let mut server = silent().await;
    let answer = server.client().request(get(), Bound::until(now())).await;
    assert_eq!(answer.err(), Some(Failure::TimedOut { sent: false }));
    assert_eq!(server.seen_so_far(), 0);
}

#[tokio::test]
async fn a_cancellation_wins_over_a_deadline_that_has_passed_too() {
    let server = silent().await;
    let token = CancellationToken::new();
    token.cancel();
    let bound = Bound::until(now())
        .and_cancelled_by(CancellationToken::new())
        .and_cancelled_by(token);
    let answer = server.client().request(get(), bound).await;
    assert_eq!(answer.err(), Some(Failure::Aborted { sent: false }));
}

#[tokio::test]
async fn a_request_that_waits_for_its_turn_was_not_sent() {
    let mut server = silent().await;
    let client = server.client();
    // This one took its place first and is never polled, so the next one gets no turn.
    let ahead = client.request(get(), Bound::default());
    let token = CancellationToken::new();
    let waiting = tokio::spawn(client.request(get(), Bound::cancelled_by(token.clone())));
    let late = client
        .request(get(), Bound::until(now() + millis(20)))
        .await;
    assert_eq!(late.err(), Some(Failure::TimedOut { sent: false }));
    token.cancel();
    let failure = waiting.await.expect("no panic").err();
    assert_eq!(failure, Some(Failure::Aborted { sent: false }));
    drop(ahead);
    assert_eq!(server.seen_so_far(), 0);
    // All have given their places up.
    tokio::spawn(client.request(get(), Bound::default()));
    server.seen().await;
}

#[tokio::test]
async fn a_request_under_way_may_have_been_sent_and_its_connection_goes() {
    let mut server = silent().await;
    let token = CancellationToken::new();
    let request = server
        .client()
        .request(get(), Bound::cancelled_by(token.clone()));
    let request = tokio::spawn(request);
    server.seen().await;
    token.cancel();
    let failure = request.await.expect("no panic").err();
    assert_eq!(failure, Some(Failure::Aborted { sent: true }));
    server.left().await;
}

#[tokio::test]
async fn a_body_that_has_left_counts_as_sent() {
    let mut server = silent().await;
    let token = CancellationToken::new();
    let request = Request::new(Method::POST, "/a").body(Body::Bytes(Bytes::from_static(b"x")));
    let request = tokio::spawn(
        server
            .client()
            .request(request, Bound::cancelled_by(token.clone())),
    );
    server.seen().await;
    token.cancel();
    let failure = request.await.expect("no panic").err();
    assert_eq!(failure, Some(Failure::Aborted { sent: true }));
}

#[tokio::test]
async fn a_request_with_a_body_that_still_connects_was_not_sent() {
    // Nobody answers the TLS handshake here.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let client = super::http_server::client(&format!("https://localhost:{port}"));
    let token = CancellationToken::new();
    let (_pieces, stream) = Body::channel(1);
    for body in [Body::Bytes(Bytes::from_static(b"x")), Body::Empty, stream] {
        let request = Request::new(Method::POST, "/a").body(body);
        let late = client
            .request(request, Bound::until(now() + millis(30)))
            .await;
        assert_eq!(late.err(), Some(Failure::TimedOut { sent: false }));
    }
    let request = Request::new(Method::POST, "/a");
    let request = tokio::spawn(client.request(request, Bound::cancelled_by(token.clone())));
    listener.accept().await.expect("a connection");
    token.cancel();
    let failure = request.await.expect("no panic").err();
    assert_eq!(failure, Some(Failure::Aborted { sent: false }));
    // Without a body it can't be told.
    let late = client
        .request(get(), Bound::until(now() + millis(30)))
        .await;
    assert_eq!(late.err(), Some(Failure::TimedOut { sent: true }));
}

#[tokio::test]
async fn what_is_withheld_never_leaves_though_there_is_a_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let url = url::Url::parse(&url).expect("a URL");
    let arrived = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut arrived = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut arrived)
            .await
            .expect("an end");
        arrived
    });
    let mut body = Outgoing::from(Body::Bytes(Bytes::from_static(b"x")));
    let Try {
        payload, departure, ..
    } = body.next_try();
    assert!(departure.withhold());
    let transport = Transport::of_process();
    let http = transport.client_for(&url).expect("a client");
    let sent = http
        .post(url.clone())
        .body(payload.expect("a body"))
        .send()
        .await;
    assert!(sent.is_err());
    assert_eq!(arrived.await.expect("no panic"), b"");
}

#[tokio::test]
async fn a_deadline_ends_a_silent_request() {
    let mut server = silent().await;
    let answer = server
        .client()
        .request(get(), Bound::until(now() + millis(50)))
        .await;
    assert_eq!(answer.err(), Some(Failure::TimedOut { sent: true }));
    server.left().await;
}

#[tokio::test]
async fn a_dropped_request_gives_its_connection_up() {
    let mut server = silent().await;
    let request = tokio::spawn(server.client().request(get(), Bound::default()));
    server.seen().await;
    request.abort();
    server.left().await;
}

#[tokio::test]
async fn a_dropped_body_gives_its_connection_up() {
    let mut server = Server::start(|_| {
        Reply::ThenHold(b"HTTP/1.1 200 Said\r\ncontent-length: 9\r\n\r\nhalf".into())
    })
    .await;
    let answer = server
        .client()
        .request(get(), Bound::default())
        .await
        .expect("an answer");
    drop(answer);
    server.left().await;
}

#[tokio::test]
async fn the_bound_of_a_request_covers_its_body() {
    let half = b"HTTP/1.1 200 Said\r\ncontent-length: 9\r\n\r\nhalf";
    let mut server = Server::start(|_| Reply::ThenHold(half.into())).await;
    let token = CancellationToken::new();
    let bound = Bound::cancelled_by(token.clone());
    let mut body = server
        .client()
        .request(get(), bound)
        .await
        .expect("an answer")
        .body;
    assert_eq!(body.next().await, Some(Ok(Bytes::from_static(b"half"))));
    token.cancel();
    assert_eq!(
        body.next().await,
        Some(Err(Failure::Aborted { sent: true }))
    );
    assert_eq!(body.next().await, None);
    server.left().await;

    let bound = Bound::until(now() + millis(50));
    let mut body = server
        .client()
        .request(get(), bound)
        .await
        .expect("an answer")
        .body;
    assert_eq!(body.next().await, Some(Ok(Bytes::from_static(b"half"))));
    assert_eq!(
        body.next().await,
        Some(Err(Failure::TimedOut { sent: true }))
    );
    server.left().await;
}

#[tokio::test]
async fn an_abort_while_json_is_read_is_no_invalid_json() {
    let half = b"HTTP/1.1 200 Said\r\ncontent-length: 9\r\n\r\n{";
    let mut server = Server::start(|_| Reply::ThenHold(half.into())).await;
    let token = CancellationToken::new();
    let bound = Bound::cancelled_by(token.clone());
    let answer = tokio::spawn(server.client().json(Method::GET, "/a".into(), None, bound));
    server.seen().await;
    token.cancel();
    assert_eq!(
        answer.await.expect("no panic").err(),
        Some(Failure::Aborted { sent: true })
    );
}

#[tokio::test]
async fn a_cancelled_upload_stops_reading_its_stream() {
    let server = Server::start(|_| Reply::data("{}")).await;
    let (pieces, body) = Body::channel(1);
    let token = CancellationToken::new();
    let request = Request::new(Method::PUT, "/a").body(body);
    let request = tokio::spawn(
        server
            .client()
            .request(request, Bound::cancelled_by(token.clone())),
    );
    // The second piece fits only when the first one has been taken.
    for _ in 0..2 {
        pieces
            .send(Ok(Bytes::from_static(b"x")))
            .await
            .expect("somebody reads");
    }
    token.cancel();
    assert!(request.await.expect("no panic").is_err());
    pieces.closed().await;
}

#[tokio::test]
async fn an_upload_that_is_refused_midway_stops_reading_its_stream() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let (open, mut kept) = mpsc::channel(1);
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut some = [0; 64];
        let _ = stream.read(&mut some).await;
        let _ = stream
            .write_all(b"HTTP/1.1 413 Said\r\ncontent-length: 0\r\n\r\n")
            .await;
        let _ = open.send(stream).await;
    });
    let (pieces, body) = Body::channel(1);
    let request = Request::new(Method::PUT, "/a/files?path=/x").body(body);
    let client = super::http_server::client(&origin);
    let failure = client
        .request(request, Bound::default())
        .await
        .expect_err("refused");
    assert!(matches!(failure, Failure::Api { status: 413, .. }));
    pieces.closed().await;
    drop(kept.recv().await);
}

#[tokio::test(start_paused = true)]
async fn the_default_bound_is_the_configured_timeout() {
    let client = super::http_server::client("https://api.example.test");
    let start = now();
    let ended = client
        .default_bound()
        .run(std::future::pending::<()>())
        .await;
    assert!(ended.is_err());
    assert_eq!((now() - start).as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn an_endless_bound_passes_before_nothing() {
    let start = now();
    let bound = Bound::until(start + millis(10));
    assert!(bound.passes_before(start + millis(11)));
    assert!(!bound.passes_before(start + millis(10)));
    assert!(!Bound::default().passes_before(start + millis(1_000_000)));
}
