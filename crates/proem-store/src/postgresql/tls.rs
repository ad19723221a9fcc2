//! TLS to a database, with the modes of libpq for the certificates that are accepted.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use proem::ServerCertificates;
use proem_core::limit::CERTIFICATES_BYTES_MAX;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Roots, TlsMode};
use crate::url::Fault;
use crate::{Explanation, StoreError};

/// Returns the connector of encrypted connections; `None` where connections are never encrypted.
pub(super) fn connector(
    mode: TlsMode,
    roots: Option<&Roots>,
    place: &str,
) -> Result<Option<MakeRustlsConnect>, StoreError> {
    let check = match (mode, roots) {
        (TlsMode::Disable, _) => return Ok(None),
        (TlsMode::Allow | TlsMode::Prefer, _) | (TlsMode::Require, None) => CertificateCheck::Nothing,
        (TlsMode::Require | TlsMode::VerifyCa, _) => CertificateCheck::Authority,
        (TlsMode::VerifyFull, _) => CertificateCheck::AuthorityAndName,
    };
    let provider = Arc::new(ring::default_provider());
    let verifier = verifier(check, roots.unwrap_or(&Roots::System), &provider);
    let verifier = verifier.map_err(|Fault { why, hint }| {
        let place = place.to_owned();
        StoreError::Invalid { place, why, hint }
    })?;
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| StoreError::Unusable {
        place: place.to_owned(),
        why: Explanation::new(format!("TLS cannot be set up: {error}"), error),
        hint: "report this as a bug".into(),
    })?;
    let config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}

/// Parts of a certificate that are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CertificateCheck {
    Nothing,
    Authority,
    AuthorityAndName,
}

fn verifier(
    check: CertificateCheck,
    roots: &Roots,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Fault> {
    if check == CertificateCheck::Nothing {
        return Ok(Arc::new(LenientVerifier { check: None, provider: Arc::clone(provider) }));
    }
    let trusted = match roots {
        Roots::System => rustls_native_certs::load_native_certs().certs,
        Roots::File(path) => read(path)?,
    };
    let whole = ServerCertificates::new(trusted, Arc::clone(provider)).map_err(|error| {
        Fault::new(
            Explanation::new("the system has no certificates of authorities", error),
            "install the package `ca-certificates`, or name a file with `sslrootcert=FILE`",
        )
    })?;
    let whole = Arc::new(whole);
    Ok(match check {
        CertificateCheck::AuthorityAndName => whole,
        _ => Arc::new(LenientVerifier { check: Some(whole), provider: Arc::clone(provider) }),
    })
}

/// Reads the certificates of a PEM file.
fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let mut bytes = Vec::new();
    proem::open_named(path)
        .and_then(|file| file.take(CERTIFICATES_BYTES_MAX).read_to_end(&mut bytes))
        .map_err(|error| unusable(path, error))?;
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| unusable(path, error))?;
        RootCertStore::empty().add(certificate.clone()).map_err(|error| unusable(path, error))?;
        certificates.push(certificate);
    }
    if certificates.is_empty() {
        return Err(unusable(path, io::Error::other("it contains no certificate")));
    }
    Ok(certificates)
}

/// Returns the problem of a file of certificates.
fn unusable(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Fault {
    let why = format!("`sslrootcert` {} cannot be used: {error}", path.display());
    let hint = "name a PEM file with the certificate of the authority, or `sslrootcert=system`";
    Fault::new(Explanation::new(why, error), hint)
}

/// Accepts certificates for another name, or any certificate. The server must still prove that the certificate is its own.
#[derive(Debug)]
struct LenientVerifier {
    /// Checks the authority; `None` accepts any certificate.
    check: Option<Arc<ServerCertificates>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(check) = &self.check else { return Ok(ServerCertVerified::assertion()) };
        // The name is checked last, so an error about it means that everything else is valid.
        match check.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns the error of TLS that caused another error.
pub(super) fn cause<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Error> {
    let mut next = Some(error);
    while let Some(inner) = next {
        // `source` of an `io::Error` skips the error that it wraps.
        let hidden = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = hidden.and_then(|hidden| hidden.downcast_ref::<Error>());
        if let Some(found) = found.or_else(|| inner.downcast_ref()) {
            return Some(found);
        }
        next = inner.source();
    }
    None
}

/// Returns the fix for a connection that TLS refused.
pub(super) fn hint(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "name the certificate of its authority with `sslrootcert=FILE` in the URL, or by PGSSLROOTCERT"
                .into()
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            "use the host name that the certificate is for, or `sslmode=verify-ca` to accept any name".into()
        }
        Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => "renew the certificate of the server, and compare the clocks of both machines".into(),
        _ => "read the log of the database, and compare `sslmode` with its settings".into(),
    }
}
