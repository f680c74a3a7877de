//! How other threads reach an environment's thread: a queue of tasks, and one threadsafe function
//! that is called when the queue stops being empty.
//!
//! The function is unreferenced, so a pending deadline never keeps the process alive; promises
//! that must hold the loop reference it while they wait.

#![expect(
    unsafe_code,
    reason = "a threadsafe function has no safe interface that can be closed"
)]

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use napi::sys;

use super::house::House;
use super::{Js, Thrown};

/// Something to be done on the environment's thread.
pub type Task = Box<dyn for<'e> FnOnce(Js<'e>) -> Result<(), Thrown> + Send>;

/// The way to an environment's thread. Posting to a closed one drops the task.
#[derive(Default)]
pub struct Wake {
    /// Guards the queue and the function's life: it is called only under the lock, and gone from
    /// here before the environment frees it.
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    function: Option<Function>,
    /// The function has been called and has not yet taken the tasks.
    called: bool,
}

#[derive(Clone, Copy)]
struct Function(sys::napi_threadsafe_function);

// SAFETY: Node-API documents the function's calls as safe from any thread while it lives, and
// `Wake` forgets it before it dies.
unsafe impl Send for Function {}

impl Wake {
    /// Opens the way to the environment of `house`.
    ///
    /// # Safety
    ///
    /// `env` must be the running environment and `house` its own, which must live until the
    /// environment is gone.
    pub unsafe fn open(&self, env: sys::napi_env, house: *const House) -> sys::napi_status {
        let mut function = ptr::null_mut();
        let mut name = ptr::null_mut();
        // SAFETY: the environment is running, and every pointer is to a local that outlives the
        // call. The house is only reached through the function, which dies before it.
        let status = unsafe {
            let text = c"createos-lease";
            let length = text.count_bytes().cast_signed();
            match sys::napi_create_string_utf8(env, text.as_ptr(), length, &raw mut name) {
                sys::Status::napi_ok => sys::napi_create_threadsafe_function(
                    env,
                    ptr::null_mut(),
                    ptr::null_mut(),
                    name,
                    0,
                    1,
                    ptr::null_mut(),
                    None,
                    house.cast_mut().cast(),
                    Some(run_tasks),
                    &raw mut function,
                ),
                failed => failed,
            }
        };
        if status != sys::Status::napi_ok {
            return status;
        }
        self.lock().function = Some(Function(function));
        // SAFETY: the function was made above, in this environment.
        unsafe { sys::napi_unref_threadsafe_function(env, function) }
    }

    /// Has the task done soon. Dropped when the environment is gone.
    pub fn post(&self, task: Task) {
        let mut queue = self.lock();
        let Some(Function(function)) = queue.function else {
            drop(queue);
            drop(task);
            return;
        };
        queue.tasks.push_back(task);
        if !std::mem::replace(&mut queue.called, true) {
            let mode = sys::ThreadsafeFunctionCallMode::nonblocking;
            // SAFETY: the function lives while it is in the queue, which is locked. Its queue is
            // unlimited; should the call fail, the environment is ending and the tasks with it.
            unsafe { sys::napi_call_threadsafe_function(function, ptr::null_mut(), mode) };
        }
    }

    /// Has the event loop wait, or not, for what will be posted. On the environment's thread only.
    pub fn hold_loop(&self, env: sys::napi_env, hold: bool) {
        if let Some(Function(function)) = self.lock().function {
            // SAFETY: on the environment's own thread, with a living function.
            unsafe {
                if hold {
                    sys::napi_ref_threadsafe_function(env, function);
                } else {
                    sys::napi_unref_threadsafe_function(env, function);
                }
            }
        }
    }

    /// Forgets the function and the tasks.
    pub fn close(&self) {
        let tasks = {
            let mut queue = self.lock();
            queue.function = None;
            std::mem::take(&mut queue.tasks)
        };
        // Outside the lock: what a task owns may post when it is dropped.
        drop(tasks);
    }

    fn take(&self) -> VecDeque<Task> {
        let mut queue = self.lock();
        queue.called = false;
        std::mem::take(&mut queue.tasks)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

unsafe extern "C" fn run_tasks(
    env: sys::napi_env,
    _function: sys::napi_value,
    house: *mut c_void,
    _data: *mut c_void,
) {
    // Calls that were still queued when the environment ended come without one.
    if env.is_null() {
        return;
    }
    // SAFETY: `open` was given the house of this environment, which is running.
    let js = unsafe { Js::new(env, &*house.cast::<House>()) };
    for task in js.house().wake().take() {
        js.run_task(task);
    }
}
