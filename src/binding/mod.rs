//! The boundary to Node: the only place of the package that names napi.
//!
//! JavaScript does what is JavaScript's: it reads properties, chains promises, makes
//! `AbortController`s. It does so in a few small scripts that the addon carries and runs when it is
//! loaded (`script/`). Rust decides: configuration, ownership, scope, marks, deadlines, requests.
//! The scripts call the functions listed here, with plain strings, numbers and handles.

#![expect(
    unsafe_code,
    reason = "the environment's hooks are C functions with pointers of ours"
)]

mod client;
mod config;
mod driver;
mod execute;
mod lifecycle;
mod node;
mod promise;
mod resume;
mod track;
mod transfer;

use std::ffi::c_void;
use std::sync::Arc;

use napi::bindgen_prelude::Object;
use napi::{Env, JsValue, sys};
use napi_derive::napi;

use node::{Hooks, House, Js, Native, Thrown, Value, Wake};

use crate::error::Code;

/// What the scripts call, by name.
const NATIVES: &[(&str, Native)] = &[
    ("parseConfig", config::parse),
    ("describe", config::describe),
    ("wantsEnvironmentKey", config::wants_environment_key),
    ("resolveApiKey", config::resolve_api_key),
    ("createClient", client::create),
    ("clientKey", client::key),
    ("createCancel", client::create_cancel),
    ("cancel", client::cancel),
    ("run", promise::run),
    ("request", transfer::request),
    ("readBody", transfer::read_body),
    ("dropBody", transfer::drop_body),
    ("createUpload", transfer::create_upload),
    ("pushUpload", transfer::push_upload),
    ("endUpload", transfer::end_upload),
    ("json", client::json),
    ("getSandbox", client::get_sandbox),
    ("createSandbox", client::create_sandbox),
    ("destroySandbox", client::destroy_sandbox),
    ("transition", client::transition),
    ("setEgress", client::set_egress),
    ("upload", client::upload),
    ("claim", track::claim),
    ("refuse", track::refuse),
    ("isOrigin", track::is_origin),
    ("scopeKey", track::scope_key),
    ("leaseState", track::lease_state),
    ("admit", track::admit),
    ("begin", track::begin),
    ("end", track::end),
    ("createDriver", driver::create),
    ("beginRelease", lifecycle::begin_release),
    ("finishRelease", lifecycle::finish_release),
    ("beginShutdown", lifecycle::begin_shutdown),
    ("finishShutdown", lifecycle::finish_shutdown),
    ("refuseExpiry", lifecycle::refuse_expiry),
    ("acquire", lifecycle::acquire),
    ("probe", lifecycle::probe),
    ("resume", resume::resume),
    ("prepareCommand", execute::prepare),
    ("createOutput", execute::create_output),
    ("execute", execute::execute),
    ("awaitOutput", execute::await_output),
    ("takeOutput", execute::take_output),
    ("dropOutput", execute::drop_output),
    ("refuseCancelled", execute::refuse_cancelled),
];

/// The scripts, in the order in which they are run. Each is a function of the native functions and
/// of what the scripts before it share.
const SCRIPTS: &[&str] = &[
    include_str!("script/errors.js"),
    include_str!("script/config.js"),
    include_str!("script/signals.js"),
    include_str!("script/client.js"),
    include_str!("script/guards.js"),
    include_str!("script/calls.js"),
    include_str!("script/lifecycle.js"),
    include_str!("script/execute.js"),
    include_str!("script/driver.js"),
];

/// The stable error codes: the type in `index.d.ts` and the README's table are held against them.
#[napi]
pub fn error_codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|code| code.as_str()).collect()
}

/// Loads the addon into an environment.
#[napi(module_exports)]
pub fn load(exports: Object<'_>, env: Env) -> napi::Result<()> {
    let wake = Arc::new(Wake::default());
    let house = Box::into_raw(Box::new(House::new(Arc::clone(&wake))));
    let raw = env.raw();
    // SAFETY: Node is loading the addon in this environment, on its thread. The house is freed by
    // `demolish`, which Node calls when no JavaScript of the environment is left, and the hook that
    // closes the wake is added after the wake's function was made, so it runs before that goes.
    let furnished = unsafe {
        let owned =
            sys::napi_set_instance_data(raw, house.cast(), Some(demolish), std::ptr::null_mut());
        if owned != sys::Status::napi_ok {
            drop(Box::from_raw(house));
            return Err(loading_failed());
        }
        if wake.open(raw, house) != sys::Status::napi_ok
            || sys::napi_add_env_cleanup_hook(raw, Some(close), house.cast())
                != sys::Status::napi_ok
        {
            return Err(loading_failed());
        }
        let js = Js::new(raw, &*house);
        furnish(js, Value::new(exports.raw()))
    };
    furnished.map_err(|_| loading_failed())
}

/// An environment that is being terminated while it loads the addon, most likely.
fn loading_failed() -> napi::Error {
    napi::Error::from_reason("createos-lease could not be loaded.")
}

/// Runs the scripts and sets what they export.
fn furnish<'e>(js: Js<'e>, exports: Value<'e>) -> Result<(), Thrown> {
    let native = js.object()?;
    for (name, function) in NATIVES {
        js.set(native, name, js.function(name, *function)?)?;
    }
    let shared = js.object()?;
    for script in SCRIPTS {
        js.call(js.run_script(script)?, &[native, shared, exports])?;
    }
    js.house().set_hooks(Hooks {
        failure: js.refer(js.get(shared, "failure")?)?,
        expire: js.refer(js.get(shared, "expire")?)?,
    });
    Ok(())
}

unsafe extern "C" fn close(house: *mut c_void) {
    // SAFETY: the house lives until `demolish`, which comes after the clean-up hooks, and is shared
    // with nobody mutably.
    unsafe { &*house.cast::<House>() }.close();
}

unsafe extern "C" fn demolish(_: sys::napi_env, house: *mut c_void, _: *mut c_void) {
    // SAFETY: `load` made the box, and Node calls this once, after the environment's end.
    drop(unsafe { Box::from_raw(house.cast::<House>()) });
}
