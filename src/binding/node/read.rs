//! Values from JavaScript. Nothing here runs JavaScript: the scripts hand over plain values.

#![expect(unsafe_code, reason = "Node-API is a C interface")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the proof, the same for all, stands at the top of the module"
)]

use std::ptr;

use napi::sys;

use super::{Js, Outcome, Thrown, Value, check};
use crate::text::Text;

/// Texts up to this many units are read without an allocation.
const INLINE_UNITS: usize = 64;

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

impl<'e> Js<'e> {
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
}
