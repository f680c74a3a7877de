//! What goes out with a request, and what does not.

use bytes::Bytes;

use super::http_server::{KEY, Reply, Seen, Server, client, config, key};
use crate::error::Failure;
use crate::http::request::headers;
use crate::http::{Body, Bound, Client, Method, Request};

async fn sent(request: Request) -> Seen {
    let mut server = Server::start(|_| Reply::with(200, "", b"")).await;
    server
        .client()
        .request(request, Bound::default())
        .await
        .expect("an answer");
    server.seen().await
}

#[tokio::test]
async fn the_key_goes_out_and_no_other_credential_does() {
    let request = Request::new(Method::GET, "/sandboxes")
        .header("X-API-Key", "other")
        .header("Authorization", "Bearer other")
        .header("X-Auth-Token", "other")
        .header("X-Access-Token", "other")
        .header("Cookie", "other")
        .header("Proxy-Authorization", "other")
        .header("X-Mine", "one")
        .header("x-mine", "two");
    let seen = sent(request).await;
    assert_eq!(seen.header("x-api-key"), Some(KEY));
    assert!(
        seen.headers
            .iter()
            .all(|(_, value)| !value.contains("other"))
    );
    let mine: Vec<_> = seen
        .headers
        .iter()
        .filter(|(name, _)| name == "x-mine")
        .collect();
    assert_eq!(mine.len(), 2);
    assert_eq!(
        seen.headers
            .iter()
            .filter(|(name, _)| name == "x-api-key")
            .count(),
        1
    );
}

#[tokio::test]
async fn headers_of_the_connection_are_ours() {
    let request = Request::new(Method::PUT, "/sandboxes/a/files?path=/x")
        .header("host", "evil.test")
        .header("content-length", "9999")
        .header("transfer-encoding", "gzip")
        .header("connection", "close")
        .header("upgrade", "h2c")
        .header("expect", "100-continue")
        .header("te", "trailers")
        .header("accept-encoding", "br")
        .body(Body::Bytes(Bytes::from_static(b"content")));
    let seen = sent(request).await;
    assert!(
        seen.header("host")
            .is_some_and(|host| host.starts_with("127.0.0.1:"))
    );
    assert_eq!(seen.header("content-length"), Some("7"));
    assert_eq!(seen.body, b"content");
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    for name in [
        "transfer-encoding",
        "connection",
        "upgrade",
        "expect",
        "te",
        "referer",
    ] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn a_request_says_who_it_is_unless_its_caller_does() {
    let seen = sent(Request::new(Method::GET, "/a")).await;
    assert!(
        seen.header("user-agent")
            .is_some_and(|agent| agent.starts_with("createos-lease/"))
    );
    let seen = sent(Request::new(Method::GET, "/a").header("User-Agent", "mine")).await;
    assert_eq!(seen.header("user-agent"), Some("mine"));
    assert_eq!(seen.header("accept"), Some("*/*"));
}

#[tokio::test]
async fn a_post_without_a_body_sends_an_empty_object() {
    let request = Request::new(Method::POST, "/sandboxes/a/pause").header("content-type", "x/y");
    let seen = sent(request).await;
    assert_eq!(seen.text(), "{}");
    assert_eq!(seen.header("content-length"), Some("2"));
    let types: Vec<_> = seen
        .headers
        .iter()
        .filter(|(name, _)| name == "content-type")
        .map(|(_, v)| v)
        .collect();
    assert_eq!(types, ["application/json"]);
}

#[tokio::test]
async fn a_put_without_a_body_has_a_length_and_a_get_or_delete_has_none() {
    for (method, length) in [
        (Method::PUT, Some("0")),
        (Method::PATCH, Some("0")),
        (Method::GET, None),
        (Method::DELETE, None),
    ] {
        let seen = sent(Request::new(method, "/a")).await;
        assert_eq!(seen.header("content-length"), length, "{}", seen.method);
        assert_eq!(seen.header("transfer-encoding"), None, "{}", seen.method);
    }
}

#[tokio::test]
async fn an_empty_body_of_ones_own_stays_empty() {
    for method in [Method::POST, Method::PUT] {
        let seen = sent(Request::new(method, "/a").body(Body::Bytes(Bytes::new()))).await;
        assert_eq!(
            (seen.text(), seen.header("content-length")),
            ("", Some("0"))
        );
    }
}

#[tokio::test]
async fn a_posts_own_body_and_type_stay() {
    let request = Request::new(Method::POST, "/a")
        .header("content-type", "text/plain")
        .body(Body::Bytes(Bytes::from_static(b"x")));
    let seen = sent(request).await;
    assert_eq!(
        (seen.text(), seen.header("content-type")),
        ("x", Some("text/plain"))
    );
}

#[tokio::test]
async fn a_key_that_is_no_header_value_sends_nothing() {
    let mut server = Server::start(|_| Reply::data("{}")).await;
    for text in ["k\u{1}", "k\u{7f}", "k\u{20ac}", "\u{1f600}"] {
        let client = Client::new(config(&server.origin), key(text));
        let failure = client
            .request(Request::new(Method::GET, "/a"), Bound::default())
            .await;
        assert_eq!(
            failure.err(),
            Some(Failure::Connection { sent: false }),
            "{text:?}"
        );
    }
    assert_eq!(server.seen_so_far(), 0);
}

#[tokio::test]
async fn a_latin_1_key_goes_out_byte_by_byte() {
    let mut server = Server::start(|_| Reply::data("{}")).await;
    let client = Client::new(config(&server.origin), key("k\u{e9}"));
    client
        .request(Request::new(Method::GET, "/a"), Bound::default())
        .await
        .expect("an answer");
    // 0xE9 alone is no UTF-8, which is how the test server reads it.
    assert_eq!(server.seen().await.header("x-api-key"), Some("k\u{fffd}"));
}

#[tokio::test]
async fn a_header_or_path_that_is_not_legal_sends_nothing() {
    let mut server = Server::start(|_| Reply::data("{}")).await;
    for request in [
        Request::new(Method::GET, "/a").header("a b", "x"),
        Request::new(Method::GET, "/a").header("", "x"),
        Request::new(Method::GET, "/a").header("x", "a\r\nb: c"),
        Request::new(Method::GET, "/../a"),
        Request::new(Method::GET, "@evil.test/"),
        Request::new(Method::GET, ""),
        Request::new(Method::GET, format!("/{}", "a".repeat(70_000))),
        Request::new(Method::CONNECT, "/a"),
        Request::new(Method::TRACE, "/a"),
    ] {
        let failure = server.client().request(request, Bound::default()).await;
        assert_eq!(failure.err(), Some(Failure::Connection { sent: false }));
    }
    assert_eq!(server.seen_so_far(), 0);
}

#[test]
fn the_keys_header_is_marked_as_secret() {
    let headers = headers(&[], &key(KEY)).expect("legal headers");
    assert!(headers["x-api-key"].is_sensitive());
    assert!(!format!("{headers:?}").contains(KEY));
}

#[tokio::test]
async fn nothing_secret_is_printed() {
    let client = client("http://localhost:1");
    let request = Request::new(Method::GET, "/hunter2")
        .header("x-hunter2", "hunter2")
        .body(Body::Bytes(Bytes::from_static(b"hunter2")));
    let printed = format!(
        "{client:?} {request:?} {:?} {:?}",
        client.api_key(),
        client.config()
    );
    assert!(
        !printed.contains(KEY) && !printed.contains("hunter2"),
        "{printed}"
    );
}
