//! The options of TLS.

use std::sync::Arc;

use rustls::{
    CipherSuite as Suite, ProtocolVersion, ServerConfig, crypto::ring, server::ResolvesServerCert,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The options of TLS, for all servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The lowest version. Default 1.2.
    pub min_version: TlsVersion,
    /// The cipher suites of TLS 1.2. Default: all that are supported. Those of TLS 1.3 are always allowed, as in Go.
    pub cipher_suites: Vec<CipherSuite>,
}

/// A version of TLS, with its name in Kubernetes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    #[serde(rename = "VersionTLS12", alias = "")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "VersionTLS13")]
    Tls13,
}

/// A cipher suite, with its name in Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(non_camel_case_types, missing_docs)]
pub enum CipherSuite {
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    TLS_AES_128_GCM_SHA256,
    TLS_AES_256_GCM_SHA384,
    TLS_CHACHA20_POLY1305_SHA256,
}

impl CipherSuite {
    const fn of_rustls(self) -> Suite {
        match self {
            Self::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => {
                Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            }
            Self::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => {
                Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
            }
            Self::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
                Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
            }
            Self::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => {
                Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
            }
            Self::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => {
                Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
            }
            Self::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
                Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
            }
            Self::TLS_AES_128_GCM_SHA256 => Suite::TLS13_AES_128_GCM_SHA256,
            Self::TLS_AES_256_GCM_SHA384 => Suite::TLS13_AES_256_GCM_SHA384,
            Self::TLS_CHACHA20_POLY1305_SHA256 => Suite::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }
}

impl TlsSettings {
    /// Returns the configuration of a server with the certificates of `resolver`, which speaks HTTP/1.1.
    pub(super) fn server(
        &self,
        resolver: Arc<dyn ResolvesServerCert>,
    ) -> Result<ServerConfig, rustls::Error> {
        let mut provider = ring::default_provider();
        let wanted: Vec<_> = self.cipher_suites.iter().map(|it| it.of_rustls()).collect();
        provider.cipher_suites.retain(|suite| {
            let is_older = suite.version().version == ProtocolVersion::TLSv1_2;
            !is_older || wanted.is_empty() || wanted.contains(&suite.suite())
        });
        let has_older = provider
            .cipher_suites
            .iter()
            .any(|suite| suite.version().version == ProtocolVersion::TLSv1_2);
        let versions: &[_] = match self.min_version {
            TlsVersion::Tls12 if has_older => &[&rustls::version::TLS13, &rustls::version::TLS12],
            TlsVersion::Tls12 | TlsVersion::Tls13 => &[&rustls::version::TLS13],
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rustls::{
        ClientConfig, RootCertStore, SupportedProtocolVersion, pki_types::ServerName,
        sign::CertifiedKey,
    };
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;
    use crate::certificate::{Served, ServedCertificate};

    /// Connects a client with one version to a server with these settings, and returns the cipher suite.
    async fn suite(
        settings: &TlsSettings,
        version: &'static SupportedProtocolVersion,
    ) -> Option<Suite> {
        let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        let key = made.signing_key.into();
        let provider = ring::default_provider();
        let chain = vec![made.cert.der().clone()];
        let certificate = CertifiedKey::from_der(chain, key, &provider).unwrap();
        let served = ServedCertificate::new(settings.clone());
        served.set(Served {
            certificate: Arc::new(certificate),
            authority: None,
        });
        let acceptor: TlsAcceptor = served.acceptor().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let (here, there) = tokio::io::duplex(1 << 16);
        let name = ServerName::try_from("a").unwrap();
        let (accepted, connected) =
            tokio::join!(acceptor.accept(here), connector.connect(name, there));
        let (_, connection) = accepted.ok()?.into_inner();
        connected.ok()?;
        connection.negotiated_cipher_suite().map(|it| it.suite())
    }

    #[tokio::test]
    async fn options_restrict_versions_and_cipher_suites() {
        use rustls::version::{TLS12, TLS13};

        let all = TlsSettings::default();
        assert!(suite(&all, &TLS12).await.is_some() && suite(&all, &TLS13).await.is_some());
        let newest = TlsSettings {
            min_version: TlsVersion::Tls13,
            ..TlsSettings::default()
        };
        assert_eq!(suite(&newest, &TLS12).await, None);
        assert!(suite(&newest, &TLS13).await.is_some());
        let with = |suite| TlsSettings {
            cipher_suites: vec![suite],
            ..TlsSettings::default()
        };
        let one = with(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256);
        let wanted = Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
        assert_eq!(suite(&one, &TLS12).await, Some(wanted));
        assert!(suite(&one, &TLS13).await.is_some());
        // Suites for another kind of key, and those of TLS 1.3 alone, leave only TLS 1.3.
        for other in [
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            CipherSuite::TLS_AES_256_GCM_SHA384,
        ] {
            let other = with(other);
            assert_eq!(suite(&other, &TLS12).await, None);
            assert!(suite(&other, &TLS13).await.is_some());
        }
    }
}
