//! Texts in PEM. What is wrong with one is said without quoting it: the errors of the parser have lines of the text, which may be a private key.

use ::pem::{EncodeConfig, LineEnding, Pem, encode_config};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{Error, PemObject as _},
};

/// The files and keys of a Secret of type `kubernetes.io/tls`, and the one in which cert-manager and the reference have the authorities.
pub(super) const CERTIFICATE: &str = "tls.crt";
pub(super) const KEY: &str = "tls.key";
pub(super) const AUTHORITIES: &str = "ca.crt";

/// Why a text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It has no section of the wanted kind.
    Missing,
    /// It is not PEM, with the reason.
    Invalid(&'static str),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::NoItemsFound => Self::Missing,
            Error::MissingSectionEnd { .. } | Error::IllegalSectionStart { .. } => {
                Self::Invalid("a BEGIN or END line is incomplete; were its line breaks lost?")
            }
            Error::Base64Decode(_) => Self::Invalid("it is not base64"),
            _ => Self::Invalid("it cannot be read"),
        }
    }
}

/// Returns the certificates in a text, of which there is at least one.
pub(super) fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(Problem::Missing),
        found => Ok(found?),
    }
}

/// Returns the private key in a text.
pub(super) fn private_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, Problem> {
    Ok(PrivateKeyDer::from_pem_slice(text)?)
}

/// Returns certificates as a text.
pub(super) fn text<'a>(certificates: impl IntoIterator<Item = &'a CertificateDer<'a>>) -> String {
    let line_feeds = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let section = |certificate: &CertificateDer<'_>| {
        encode_config(&Pem::new("CERTIFICATE", certificate.as_ref()), line_feeds)
    };
    certificates.into_iter().map(section).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rcgen::KeyPair;

    use super::*;

    #[test]
    fn a_key_without_line_breaks_is_not_quoted() {
        let key = KeyPair::generate().unwrap().serialize_pem();
        let line = key.replace('\n', " ");
        let error = PrivateKeyDer::from_pem_slice(line.as_bytes()).unwrap_err();
        // The parser's own text has its bytes as numbers.
        assert!(error.to_string().len() > line.len());
        assert_eq!(
            private_key(line.as_bytes()).unwrap_err(),
            Problem::Invalid("a BEGIN or END line is incomplete; were its line breaks lost?")
        );
    }
}
