//! Why a text is not PEM, without quoting it: the errors of the parser have lines of the text, which may be a private key.

use rustls::pki_types::pem::Error;

/// Returns what is wrong.
pub(super) const fn problem(error: &Error) -> &'static str {
    match error {
        Error::NoItemsFound => "there is no section of this kind",
        Error::MissingSectionEnd { .. } | Error::IllegalSectionStart { .. } => {
            "a BEGIN or END line is incomplete; were its line breaks lost?"
        }
        Error::Base64Decode(_) => "it is not base64",
        _ => "it cannot be read",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rcgen::KeyPair;
    use rustls::pki_types::{PrivateKeyDer, pem::PemObject as _};

    use super::*;

    #[test]
    fn a_key_without_line_breaks_is_not_quoted() {
        let key = KeyPair::generate().unwrap().serialize_pem();
        let line = key.replace('\n', " ");
        let error = PrivateKeyDer::from_pem_slice(line.as_bytes()).unwrap_err();
        // The parser's own text has its bytes as numbers.
        assert!(error.to_string().len() > line.len());
        assert_eq!(
            problem(&error),
            "a BEGIN or END line is incomplete; were its line breaks lost?"
        );
    }
}
