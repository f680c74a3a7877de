//! Whose lease it is (specification, section 3).
//!
//! The binding compares values with JavaScript's own `===` and hands the verdicts over; what they
//! mean is decided here, and in this order: provider, company, environment, and then the API
//! origin, for which the configuration must parse. A stranger's lease with a broken configuration
//! is a stranger's lease.

use crate::error::{Action, Failure, LeaseField};

/// The provider that a lease's metadata must name.
pub const PROVIDER: &str = "createos";

/// What was found of a lease before its configuration was looked at.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four independent verdicts, each by its name")]
pub struct Claim {
    /// The lease's id is a non-empty string.
    pub provider_lease_id: bool,
    /// The metadata's provider is [`PROVIDER`].
    pub provider: bool,
    /// The metadata's company is the caller's, and a non-empty string.
    pub company_id: bool,
    /// The metadata's environment is the caller's, and a non-empty string.
    pub environment_id: bool,
}

impl Claim {
    /// The fields that do not match, in the order of the checks.
    pub fn mismatches(self) -> Vec<LeaseField> {
        [
            (self.provider_lease_id, LeaseField::ProviderLeaseId),
            (self.provider, LeaseField::Provider),
            (self.company_id, LeaseField::CompanyId),
            (self.environment_id, LeaseField::EnvironmentId),
        ]
        .into_iter()
        .filter_map(|(matches, field)| (!matches).then_some(field))
        .collect()
    }

    /// Whether the claim holds so far.
    pub fn verify(self, action: Action) -> Result<(), Failure> {
        let mismatches = self.mismatches();
        if mismatches.is_empty() { Ok(()) } else { Err(Failure::Mismatch { action, mismatches }) }
    }
}

/// The last check: the metadata's API origin is the configuration's, unit by unit.
pub fn verify_origin(metadata_matches: bool, action: Action) -> Result<(), Failure> {
    if metadata_matches {
        Ok(())
    } else {
        Err(Failure::Mismatch { action, mismatches: vec![LeaseField::ApiUrl] })
    }
}
