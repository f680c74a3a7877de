//! Which proxy a URL goes through, if any (specification, section 6).
//!
//! Decided by hand, since the libraries also follow `HTTP_PROXY` and `ALL_PROXY`, know no ports in
//! `NO_PROXY`, and would send a loopback request, key included, to a proxy.

use std::net::IpAddr;

use url::{Host, Url};

use super::environment::Environment;

/// Where a request goes first.
#[derive(Clone, PartialEq, Eq)]
pub enum Route {
    /// Straight to the origin.
    Direct,
    /// Through this proxy.
    Proxy(Url),
    /// To a proxy that can't be understood: nowhere. Going straight would defy the environment.
    Nowhere,
}

/// The route to `url`.
pub fn route(url: &Url, environment: &Environment) -> Route {
    let (Some(host), Some(proxy)) = (url.host(), &environment.https_proxy) else {
        return Route::Direct;
    };
    let port = url.port_or_known_default().unwrap_or(443);
    if url.scheme() != "https" || is_loopback(&host) {
        return Route::Direct;
    }
    if environment
        .no_proxy
        .as_deref()
        .is_some_and(|list| excepts(list, &host, port))
    {
        return Route::Direct;
    }
    parse(proxy).map_or(Route::Nowhere, Route::Proxy)
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.to_canonical().is_loopback(),
    }
}

/// A proxy's address; without a scheme it speaks plain HTTP, as everywhere.
fn parse(proxy: &str) -> Option<Url> {
    let text = proxy.trim();
    let url = if text.contains("://") {
        Url::parse(text)
    } else {
        Url::parse(&format!("http://{text}"))
    };
    url.ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Whether `NO_PROXY` names the host: `*`, a domain with everything below it (with or without a
/// leading dot or `*.`), an address, a network; each may end in a port.
fn excepts(list: &str, host: &Host<&str>, port: u16) -> bool {
    list.split([',', ' ', '\t', '\n'])
        .filter(|entry| !entry.is_empty())
        .any(|entry| {
            let (name, wanted) = split_port(entry);
            wanted.is_none_or(|wanted| wanted == port) && (name == "*" || names(name, host))
        })
}

/// `host:port`, `[address]:port`, or neither. An address of IPv6 has colons of its own.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => port
            .parse()
            .map_or((entry, None), |port| (name, Some(port))),
        _ => (entry, None),
    }
}

fn names(entry: &str, host: &Host<&str>) -> bool {
    let address = match host {
        Host::Domain(name) => {
            let entry = entry
                .trim_start_matches('*')
                .trim_matches('.')
                .to_ascii_lowercase();
            let name = name.strip_suffix('.').unwrap_or(name);
            return !entry.is_empty()
                && name
                    .strip_suffix(entry.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        }
        Host::Ipv4(address) => IpAddr::V4(*address),
        Host::Ipv6(address) => IpAddr::V6(*address),
    };
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    let (network, length) = match bare.split_once('/') {
        Some((network, length)) => (network, length.parse::<u32>().ok()),
        None => (bare, Some(u32::MAX)),
    };
    match (network.parse::<IpAddr>(), length) {
        (Ok(network), Some(length)) => within(address, network, length),
        _ => false,
    }
}

/// Whether both addresses share their first `length` bits.
fn within(address: IpAddr, network: IpAddr, length: u32) -> bool {
    let (address, network, bits) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    // Shifting out all bits is a comparison of nothing: every address is in a network of length 0.
    (address ^ network)
        .checked_shr(bits - length.min(bits))
        .unwrap_or(0)
        == 0
}
