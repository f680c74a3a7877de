//! A driver as the scripts hold it.

use std::sync::Arc;

use super::node::{Arguments, Js, Outcome};
use crate::registry::{OnDeadline, Registry};

/// A driver's own state.
pub struct Driver {
    pub registry: Registry,
    /// Has a call aborted whose deadline has passed.
    pub on_deadline: OnDeadline,
}

/// `createDriver() -> External`.
pub fn create<'e>(js: Js<'e>, _: Arguments<'e>) -> Outcome<'e> {
    let wake = Arc::clone(js.house().wake());
    let on_deadline = OnDeadline::new(move |calls| {
        wake.post(Box::new(move |js| {
            for call in calls {
                // It may have settled since, and its number may be another call's by now.
                if js.house().slots.borrow().holds(call) {
                    let slot = js.integer(call.tag)?;
                    js.house().call_hook(js, |hooks| &hooks.expire, &[slot])?;
                }
            }
            Ok(())
        }));
    });
    let registry = Registry::new();
    js.house().adopt(&registry);
    js.external(Arc::new(Driver {
        registry,
        on_deadline,
    }))
}
