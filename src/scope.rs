//! The key under which a lease's calls are kept (specification, section 4, check 2).

use std::fmt;

use crate::text::{Text, push_json};

/// One lease of one company, environment and API origin, whichever account (API key) uses it. A
/// destroy ends the sandbox for every account, so it covers all scopes of a lease (section 5).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LeaseKey {
    /// `["company","environment","https://origin",` as JSON: different parts never print alike.
    owner: String,
    /// The provider's id of the lease, as JSON.
    lease: String,
}

/// A lease as one account uses it: calls, closing and unconfirmed marks are kept per scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScopeKey {
    pub lease: LeaseKey,
    /// SHA-256 of the API key, in hexadecimal.
    pub account: Box<str>,
}

/// Not the host, nor who owns what.
impl fmt::Debug for LeaseKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LeaseKey").finish_non_exhaustive()
    }
}

impl ScopeKey {
    /// Builds the key from parts that ownership has proved to be right.
    pub fn new(
        company_id: &[u16],
        environment_id: &[u16],
        api_url: &str,
        account: &str,
        provider_lease_id: &[u16],
    ) -> Self {
        let mut owner =
            String::with_capacity(company_id.len() + environment_id.len() + api_url.len() + 10);
        owner.push('[');
        push_json(&mut owner, company_id);
        owner.push(',');
        push_json(&mut owner, environment_id);
        owner.push(',');
        owner.push_str(&Text::from(api_url).to_json());
        let mut lease = String::with_capacity(provider_lease_id.len() + 2);
        push_json(&mut lease, provider_lease_id);
        Self {
            lease: LeaseKey { owner, lease },
            account: account.into(),
        }
    }

    /// As JavaScript prints `JSON.stringify([companyId, environmentId, apiUrl, account, id])`.
    pub fn to_json(&self) -> String {
        format!(
            "{},\"{}\",{}]",
            self.lease.owner, self.account, self.lease.lease
        )
    }
}
