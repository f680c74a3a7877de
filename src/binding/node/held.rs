//! Things of ours that JavaScript holds without seeing into them.

#![expect(unsafe_code, reason = "Node-API is a C interface")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the proof, the same for all, stands at the top of the module"
)]

use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use napi::sys;

use super::{Js, Outcome, Thrown, Value, check};

/// What an External holds, with its type, so that one cannot be taken for another.
type Held = Arc<dyn Any + Send + Sync>;

impl<'e> Js<'e> {
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
}
