//! The URL of a registry or of one of its mirrors.

use std::net::Ipv4Addr;

use http::{
    Uri,
    uri::{Authority, PathAndQuery, Scheme},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::transport::{DOCKER_HUB, host_of};

/// The path of the API.
const API: &str = "/v2";

/// The characters that are escaped in a query.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The API of a registry or of a mirror.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    scheme: Scheme,
    authority: Authority,
    path: String,
    /// The registry whose name credentials have.
    pub(super) registry: String,
    /// The registry of which it is a mirror.
    mirror_of: Option<String>,
    /// Whether somebody wrote that TLS is not wanted. A registry on this machine is reached without, but leads nobody else to that.
    wants_plain: bool,
}

impl Endpoint {
    /// Returns the API of a registry: over TLS, unless it is on this machine or the user wants otherwise.
    pub(crate) fn of(registry: &str, plain_http: bool) -> Option<Self> {
        let (name, host) = DOCKER_HUB;
        let authority = if registry == name { host } else { registry };
        let authority: Authority = authority.parse().ok()?;
        let is_plain = plain_http || is_this_machine(authority.host());
        Some(Self {
            scheme: if is_plain {
                Scheme::HTTP
            } else {
                Scheme::HTTPS
            },
            authority,
            path: API.to_owned(),
            registry: registry.to_owned(),
            mirror_of: None,
            wants_plain: plain_http,
        })
    }

    /// Returns the API of a mirror of a registry. A path of the URL replaces that of the API.
    pub(crate) fn of_mirror(url: &Uri, registry: &str) -> Option<Self> {
        let authority = url.authority()?.clone();
        let path = url.path().trim_end_matches('/');
        Some(Self {
            scheme: url.scheme()?.clone(),
            registry: authority.to_string(),
            authority,
            path: if path.is_empty() { API } else { path }.to_owned(),
            mirror_of: Some(registry.to_owned()),
            wants_plain: url.scheme() == Some(&Scheme::HTTP),
        })
    }

    /// Returns the host, for messages.
    pub(crate) fn host(&self) -> String {
        host_of(&self.authority)
    }

    /// Whether requests may go to a URL that the registry names. Without TLS, only if it is on this machine as the registry is, or if
    /// somebody wrote that TLS is not wanted.
    pub(super) fn may_send_to(&self, uri: &Uri) -> bool {
        let is_here = self.scheme == Scheme::HTTP && uri.host().is_some_and(is_this_machine);
        match uri.scheme_str() {
            Some("https") => true,
            Some("http") => self.wants_plain || is_here,
            _ => false,
        }
    }

    /// Whether a URL is on the same host and port, with the same scheme. Only these get credentials.
    pub(super) fn has(&self, uri: &Uri) -> bool {
        let port = |scheme: &Scheme| if *scheme == Scheme::HTTP { 80 } else { 443 };
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return false;
        };
        *scheme == self.scheme
            && authority.host().eq_ignore_ascii_case(self.authority.host())
            && authority.port_u16().unwrap_or_else(|| port(scheme))
                == self.authority.port_u16().unwrap_or_else(|| port(&self.scheme))
            // A URL with a user would be another credential.
            && !authority.as_str().contains('@')
    }

    /// Returns the URL of something in a repository. A mirror is told of which registry.
    pub(super) fn url(&self, repository: &str, rest: &str) -> Option<Uri> {
        let mut path = format!("{}/{repository}/{rest}", self.path);
        if let Some(registry) = &self.mirror_of {
            path.push_str("?ns=");
            path.push_str(&escaped(registry));
        }
        self.at(path.parse().ok()?)
    }

    fn at(&self, path: PathAndQuery) -> Option<Uri> {
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone());
        uri.path_and_query(path).build().ok()
    }
}

/// Returns the URL that a `Location` header means: an absolute one, or a path on the host of the request.
pub(super) fn resolved(request: &Uri, location: &str) -> Option<Uri> {
    let location: Uri = location.split('#').next()?.parse().ok()?;
    if location.scheme().is_some() {
        return location.authority().is_some().then_some(location);
    }
    // Two slashes would begin the name of another host.
    let is_path = location.path().starts_with('/') && !location.path().starts_with("//");
    if location.authority().is_some() || !is_path {
        return None;
    }
    let uri = Uri::builder()
        .scheme(request.scheme()?.clone())
        .authority(request.authority()?.clone());
    uri.path_and_query(location.path_and_query()?.clone())
        .build()
        .ok()
}

/// Returns a URL with further parameters of its query.
pub(super) fn with_query(uri: &Uri, parameters: &[(&str, &str)]) -> Option<Uri> {
    let mut path = uri
        .path_and_query()
        .map_or("/", PathAndQuery::as_str)
        .to_owned();
    for (name, value) in parameters {
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str(&format!("{name}={}", escaped(value)));
    }
    let uri = Uri::builder()
        .scheme(uri.scheme()?.clone())
        .authority(uri.authority()?.clone());
    uri.path_and_query(path).build().ok()
}

pub(super) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Whether a host is this machine, to which nobody listens in between.
fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host == "[::1]"
        || host
            .parse::<Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_tls() {
        for (registry, url) in [
            ("localhost:5000", "http://localhost:5000/v2/a/b"),
            ("127.0.0.2:80", "http://127.0.0.2:80/v2/a/b"),
            (
                "localhost.example.com",
                "https://localhost.example.com/v2/a/b",
            ),
            ("10.0.0.1:5000", "https://10.0.0.1:5000/v2/a/b"),
            ("docker.io", "https://registry-1.docker.io/v2/a/b"),
        ] {
            let endpoint = Endpoint::of(registry, false).unwrap();
            assert_eq!(endpoint.url("a", "b").unwrap().to_string(), url);
        }
        let plain = Endpoint::of("10.0.0.1", true).unwrap();
        assert_eq!(plain.url("a", "b").unwrap(), "http://10.0.0.1/v2/a/b");
    }

    #[test]
    fn mirror_learns_the_registry_and_keeps_its_path() {
        for (mirror, url) in [
            (
                "https://m.example.com",
                "https://m.example.com/v2/a/b?ns=r.example.com%3A5000",
            ),
            (
                "https://m.example.com/v2/proxy/",
                "https://m.example.com/v2/proxy/a/b?ns=r.example.com%3A5000",
            ),
        ] {
            let endpoint =
                Endpoint::of_mirror(&mirror.parse().unwrap(), "r.example.com:5000").unwrap();
            assert_eq!(endpoint.url("a", "b").unwrap(), url);
        }
    }

    #[test]
    fn other_ports_schemes_and_users_are_other_hosts() {
        let endpoint = Endpoint::of("r.example.com", false).unwrap();
        for (url, is_same) in [
            ("https://r.example.com/x", true),
            ("https://R.example.com:443/x", true),
            ("http://r.example.com/x", false),
            ("https://r.example.com:5000/x", false),
            ("https://r.example.com.evil.com/x", false),
            ("https://a:b@r.example.com/x", false),
            ("/x", false),
        ] {
            assert_eq!(endpoint.has(&url.parse().unwrap()), is_same, "{url}");
        }
    }

    #[test]
    fn requests_without_tls_stay_on_this_machine_unless_somebody_wrote_otherwise() {
        let mirror = "http://m.example.com".parse().unwrap();
        let here = Endpoint::of("localhost:5000", false).unwrap();
        let away = Endpoint::of("r.example.com", false).unwrap();
        let plain = Endpoint::of("r.example.com", true).unwrap();
        let mirror = Endpoint::of_mirror(&mirror, "r.example.com").unwrap();
        for (endpoint, to_here, to_others) in [
            (here, true, false),
            (away, false, false),
            (plain, true, true),
            (mirror, true, true),
        ] {
            for (url, expected) in [
                ("https://other.example.com/token", true),
                ("http://127.0.0.1:5001/token", to_here),
                ("http://other.example.com/token", to_others),
                ("ftp://localhost/token", false),
                ("/token", false),
            ] {
                let may = endpoint.may_send_to(&url.parse().unwrap());
                assert_eq!(may, expected, "{endpoint:?} {url}");
            }
        }
    }

    #[test]
    fn locations_are_urls_or_paths_of_the_same_host() {
        let request: Uri = "https://r.example.com/v2/x?y".parse().unwrap();
        for (location, expected) in [
            ("/v2/z?a=b#c", Some("https://r.example.com/v2/z?a=b")),
            ("http://other/z", Some("http://other/z")),
            ("//other/z", None),
            ("z", None),
            ("", None),
        ] {
            let found = resolved(&request, location).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{location}");
        }
    }
}
