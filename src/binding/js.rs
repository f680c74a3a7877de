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

use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use napi::sys;

use super::house::House;
use crate::error::Failure;
use crate::text::Text;

/// The most arguments a native function takes; further ones are not looked at.
const MAX_ARGUMENTS: usize = 16;
/// Texts up to this many units are read without an allocation.
const INLINE_UNITS: usize = 64;

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

/// The kinds of values that the package tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Nothing,
    Boolean,
    Number,
    Text,
    Object,
    Function,
    Other,
}

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

/// What an External holds, with its type, so that one cannot be taken for another.
type Held = Arc<dyn Any + Send + Sync>;

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

    pub fn undefined(self) -> Outcome<'e> {
        Self::make(|raw| unsafe { sys::napi_get_undefined(self.env, raw) })
    }

    pub fn null(self) -> Outcome<'e> {
        Self::make(|raw| unsafe { sys::napi_get_null(self.env, raw) })
    }

    pub fn boolean(self, value: bool) -> Outcome<'e> {
        Self::make(|raw| unsafe { sys::napi_get_boolean(self.env, value, raw) })
    }

    pub fn number(self, value: f64) -> Outcome<'e> {
        Self::make(|raw| unsafe { sys::napi_create_double(self.env, value, raw) })
    }

    pub fn integer(self, value: u32) -> Outcome<'e> {
        Self::make(|raw| unsafe { sys::napi_create_uint32(self.env, value, raw) })
    }

    pub fn string(self, value: &str) -> Outcome<'e> {
        Self::make(|raw| unsafe {
            sys::napi_create_string_utf8(self.env, value.as_ptr().cast(), length(value.len()), raw)
        })
    }

    pub fn text(self, units: &[u16]) -> Outcome<'e> {
        Self::make(|raw| unsafe {
            sys::napi_create_string_utf16(self.env, units.as_ptr(), length(units.len()), raw)
        })
    }

    pub fn optional_text(self, text: Option<&Text>) -> Outcome<'e> {
        text.map_or_else(|| self.null(), |text| self.text(text.units()))
    }

    pub fn array(self, values: impl IntoIterator<Item = Outcome<'e>>) -> Outcome<'e> {
        let array = Self::make(|raw| unsafe { sys::napi_create_array(self.env, raw) })?;
        for (index, value) in (0..).zip(values) {
            let value = value?;
            check(unsafe { sys::napi_set_element(self.env, array.raw, index, value.raw) })?;
        }
        Ok(array)
    }

    /// A `Uint8Array` of its own memory: what fetch's bodies are made of.
    pub fn bytes(self, bytes: &[u8]) -> Outcome<'e> {
        let mut data = ptr::null_mut();
        let buffer = Self::make(|raw| unsafe {
            sys::napi_create_arraybuffer(self.env, bytes.len(), &raw mut data, raw)
        })?;
        if !bytes.is_empty() {
            // SAFETY: Node-API has just given `bytes.len()` bytes of new memory at `data`.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast(), bytes.len()) };
        }
        Self::make(|raw| unsafe {
            let kind = sys::TypedarrayType::uint8_array;
            sys::napi_create_typedarray(self.env, kind, bytes.len(), buffer.raw, 0, raw)
        })
    }

    /// Something of ours that JavaScript holds without seeing into it.
    pub fn external<T: Any + Send + Sync>(self, value: Arc<T>) -> Outcome<'e> {
        unsafe extern "C" fn release(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
            // SAFETY: `data` is the box that `external` made; Node calls this once.
            drop(unsafe { Box::from_raw(data.cast::<Held>()) });
        }
        let held: Held = value;
        let data = Box::into_raw(Box::new(held)).cast();
        let made = Self::make(|raw| unsafe {
            sys::napi_create_external(self.env, data, Some(release), ptr::null_mut(), raw)
        });
        if made.is_err() {
            // SAFETY: Node did not take the box.
            drop(unsafe { Box::from_raw(data.cast::<Held>()) });
        }
        made
    }

    /// What an External of ours holds.
    pub fn held<T: Any + Send + Sync>(self, value: Value<'e>) -> Result<&'e T, Thrown> {
        self.held_any(value)?.downcast_ref().ok_or(Thrown::Pending)
    }

    /// What an External of ours holds, to be kept.
    pub fn keep<T: Any + Send + Sync>(self, value: Value<'e>) -> Result<Arc<T>, Thrown> {
        Arc::clone(self.held_any(value)?)
            .downcast()
            .map_err(|_| Thrown::Pending)
    }

    fn held_any(self, value: Value<'e>) -> Result<&'e Held, Thrown> {
        let mut data = ptr::null_mut();
        check(unsafe { sys::napi_get_value_external(self.env, value.raw, &raw mut data) })?;
        // SAFETY: the scripts keep our Externals in private fields and hand no others over, so this
        // one was made by `external`; the value keeps its box alive.
        Ok(unsafe { &*data.cast::<Held>() })
    }

    pub fn kind(self, value: Value<'e>) -> Result<Kind, Thrown> {
        let mut kind = 0;
        check(unsafe { sys::napi_typeof(self.env, value.raw, &raw mut kind) })?;
        Ok(match kind {
            sys::ValueType::napi_undefined | sys::ValueType::napi_null => Kind::Nothing,
            sys::ValueType::napi_boolean => Kind::Boolean,
            sys::ValueType::napi_number => Kind::Number,
            sys::ValueType::napi_string => Kind::Text,
            sys::ValueType::napi_object => Kind::Object,
            sys::ValueType::napi_function => Kind::Function,
            _ => Kind::Other,
        })
    }

    /// JavaScript's own `===`.
    pub fn same(self, one: Value<'e>, other: Value<'e>) -> Result<bool, Thrown> {
        let mut same = false;
        check(unsafe { sys::napi_strict_equals(self.env, one.raw, other.raw, &raw mut same) })?;
        Ok(same)
    }

    pub fn to_boolean(self, value: Value<'e>) -> Result<bool, Thrown> {
        let mut boolean = false;
        check(unsafe { sys::napi_get_value_bool(self.env, value.raw, &raw mut boolean) })?;
        Ok(boolean)
    }

    pub fn to_number(self, value: Value<'e>) -> Result<f64, Thrown> {
        let mut number = 0.0;
        check(unsafe { sys::napi_get_value_double(self.env, value.raw, &raw mut number) })?;
        Ok(number)
    }

    pub fn to_integer(self, value: Value<'e>) -> Result<u32, Thrown> {
        let mut integer = 0;
        check(unsafe { sys::napi_get_value_uint32(self.env, value.raw, &raw mut integer) })?;
        Ok(integer)
    }

    /// How many units a string has.
    pub fn text_length(self, value: Value<'e>) -> Result<usize, Thrown> {
        let mut units = 0;
        check(unsafe {
            let nowhere = ptr::null_mut();
            sys::napi_get_value_string_utf16(self.env, value.raw, nowhere, 0, &raw mut units)
        })?;
        Ok(units)
    }

    /// Reads a string's units and hands them on; short ones are read in place.
    pub fn with_text<R>(
        self,
        value: Value<'e>,
        read: impl FnOnce(&[u16]) -> R,
    ) -> Result<R, Thrown> {
        let mut inline = [0_u16; INLINE_UNITS];
        let mut units = 0;
        check(unsafe {
            let buffer = inline.as_mut_ptr();
            sys::napi_get_value_string_utf16(
                self.env,
                value.raw,
                buffer,
                INLINE_UNITS,
                &raw mut units,
            )
        })?;
        // A full buffer (less the terminator) may hold only the beginning.
        if units < INLINE_UNITS - 1 {
            return Ok(read(&inline[..units]));
        }
        let mut long = vec![0_u16; self.text_length(value)? + 1];
        check(unsafe {
            let buffer = long.as_mut_ptr();
            sys::napi_get_value_string_utf16(
                self.env,
                value.raw,
                buffer,
                long.len(),
                &raw mut units,
            )
        })?;
        Ok(read(&long[..units]))
    }

    pub fn to_text(self, value: Value<'e>) -> Result<Text, Thrown> {
        self.with_text(value, Text::from_units)
    }

    /// A string as UTF-8, lone surrogates replaced.
    pub fn to_string(self, value: Value<'e>) -> Result<String, Thrown> {
        self.with_text(value, String::from_utf16_lossy)
    }

    pub fn array_length(self, value: Value<'e>) -> Result<u32, Thrown> {
        let mut length = 0;
        check(unsafe { sys::napi_get_array_length(self.env, value.raw, &raw mut length) })?;
        Ok(length)
    }

    pub fn element(self, array: Value<'e>, index: u32) -> Outcome<'e> {
        Self::make(|raw| unsafe { sys::napi_get_element(self.env, array.raw, index, raw) })
    }

    /// The elements of an array that the scripts made: plain, without accessors.
    pub fn elements(self, array: Value<'e>) -> Result<Vec<Value<'e>>, Thrown> {
        (0..self.array_length(array)?)
            .map(|index| self.element(array, index))
            .collect()
    }

    pub fn set(self, object: Value<'e>, name: &str, value: Value<'e>) -> Result<(), Thrown> {
        let name = self.string(name)?;
        check(unsafe { sys::napi_set_property(self.env, object.raw, name.raw, value.raw) })
    }

    pub fn get(self, object: Value<'e>, name: &str) -> Outcome<'e> {
        let name = self.string(name)?;
        Self::make(|raw| unsafe { sys::napi_get_property(self.env, object.raw, name.raw, raw) })
    }

    pub fn object(self) -> Outcome<'e> {
        Self::make(|raw| unsafe { sys::napi_create_object(self.env, raw) })
    }

    /// A copy of a `Uint8Array`'s bytes.
    pub fn to_bytes(self, value: Value<'e>) -> Result<Vec<u8>, Thrown> {
        let (mut kind, mut length, mut data) = (0, 0, ptr::null_mut());
        check(unsafe {
            sys::napi_get_typedarray_info(
                self.env,
                value.raw,
                &raw mut kind,
                &raw mut length,
                &raw mut data,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        })?;
        if kind != sys::TypedarrayType::uint8_array {
            return Err(Thrown::Pending);
        }
        if length == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: Node-API tells where the array's bytes are and how many; no JavaScript runs
        // while they are copied.
        Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) }.to_vec())
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
            Thrown::Failure(failure) => super::error::to_error(self, &failure),
            Thrown::Pending => {
                let mut pending = false;
                check(unsafe { sys::napi_is_exception_pending(self.env, &raw mut pending) })?;
                if !pending {
                    return super::error::to_error(self, &Failure::Internal);
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
