//! Values for JavaScript.

#![expect(unsafe_code, reason = "Node-API is a C interface")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the proof, the same for all, stands at the top of the module"
)]

use std::ptr;

use napi::sys;

use super::{Js, Outcome, Thrown, Value, check, length};
use crate::text::Text;

impl<'e> Js<'e> {
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

    /// A string of ASCII, which V8 only copies.
    pub fn ascii(self, bytes: &[u8]) -> Outcome<'e> {
        Self::make(|raw| unsafe {
            let (first, count) = (bytes.as_ptr().cast(), length(bytes.len()));
            sys::napi_create_string_latin1(self.env, first, count, raw)
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
}
