//! TLS by rustls with ring: libpq's `sslmode`s as verifiers, the system's authorities or the file that was given.

use super::dsn::{TlsMode, TlsSettings};
use crate::error::{Error, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How sockets are secured, made once per store.
#[derive(Clone)]
pub enum Tls {
    /// Plain text, by wish or over a unix socket.
    None,
    /// rustls.
    Rustls(MakeRustlsConnect),
}

impl Tls {
    /// Reads the certificate files, so that a wrong path is refused at `connect`.
    pub fn build(settings: &TlsSettings) -> Result<Tls> {
        let provider = Arc::new(ring::default_provider());
        let trust = match (settings.mode, &settings.root_file) {
            (TlsMode::Disable, _) => return Ok(Tls::None),
            (TlsMode::Prefer, _) | (TlsMode::Require, None) => None,
            // With a file, `require` verifies the authority: libpq's rule, kept so that a URL means the same here.
            (TlsMode::Require | TlsMode::VerifyCa, file) => Some((roots(file.as_deref())?, false)),
            (TlsMode::VerifyFull, file) => Some((roots(file.as_deref())?, true)),
        };
        let verifier = match trust {
            None => Verifier { provider: provider.clone(), chain: None },
            Some(((store, pinned), check_name)) => {
                let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
                    .build()
                    .map_err(|e| refuse("tls.caFile", &format!("the authorities cannot be used: {e}")))?;
                Verifier { provider: provider.clone(), chain: Some(Chain { webpki, pinned, check_name }) }
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| refuse("tls", &format!("TLS cannot be set up: {e}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match (&settings.certificate_file, &settings.key_file) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate, "sslcert")?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|_| refuse("sslkey", "the file of sslkey cannot be read as a PEM private key"))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|_| refuse("sslcert", "sslcert and sslkey do not belong together"))?
            }
            _ => {
                return Err(refuse("sslcert", "sslcert and sslkey must be given together"));
            }
        };
        // Direct negotiation requires it, and it does no harm otherwise.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Tls::Rustls(MakeRustlsConnect::new(config)))
    }
}

fn refuse(field: &str, message: &str) -> Error {
    Error::argument(field, message)
}

fn certificates(file: &Path, field: &str) -> Result<Vec<CertificateDer<'static>>> {
    let unreadable = || refuse(field, &format!("the file of {field} cannot be read as PEM certificates"));
    let list: Vec<_> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect).map_err(|_| unreadable())?;
    if list.is_empty() { Err(unreadable()) } else { Ok(list) }
}

/// The trusted authorities, and those of them that were named one by one in a file.
fn roots(file: Option<&Path>) -> Result<(RootCertStore, Vec<CertificateDer<'static>>)> {
    let mut store = RootCertStore::empty();
    if let Some(file) = file {
        let list = certificates(file, "tls.caFile")?;
        let (added, _) = store.add_parsable_certificates(list.iter().cloned());
        if added == 0 {
            return Err(refuse("tls.caFile", "the file of tls.caFile holds no usable certificate"));
        }
        return Ok((store, list));
    }
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        return Err(refuse("tls.caFile", "the system has no list of trusted authorities: give tls.caFile"));
    }
    Ok((store, Vec::new()))
}

/// A server's certificate as `sslmode` wants it checked.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// None: any certificate will do, only eavesdropping is prevented (`prefer`, `require`).
    chain: Option<Chain>,
}

#[derive(Debug)]
struct Chain {
    webpki: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
    check_name: bool,
}

impl Chain {
    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let outcome = self.webpki.verify_server_cert(certificate, intermediates, name, ocsp, now);
        let Err(rustls::Error::InvalidCertificate(reason)) = &outcome else {
            return outcome;
        };
        match reason {
            // webpki looks at the name last: the chain is good.
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } if !self.check_name => {
                Ok(ServerCertVerified::assertion())
            }
            // A self-signed certificate that is its own authority, as PostgreSQL's manual makes one. Its times have
            // been checked by now; being in the file is what makes it trusted.
            CertificateError::Other(other)
                if format!("{other:?}").contains("CaUsedAsEndEntity") && self.pinned.contains(certificate) =>
            {
                if self.check_name {
                    let parsed = rustls::server::ParsedCertificate::try_from(certificate)?;
                    rustls::client::verify_server_name(&parsed, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            _ => outcome,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        match &self.chain {
            None => Ok(ServerCertVerified::assertion()),
            Some(chain) => chain.verify(certificate, intermediates, name, ocsp, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
