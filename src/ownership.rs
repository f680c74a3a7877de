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
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent verdicts, each by its name"
)]
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

/// The fields in the order of the checks. A mask has one bit for each, the first the lowest.
const FIELDS: [LeaseField; 4] = [
    LeaseField::ProviderLeaseId,
    LeaseField::Provider,
    LeaseField::CompanyId,
    LeaseField::EnvironmentId,
];

impl Claim {
    /// A bit for each field that does not match; 0 when the claim holds so far.
    pub fn mask(self) -> u32 {
        [
            self.provider_lease_id,
            self.provider,
            self.company_id,
            self.environment_id,
        ]
        .into_iter()
        .enumerate()
        .fold(0, |mask, (place, matches)| {
            mask | u32::from(!matches) << place
        })
    }

    /// The refusal that a mask stands for. The last check comes only when all others held, so an
    /// empty mask stands for the one field left: the API origin.
    pub fn refusal(action: Action, mask: u32) -> Failure {
        let mismatches = if mask == 0 {
            vec![LeaseField::ApiUrl]
        } else {
            let named = FIELDS.into_iter().enumerate();
            named
                .filter(|(place, _)| mask >> place & 1 == 1)
                .map(|(_, field)| field)
                .collect()
        };
        Failure::Mismatch { action, mismatches }
    }
}
