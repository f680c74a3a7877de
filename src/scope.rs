//! The key under which a lease's calls are kept (specification, section 4, check 2).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::text::push_json;

/// One lease of one company, environment and API origin, whichever account (API key) uses it. A
/// destroy ends the sandbox for every account, so it covers all scopes of a lease (section 5).
/// Cheap to clone.
#[derive(Clone)]
pub struct LeaseKey {
    /// `["company","environment","https://origin","id"]`: different parts never print alike.
    json: Arc<str>,
    /// Where the lease's id begins, which is where the account goes in a scope's key.
    id: usize,
}

/// A lease as one account uses it: calls, closing and unconfirmed marks are kept per scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScopeKey {
    pub lease: LeaseKey,
    /// SHA-256 of the API key, in hexadecimal.
    pub account: Arc<str>,
}

impl PartialEq for LeaseKey {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Eq for LeaseKey {}

impl Hash for LeaseKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.json.hash(state);
    }
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
        account: impl Into<Arc<str>>,
        provider_lease_id: &[u16],
    ) -> Self {
        let units = company_id.len() + environment_id.len() + provider_lease_id.len();
        let mut json = String::with_capacity(units + api_url.len() + 16);
        json.push('[');
        push_json(&mut json, company_id);
        json.push(',');
        push_json(&mut json, environment_id);
        // An origin is ASCII without anything that JSON escapes.
        json.push_str(",\"");
        json.push_str(api_url);
        json.push_str("\",");
        let id = json.len();
        push_json(&mut json, provider_lease_id);
        json.push(']');
        Self {
            lease: LeaseKey {
                json: json.into(),
                id,
            },
            account: account.into(),
        }
    }

    /// As JavaScript prints `JSON.stringify([companyId, environmentId, apiUrl, account, id])`.
    pub fn to_json(&self) -> String {
        let (owner, id) = self.lease.json.split_at(self.lease.id);
        format!("{owner}\"{}\",{id}", self.account)
    }
}
