//! Which proxy a URL goes through.

use url::Url;

use super::environment::Environment;
use super::proxy::{Route, route};

fn via(url: &str, proxy: Option<&str>, except: Option<&str>) -> Route {
    let environment = Environment {
        https_proxy: proxy.map(str::to_owned),
        no_proxy: except.map(str::to_owned),
        ..Environment::default()
    };
    route(&Url::parse(url).expect("a URL"), &environment)
}

fn is_direct(url: &str, except: &str) -> bool {
    via(url, Some("http://proxy.test:3128"), Some(except)) == Route::Direct
}

#[test]
fn without_a_proxy_every_route_is_direct() {
    assert!(via("https://api.example.test", None, Some("x")) == Route::Direct);
}

#[test]
fn loopback_and_plain_http_are_always_direct() {
    for url in [
        "https://localhost",
        "https://localhost.:8443",
        "https://a.localhost",
        "https://127.0.0.1",
        "https://127.9.9.9",
        "https://[::1]:1",
        "https://[::ffff:127.0.0.1]",
        "http://localhost:1",
        "http://api.example.test",
    ] {
        assert!(
            via(url, Some("http://proxy.test"), None) == Route::Direct,
            "{url}"
        );
    }
}

#[test]
fn a_proxy_may_lack_its_scheme() {
    for (given, expected) in [
        ("http://proxy.test:3128", "http://proxy.test:3128/"),
        (
            "https://user:word@proxy.test",
            "https://user:word@proxy.test/",
        ),
        ("proxy.test:3128", "http://proxy.test:3128/"),
        (" 10.0.0.1 ", "http://10.0.0.1/"),
    ] {
        let expected = Route::Proxy(Url::parse(expected).expect("a URL"));
        assert!(
            via("https://api.example.test", Some(given), None) == expected,
            "{given}"
        );
    }
}

#[test]
fn exceptions_are_honoured() {
    let url = "https://api.example.test";
    for except in [
        "*",
        "api.example.test",
        "API.Example.Test",
        "example.test",
        ".example.test",
        "*.example.test",
        "test",
        "other.test,api.example.test",
        "other.test api.example.test",
        " , api.example.test:443 ,",
        "example.test.",
        "*:443",
    ] {
        assert!(is_direct(url, except), "{except}");
    }
    for except in [
        "",
        ",",
        "other.test",
        "pi.example.test",
        "ample.test",
        "api.example.test:8443",
        "a.api.example.test",
        "10.0.0.0/8",
        "api.example.test/24",
    ] {
        assert!(!is_direct(url, except), "{except}");
    }
}

#[test]
fn exceptions_may_be_addresses_and_networks() {
    for (url, except) in [
        ("https://10.1.2.3", "10.1.2.3"),
        ("https://10.1.2.3:8443", "10.1.2.3:8443"),
        ("https://10.1.2.3", "10.0.0.0/8"),
        ("https://10.1.2.3", "0.0.0.0/0"),
        ("https://10.1.2.3", "10.1.2.3/32"),
        ("https://[fd00::1]", "fd00::1"),
        ("https://[fd00::1]:8443", "[fd00::1]:8443"),
        ("https://[fd00::1]", "[fd00::1]"),
        ("https://[fd00::1]", "fd00::/8"),
        ("https://[fd00::1]", "::/0"),
    ] {
        assert!(is_direct(url, except), "{url} {except}");
    }
    for (url, except) in [
        ("https://10.1.2.3", "10.1.2.4"),
        ("https://10.1.2.3", "11.0.0.0/8"),
        ("https://10.1.2.3", "10.1.2.3:8443"),
        ("https://10.1.2.3", "10.0.0.0/x"),
        ("https://10.1.2.3", "::/0"),
        ("https://10.1.2.3", "2.3"),
        ("https://[fd00::1]", "fe00::/8"),
        ("https://[fd00::1]", "0.0.0.0/0"),
    ] {
        assert!(!is_direct(url, except), "{url} {except}");
    }
}

#[test]
fn an_environment_is_not_printed() {
    let environment = Environment {
        https_proxy: Some("http://user:hunter2@proxy.test".into()),
        ..Environment::default()
    };
    assert!(!format!("{environment:?}").contains("hunter2"));
}
