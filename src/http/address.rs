//! From a path to a URL that stays below `<origin>/v1/`.

use url::Url;

/// The root of every path.
const ROOT: &str = "/v1";

/// The URL of `path`, read as fetch reads `${apiUrl}/v1${path}`. `None` for a path that leads
/// elsewhere: the key must not go there. The parsed URL is what is looked at, since dot segments,
/// their percent-encoded spellings, backslashes, tabs and line breaks all change meaning while a URL
/// is parsed.
pub fn address(origin: &str, path: &str) -> Option<Url> {
    if !path.starts_with('/') {
        return None;
    }
    let home = Url::parse(origin).ok()?;
    let url = Url::parse(&format!("{origin}{ROOT}{path}")).ok()?;
    let at_home = url.origin() == home.origin()
        && url
            .path()
            .strip_prefix(ROOT)
            .is_some_and(|rest| rest.starts_with('/'));
    at_home.then_some(url)
}
