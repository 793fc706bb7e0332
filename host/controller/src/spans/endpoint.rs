//! The address of a collector.

use std::{fmt, str::FromStr};

use http::{Uri, uri::Scheme};
use serde::Deserialize;
use thiserror::Error;

/// The path of OTLP over HTTP for spans.
const TRACES: &str = "v1/traces";

/// The URL of a collector of OpenTelemetry, to which `/v1/traces` is added.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Endpoint {
    text: String,
    uri: Uri,
}

/// An invalid URL of a collector. Its text is not repeated if it may contain a password.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EndpointError {
    /// It is not a URL of HTTP.
    #[error("`{0}` is not the URL of a collector; use a URL such as http://collector:4318")]
    NotAUrl(String),
    /// It has a user name or a password, or a query.
    #[error(
        "must be a URL without a user name, a password and a query; pass credentials in the environment variable \
         OTEL_EXPORTER_OTLP_HEADERS, from a Secret"
    )]
    Credentials,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if text.contains(['@', '?', '#']) {
            return Err(EndpointError::Credentials);
        }
        let uri = text.parse::<Uri>().ok();
        let is_http = |uri: &Uri| {
            let scheme = uri.scheme();
            let is_known = scheme == Some(&Scheme::HTTP) || scheme == Some(&Scheme::HTTPS);
            // Clients take port 80 or 443 instead of one that is not a number.
            let has_valid_port = uri.authority().is_some_and(|it| {
                it.as_str() == it.host() || it.port_u16().is_some_and(|port| port > 0)
            });
            is_known && has_valid_port && uri.host().is_some_and(|host| !host.is_empty())
        };
        match uri.filter(is_http) {
            Some(uri) => Ok(Self {
                text: text.to_owned(),
                uri,
            }),
            None => Err(EndpointError::NotAUrl(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Endpoint {
    type Error = EndpointError;

    fn try_from(text: String) -> Result<Self, EndpointError> {
        text.parse()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Endpoint {
    /// Returns the URL for spans.
    pub(super) fn traces(&self) -> String {
        format!("{}/{TRACES}", self.text.trim_end_matches('/'))
    }

    /// Returns the URL without its path.
    pub(super) fn server(&self) -> Uri {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        // A URL with another path is still a URL.
        Uri::from_parts(parts).unwrap_or_default()
    }

    /// Whether spans are sent over TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn spans_go_below_the_path_of_the_url() {
        for (text, traces, server) in [
            (
                "http://otel:4318",
                "http://otel:4318/v1/traces",
                "http://otel:4318/",
            ),
            ("https://otel/", "https://otel/v1/traces", "https://otel/"),
            (
                "https://[::1]:1/a/b",
                "https://[::1]:1/a/b/v1/traces",
                "https://[::1]:1/",
            ),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.traces(), traces);
            assert_eq!(endpoint.server().to_string(), server);
            assert_eq!(endpoint.is_tls(), text.starts_with("https:"));
            assert_eq!(endpoint.to_string(), text);
        }
    }

    #[test]
    fn credentials_are_refused_and_not_repeated() {
        for text in [
            "http://u:hidden@otel",
            "http://otel?token=hidden",
            "http://otel#hidden",
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(
                !error.contains("hidden") && error.contains("OTEL_EXPORTER_OTLP_HEADERS"),
                "{error}"
            );
        }
    }

    #[test]
    fn only_urls_of_http_are_accepted() {
        for text in [
            "",
            "otel",
            "otel:4318",
            "grpc://otel:4317",
            "http://",
            "http:///v1",
            "/v1/traces",
            "http://otel:99999",
            "http://otel:abc",
            "http://otel:",
            "http://[::1]x",
            "http://otel:0",
        ] {
            let error = text.parse::<Endpoint>().unwrap_err();
            assert_eq!(error, EndpointError::NotAUrl(text.to_owned()), "{text}");
        }
    }
}
