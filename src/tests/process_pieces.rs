//! The queue of output: order, its bound, and its ends.

use std::sync::Arc;

use tokio::task::{JoinHandle, yield_now};

use super::Stream::{self, Stderr, Stdout};
use super::pieces::Pieces;
use super::tail::Kept;

/// Takes the next piece, once there is one; `None` at the end.
async fn next(pieces: &Pieces) -> Option<(Stream, String)> {
    while pieces.filled().await {
        if let Some((stream, Kept::Ascii(bytes))) = pieces.take() {
            return Some((stream, String::from_utf8(bytes).expect("ASCII")));
        }
    }
    assert!(pieces.take().is_none());
    None
}

/// Lets a task run as far as it can.
async fn settle<T>(task: &JoinHandle<T>) -> bool {
    for _ in 0..10 {
        yield_now().await;
    }
    task.is_finished()
}

#[tokio::test]
async fn text_of_one_stream_is_joined_and_the_order_kept() {
    let pieces = Pieces::default();
    for (stream, text) in [(Stdout, "a"), (Stdout, "b"), (Stderr, "c"), (Stdout, "d")] {
        pieces.push(stream, text);
    }
    pieces.close();
    for (stream, text) in [(Stdout, "ab"), (Stderr, "c"), (Stdout, "d")] {
        assert_eq!(next(&pieces).await, Some((stream, text.to_owned())));
    }
    assert_eq!(next(&pieces).await, None);
}

#[tokio::test]
async fn long_text_is_cut_between_characters() {
    let pieces = Pieces::default();
    let text = format!("{}{}", "x".repeat(64 * 1024 - 1), "\u{20ac}".repeat(30_000));
    pieces.push(Stdout, &text);
    pieces.close();
    let mut units = Vec::new();
    while let Some((_, piece)) = pieces.take() {
        let piece = match piece {
            Kept::Ascii(bytes) => bytes.into_iter().map(u16::from).collect(),
            Kept::Utf16(units) => units,
        };
        assert!(String::from_utf16(&piece).expect("whole").len() <= 64 * 1024);
        units.extend(piece);
    }
    assert_eq!(String::from_utf16(&units).expect("text"), text);
}

#[tokio::test]
async fn a_full_queue_waits_until_its_reader_takes_from_it() {
    let pieces = Arc::new(Pieces::default());
    let block = "x".repeat(64 * 1024);
    let writer = tokio::spawn({
        let (pieces, block) = (Arc::clone(&pieces), block.clone());
        async move {
            for _ in 0..40 {
                pieces.room().await;
                pieces.push(Stdout, &block);
            }
            pieces.close();
        }
    });
    assert!(!settle(&writer).await, "nobody has read");
    let mut total = 0;
    while let Some((_, text)) = next(&pieces).await {
        total += text.len();
    }
    assert_eq!(total, 40 * block.len());
    assert!(settle(&writer).await);
}

#[tokio::test]
async fn all_is_delivered_once_the_reader_has_come_back() {
    let pieces = Arc::new(Pieces::default());
    pieces.push(Stdout, "a");
    pieces.close();
    let waiting = tokio::spawn({
        let pieces = Arc::clone(&pieces);
        async move { pieces.delivered().await }
    });
    assert!(!settle(&waiting).await, "nothing was taken");
    assert!(next(&pieces).await.is_some());
    assert!(
        !settle(&waiting).await,
        "what was taken is being dealt with"
    );
    assert_eq!(next(&pieces).await, None);
    pieces.give_up();
    assert!(waiting.await.expect("no panic"), "delivered before");
}

#[tokio::test]
async fn a_reader_that_gives_up_holds_nobody() {
    let pieces = Arc::new(Pieces::default());
    pieces.push(Stdout, &"x".repeat(2 * 1024 * 1024));
    let waiting = tokio::spawn({
        let pieces = Arc::clone(&pieces);
        async move {
            pieces.room().await;
            pieces.push(Stdout, "more");
            pieces.delivered().await
        }
    });
    assert!(!settle(&waiting).await, "it is full");
    pieces.give_up();
    assert!(!waiting.await.expect("no panic"), "not delivered");
    assert_eq!(next(&pieces).await, None);
}
