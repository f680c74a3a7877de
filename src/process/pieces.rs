//! The way of output to its caller: a bounded queue. Who reads the provider's stream waits for room in
//! it, so that a slow caller slows the stream down and no memory grows.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Stream;
use super::tail::{Kept, boundary};

/// From so many bytes on, nothing more is read.
const FULL: usize = 1024 * 1024;
/// Text of one stream is joined up to so many bytes, and longer text is cut.
const LARGEST_PIECE: usize = 64 * 1024;
/// What a piece takes besides its text, in bytes.
const OVERHEAD: usize = 128;
/// From so many bytes on, a piece is given the memory of the largest: more will come.
const LARGE: usize = 4 * 1024;

/// Output on its way.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Guards all of it.
    state: Mutex<State>,
    /// Something has come, or nothing more will.
    filled: Notify,
    /// Something was taken, or nobody wants it any more.
    taken: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Piece>,
    bytes: usize,
    /// Nothing more will come.
    is_closed: bool,
    /// All that was taken has been delivered.
    is_delivered: bool,
    /// Nobody wants any more.
    is_unwanted: bool,
}

struct Piece {
    stream: Stream,
    text: String,
}

/// Not the text: it is the sandbox's.
impl std::fmt::Debug for Piece {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Piece")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

impl Pieces {
    /// Adds text to the end. Whoever adds more waits for [`Pieces::room`] first.
    pub fn push(&self, stream: Stream, mut text: &str) {
        let mut state = self.lock();
        if state.is_unwanted {
            return;
        }
        while !text.is_empty() {
            let (piece, rest) = text.split_at(boundary(text, LARGEST_PIECE));
            state.push(stream, piece);
            text = rest;
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Waits until more may be added.
    pub async fn room(&self) {
        self.wait(|state| (state.is_unwanted || state.bytes < FULL).then_some(()))
            .await;
    }

    /// Waits until the caller has dealt with everything. False when it wants no more of it.
    pub async fn delivered(&self) -> bool {
        self.wait(|state| {
            if state.queue.is_empty() && state.is_delivered {
                return Some(true);
            }
            state.is_unwanted.then_some(false)
        })
        .await
    }

    async fn wait<T>(&self, until: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let taken = self.taken.notified();
            if let Some(outcome) = until(&self.lock()) {
                return outcome;
            }
            taken.await;
        }
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    /// Nobody wants any more of it, nor what is there.
    pub fn give_up(&self) {
        let queue = {
            let mut state = self.lock();
            state.is_unwanted = true;
            state.bytes = 0;
            std::mem::take(&mut state.queue)
        };
        drop(queue);
        self.taken.notify_one();
        self.filled.notify_one();
    }

    /// Waits until there is a piece. False at the end.
    pub async fn filled(&self) -> bool {
        loop {
            let filled = self.filled.notified();
            {
                let state = self.lock();
                if !state.queue.is_empty() {
                    return true;
                }
                if state.is_closed || state.is_unwanted {
                    return false;
                }
            }
            filled.await;
        }
    }

    /// The next piece; `None` when there is none yet, or at the end. The caller has dealt with the one
    /// before. One at a time: of what is alive at once, V8's young generation grows.
    pub fn take(&self) -> Option<(Stream, Kept)> {
        let piece = self.lock().take();
        self.taken.notify_one();
        piece.map(|piece| (piece.stream, Kept::new(piece.text)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No operation stops half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, stream: Stream, text: &str) {
        self.bytes += text.len();
        match self.queue.back_mut() {
            Some(last)
                if last.stream == stream && last.text.len() + text.len() <= LARGEST_PIECE =>
            {
                last.text.push_str(text);
            }
            _ => {
                let expected = if text.len() < LARGE { 0 } else { LARGEST_PIECE };
                let mut piece = String::with_capacity(text.len().max(expected));
                piece.push_str(text);
                self.bytes += OVERHEAD;
                self.queue.push_back(Piece {
                    stream,
                    text: piece,
                });
            }
        }
    }

    fn take(&mut self) -> Option<Piece> {
        let piece = self.queue.pop_front();
        let size = |piece: &Piece| piece.text.len() + OVERHEAD;
        self.bytes -= piece.as_ref().map_or(0, size);
        self.is_delivered = piece.is_none();
        piece
    }
}
