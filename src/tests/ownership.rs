//! A stranger's lease.

use crate::error::{Action, Code, Failure, LeaseField};
use crate::ownership::{Claim, PROVIDER};

const FIELDS: [LeaseField; 4] = [
    LeaseField::ProviderLeaseId,
    LeaseField::Provider,
    LeaseField::CompanyId,
    LeaseField::EnvironmentId,
];

/// The sixteen verdicts there are, each as a list of what matched.
fn verdicts() -> impl Iterator<Item = [bool; 4]> {
    (0..16).map(|bits: u32| [0, 1, 2, 3].map(|place| bits >> place & 1 == 1))
}

fn claim([provider_lease_id, provider, company_id, environment_id]: [bool; 4]) -> Claim {
    Claim {
        provider_lease_id,
        provider,
        company_id,
        environment_id,
    }
}

#[test]
fn a_claim_holds_when_all_four_fields_match() {
    for verdict in verdicts() {
        assert_eq!(
            claim(verdict).mask() == 0,
            verdict == [true; 4],
            "{verdict:?}"
        );
    }
}

#[test]
fn a_refusal_names_what_did_not_match_in_the_order_of_the_checks() {
    for verdict in verdicts().filter(|verdict| *verdict != [true; 4]) {
        let named = FIELDS.into_iter().zip(verdict);
        let expected: Vec<_> = named
            .filter(|(_, matched)| !matched)
            .map(|(field, _)| field)
            .collect();
        for action in [Action::Track, Action::Release] {
            let refusal = Claim::refusal(action, claim(verdict).mask());
            assert_eq!(
                refusal,
                Failure::Mismatch {
                    action,
                    mismatches: expected.clone()
                }
            );
        }
    }
}

#[test]
fn the_origin_is_named_alone_since_it_is_compared_last() {
    let refusal = Claim::refusal(Action::Release, claim([true; 4]).mask());
    let mismatches = vec![LeaseField::ApiUrl];
    assert_eq!(
        refusal,
        Failure::Mismatch {
            action: Action::Release,
            mismatches
        }
    );
}

#[test]
fn the_message_is_the_one_of_what_the_lease_was_wanted_for() {
    for (action, message) in [
        (
            Action::Track,
            "CreateOS execution requires a lease from this environment.",
        ),
        (
            Action::Release,
            "CreateOS lease does not belong to this environment.",
        ),
    ] {
        let refusal = Claim::refusal(action, 1);
        assert_eq!(refusal.to_string(), message);
        assert_eq!(refusal.code(), Some(Code::LeaseMismatch));
    }
}

#[test]
fn fields_and_provider_are_spelt_as_in_javascript() {
    let all = [&FIELDS[..], &[LeaseField::ApiUrl]].concat();
    let names: Vec<_> = all.into_iter().map(LeaseField::as_str).collect();
    assert_eq!(
        names,
        [
            "providerLeaseId",
            "provider",
            "companyId",
            "environmentId",
            "apiUrl"
        ]
    );
    assert_eq!(PROVIDER, "createos");
}
