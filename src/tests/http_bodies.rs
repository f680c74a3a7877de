//! Bodies in both directions.

use bytes::Bytes;

use super::http_server::{Reply, Server};
use crate::error::Failure;
use crate::http::body::Answer;
use crate::http::{Body, Bound, Method, Request};

async fn answer(reply: fn() -> Reply) -> Answer {
    let server = Server::start(move |_| reply()).await;
    let request = Request::new(Method::GET, "/a");
    server
        .client()
        .request(request, Bound::default())
        .await
        .expect("an answer")
}

async fn whole(answer: Answer) -> Result<Vec<u8>, Failure> {
    let mut body = answer.body;
    let mut whole = Vec::new();
    while let Some(piece) = body.next().await {
        whole.extend_from_slice(&piece?);
    }
    Ok(whole)
}

#[tokio::test]
async fn status_headers_and_bytes_come_back_as_they_are() {
    let answer = answer(|| Reply::with(207, "X-Two: a\r\nx-two: \u{e9}\r\n", b"\0\xff")).await;
    assert_eq!((answer.status, answer.status_text.as_str()), (207, "Said"));
    let two: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| name == "x-two")
        .collect();
    assert_eq!(two.len(), 2);
    assert_eq!(two[0].1, b"a");
    assert_eq!(two[1].1, "\u{e9}".as_bytes());
    assert_eq!(whole(answer).await, Ok(b"\0\xff".to_vec()));
}

#[tokio::test]
async fn an_empty_answer_has_an_empty_body() {
    for reply in [
        (|| Reply::Whole(b"HTTP/1.1 204 No Content\r\n\r\n".into())) as fn() -> Reply,
        || Reply::with(200, "", b""),
        || Reply::ThenClose(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".into()),
    ] {
        assert_eq!(whole(answer(reply).await).await, Ok(Vec::new()));
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_broken() {
    for reply in [
        (|| Reply::ThenClose(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".into()))
            as fn() -> Reply,
        || {
            let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf";
            Reply::ThenClose(chunked.into())
        },
        || {
            let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n";
            Reply::ThenClose(chunked.into())
        },
        || {
            let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhalf\r\n";
            Reply::ThenClose(chunked.into())
        },
    ] {
        assert_eq!(whole(answer(reply).await).await, Err(Failure::BodyBroken));
    }
}

#[tokio::test]
async fn an_interim_answer_is_passed_over() {
    let both =
        b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let server = Server::start(|_| Reply::Whole(both.into())).await;
    let request = Request::new(Method::GET, "/a");
    let answer = server
        .client()
        .request(request, Bound::default())
        .await
        .expect("an answer");
    assert_eq!(
        (answer.status, whole(answer).await),
        (200, Ok(b"ok".to_vec()))
    );
}

#[tokio::test]
async fn a_stream_travels_in_pieces_and_in_order() {
    let mut server = Server::start(|_| Reply::data("{}")).await;
    let (pieces, body) = Body::channel(1);
    let request = Request::new(Method::PUT, "/a/files?path=/x").body(body);
    let request = tokio::spawn(server.client().request(request, Bound::default()));
    let mut expected = Vec::new();
    for piece in 0..200_u8 {
        let piece = vec![piece; 4096];
        expected.extend_from_slice(&piece);
        pieces
            .send(Ok(Bytes::from(piece)))
            .await
            .expect("somebody reads");
    }
    drop(pieces);
    request.await.expect("no panic").expect("an answer");
    let seen = server.seen().await;
    assert_eq!(seen.header("transfer-encoding"), Some("chunked"));
    assert_eq!(seen.header("content-length"), None);
    assert!(seen.body == expected);
}

#[tokio::test]
async fn answers_arrive_while_more_is_to_come() {
    let first = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    let server = Server::start(|_| Reply::ThenHold(first.into())).await;
    let request = Request::new(Method::GET, "/a/connect?after=0");
    let answer = server
        .client()
        .request(request, Bound::default())
        .await
        .expect("an answer");
    let mut body = answer.body;
    assert_eq!(body.next().await, Some(Ok(Bytes::from_static(b"half"))));
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_whole_answer() {
    let mut server = Server::start(|_| Reply::data("{}")).await;
    let client = server.client();
    for _ in 0..3 {
        client
            .json(Method::GET, "/a".into(), None, Bound::default())
            .await
            .expect("an answer");
        server.seen().await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn nothing_of_an_answer_is_printed() {
    let answer = answer(|| Reply::with(200, "x-secret: hunter2\r\n", b"hunter2")).await;
    assert!(!format!("{answer:?} {:?}", answer.body).contains("hunter2"));
}
