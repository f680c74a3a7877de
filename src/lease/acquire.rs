//! Getting a lease (specification, section 8): a sandbox that runs, with its workspace and a marker
//! by which a later resume knows it again. Either a lease comes back or the sandbox is removed, or
//! the error names it.

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::removal::{remove, remove_lost};
use super::workspace::{Marker, prepare};
use crate::config::{Config, unique_lines};
use crate::error::{ConfigFault, ConfigField, Failure};
use crate::http::{Client, CreateSandbox, SandboxId};
use crate::registry::Acquiring;
use crate::runtime;
use crate::text::Text;

/// Lets everything out; as one rule among others it would undo them.
const ANYWHERE: &str = "*";

/// What the caller asks for, beyond the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wishes {
    /// Whose image to use, where the configuration has one for it.
    pub adapter: Option<Text>,
    /// The run's own egress rules; `None` for one that is no string.
    pub allow_fqdns: Vec<Option<Text>>,
    pub allow_cidrs: Vec<Option<Text>>,
    /// There is an issue or a workspace that a reused lease would serve.
    pub reusable: bool,
}

/// What a lease is acquired with: decided before the first request, recorded in its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub rootfs: Option<Text>,
    pub egress: Vec<Text>,
    /// Seconds. `None`: the provider never pauses it by itself.
    pub auto_pause_after_seconds: Option<u32>,
}

impl Plan {
    /// Brings the configuration and the caller's wishes together.
    pub fn new(config: &Config, wishes: &Wishes) -> Result<Self, Failure> {
        let own = config.egress_allowlist.iter().cloned().map(Some);
        let granted = wishes
            .allow_fqdns
            .iter()
            .chain(&wishes.allow_cidrs)
            .cloned();
        let mut egress = unique_lines(own.chain(granted)).ok_or(Failure::Config {
            field: ConfigField::NetworkEgress,
            fault: ConfigFault::NetworkEgressEntry,
        })?;
        if egress.len() > 1 {
            let anywhere = Text::from(ANYWHERE);
            egress.retain(|rule| *rule != anywhere);
        }
        Ok(Self {
            rootfs: config.rootfs_for(wishes.adapter.as_ref()).cloned(),
            egress,
            auto_pause_after_seconds: config
                .auto_pause_after_seconds
                .filter(|_| config.reuse_lease && wishes.reusable),
        })
    }
}

/// A sandbox that is ready for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquired {
    pub sandbox: SandboxId,
    pub marker: Marker,
}

/// Creates a sandbox and prepares it, within the configuration's timeout. A shutdown gives it up, and so
/// does `cancel`; a creation that is under way is waited for then, since only its answer tells what is to
/// be removed. The shutdown waits until `acquiring` is dropped: for whoever has to tell the caller first.
pub async fn acquire(
    acquiring: &Acquiring,
    client: &Client,
    plan: Plan,
    cancel: CancellationToken,
) -> Result<Acquired, Failure> {
    let config = client.config();
    let ending = acquiring.registry().ending().clone();
    let bound = client.default_bound();
    let request = CreateSandbox {
        name: unique_name(),
        shape: config.shape.clone(),
        rootfs: plan.rootfs,
        region: config.region.clone(),
        egress: plan.egress,
        auto_pause_after_seconds: plan.auto_pause_after_seconds,
    };
    let creating = bound
        .clone()
        .and_cancelled_unsent_by(ending.clone())
        .and_cancelled_unsent_by(cancel.clone());
    let sandbox = match client.create_sandbox(&request, creating).await {
        Ok(sandbox) => sandbox,
        Err(failure) => {
            // Given up while the creation was under way, whatever became of that.
            let surfaces = if ending.is_cancelled() || cancel.is_cancelled() {
                Failure::Aborted { sent: true }
            } else {
                failure.clone()
            };
            remove_lost(client, &request.name, &failure).await?;
            return Err(surfaces);
        }
    };
    let preparing = bound.and_cancelled_by(ending).and_cancelled_by(cancel);
    match prepare(client, &sandbox, preparing).await {
        Ok(marker) => Ok(Acquired { sandbox, marker }),
        Err(failure) => {
            remove(client, &sandbox).await?;
            Err(failure)
        }
    }
}

/// A name that no other sandbox has, so that one whose creation was not answered can be found. Short
/// enough for a host name, which the provider makes of it.
pub fn unique_name() -> String {
    format!("createos-lease-{}", Uuid::new_v4().simple())
}

/// A sandbox that has been acquired and not yet been handed over. Dropped, it is removed: whoever asked
/// for it is not there any more.
#[derive(Debug)]
pub struct Handover {
    client: Client,
    acquired: Option<Acquired>,
}

impl Handover {
    /// What was acquired with this client.
    pub fn new(client: Client, acquired: Acquired) -> Self {
        Self {
            client,
            acquired: Some(acquired),
        }
    }

    /// What is to be handed over.
    pub fn acquired(&self) -> Option<&Acquired> {
        self.acquired.as_ref()
    }

    /// It has been.
    pub fn done(mut self) {
        self.acquired = None;
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        let Some((acquired, runtime)) = self.acquired.take().zip(runtime::handle()) else {
            return;
        };
        let client = self.client.clone();
        runtime.spawn(async move {
            // Nobody is left to be told how it went.
            let _ = remove(&client, &acquired.sandbox).await;
        });
    }
}
