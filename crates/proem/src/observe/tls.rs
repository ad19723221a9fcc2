//! Trust in the certificates of servers, for every connection by TLS.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Accepts certificates of trusted authorities, and a certificate that signed itself if it is trusted itself.
///
/// `openssl req -x509` makes the latter: the certificate of an authority that a server presents as its own. OpenSSL
/// accepts it where it is trusted; rustls refuses it everywhere. Its dates and its name are checked like those of others.
#[derive(Debug)]
pub struct ServerCertificates {
    authorities: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertificates {
    /// Trusts these certificates; those that cannot be parsed are left out. Fails if none is left.
    pub fn new(
        trusted: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?;
        Ok(Self { authorities, trusted, provider })
    }
}

impl ServerCertVerifier for ServerCertificates {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.authorities.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The dates are checked before this error, the name after it.
            Err(error) if is_of_authority(&error) => {
                if !self.trusted.contains(certificate) {
                    return Err(CertificateError::UnknownIssuer.into());
                }
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
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

/// Tells whether a server presented the certificate of an authority as its own.
fn is_of_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}
