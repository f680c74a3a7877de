//! The queue of output: order, its bound, and its ends.

use std::sync::Arc;

use tokio::task::{JoinHandle, yield_now};

use super::Stream::{self, Stderr, Stdout};
use super::pieces::Pieces;
use super::tail::Kept;

fn ascii(pieces: Vec<(Stream, Kept)>) -> Vec<(Stream, String)> {
    let text = |kept| match kept {
        Kept::Ascii(bytes) => String::from_utf8(bytes).expect("ASCII"),
        Kept::Utf16(_) => panic!("not ASCII"),
    };
    let convert = |(stream, kept)| (stream, text(kept));
    pieces.into_iter().map(convert).collect()
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
    let expected = [(Stdout, "ab"), (Stderr, "c"), (Stdout, "d")];
    let expected = expected.map(|(stream, text)| (stream, text.to_owned()));
    assert_eq!(ascii(pieces.next().await.expect("pieces")), expected);
    assert_eq!(pieces.next().await, None);
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
    while let Some(batch) = pieces.next().await {
        let length: usize = ascii(batch).iter().map(|(_, text)| text.len()).sum();
        assert!(length <= 512 * 1024, "a batch of {length}");
        total += length;
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
    assert!(pieces.next().await.is_some());
    assert!(
        !settle(&waiting).await,
        "what was taken is being dealt with"
    );
    assert_eq!(pieces.next().await, None);
    assert!(settle(&waiting).await);
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
            pieces.delivered().await;
        }
    });
    assert!(!settle(&waiting).await, "it is full");
    pieces.give_up();
    assert!(settle(&waiting).await);
    assert_eq!(pieces.next().await, None);
}
