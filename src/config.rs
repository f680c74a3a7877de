//! The configuration, parsed (specification, section 2). A `Config` that exists is right; nothing
//! checks one again.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;

use url::Url;

use crate::error::{ConfigFault, ConfigField, Failure};
use crate::secret::{ApiKey, Secret};
use crate::text::Text;

/// The one origin that the host's own API key may be sent to.
pub const DEFAULT_ORIGIN: &str = "https://api.sb.createos.sh";
/// For configurations that name no `timeoutMs`: five minutes.
const DEFAULT_TIMEOUT_MS: u32 = 300_000;
/// The longest timeout there is: one day, in milliseconds.
const MAX_TIMEOUT_MS: u32 = 86_400_000;

/// A parsed configuration. Absent texts are `None`, absent lists empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// The provider's origin, without `/v1` and without a slash at the end.
    pub api_url: String,
    /// Its own key, if it has one. Not yet known to be usable: that is an API key error, not one
    /// of the configuration.
    pub api_key: Option<Secret>,
    pub shape: Text,
    pub rootfs: Option<Text>,
    /// Root filesystems by adapter, in the order given, each adapter once.
    pub rootfs_by_adapter: Vec<(Text, Text)>,
    /// Hosts and CIDRs, in the order given, each once.
    pub egress_allowlist: Vec<Text>,
    pub region: Option<Text>,
    /// Milliseconds, 1 to 86,400,000.
    pub timeout_ms: u32,
    pub reuse_lease: bool,
    /// Seconds, 60 to 86,400. `None`: release pauses the sandbox itself.
    pub auto_pause_after_seconds: Option<u32>,
}

/// A field's value as JavaScript gave it, told apart as far as the checks need.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Raw<T> {
    /// null or undefined.
    #[default]
    Absent,
    /// A value of the type the field wants.
    Given(T),
    /// Anything else.
    Other,
}

impl<T> Raw<T> {
    fn or_fault(self, fault: ConfigFault, field: ConfigField) -> Result<Option<T>, Failure> {
        match self {
            Self::Absent => Ok(None),
            Self::Given(value) => Ok(Some(value)),
            Self::Other => Err(Failure::Config { field, fault }),
        }
    }
}

/// A configuration as it came, each field read once.
#[derive(Clone, PartialEq, Default)]
pub struct RawConfig {
    pub api_url: Raw<Text>,
    /// What a URL parser made of the trimmed `api_url`.
    pub location: Reading,
    pub shape: Raw<Text>,
    pub timeout_ms: Raw<f64>,
    pub reuse_lease: Raw<bool>,
    pub auto_pause_after_seconds: Raw<f64>,
    /// Own enumerable entries; `None` for a value that is no string.
    pub rootfs_by_adapter: Raw<Vec<(Text, Option<Text>)>>,
    /// `None` for an element that is no string.
    pub egress_allowlist: Raw<Vec<Option<Text>>>,
    pub api_key: Raw<Text>,
    pub rootfs: Raw<Text>,
    pub region: Raw<Text>,
}

/// Neither the key nor the host.
impl fmt::Debug for RawConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RawConfig").finish_non_exhaustive()
    }
}

/// Neither the key nor the host.
impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("timeout_ms", &self.timeout_ms)
            .field("reuse_lease", &self.reuse_lease)
            .field("auto_pause_after_seconds", &self.auto_pause_after_seconds)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Checks in the order of the specification's table; the first failure is returned.
    pub fn parse(raw: RawConfig) -> Result<Self, Failure> {
        let api_url = parse_api_url(text(raw.api_url, ConfigField::ApiUrl)?, raw.location)?;
        let shape = text(raw.shape, ConfigField::Shape)?
            .ok_or_else(|| fault(ConfigField::Shape, ConfigFault::ShapeMissing))?;
        let timeout_ms = parse_integer(&raw.timeout_ms, 1, MAX_TIMEOUT_MS)
            .map_err(|()| fault(ConfigField::TimeoutMs, ConfigFault::Timeout))?
            .unwrap_or(DEFAULT_TIMEOUT_MS);
        let reuse_lease = raw
            .reuse_lease
            .or_fault(ConfigFault::NotBoolean, ConfigField::ReuseLease)?
            .unwrap_or(false);
        let auto_pause_after_seconds = parse_integer(&raw.auto_pause_after_seconds, 60, 86_400)
            .map_err(|()| fault(ConfigField::AutoPauseAfterSeconds, ConfigFault::AutoPause))?;
        let rootfs_by_adapter = parse_rootfs_map(raw.rootfs_by_adapter)?;
        let egress_allowlist = parse_egress(raw.egress_allowlist)?;
        let api_key = text(raw.api_key, ConfigField::ApiKey)?.map(|key| Secret::new(&key));
        let rootfs = text(raw.rootfs, ConfigField::Rootfs)?;
        let region = text(raw.region, ConfigField::Region)?;
        Ok(Self {
            api_url,
            api_key,
            shape,
            rootfs,
            rootfs_by_adapter,
            egress_allowlist,
            region,
            timeout_ms,
            reuse_lease,
            auto_pause_after_seconds,
        })
    }

    /// The key that requests under this configuration carry: its own, or the environment's where
    /// that may be sent. `environment` is asked only then.
    pub fn resolve_api_key<E: From<Failure>>(
        &self,
        environment: impl FnOnce() -> Result<Option<Text>, E>,
    ) -> Result<ApiKey, E> {
        let key = match &self.api_key {
            Some(own) => ApiKey::parse(own),
            None if self.api_url != DEFAULT_ORIGIN => {
                return Err(Failure::ApiKeyNotForOrigin.into());
            }
            None => environment()?.and_then(|key| ApiKey::parse(&Secret::new(&key.trim()))),
        };
        key.ok_or_else(|| Failure::ApiKeyMissing.into())
    }

    /// The root filesystem for an adapter, else the general one.
    pub fn rootfs_for(&self, adapter: Option<&Text>) -> Option<&Text> {
        adapter
            .and_then(|adapter| {
                self.rootfs_by_adapter
                    .iter()
                    .find(|(name, _)| name == adapter)
                    .map(|(_, rootfs)| rootfs)
            })
            .or(self.rootfs.as_ref())
    }
}

/// Milliseconds of a call's own timeout: an integer from 1 to 86,400,000 (section 4, check 4).
pub fn parse_timeout(value: f64) -> Result<u32, Failure> {
    integer(value, 1, MAX_TIMEOUT_MS).ok_or(Failure::TimeoutInvalid)
}

const fn fault(field: ConfigField, fault: ConfigFault) -> Failure {
    Failure::Config { field, fault }
}

/// Row 1: absent, or a string that is not blank after trimming and holds no NUL; trimmed.
fn text(raw: Raw<Text>, field: ConfigField) -> Result<Option<Text>, Failure> {
    let not_text = ConfigFault::NotText(field);
    let Some(given) = raw.or_fault(not_text, field)? else {
        return Ok(None);
    };
    let trimmed = given.trim();
    if trimmed.is_empty() || trimmed.contains_any(&['\0']) {
        return Err(fault(field, not_text));
    }
    Ok(Some(trimmed))
}

/// Who reads the API URL.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Reading {
    /// This engine.
    #[default]
    Here,
    /// The platform's own `new URL`, whose word holds where it was asked: `None` when it threw.
    Platform(Option<Location>),
}

/// What a URL parser made of the API URL: its parts as the platform's `URL` names them.
#[derive(Clone, PartialEq, Eq)]
pub struct Location {
    pub origin: String,
    /// With its colon: `https:`.
    pub protocol: String,
    /// Normalised; an IPv6 address in brackets.
    pub hostname: String,
    pub pathname: String,
    /// Whether it has a user, a password, a query or a fragment.
    pub has_more: bool,
}

impl Location {
    /// Reads the URL here. Its tables for hosts outside ASCII are of one Unicode version, and a
    /// JavaScript platform's may be of another.
    fn parse(text: &Text) -> Option<Self> {
        let url = Url::parse(&text.to_well_formed()).ok()?;
        let parts = [
            Some(url.username()),
            url.password(),
            url.query(),
            url.fragment(),
        ];
        Some(Self {
            origin: url.origin().ascii_serialization(),
            protocol: format!("{}:", url.scheme()),
            hostname: url.host_str().unwrap_or_default().to_owned(),
            pathname: url.path().to_owned(),
            has_more: parts.into_iter().flatten().any(|part| !part.is_empty()),
        })
    }

    /// Row 4: HTTPS, or HTTP to the own machine, and nothing but an origin and perhaps `/v1`.
    fn is_origin(&self) -> bool {
        let is_loopback = matches!(self.hostname.as_str(), "localhost" | "127.0.0.1" | "[::1]");
        let is_safe = self.protocol == "https:" || (self.protocol == "http:" && is_loopback);
        let is_root = matches!(self.pathname.as_str(), "" | "/" | "/v1" | "/v1/");
        is_safe && is_root && !self.has_more
    }
}

/// Rows 2 to 4: the origin.
fn parse_api_url(given: Option<Text>, reading: Reading) -> Result<String, Failure> {
    let given = given.ok_or(fault(ConfigField::ApiUrl, ConfigFault::UrlMissing))?;
    let location = match reading {
        Reading::Here => Location::parse(&given),
        Reading::Platform(location) => location,
    }
    .ok_or(fault(ConfigField::ApiUrl, ConfigFault::UrlInvalid))?;
    if location.is_origin() {
        Ok(location.origin)
    } else {
        Err(fault(ConfigField::ApiUrl, ConfigFault::UrlNotOrigin))
    }
}

fn parse_integer(raw: &Raw<f64>, least: u32, most: u32) -> Result<Option<u32>, ()> {
    match raw {
        Raw::Absent => Ok(None),
        Raw::Given(number) => integer(*number, least, most).map(Some).ok_or(()),
        Raw::Other => Err(()),
    }
}

/// The number, when it is an integer within the bounds.
fn integer(number: f64, least: u32, most: u32) -> Option<u32> {
    let within = number >= f64::from(least) && number <= f64::from(most);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an integer between two u32 is a u32"
    )]
    (within && number.fract() == 0.0).then_some(number as u32)
}

/// Row 9. A later entry whose trimmed adapter equals an earlier one's replaces its value in place,
/// as assigning a property twice does.
fn parse_rootfs_map(raw: Raw<Vec<(Text, Option<Text>)>>) -> Result<Vec<(Text, Text)>, Failure> {
    let entries = raw
        .or_fault(ConfigFault::RootfsMap, ConfigField::RootfsByAdapter)?
        .unwrap_or_default();
    let mut map: Vec<(Text, Text)> = Vec::with_capacity(entries.len());
    let mut places: HashMap<Text, usize> = HashMap::with_capacity(entries.len());
    for (adapter, rootfs) in entries {
        let (Some(adapter), Some(rootfs)) = (line(&adapter), rootfs.as_ref().and_then(line)) else {
            return Err(fault(
                ConfigField::RootfsByAdapter,
                ConfigFault::RootfsEntry,
            ));
        };
        match places.entry(adapter.clone()) {
            Entry::Occupied(place) => map[*place.get()].1 = rootfs,
            Entry::Vacant(place) => {
                place.insert(map.len());
                map.push((adapter, rootfs));
            }
        }
    }
    Ok(map)
}

/// Row 10: trimmed, duplicates dropped, order kept.
fn parse_egress(raw: Raw<Vec<Option<Text>>>) -> Result<Vec<Text>, Failure> {
    let entries = raw
        .or_fault(ConfigFault::Egress, ConfigField::EgressAllowlist)?
        .unwrap_or_default();
    unique_lines(entries).ok_or_else(|| fault(ConfigField::EgressAllowlist, ConfigFault::Egress))
}

/// Trimmed lines, each once, in the order given; `None` when one is no line.
pub fn unique_lines(entries: impl IntoIterator<Item = Option<Text>>) -> Option<Vec<Text>> {
    let mut seen = HashSet::new();
    let mut lines = Vec::new();
    for entry in entries {
        let line = entry.as_ref().and_then(line)?;
        if seen.insert(line.clone()) {
            lines.push(line);
        }
    }
    Some(lines)
}

/// A text of one line, trimmed: no NUL, CR or LF even at its ends, and not blank.
fn line(text: &Text) -> Option<Text> {
    let trimmed = text.trim();
    (!trimmed.is_empty() && !text.contains_any(&['\0', '\r', '\n'])).then_some(trimmed)
}
