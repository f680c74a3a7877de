//! What the addon keeps for one JavaScript environment: the main thread, or one Worker.
//!
//! It is made when the addon is loaded there and freed when the environment is gone. In between it
//! belongs to that environment's thread; other threads reach it only by posting to its [`Wake`].

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::slots::Slots;
use super::wake::Wake;
use super::{Js, Kept, Outcome, Reference, Thrown, Value};
use crate::registry::Registry;

/// The environment's state.
pub struct House {
    wake: Arc<Wake>,
    hooks: OnceCell<Hooks>,
    /// What JavaScript functions point to; freed with the house, after them.
    kept: RefCell<Vec<Kept>>,
    /// Promises that hold the event loop until they settle.
    pending: Cell<usize>,
    /// Running calls by the number that the scripts know them by.
    pub slots: RefCell<Slots>,
    /// Every driver's registry, to be abandoned with the environment.
    registries: RefCell<Vec<Registry>>,
    /// Cancelled when the environment ends: requests made for it alone go with it.
    ended: CancellationToken,
}

/// Functions of the scripts that native code calls.
pub struct Hooks {
    /// `(kind, message, code, ...extra) -> Error`.
    pub failure: Reference,
    /// `(slot) -> void`: aborts a call whose deadline has passed.
    pub expire: Reference,
}

impl House {
    /// A house whose tasks are woken by `wake`.
    pub fn new(wake: Arc<Wake>) -> Self {
        Self {
            wake,
            hooks: OnceCell::new(),
            kept: RefCell::default(),
            pending: Cell::new(0),
            slots: RefCell::default(),
            registries: RefCell::default(),
            ended: CancellationToken::new(),
        }
    }

    /// Where other threads post tasks for this environment's thread.
    pub fn wake(&self) -> &Arc<Wake> {
        &self.wake
    }

    /// Cancelled when the environment ends.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Keeps what a JavaScript function points to until the environment is gone.
    pub fn keep(&self, entry: Kept) {
        self.kept.borrow_mut().push(entry);
    }

    /// Sets the scripts' hooks, once.
    pub fn set_hooks(&self, hooks: Hooks) {
        // A second set is impossible: it is done where the addon is loaded, once an environment.
        let _ = self.hooks.set(hooks);
    }

    /// Calls one of the scripts' hooks.
    pub fn call_hook<'e>(
        &self,
        js: Js<'e>,
        hook: impl FnOnce(&Hooks) -> &Reference,
        arguments: &[Value<'e>],
    ) -> Outcome<'e> {
        let hooks = self.hooks.get().ok_or(Thrown::Pending)?;
        js.call(js.referred(hook(hooks))?, arguments)
    }

    /// Remembers a driver's registry for the environment's end.
    pub fn adopt(&self, registry: &Registry) {
        let mut registries = self.registries.borrow_mut();
        registries.retain(Registry::is_shared);
        registries.push(registry.clone());
    }

    /// A promise that holds the event loop has been made.
    pub fn hold(&self, js: Js<'_>) {
        let pending = self.pending.get();
        self.pending.set(pending + 1);
        if pending == 0 {
            self.wake.hold_loop(js.env(), true);
        }
    }

    /// It has settled.
    pub fn let_go(&self, js: Js<'_>) {
        let pending = self.pending.get().saturating_sub(1);
        self.pending.set(pending);
        if pending == 0 {
            self.wake.hold_loop(js.env(), false);
        }
    }

    /// The environment is going: nothing is posted to it any more, its requests end, its calls
    /// count as settled, and what it was acquiring is removed. Releases under way go on: what they
    /// were asked to remove must not be billed for ever.
    pub fn close(&self) {
        self.wake.close();
        self.ended.cancel();
        for registry in self.registries.borrow_mut().drain(..) {
            registry.abandon();
        }
    }
}
