//! What ends an operation early: cancellations, a deadline, or nothing.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::{Instant, now};
use crate::error::Failure;

/// The end that an operation may not outlive. The default one is endless.
#[derive(Debug, Clone, Default)]
pub struct Bound {
    cancels: Vec<CancellationToken>,
    /// These count as long as the request has not left.
    unsent: Vec<CancellationToken>,
    deadline: Option<Instant>,
    /// Counted from the moment the request first leaves.
    once_sent: Option<Duration>,
    /// How much later an end counts once a request has left.
    patience: Duration,
    /// The same, of the request that has left.
    lag: Option<Arc<Lag>>,
}

/// How much later a cancellation counts for one request, all parts of its answer together.
#[derive(Debug)]
struct Lag {
    patience: Duration,
    /// Known once the cancellation has been noticed.
    until: OnceLock<Instant>,
}

/// Which end came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// One of the tokens was cancelled.
    Cancelled,
    /// The deadline passed.
    DeadlinePassed,
}

impl Ended {
    /// The failure JavaScript sees. `sent`: whether the provider may have seen the request.
    pub fn failure(self, sent: bool) -> Failure {
        match self {
            Self::Cancelled => Failure::Aborted { sent },
            Self::DeadlinePassed => Failure::TimedOut { sent },
        }
    }
}

impl Bound {
    /// Ends at `deadline`.
    pub fn until(deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..Self::default()
        }
    }

    /// Also ends at `deadline`.
    #[must_use]
    pub fn and_until(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Ends so long after the request has first left, however long it waits for its turn, which is bounded
    /// by the pace itself: for what must be done, such as removing a sandbox that nobody knows of.
    pub fn once_sent(timeout: Duration) -> Self {
        Self {
            once_sent: Some(timeout),
            ..Self::default()
        }
    }

    /// Also ends so long after the request has first left.
    #[must_use]
    pub fn and_once_sent(mut self, timeout: Duration) -> Self {
        self.once_sent = Some(timeout);
        self
    }

    /// Ends when `token` is cancelled.
    pub fn cancelled_by(token: CancellationToken) -> Self {
        Self {
            cancels: vec![token],
            ..Self::default()
        }
    }

    /// Also ends when `token` is cancelled.
    #[must_use]
    pub fn and_cancelled_by(mut self, token: CancellationToken) -> Self {
        self.cancels.push(token);
        self
    }

    /// Also ends when `token` is cancelled before the request has left. After that its answer is
    /// waited for: it tells what there is to be removed.
    #[must_use]
    pub fn and_cancelled_unsent_by(mut self, token: CancellationToken) -> Self {
        self.unsent.push(token);
        self
    }

    /// Waits so much longer, after an end, for the answer to a request that has left: whoever ended it
    /// wants to act next, and what the provider is still doing then would get in the way.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The bound of the time before a request leaves.
    #[must_use]
    pub fn while_unsent(&self) -> Self {
        let mut bound = self.clone();
        bound.cancels.append(&mut bound.unsent);
        bound
    }

    /// What is counted from a request's departure is counted from now on.
    #[must_use]
    pub fn counted(mut self) -> Self {
        let own = self.once_sent.take().map(|timeout| now() + timeout);
        self.deadline = self.deadline.into_iter().chain(own).min();
        self
    }

    /// The bound of the time after a request has left.
    #[must_use]
    pub fn departing(&self) -> Self {
        let mut bound = self.clone().counted();
        bound.deadline = bound.deadline.map(|deadline| deadline + bound.patience);
        bound.lag = (!bound.patience.is_zero()).then(|| {
            Arc::new(Lag {
                patience: bound.patience,
                until: OnceLock::new(),
            })
        });
        bound
    }

    /// The end that has come already, if one has.
    pub fn end(&self) -> Option<Ended> {
        if self.cancels.iter().any(CancellationToken::is_cancelled) {
            return Some(Ended::Cancelled);
        }
        let has_passed = self.deadline.is_some_and(|deadline| deadline <= now());
        has_passed.then_some(Ended::DeadlinePassed)
    }

    /// Whether the deadline comes before `moment`.
    pub fn passes_before(&self, moment: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline < moment)
    }

    /// Runs `operation` to its end or to this one's, whichever comes first. An end that has come
    /// already wins over an operation that could finish at once, so nothing starts after it.
    pub async fn run<F: Future>(&self, operation: F) -> Result<F::Output, Ended> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(Ended::Cancelled),
            () = self.deadline_passed() => Err(Ended::DeadlinePassed),
            output = operation => Ok(output),
        }
    }

    async fn cancelled(&self) {
        let mut waits: Vec<_> = self
            .cancels
            .iter()
            .map(|token| Box::pin(token.cancelled()))
            .collect();
        poll_fn(|context| {
            if waits
                .iter_mut()
                .any(|wait| wait.as_mut().poll(context).is_ready())
            {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        if let Some(lag) = &self.lag {
            let until = lag.until.get_or_init(|| now() + lag.patience);
            tokio::time::sleep_until(*until).await;
        }
    }

    async fn deadline_passed(&self) {
        match self.deadline {
            // A timer fires on its next tick, so one that is due already would lose against an
            // operation that is ready.
            Some(deadline) if deadline <= now() => {}
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }
}
