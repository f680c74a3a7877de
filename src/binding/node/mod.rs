//! Node-API, made safe: the only file of the package that calls it.
//!
//! napi's typed functions cost about 90 ns an entry more than raw ones, and a tracked call enters
//! three times, so the addon's functions are raw and this file is their safe surface. What makes
//! each call here sound is the same throughout, and is not repeated at each: a [`Js`] exists only
//! while Node runs one of our callbacks on its own thread, with a handle scope open, so `env` is
//! valid, and a [`Value`] cannot outlive the `Js` that gave it. Node-API checks every handle and
//! type itself and answers with a status. A status is never asserted on: a Worker that is being
//! terminated makes any call fail.

#![expect(unsafe_code, reason = "this file is the boundary to C")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the proof, the same for all, stands at the top of the file"
)]
mod failure;
mod held;
mod house;
mod make;
mod read;
mod slots;
mod wake;

pub use house::{Hooks, House};
pub use read::Kind;
pub use wake::Wake;

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use napi::sys;

use crate::error::Failure;

/// The most arguments a native function takes; further ones are not looked at.
const MAX_ARGUMENTS: usize = 16;

/// The JavaScript side, while it waits for us.
#[derive(Clone, Copy)]
pub struct Js<'e> {
    env: sys::napi_env,
    house: &'e House,
}

/// A JavaScript value, alive as long as the callback that saw it.
#[derive(Clone, Copy)]
pub struct Value<'e> {
    raw: sys::napi_value,
    alive: PhantomData<&'e ()>,
}

impl Value<'_> {
    /// # Safety
    ///
    /// `raw` must be a value of a callback that is running, and the lifetime no longer than it.
    pub unsafe fn new(raw: sys::napi_value) -> Self {
        Self {
            raw,
            alive: PhantomData,
        }
    }
}

/// Why a native function ends early.
#[derive(Debug)]
pub enum Thrown {
    /// A JavaScript exception is pending, or the environment is on its way out.
    Pending,
    /// To be thrown as the error it stands for.
    Failure(Failure),
}

impl From<Failure> for Thrown {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// What a native function gives back.
pub type Outcome<'e> = Result<Value<'e>, Thrown>;
/// The arguments of a native function; those not given are undefined.
pub type Arguments<'e> = [Value<'e>; MAX_ARGUMENTS];
/// A function that the addon's scripts call.
pub type Native = for<'e> fn(Js<'e>, Arguments<'e>) -> Outcome<'e>;

/// A promise that has not been settled.
pub struct Deferred(sys::napi_deferred);

// SAFETY: only a handle is carried through other threads; it is used on its own thread alone,
// which `Deferred::settle` proves by taking a `Js`.
unsafe impl Send for Deferred {}

/// A function or object that outlives the callback that saw it.
pub struct Reference(sys::napi_ref);

struct Entry {
    native: Native,
    house: *const House,
}

/// What a function points to. The house drops it with the environment, after the last function.
pub struct Kept(*mut Entry);

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: `Js::function` made the box, and this is its only owner.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

fn check(status: sys::napi_status) -> Result<(), Thrown> {
    if status == sys::Status::napi_ok {
        Ok(())
    } else {
        Err(Thrown::Pending)
    }
}

impl<'e> Js<'e> {
    /// # Safety
    ///
    /// `env` must be the environment of a callback that is running on this thread with a handle
    /// scope open, and `house` its own.
    pub unsafe fn new(env: sys::napi_env, house: &'e House) -> Self {
        Self { env, house }
    }

    /// What the environment keeps.
    pub fn house(self) -> &'e House {
        self.house
    }

    /// The raw environment, for the hooks that this file does not wrap.
    pub fn env(self) -> sys::napi_env {
        self.env
    }

    fn make(fill: impl FnOnce(*mut sys::napi_value) -> sys::napi_status) -> Outcome<'e> {
        let mut raw = ptr::null_mut();
        check(fill(&raw mut raw))?;
        Ok(Value {
            raw,
            alive: PhantomData,
        })
    }
    pub fn run_script(self, source: &str) -> Outcome<'e> {
        let source = self.string(source)?;
        Self::make(|raw| unsafe { sys::napi_run_script(self.env, source.raw, raw) })
    }

    pub fn call(self, function: Value<'e>, arguments: &[Value<'e>]) -> Outcome<'e> {
        let this = self.undefined()?;
        // SAFETY (layout): `Value` is a handle and a zero-sized marker, `repr(Rust)`, so the
        // handles are copied out rather than the slice reinterpreted.
        let raw: Vec<sys::napi_value> = arguments.iter().map(|value| value.raw).collect();
        Self::make(|result| unsafe {
            let (count, first) = (raw.len(), raw.as_ptr());
            sys::napi_call_function(self.env, this.raw, function.raw, count, first, result)
        })
    }

    /// A JavaScript function that calls the native one.
    pub fn function(self, name: &str, native: Native) -> Outcome<'e> {
        let entry = Entry {
            native,
            house: ptr::from_ref(self.house),
        };
        let data = Box::into_raw(Box::new(entry));
        self.house.keep(Kept(data));
        Self::make(|raw| unsafe {
            let (text, len) = (name.as_ptr().cast(), length(name.len()));
            sys::napi_create_function(self.env, text, len, Some(enter), data.cast(), raw)
        })
    }

    pub fn refer(self, value: Value<'e>) -> Result<Reference, Thrown> {
        let mut reference = ptr::null_mut();
        check(unsafe { sys::napi_create_reference(self.env, value.raw, 1, &raw mut reference) })?;
        Ok(Reference(reference))
    }

    pub fn referred(self, reference: &Reference) -> Outcome<'e> {
        Self::make(|raw| unsafe { sys::napi_get_reference_value(self.env, reference.0, raw) })
    }

    pub fn promise(self) -> Result<(Deferred, Value<'e>), Thrown> {
        let mut deferred = ptr::null_mut();
        let promise = Self::make(|raw| unsafe {
            sys::napi_create_promise(self.env, &raw mut deferred, raw)
        })?;
        Ok((Deferred(deferred), promise))
    }

    /// The JavaScript error that a failure stands for, made on this thread so that its stack has
    /// the caller's frames.
    pub fn error(self, thrown: Thrown) -> Outcome<'e> {
        match thrown {
            Thrown::Failure(failure) => failure::to_error(self, &failure),
            Thrown::Pending => {
                let mut pending = false;
                check(unsafe { sys::napi_is_exception_pending(self.env, &raw mut pending) })?;
                if !pending {
                    return failure::to_error(self, &Failure::Internal);
                }
                Self::make(|raw| unsafe { sys::napi_get_and_clear_last_exception(self.env, raw) })
            }
        }
    }

    fn throw(self, thrown: Thrown) {
        if let Ok(error) = self.error(thrown) {
            // Only an environment that is going away refuses; nobody is left to be told.
            let _ = unsafe { sys::napi_throw(self.env, error.raw) };
        }
    }

    /// Runs one task that came from another thread. What it throws is the process's uncaught
    /// exception, as of any callback.
    pub fn run_task(self, task: impl FnOnce(Js<'e>) -> Result<(), Thrown>) {
        let mut scope = ptr::null_mut();
        if check(unsafe { sys::napi_open_handle_scope(self.env, &raw mut scope) }).is_err() {
            return;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| task(self)));
        let thrown = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(thrown)) => Some(thrown),
            Err(_) => Some(Thrown::Failure(Failure::Internal)),
        };
        if let Some(Ok(error)) = thrown.map(|thrown| self.error(thrown)) {
            let _ = unsafe { sys::napi_fatal_exception(self.env, error.raw) };
        }
        let _ = unsafe { sys::napi_close_handle_scope(self.env, scope) };
    }
}

impl Deferred {
    /// Settles the promise, on its own thread.
    pub fn settle<'e>(self, js: Js<'e>, outcome: Outcome<'e>) -> Result<(), Thrown> {
        match outcome {
            Ok(value) => check(unsafe { sys::napi_resolve_deferred(js.env, self.0, value.raw) }),
            Err(thrown) => {
                let error = js.error(thrown)?;
                check(unsafe { sys::napi_reject_deferred(js.env, self.0, error.raw) })
            }
        }
    }
}

/// Where JavaScript enters: a panic becomes an Error, never the host's end.
unsafe extern "C" fn enter(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut count = MAX_ARGUMENTS;
    let mut raw = [ptr::null_mut(); MAX_ARGUMENTS];
    let mut data = ptr::null_mut();
    let told = unsafe {
        let (first, this) = (raw.as_mut_ptr(), ptr::null_mut());
        sys::napi_get_cb_info(env, info, &raw mut count, first, this, &raw mut data)
    };
    if told != sys::Status::napi_ok {
        return ptr::null_mut();
    }
    // SAFETY: `function` gave this entry as the function's data, and the house, which outlives all
    // of the environment's JavaScript, keeps it and itself alive.
    let (entry, house) = unsafe {
        let entry = &*data.cast::<Entry>();
        (entry, &*entry.house)
    };
    let js = Js { env, house };
    let arguments = raw.map(|raw| Value {
        raw,
        alive: PhantomData,
    });
    match catch_unwind(AssertUnwindSafe(|| (entry.native)(js, arguments))) {
        Ok(Ok(value)) => return value.raw,
        Ok(Err(thrown)) => js.throw(thrown),
        Err(_) => js.throw(Thrown::Failure(Failure::Internal)),
    }
    ptr::null_mut()
}

fn length(len: usize) -> isize {
    isize::try_from(len).unwrap_or(isize::MAX)
}
