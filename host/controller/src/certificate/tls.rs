//! The options of TLS.

use std::sync::Arc;

use rustls::{
    CipherSuite as Suite, ProtocolVersion, ServerConfig, crypto::ring, server::ResolvesServerCert,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The options of TLS, for all servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The lowest version. Default 1.2.
    pub min_version: TlsVersion,
    /// The cipher suites of TLS 1.2. Default: all that are supported. Those of TLS 1.3 are always allowed, as in Go.
    pub cipher_suites: Vec<CipherSuite>,
}

/// A version of TLS, with its name in Kubernetes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
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
