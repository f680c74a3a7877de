//! API URLs, read as the WHATWG URL standard reads them. What is expected of each text below is what
//! `new URL(text)` made of it in Node.

use super::configuration::{given, right};
use crate::config::{Config, Raw, RawConfig};
use crate::error::{ConfigFault, ConfigField, Failure};
use crate::text::Text;

#[test]
fn a_url_that_names_an_origin_comes_to_that_origin() {
    for (text, origin) in [
        ("https://api.example.test", "https://api.example.test"),
        ("https://api.example.test/", "https://api.example.test"),
        ("https://api.example.test/v1", "https://api.example.test"),
        ("https://api.example.test/v1/", "https://api.example.test"),
        (
            "HTTPS://API.Example.TEST:443/v1",
            "https://api.example.test",
        ),
        (
            "https://api.example.test:8443/v1",
            "https://api.example.test:8443",
        ),
        ("https://api.example.test:0443", "https://api.example.test"),
        ("https://api.example.test:", "https://api.example.test"),
        ("https://api.example.test/v1?#", "https://api.example.test"),
        ("https://:@api.example.test", "https://api.example.test"),
        ("https:api.example.test", "https://api.example.test"),
        ("https:////api.example.test", "https://api.example.test"),
        ("https:\\\\api.example.test\\v1", "https://api.example.test"),
        (
            "https://api.example.test/v1/../",
            "https://api.example.test",
        ),
        (
            "https://api.example.test/x/%2e%2E/v1",
            "https://api.example.test",
        ),
        (
            "https://b\u{fc}cher.example",
            "https://xn--bcher-kva.example",
        ),
        ("https://\u{212a}.example", "https://k.example"),
        (
            "https://api\u{3002}example\u{3002}test",
            "https://api.example.test",
        ),
        ("https://ex%41mple.test", "https://example.test"),
        (
            "https://api.exa\tmple.test/v\n1",
            "https://api.example.test",
        ),
        (
            "\u{1}https://api.example.test\u{1f}",
            "https://api.example.test",
        ),
        ("https://1.2.3", "https://1.2.0.3"),
        ("https://[2001:DB8::0:1]", "https://[2001:db8::1]"),
        ("https://a\u{ad}", "https://a"),
        ("https://a_b.test", "https://a_b.test"),
        ("https://a..b", "https://a..b"),
        ("https://*.test", "https://*.test"),
        ("http://localhost", "http://localhost"),
        ("http://localhost:80", "http://localhost"),
        ("http://LOCALHOST:3000/v1", "http://localhost:3000"),
        ("http://l%6fcalhost", "http://localhost"),
        ("http://\u{ff4c}ocalhost", "http://localhost"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://127.0.0.1.", "http://127.0.0.1"),
        ("http://127.1", "http://127.0.0.1"),
        ("http://0x7f000001", "http://127.0.0.1"),
        ("http://2130706433", "http://127.0.0.1"),
        ("http://0177.0.0.1", "http://127.0.0.1"),
        ("http://[::1]:9", "http://[::1]:9"),
        ("http://[0:0:0:0:0:0:0:1]", "http://[::1]"),
        ("http://[::0.0.0.1]", "http://[::1]"),
    ] {
        let config = Config::parse(RawConfig {
            api_url: given(text),
            ..right()
        });
        assert_eq!(
            config.map(|config| config.api_url).as_deref(),
            Ok(origin),
            "{text:?}"
        );
    }
}

fn url_fault(api_url: Raw<Text>) -> Option<ConfigFault> {
    match Config::parse(RawConfig { api_url, ..right() }) {
        Err(Failure::Config {
            field: ConfigField::ApiUrl,
            fault,
        }) => Some(fault),
        _ => None,
    }
}

#[test]
fn a_url_that_says_more_than_an_origin_or_goes_in_the_clear_is_refused() {
    for text in [
        "http://localhost.",
        "http://localhost.example",
        "http://127.0.0.2",
        "http://0.0.0.0",
        "http://[::ffff:127.0.0.1]",
        "http://[::]",
        "http://[::2]",
        "https://user@api.example.test",
        "https://user:@api.example.test",
        "https://:pass@api.example.test",
        "https://api.example.test?a",
        "https://api.example.test#a",
        "https://api.example.test/v1/?a",
        "https://api.example.test/v2",
        "https://api.example.test/V1",
        "https://api.example.test//",
        "https://api.example.test/v1//",
        "https://api.example.test/%761",
        "https://api.example.test/v1/x",
        "ftp://api.example.test",
        "ws://localhost",
        "file:///v1",
        "blob:https://api.example.test/v1",
        "data:,x",
        "javascript:0",
        "localhost:80",
        "x:",
    ] {
        assert_eq!(
            url_fault(given(text)),
            Some(ConfigFault::UrlNotOrigin),
            "{text:?}"
        );
    }
}

#[test]
fn what_is_no_url_is_invalid() {
    for text in [
        "api.example.test",
        "/v1",
        "//api.example.test",
        "https://",
        "https://:443",
        "https://a b",
        "https://[::1",
        "https://1.2.3.256",
        "https://1.2.3.4.5",
        "https://a.1",
        "https://api.example.test:65536",
        "https://api.example.test:x",
        "https://a%00b",
        "https://a%zz",
        "https://xn--",
        "https://\u{ad}",
        "1://x",
        "https://a^b",
        "https://\u{fffd}.test",
    ] {
        assert_eq!(
            url_fault(given(text)),
            Some(ConfigFault::UrlInvalid),
            "{text:?}"
        );
    }
    // A lone surrogate reaches the URL parser as U+FFFD, which no host may hold.
    let host = [Text::from("https://a").units(), &[0xd800]].concat();
    assert_eq!(
        url_fault(Raw::Given(Text::from_units(&host))),
        Some(ConfigFault::UrlInvalid)
    );
}
