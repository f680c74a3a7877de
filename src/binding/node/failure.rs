//! A failure as a JavaScript error: class, message, code and what else it tells (specification,
//! section 7). The classes themselves are JavaScript's, in `script/errors.js`.

use super::{Js, Outcome};
use crate::error::Failure;

/// The error that the failure stands for.
pub fn to_error<'e>(js: Js<'e>, failure: &Failure) -> Outcome<'e> {
    let undefined = js.undefined()?;
    let (class, extra) = match failure {
        Failure::Mismatch { mismatches, .. } => {
            let names = mismatches.iter().map(|field| js.string(field.as_str()));
            ("lease", [js.array(names)?, undefined])
        }
        Failure::SetupUnconfirmed { sandbox_id } => {
            ("sandbox", [js.string(sandbox_id)?, undefined])
        }
        Failure::ProcessUnconfirmed | Failure::CreationUnconfirmed => ("cleanup", [undefined; 2]),
        Failure::Config { field, .. } => ("config", [js.string(field.as_str())?, undefined]),
        Failure::Api { status, operation } => {
            let status = js.integer(u32::from(*status))?;
            ("api", [status, js.string(&operation.to_string())?])
        }
        Failure::BodyBroken => ("type", [undefined; 2]),
        Failure::Aborted { .. } => ("aborted", [undefined; 2]),
        Failure::TimedOut { .. } => ("timeout", [undefined; 2]),
        Failure::Internal => ("internal", [undefined; 2]),
        Failure::Closing
        | Failure::ClosingToResume
        | Failure::ReleaseInProgress
        | Failure::Unconfirmed
        | Failure::ExpiryUnsupported
        | Failure::WorkspaceUnprepared
        | Failure::ProbeFailed
        | Failure::Command(_)
        | Failure::Output(_)
        | Failure::CommandCancelled
        | Failure::TimeoutInvalid
        | Failure::ApiKeyMissing
        | Failure::ApiKeyNotForOrigin
        | Failure::Connection { .. }
        | Failure::Response(_)
        | Failure::State { .. }
        | Failure::NoRuntime => ("error", [undefined; 2]),
    };
    let code = failure
        .code()
        .map_or(Ok(undefined), |code| js.string(code.as_str()))?;
    let message = js.string(&failure.to_string())?;
    let [first, second] = extra;
    let arguments = [js.string(class)?, message, code, first, second];
    js.house().call_hook(js, |hooks| &hooks.failure, &arguments)
}
