//! Whether a resume is alone with its sandbox: what runs there is then nobody's.

use super::{CallId, Registry};

/// The calls of a lease that work in its sandbox, of whatever account: all but resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Works {
    /// Those that have not settled.
    pub running: u32,
    /// Those that have begun since the lease is stored.
    begun: u64,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It works in the sandbox.
    Work,
    /// It was alone when so many works had begun.
    ResumeAlone(u64),
    /// Works ran beside it from its beginning.
    Resume,
}

impl Works {
    /// A call begins.
    pub fn begin(&mut self, is_resume: bool) -> Kind {
        if !is_resume {
            self.running += 1;
            self.begun += 1;
            Kind::Work
        } else if self.running == 0 {
            Kind::ResumeAlone(self.begun)
        } else {
            Kind::Resume
        }
    }

    /// A call has settled.
    pub fn settle(&mut self, kind: Kind) {
        if kind == Kind::Work {
            self.running = self.running.saturating_sub(1);
        }
    }
}

impl Registry {
    /// Whether no call but resumes has run under this resume's lease since it began. What the provider
    /// has listed until now was started by no call of this driver.
    pub fn is_alone(&self, resume: CallId) -> bool {
        let state = self.lock();
        let Some(call) = state.calls.get(&resume) else {
            return false;
        };
        let works = state.leases.get(&call.scope.lease).map(|lease| lease.works);
        works.is_some_and(|works| call.kind == Kind::ResumeAlone(works.begun))
    }
}
