//! Whom we trust: the roots that Node trusts (specification, section 6).

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::environment::Environment;

/// The configuration of every TLS connection; `None` when it cannot be made.
///
/// The bundled Mozilla roots come first, since slim container images have no others.
pub fn config(environment: &Environment) -> Option<ClientConfig> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let mut added = Vec::new();
    if let Some(path) = &environment.extra_ca_certs {
        added.extend(certificates(Path::new(path)));
    }
    if environment.use_system_ca {
        // A store that can be read in part is used in part, as Node does.
        added.extend(rustls_native_certs::load_native_certs().certs);
    }
    roots.add_parsable_certificates(added.iter().cloned());
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(roots, added, &provider)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Some(config)
}

/// The certificates of a PEM file. One that cannot be read is passed over: Node warns and goes on.
fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path)
        .map(|certificates| certificates.flatten().collect())
        .unwrap_or_default()
}

/// rustls' own verifier, and one more case of Node's: a server that shows a certificate which the
/// environment itself added, such as a self-signed one. OpenSSL takes it, while webpki refuses any
/// end-entity certificate that may also sign others.
#[derive(Debug)]
struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    added: HashSet<CertificateDer<'static>>,
}

impl Verifier {
    fn new(
        roots: RootCertStore,
        added: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Option<Self> {
        let usual =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Some(Self {
            usual: usual.build().ok()?,
            added: added.into_iter().collect(),
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.usual.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            Err(Error::InvalidCertificate(fault))
                if is_authority(&fault) && self.added.contains(end_entity) =>
            {
                // Trusted by itself, so no chain is left to check, and its dates have been: webpki
                // looks at them before it looks at what a certificate may sign.
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Whether the only objection is that the certificate may sign others.
fn is_authority(fault: &CertificateError) -> bool {
    let CertificateError::Other(other) = fault else {
        return false;
    };
    matches!(
        other.0.downcast_ref(),
        Some(webpki::Error::CaUsedAsEndEntity)
    )
}
