//! Running calls by a small number, under which the scripts keep each one's `AbortController` in a
//! plain array. A number is used again once its call has settled.

use crate::registry::{CallId, Registry};

/// The calls of one environment, all its drivers together.
#[derive(Default)]
pub struct Slots {
    calls: Vec<Option<(Registry, CallId)>>,
    free: Vec<u32>,
}

impl Slots {
    /// A free number, to be filled or given back.
    pub fn reserve(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.calls.push(None);
            u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Gives a reserved number back unused.
    pub fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Puts the call under the number that was reserved for it.
    pub fn fill(&mut self, registry: Registry, call: CallId) {
        if let Some(place) = self.calls.get_mut(call.tag as usize) {
            *place = Some((registry, call));
        }
    }

    /// Whether this very call is still under its number.
    pub fn holds(&self, call: CallId) -> bool {
        let place = self.calls.get(call.tag as usize);
        place.is_some_and(|place| place.as_ref().is_some_and(|(_, held)| *held == call))
    }

    /// Takes the call out and frees its number.
    pub fn remove(&mut self, slot: u32) -> Option<(Registry, CallId)> {
        let call = self.calls.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(call)
    }
}
