//! The lifecycle of one scope, as one total function.
//!
//! ```text
//!                 begin                        close                       lift
//!   +------+ ------------> +---------+ ------------------> +---------+ -----------> back to where
//!   | open | <------------ | running | <- - - - - - - - -  | closing |              it came from
//!   +------+  last settle  +---------+    (no call begins  +---------+
//!       ^                       |          while closing)       |
//!       |                       | settle, cleanup failed        | settle, cleanup failed;
//!       |                       v                               v or the bound passed
//!       |               +-------------+                 +-------------------+
//!       +-------------- | unconfirmed | <-------------- | closing, and      |
//!          destroyed    +-------------+      lift       | unconfirmed       |
//!                                                       +-------------------+
//! ```
//!
//! Running calls, closing and unconfirmed are independent: a call may still run in a scope whose
//! release gave up waiting for it, and a scope may be closing for its own release and for a
//! destroy under another key at once, so closing is counted.

/// What is known of a scope. The default is the open scope without calls, which is never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// Calls that have not settled.
    pub running: u32,
    /// Releases under way that cover this scope.
    pub closing: u32,
    /// Something may still run in the sandbox that nobody can vouch for.
    pub unconfirmed: bool,
}

/// What can happen to a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A call begins.
    Begin,
    /// A call settled; `cleanup_failed` when it rejected with a cleanup error.
    Settle { cleanup_failed: bool },
    /// A release begins that covers this scope.
    Close,
    /// The bound of a release for reuse passed before its calls had settled.
    BoundPassed,
    /// The provider confirmed that the sandbox is gone.
    Destroyed,
    /// A release ended, whatever came of it.
    Lift,
}

/// An event that cannot happen in that state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Illegal;

impl Marks {
    /// The next state. Total: what may not happen is [`Illegal`] and changes nothing.
    pub fn after(self, event: Event) -> Result<Self, Illegal> {
        let mut next = self;
        match event {
            Event::Begin if self.admits() => next.running += 1,
            Event::Begin => return Err(Illegal),
            Event::Settle { cleanup_failed } => {
                next.running = self.running.checked_sub(1).ok_or(Illegal)?;
                next.unconfirmed |= cleanup_failed;
            }
            Event::Close => next.closing += 1,
            Event::BoundPassed => next.unconfirmed = true,
            Event::Destroyed => next.unconfirmed = false,
            Event::Lift => next.closing = self.closing.checked_sub(1).ok_or(Illegal)?,
        }
        Ok(next)
    }

    /// Whether a call may begin.
    pub const fn admits(self) -> bool {
        self.closing == 0 && !self.unconfirmed
    }

    /// Whether nothing is left to remember.
    pub fn is_default(self) -> bool {
        self == Self::default()
    }
}
