//! Servers that nobody vouches for, and those that the environment does.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use super::environment::Environment;
use super::http_server::{KEY, config, key};
use super::transport::Transport;
use crate::error::Failure;
use crate::http::{Bound, Client, Method};

/// A certificate with its key, and the PEM text that vouches for it.
struct Identity {
    chain: Vec<rustls::pki_types::CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    vouches: String,
}

fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).expect("a name")
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::try_from(key.serialize_der()).expect("a key")
}

/// Signed by an authority, which vouches for it.
fn signed(name: &str) -> Identity {
    let mut authority = params("authority.test");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let leaf = params(name)
        .signed_by(&key, &authority)
        .expect("a certificate");
    Identity {
        chain: vec![leaf.der().clone()],
        key: private(&key),
        vouches: authority.as_ref().pem(),
    }
}

/// What `openssl req -x509` makes: signed by itself, and an authority too.
fn self_signed(params: &CertificateParams) -> Identity {
    let key = KeyPair::generate().expect("a key");
    let leaf = params.self_signed(&key).expect("a certificate");
    Identity {
        chain: vec![leaf.der().clone()],
        key: private(&key),
        vouches: leaf.pem(),
    }
}

fn self_signed_authority(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// Starts a TLS server that answers each request with success, and gives back its port.
async fn serve(identity: Identity) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                head(&mut stream).await;
                let body = r#"{"status":"success","data":{}}"#;
                let length = body.len();
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    port
}

async fn head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).expect("ASCII")
}

/// A file that goes away with the test.
struct PemFile(PathBuf);

impl PemFile {
    fn new(content: &str) -> Self {
        let name = format!("createos-lease-test-{}.pem", uuid::Uuid::new_v4());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).expect("a writable folder");
        Self(path)
    }

    fn environment(&self) -> Environment {
        Environment {
            extra_ca_certs: Some(self.0.clone().into()),
            ..Environment::default()
        }
    }
}

impl Drop for PemFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn ask(origin: &str, environment: Environment) -> Result<(), Failure> {
    let transport = Arc::new(Transport::new(environment));
    let client = Client::with_transport(config(origin), key(KEY), transport);
    client
        .json(Method::GET, "/a".into(), None, Bound::default())
        .await
        .map(drop)
}

async fn ask_with(identity: Identity, pem: &str) -> Result<(), Failure> {
    let pem = PemFile::new(pem);
    let port = serve(identity).await;
    ask(&format!("https://localhost:{port}"), pem.environment()).await
}

const REFUSED: Result<(), Failure> = Err(Failure::Connection { sent: false });

#[tokio::test]
async fn an_unknown_authority_is_refused_and_nothing_is_sent() {
    let port = serve(signed("localhost")).await;
    assert_eq!(
        ask(&format!("https://localhost:{port}"), Environment::default()).await,
        REFUSED
    );
}

#[tokio::test]
async fn an_added_authority_is_trusted() {
    let identity = signed("localhost");
    let other = signed("other.test").vouches;
    // Several certificates in one file, with remarks between them, and one that is broken.
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let pem = format!(
        "# first\n{other}\n{broken}\n# second\n{}\n",
        identity.vouches
    );
    assert_eq!(ask_with(identity, &pem).await, Ok(()));
}

#[tokio::test]
async fn an_added_authority_does_not_vouch_for_another_name() {
    let identity = signed("other.test");
    let pem = identity.vouches.clone();
    assert_eq!(ask_with(identity, &pem).await, REFUSED);
}

#[tokio::test]
async fn an_added_certificate_that_signed_itself_is_trusted_as_node_does() {
    for params in [params("localhost"), self_signed_authority("localhost")] {
        let identity = self_signed(&params);
        let pem = identity.vouches.clone();
        assert_eq!(ask_with(identity, &pem).await, Ok(()));
    }
}

#[tokio::test]
async fn a_self_signed_certificate_that_was_not_added_is_refused() {
    let other = self_signed(&self_signed_authority("localhost")).vouches;
    let identity = self_signed(&self_signed_authority("localhost"));
    assert_eq!(ask_with(identity, &other).await, REFUSED);
}

#[tokio::test]
async fn an_added_certificate_still_needs_the_right_name_and_date() {
    let identity = self_signed(&self_signed_authority("other.test"));
    let pem = identity.vouches.clone();
    assert_eq!(ask_with(identity, &pem).await, REFUSED);

    let mut expired = self_signed_authority("localhost");
    expired.not_after = date_time_ymd(2001, 1, 1);
    let identity = self_signed(&expired);
    let pem = identity.vouches.clone();
    assert_eq!(ask_with(identity, &pem).await, REFUSED);

    let mut early = self_signed_authority("localhost");
    early.not_before = date_time_ymd(4000, 1, 1);
    let identity = self_signed(&early);
    let pem = identity.vouches.clone();
    assert_eq!(ask_with(identity, &pem).await, REFUSED);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_passed_over() {
    let port = serve(signed("localhost")).await;
    let folder = std::env::temp_dir();
    for path in [
        "/nowhere/at/all.pem".as_ref(),
        "".as_ref(),
        folder.as_os_str(),
    ] {
        let environment = Environment {
            extra_ca_certs: Some(path.into()),
            ..Environment::default()
        };
        assert_eq!(
            ask(&format!("https://localhost:{port}"), environment).await,
            REFUSED
        );
    }
}

/// A proxy that tunnels everything to one port and tells what it was asked.
async fn tunnel(to: u16) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (asked, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let asked = asked.clone();
            tokio::spawn(async move {
                let _ = asked.send(head(&mut stream).await);
                let mut server = TcpStream::connect(("127.0.0.1", to))
                    .await
                    .expect("a server");
                let _ = stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await;
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (address, heard)
}

#[tokio::test]
async fn a_proxy_sees_a_tunnel_and_no_key() {
    let identity = signed("api.example.test");
    let pem = PemFile::new(&identity.vouches);
    let (proxy, mut asked) = tunnel(serve(identity).await).await;
    for address in [format!("http://user:word@{proxy}"), proxy] {
        let environment = Environment {
            https_proxy: Some(address),
            ..pem.environment()
        };
        assert_eq!(ask("https://api.example.test", environment).await, Ok(()));
        let asked = asked.recv().await.expect("the proxy runs");
        assert!(
            asked.starts_with("CONNECT api.example.test:443 HTTP/1.1\r\n"),
            "{asked}"
        );
        assert!(!asked.contains(KEY));
    }
}

#[tokio::test]
async fn a_loopback_origin_goes_past_the_proxy() {
    let identity = signed("localhost");
    let pem = PemFile::new(&identity.vouches);
    let port = serve(identity).await;
    let (proxy, mut asked) = tunnel(port).await;
    let environment = Environment {
        https_proxy: Some(proxy),
        ..pem.environment()
    };
    assert_eq!(
        ask(&format!("https://localhost:{port}"), environment).await,
        Ok(())
    );
    assert!(asked.try_recv().is_err());
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_not_passed_by() {
    for proxy in ["socks5://127.0.0.1:1", "http://", "::", "ftp://proxy.test"] {
        let environment = Environment {
            https_proxy: Some(proxy.into()),
            ..Environment::default()
        };
        assert_eq!(
            ask("https://api.example.test", environment).await,
            REFUSED,
            "{proxy}"
        );
    }
}
