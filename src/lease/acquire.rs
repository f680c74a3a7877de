//! Getting a lease (specification, section 8): a sandbox that runs, with its workspace and a marker
//! by which a later resume knows it again. Either a lease comes back or the sandbox is removed, or
//! the error names it.

use uuid::Uuid;

use crate::clock::millis;
use crate::config::{Config, unique_lines};
use crate::error::{ConfigFault, ConfigField, Desired, Failure};
use crate::http::{Bound, Client, CreateSandbox, SandboxId};
use crate::registry::Registry;
use crate::runtime;
use crate::text::Text;

/// Where a lease's files are in its sandbox.
pub const WORKSPACE: &str = "/paperclip-workspace";
/// The folder that hosts leave out when they export the workspace.
const RUNTIME: &str = "/paperclip-workspace/.paperclip-runtime";
/// The file that holds the lease's marker.
const MARKER: &str = "/paperclip-workspace/.paperclip-runtime/.paperclip-createos-lease";
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
    /// 36 characters of `0-9a-f-`, random.
    pub marker: String,
}

/// Creates a sandbox and prepares it, within the configuration's timeout. A shutdown gives it up; a
/// creation that is under way is waited for then, since only its answer tells what is to be removed.
pub async fn acquire(
    registry: &Registry,
    client: &Client,
    plan: Plan,
) -> Result<Acquired, Failure> {
    let config = client.config();
    let _acquiring = registry.acquiring()?;
    let ending = registry.ending();
    let bound = client.default_bound();
    let request = CreateSandbox {
        name: unique_name(),
        shape: config.shape.clone(),
        rootfs: plan.rootfs,
        region: config.region.clone(),
        egress: plan.egress,
        auto_pause_after_seconds: plan.auto_pause_after_seconds,
    };
    let creating = bound.clone().and_cancelled_unsent_by(ending.clone());
    let sandbox = match client.create_sandbox(&request, creating).await {
        Ok(sandbox) => sandbox,
        Err(failure) => return Err(remove_lost(client, &request.name, failure).await),
    };
    let preparing = bound.and_cancelled_by(ending.clone());
    match prepare(client, &sandbox, preparing).await {
        Ok(marker) => Ok(Acquired { sandbox, marker }),
        Err(failure) => Err(remove(client, &sandbox, failure).await),
    }
}

/// A name that no other sandbox has, so that one whose creation was not answered can be found. Short
/// enough for a host name, which the provider makes of it.
pub fn unique_name() -> String {
    format!("createos-lease-{}", Uuid::new_v4().simple())
}

/// Brings a new sandbox to running, makes its workspace and leaves the marker there.
async fn prepare(client: &Client, sandbox: &SandboxId, bound: Bound) -> Result<String, Failure> {
    client
        .transition(sandbox, Desired::Running, bound.clone())
        .await?;
    let script = format!("mkdir -p -- '{WORKSPACE}' '{RUNTIME}'");
    let made = client
        .exec(sandbox, "/bin/bash", &["-lc", &script], bound.clone())
        .await?;
    if !made.succeeded() {
        return Err(Failure::WorkspaceUnprepared);
    }
    let marker = Uuid::new_v4().hyphenated().to_string();
    client
        .upload(sandbox, MARKER, marker.clone().into(), bound)
        .await?;
    Ok(marker)
}

/// A creation failed that the provider may have carried out all the same: looks for the sandbox by
/// its name, and removes it. Where the provider shows none, or shows nothing, the failure surfaces.
async fn remove_lost(client: &Client, name: &str, failure: Failure) -> Failure {
    if !failure.may_have_been_done() {
        return failure;
    }
    match client
        .find_sandbox(name, Bound::once_sent(millis(client.config().timeout_ms)))
        .await
    {
        Ok(Some(sandbox)) => remove(client, &sandbox, failure).await,
        Ok(None) | Err(_) => failure,
    }
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
            let _ = remove(&client, &acquired.sandbox, Failure::Closing).await;
        });
    }
}

/// Removes what could not be prepared. The first failure surfaces, unless the sandbox may still be
/// there: then the error has to name it.
async fn remove(client: &Client, sandbox: &SandboxId, failure: Failure) -> Failure {
    let timeout = millis(client.config().timeout_ms);
    match client
        .destroy_sandbox(sandbox, Bound::once_sent(timeout))
        .await
    {
        Ok(()) => failure,
        Err(_) => Failure::SetupUnconfirmed {
            sandbox_id: sandbox.as_str().to_owned(),
        },
    }
}
