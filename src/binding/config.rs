//! The configuration across the boundary (specification, section 2).

use std::sync::Arc;

use super::node::{Arguments, Js, Kind, Outcome, Thrown, Value};
use crate::config::{Config, DEFAULT_ORIGIN, Location, Raw, RawConfig, Reading};
use crate::text::Text;

/// The adapters' root filesystems as they came; `None` for a value that is no string.
type Pairs = Vec<(Text, Option<Text>)>;

/// A parsed configuration as the scripts hold it.
pub struct Parsed {
    pub config: Arc<Config>,
    /// The origin in UTF-16, as a lease's metadata is compared with it.
    pub origin: Text,
}

/// `parseConfig(apiUrl, shape, timeoutMs, reuseLease, autoPauseAfterSeconds, rootfsByAdapter,
/// egressAllowlist, apiKey, rootfs, region, location) -> External`. The map comes as a flat array of names
/// and values, the list as an array; anything but those and nothing is of the wrong type.
pub fn parse<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [
        url,
        shape,
        timeout,
        reuse,
        pause,
        adapters,
        egress,
        key,
        rootfs,
        region,
        location,
        ..,
    ] = arguments;
    let config = Config::parse(RawConfig {
        api_url: text(js, url)?,
        location: Reading::Platform(to_location(js, location)?),
        shape: text(js, shape)?,
        timeout_ms: number(js, timeout)?,
        reuse_lease: boolean(js, reuse)?,
        auto_pause_after_seconds: number(js, pause)?,
        rootfs_by_adapter: pairs(js, adapters)?,
        egress_allowlist: list(js, egress)?,
        api_key: text(js, key)?,
        rootfs: text(js, rootfs)?,
        region: text(js, region)?,
    })?;
    let origin = Text::from(config.api_url.as_str());
    js.external(Arc::new(Parsed {
        config: Arc::new(config),
        origin,
    }))
}

/// `describe(parsed) -> [apiUrl, apiKey, shape, rootfs, rootfsByAdapter, egressAllowlist, region,
/// timeoutMs, reuseLease, autoPauseAfterSeconds]`, the map as pairs.
pub fn describe<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let Parsed { config, origin } = js.held(arguments[0])?;
    let pairs = config
        .rootfs_by_adapter
        .iter()
        .map(|(adapter, rootfs)| js.array([js.text(adapter.units()), js.text(rootfs.units())]));
    js.array([
        js.text(origin.units()),
        config
            .api_key
            .as_ref()
            .map_or_else(|| js.null(), |key| js.text(key.expose())),
        js.text(config.shape.units()),
        js.optional_text(config.rootfs.as_ref()),
        js.array(pairs),
        js.array(
            config
                .egress_allowlist
                .iter()
                .map(|rule| js.text(rule.units())),
        ),
        js.optional_text(config.region.as_ref()),
        js.integer(config.timeout_ms),
        js.boolean(config.reuse_lease),
        config
            .auto_pause_after_seconds
            .map_or_else(|| js.null(), |seconds| js.integer(seconds)),
    ])
}

/// `wantsEnvironmentKey(parsed) -> boolean`: whether the environment's key would be used.
pub fn wants_environment_key<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let Parsed { config, .. } = js.held(arguments[0])?;
    js.boolean(config.api_key.is_none() && config.api_url == DEFAULT_ORIGIN)
}

/// `resolveApiKey(parsed, environmentKey) -> string`.
pub fn resolve_api_key<'e>(js: Js<'e>, arguments: Arguments<'e>) -> Outcome<'e> {
    let [parsed, environment, ..] = arguments;
    let Parsed { config, .. } = js.held(parsed)?;
    let key = config.resolve_api_key(|| optional_text(js, environment))?;
    js.text(key.expose())
}

/// The parts of a parsed URL, in an array: origin, protocol, host name, path, and whatever else it
/// has; nothing for a URL that could not be parsed.
fn to_location<'e>(js: Js<'e>, parts: Value<'e>) -> Result<Option<Location>, Thrown> {
    if js.kind(parts)? != Kind::Object {
        return Ok(None);
    }
    let part = |index| js.to_string(js.element(parts, index)?);
    Ok(Some(Location {
        origin: part(0)?,
        protocol: part(1)?,
        hostname: part(2)?,
        pathname: part(3)?,
        has_more: !part(4)?.is_empty(),
    }))
}

/// A string, or nothing.
pub fn optional_text<'e>(js: Js<'e>, value: Value<'e>) -> Result<Option<Text>, Thrown> {
    Ok(match js.kind(value)? {
        Kind::Text => Some(js.to_text(value)?),
        _ => None,
    })
}

/// A field that should be a string.
pub fn text<'e>(js: Js<'e>, value: Value<'e>) -> Result<Raw<Text>, Thrown> {
    raw(js, value, Kind::Text, Js::to_text)
}

/// A field that should be a number.
pub fn number<'e>(js: Js<'e>, value: Value<'e>) -> Result<Raw<f64>, Thrown> {
    raw(js, value, Kind::Number, Js::to_number)
}

fn boolean<'e>(js: Js<'e>, value: Value<'e>) -> Result<Raw<bool>, Thrown> {
    raw(js, value, Kind::Boolean, Js::to_boolean)
}

/// A field that should be an array of strings, copied into a plain one; `false` for what is no array.
pub fn list<'e>(js: Js<'e>, value: Value<'e>) -> Result<Raw<Vec<Option<Text>>>, Thrown> {
    raw(js, value, Kind::Object, texts)
}

/// A field that should be an object of strings, copied into a flat array of names and values.
pub fn pairs<'e>(js: Js<'e>, value: Value<'e>) -> Result<Raw<Pairs>, Thrown> {
    raw(js, value, Kind::Object, |js, flat| {
        let elements = js.elements(flat)?;
        let pair = |pair: &[Value<'e>]| Ok((js.to_text(pair[0])?, optional_text(js, pair[1])?));
        elements.chunks_exact(2).map(pair).collect()
    })
}

/// An array's elements, `None` for one that is no string.
pub fn texts<'e>(js: Js<'e>, array: Value<'e>) -> Result<Vec<Option<Text>>, Thrown> {
    js.elements(array)?
        .into_iter()
        .map(|element| optional_text(js, element))
        .collect()
}

fn raw<'e, T>(
    js: Js<'e>,
    value: Value<'e>,
    wanted: Kind,
    read: impl FnOnce(Js<'e>, Value<'e>) -> Result<T, Thrown>,
) -> Result<Raw<T>, Thrown> {
    Ok(match js.kind(value)? {
        Kind::Nothing => Raw::Absent,
        kind if kind == wanted => Raw::Given(read(js, value)?),
        _ => Raw::Other,
    })
}
