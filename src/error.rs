//! Every way in which the package fails, with the exact message and code that JavaScript sees
//! (specification, section 7). The binding turns a `Failure` into an Error; nothing else does.

use thiserror::Error;

/// A failure. Each variant says which error JavaScript sees.
///
/// No variant holds a key, a body, a path, a query or a configured host, so none can print one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    /// `CreateosError`, `ERR_CREATEOS_LEASE_MISMATCH`, with `mismatches`.
    #[error("{}", .action.refusal())]
    Mismatch {
        action: Action,
        mismatches: Vec<LeaseField>,
    },
    /// `CreateosError`, `ERR_CREATEOS_LEASE_CLOSING`.
    #[error("CreateOS lease is closing or requires cleanup.")]
    Closing,
    /// `CreateosError`, `ERR_CREATEOS_LEASE_CLOSING`.
    #[error("CreateOS lease cleanup must finish before resume.")]
    ClosingToResume,
    /// `CreateosError`, `ERR_CREATEOS_RELEASE_IN_PROGRESS`.
    #[error("CreateOS lease cleanup is already in progress.")]
    ReleaseInProgress,
    /// `CreateosError`, `ERR_CREATEOS_CLEANUP_UNCONFIRMED`.
    #[error("CreateOS process cleanup is unconfirmed; destroy this lease before reusing it.")]
    Unconfirmed,
    /// `CreateosCleanupError`, `ERR_CREATEOS_CLEANUP_UNCONFIRMED`.
    #[error("CreateOS command cleanup failed; process termination is unconfirmed.")]
    ProcessUnconfirmed,
    /// `CreateosCleanupError`, `ERR_CREATEOS_CLEANUP_UNCONFIRMED`.
    #[error(
        "CreateOS process creation could not be confirmed; destroy the lease before reusing it."
    )]
    CreationUnconfirmed,
    /// `CreateosCleanupError`, `ERR_CREATEOS_CLEANUP_UNCONFIRMED`, with `sandboxId`.
    #[error("CreateOS setup failed and cleanup is unconfirmed for sandbox {sandbox_id}.")]
    SetupUnconfirmed { sandbox_id: String },
    /// `CreateosError`, `ERR_CREATEOS_UNSUPPORTED`.
    #[error("CreateOS does not yet support leases with a guaranteed expiration deadline.")]
    ExpiryUnsupported,
    /// `CreateosError`, `ERR_CREATEOS_SETUP`.
    #[error("CreateOS workspace preparation failed; the image must provide Bash.")]
    WorkspaceUnprepared,
    /// `CreateosError`, `ERR_CREATEOS_SETUP`.
    #[error("CreateOS command probe failed.")]
    ProbeFailed,
    /// `CreateosError`, `ERR_CREATEOS_COMMAND`.
    #[error("{0}")]
    Command(CommandFault),
    /// `CreateosError`, `ERR_CREATEOS_OUTPUT`.
    #[error("{0}")]
    Output(OutputFault),
    /// `CreateosError`, `ERR_CREATEOS_CANCELLED`.
    #[error("CreateOS command was cancelled.")]
    CommandCancelled,
    /// `CreateosError`, `ERR_CREATEOS_TIMEOUT_INVALID`.
    #[error("Invalid CreateOS command timeout.")]
    TimeoutInvalid,
    /// `CreateosError`, `ERR_CREATEOS_CONFIG`, with `field`.
    #[error("{fault}")]
    Config {
        field: ConfigField,
        fault: ConfigFault,
    },
    /// `CreateosError`, `ERR_CREATEOS_API_KEY`.
    #[error("CreateOS requires an API key in the environment config or CREATEOS_API_KEY.")]
    ApiKeyMissing,
    /// `CreateosError`, `ERR_CREATEOS_API_KEY`.
    #[error(
        "Custom CreateOS API endpoints require an explicit environment API key; the host fallback is only available for https://api.sb.createos.sh."
    )]
    ApiKeyNotForOrigin,
    /// `CreateosApiError`, `ERR_CREATEOS_API`, with `status` and `operation`.
    #[error("CreateOS request failed (HTTP {status}) during {operation}.")]
    Api { status: u16, operation: Operation },
    /// `CreateosError`, `ERR_CREATEOS_CONNECTION`. `sent` tells whether the provider may have seen
    /// the request; JavaScript is not told.
    #[error("CreateOS connection failed.")]
    Connection { sent: bool },
    /// `CreateosError`, `ERR_CREATEOS_RESPONSE`.
    #[error("{0}")]
    Response(ResponseFault),
    /// `CreateosError`, `ERR_CREATEOS_STATE`.
    #[error("CreateOS sandbox did not reach {}.", .desired.as_str())]
    State { desired: Desired },
    /// A body broke midway: a plain `TypeError`, as fetch's bodies fail.
    #[error("terminated")]
    BodyBroken,
    /// The caller's signal, a release or a shutdown ended it: the signal's own reason. `sent` tells
    /// whether the provider may have seen a request.
    #[error("This operation was aborted")]
    Aborted { sent: bool },
    /// The deadline passed: a `DOMException` named `TimeoutError`.
    #[error("The operation was aborted due to timeout")]
    TimedOut { sent: bool },
    /// `CreateosError`, `ERR_CREATEOS_CONNECTION`: the system gives no thread to work on.
    #[error("CreateOS connection failed.")]
    NoRuntime,
    /// A plain `Error`: a fault of this package itself, such as a panic.
    #[error("CreateOS lease engine failed.")]
    Internal,
}

impl Failure {
    /// The error's code. Never changes for a given failure: programs branch on it.
    pub fn code(&self) -> Option<Code> {
        Some(match self {
            Self::Mismatch { .. } => Code::LeaseMismatch,
            Self::Closing | Self::ClosingToResume => Code::LeaseClosing,
            Self::ReleaseInProgress => Code::ReleaseInProgress,
            Self::Unconfirmed
            | Self::ProcessUnconfirmed
            | Self::CreationUnconfirmed
            | Self::SetupUnconfirmed { .. } => Code::CleanupUnconfirmed,
            Self::Command(_) => Code::Command,
            Self::Output(_) => Code::Output,
            Self::CommandCancelled => Code::Cancelled,
            Self::ExpiryUnsupported => Code::Unsupported,
            Self::WorkspaceUnprepared | Self::ProbeFailed => Code::Setup,
            Self::TimeoutInvalid => Code::TimeoutInvalid,
            Self::Config { .. } => Code::Config,
            Self::ApiKeyMissing | Self::ApiKeyNotForOrigin => Code::ApiKey,
            Self::Api { .. } => Code::Api,
            Self::Connection { .. } | Self::NoRuntime => Code::Connection,
            Self::Response(_) => Code::Response,
            Self::State { .. } => Code::State,
            Self::BodyBroken | Self::Aborted { .. } | Self::TimedOut { .. } | Self::Internal => {
                return None;
            }
        })
    }

    /// Whether the provider may have done what it was asked for all the same.
    pub fn may_have_been_done(&self) -> bool {
        match self {
            Self::Connection { sent } | Self::Aborted { sent } | Self::TimedOut { sent } => *sent,
            // Only these say that the request was refused.
            Self::Api { status, .. } => !(400..500).contains(status),
            Self::Response(_) | Self::BodyBroken => true,
            Self::Mismatch { .. }
            | Self::Closing
            | Self::ClosingToResume
            | Self::ReleaseInProgress
            | Self::Unconfirmed
            | Self::ProcessUnconfirmed
            | Self::CreationUnconfirmed
            | Self::SetupUnconfirmed { .. }
            | Self::Command(_)
            | Self::Output(_)
            | Self::CommandCancelled
            | Self::ExpiryUnsupported
            | Self::WorkspaceUnprepared
            | Self::ProbeFailed
            | Self::TimeoutInvalid
            | Self::Config { .. }
            | Self::ApiKeyMissing
            | Self::ApiKeyNotForOrigin
            | Self::State { .. }
            | Self::NoRuntime
            | Self::Internal => false,
        }
    }

    /// Whether it may be over in a moment: the provider or the way to it fails.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Api { status, .. } => *status >= 500,
            Self::Response(fault) => *fault == ResponseFault::BrokenOff,
            other => matches!(other, Self::Connection { .. } | Self::BodyBroken),
        }
    }

    /// Whether it is HTTP 429: not now, after the client has waited as long as it does.
    pub fn is_too_many(&self) -> bool {
        matches!(self, Self::Api { status: 429, .. })
    }

    /// Whether it is HTTP 409: not in that state.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { status: 409, .. })
    }

    /// Whether it is HTTP 404: absent, or not ours. Read from the status, never from text.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { status: 404, .. })
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The stable codes. This table is the only list: the type in `index.d.ts`, the README's
        /// table and the tests are made from it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code, in the specification's order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// As JavaScript sees it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// Not owned: track, release, workspace, resume.
    LeaseMismatch = "ERR_CREATEOS_LEASE_MISMATCH",
    /// Closing, unconfirmed or shutting down.
    LeaseClosing = "ERR_CREATEOS_LEASE_CLOSING",
    /// A second release.
    ReleaseInProgress = "ERR_CREATEOS_RELEASE_IN_PROGRESS",
    /// A cleanup that nobody can vouch for.
    CleanupUnconfirmed = "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
    /// A lease with a guaranteed expiry.
    Unsupported = "ERR_CREATEOS_UNSUPPORTED",
    /// The workspace could not be prepared, or the probe's command failed.
    Setup = "ERR_CREATEOS_SETUP",
    /// A command, env, argument or cwd that can't be run.
    Command = "ERR_CREATEOS_COMMAND",
    /// The process stream broke its protocol or lost output.
    Output = "ERR_CREATEOS_OUTPUT",
    /// A timeout that is no integer from 1 to 86400000.
    TimeoutInvalid = "ERR_CREATEOS_TIMEOUT_INVALID",
    /// A configuration that section 2 refuses.
    Config = "ERR_CREATEOS_CONFIG",
    /// No usable API key.
    ApiKey = "ERR_CREATEOS_API_KEY",
    /// The provider answered with a failure.
    Api = "ERR_CREATEOS_API",
    /// Transport failure or redirect.
    Connection = "ERR_CREATEOS_CONNECTION",
    /// An answer that can't be trusted.
    Response = "ERR_CREATEOS_RESPONSE",
    /// The sandbox did not reach the state.
    State = "ERR_CREATEOS_STATE",
    /// A command was cancelled.
    Cancelled = "ERR_CREATEOS_CANCELLED",
    /// File sync.
    Transfer = "ERR_CREATEOS_TRANSFER",
}

/// What a lease was to be used for, which decides the refusal's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Track,
    /// A resume too: both take the lease as such.
    Release,
    Workspace,
}

impl Action {
    const fn refusal(self) -> &'static str {
        match self {
            Self::Track => "CreateOS execution requires a lease from this environment.",
            Self::Release => "CreateOS lease does not belong to this environment.",
            Self::Workspace => "CreateOS workspace requires a lease from this environment.",
        }
    }
}

/// A field by which a lease is recognised, in the order of the checks (section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseField {
    ProviderLeaseId,
    Provider,
    CompanyId,
    EnvironmentId,
    ApiUrl,
}

impl LeaseField {
    /// The field's name in JavaScript.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProviderLeaseId => "providerLeaseId",
            Self::Provider => "provider",
            Self::CompanyId => "companyId",
            Self::EnvironmentId => "environmentId",
            Self::ApiUrl => "apiUrl",
        }
    }
}

macro_rules! config_fields {
    ($($name:ident = $text:literal,)*) => {
        /// A field of the configuration (section 2).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ConfigField { $($name,)* }

        impl ConfigField {
            /// The field's name in JavaScript.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

config_fields! {
    ApiUrl = "apiUrl",
    Shape = "shape",
    TimeoutMs = "timeoutMs",
    ReuseLease = "reuseLease",
    AutoPauseAfterSeconds = "autoPauseAfterSeconds",
    RootfsByAdapter = "rootfsByAdapter",
    EgressAllowlist = "egressAllowlist",
    NetworkEgress = "networkEgress",
    ApiKey = "apiKey",
    Rootfs = "rootfs",
    Region = "region",
}

/// What is wrong with a configuration: the message without its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConfigFault {
    #[error("{} must be a non-empty string.", .0.as_str())]
    NotText(ConfigField),
    #[error("CreateOS requires an API URL.")]
    UrlMissing,
    #[error("CreateOS API URL is invalid.")]
    UrlInvalid,
    #[error(
        "CreateOS API URL must be an HTTPS origin (optionally ending in /v1); HTTP is allowed on loopback only."
    )]
    UrlNotOrigin,
    #[error("CreateOS requires a shape from its shape catalog.")]
    ShapeMissing,
    #[error("timeoutMs must be an integer between 1 and 86400000.")]
    Timeout,
    #[error("reuseLease must be a boolean.")]
    NotBoolean,
    #[error("autoPauseAfterSeconds must be an integer between 60 and 86400.")]
    AutoPause,
    #[error("rootfsByAdapter must be an object of adapter names to root filesystems.")]
    RootfsMap,
    #[error("rootfsByAdapter must contain non-empty adapter and root filesystem strings.")]
    RootfsEntry,
    #[error("egressAllowlist must be an array of non-empty host or CIDR strings.")]
    Egress,
    #[error("networkEgress must be an object.")]
    NetworkEgress,
    #[error("networkEgress allowlists must contain non-empty strings.")]
    NetworkEgressEntry,
}

/// Why a command can't be run (section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CommandFault {
    #[error("A sandbox command is required.")]
    Missing,
    #[error("Invalid sandbox environment variable.")]
    Environment,
    #[error("Sandbox command arguments must be strings.")]
    Arguments,
    #[error("A sandbox working directory must be a string.")]
    Folder,
    #[error("Sandbox command input must be a string.")]
    Input,
    #[error("Sandbox command values cannot contain NUL.")]
    Nul,
}

/// How a process stream broke its protocol, or lost output (section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OutputFault {
    #[error("CreateOS process frame is too large.")]
    FrameTooLarge,
    #[error("CreateOS returned an invalid process frame.")]
    Frame,
    #[error("CreateOS returned an unknown process event.")]
    Event,
    #[error("CreateOS process sequence is invalid.")]
    Sequence,
    #[error("CreateOS process output has a sequence gap.")]
    Gap,
    #[error("CreateOS process output is invalid.")]
    Data,
    #[error("CreateOS pipe process returned PTY output.")]
    Pty,
    #[error("CreateOS process exit status is missing.")]
    StatusMissing,
    #[error("CreateOS process stream reported an error.")]
    Reported,
    #[error("CreateOS process output was evicted before it could be read.")]
    Evicted,
    #[error("CreateOS process output journal is invalid.")]
    Journal,
    #[error("CreateOS process stream ended before all output could be replayed.")]
    Unreplayed,
}

/// Why an answer of the provider cannot be trusted (section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ResponseFault {
    #[error("CreateOS returned an invalid resource ID.")]
    Id,
    #[error("CreateOS returned invalid JSON.")]
    Json,
    /// The connection broke in the middle of it.
    #[error("CreateOS returned invalid JSON.")]
    BrokenOff,
    #[error("CreateOS returned an unsuccessful response.")]
    Unsuccessful,
    #[error("CreateOS returned an invalid response.")]
    Data,
    #[error("CreateOS returned an oversized response.")]
    Oversized,
    #[error("CreateOS sandbox identity or state is invalid.")]
    Identity,
}

/// What a request was for: the only thing an error says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Operation {
    #[error("file transfer")]
    FileTransfer,
    #[error("stdin close")]
    StdinClose,
    #[error("output connection")]
    OutputConnection,
    #[error("process creation")]
    ProcessCreation,
    #[error("process cleanup")]
    ProcessCleanup,
    #[error("workspace command")]
    WorkspaceCommand,
    #[error("sandbox lifecycle")]
    SandboxLifecycle,
}

/// The state a transition is to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Desired {
    Running,
    Paused,
}

impl Desired {
    /// As the provider spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
        }
    }
}
