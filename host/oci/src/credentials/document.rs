//! Docker's config.json, with the paths and patterns in its keys that kubelet reads, too.

use std::{collections::BTreeMap, fmt};

use base64::{
    Engine as _,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::Deserialize;
use trainyard_text::clean;
use zeroize::Zeroizing;

use super::{CredentialError, Secret, helper, secret_text};

/// Docker Hub has three names.
const DOCKER_HUB: &str = "docker.io";
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// A document, with its name for errors.
pub(super) struct Document {
    name: String,
    content: Content,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Content {
    auths: BTreeMap<String, Entry>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    #[serde(deserialize_with = "secret_text")]
    auth: Option<Zeroizing<String>>,
    username: Option<String>,
    #[serde(deserialize_with = "secret_text")]
    password: Option<Zeroizing<String>>,
    #[serde(deserialize_with = "secret_text")]
    identitytoken: Option<Zeroizing<String>>,
}

impl Document {
    pub(super) fn parse(name: String, text: &[u8]) -> Result<Self, CredentialError> {
        // serde_json's own message quotes values.
        let content = serde_json::from_slice(text).map_err(|error| CredentialError::Form {
            document: clean(&name),
            line: error.line(),
            column: error.column(),
        })?;
        Ok(Self {
            name: clean(&name),
            content,
        })
    }

    pub(super) fn of(
        &self,
        registry: &str,
        repository: &str,
    ) -> Result<Option<Secret>, CredentialError> {
        if let Some(entry) = self.entry(registry, repository)
            && let Some(secret) = self.secret(registry, entry)?
        {
            return Ok(Some(secret));
        }
        match self.helper(registry) {
            Some(name) => {
                let key = if registry == DOCKER_HUB {
                    DOCKER_HUB_KEY
                } else {
                    registry
                };
                helper::get(&self.name, name, key)
            }
            None => Ok(None),
        }
    }

    /// Returns the helper of a registry, by its own entry or else for all.
    fn helper(&self, registry: &str) -> Option<&str> {
        let own = self.content.cred_helpers.iter();
        let mut own = own.filter(|(key, _)| host_of(key) == registry);
        let name = own
            .next()
            .map(|(_, name)| name)
            .or(self.content.creds_store.as_ref());
        name.map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Returns the entry that names the registry and, if several do, the longest path of the repository.
    fn entry(&self, registry: &str, repository: &str) -> Option<&Entry> {
        let entries = self.content.auths.iter();
        let fitting =
            entries.filter_map(|(key, entry)| Some((fit(key, registry, repository)?, entry)));
        fitting.max_by_key(|(fit, _)| *fit).map(|(_, entry)| entry)
    }

    fn secret(&self, registry: &str, entry: &Entry) -> Result<Option<Secret>, CredentialError> {
        let not_empty = |text: &&Zeroizing<String>| !text.is_empty();
        if let Some(token) = entry.identitytoken.as_ref().filter(not_empty) {
            return Ok(Some(Secret::IdentityToken(token.clone())));
        }
        if let Some(auth) = entry.auth.as_ref().filter(not_empty) {
            let secret = decoded(auth).ok_or_else(|| CredentialError::Entry {
                document: self.name.clone(),
                registry: registry.to_owned(),
            })?;
            return Ok(Some(secret));
        }
        Ok(match (&entry.username, &entry.password) {
            (Some(user), Some(password)) => Some(Secret::Password {
                user: user.clone(),
                password: password.clone(),
            }),
            _ => None,
        })
    }
}

/// Reads base64 of `USER:PASSWORD`, whose padding some tools omit.
fn decoded(auth: &str) -> Option<Secret> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    let bytes = Zeroizing::new(engine.decode(auth.trim()).ok()?);
    let text = std::str::from_utf8(&bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(Secret::Password {
        user: user.to_owned(),
        // Docker itself once wrote a trailing NUL.
        password: Zeroizing::new(password.trim_end_matches('\0').to_owned()),
    })
}

/// Splits a key into host and path, without scheme and version.
fn split(key: &str) -> (&str, &str) {
    let rest = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"));
    let rest = rest.unwrap_or(key);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.trim_end_matches('/');
    // What `docker login` wrote before registries had repositories.
    let path = if matches!(path, "v1" | "v2") {
        ""
    } else {
        path
    };
    (host, path)
}

fn host_of(key: &str) -> &str {
    match split(key).0 {
        "index.docker.io" | "registry-1.docker.io" => DOCKER_HUB,
        host => host,
    }
}

/// Returns how well a key fits a repository, as kubelet compares them: the host with `*` for one part of a name, and a prefix of the path.
/// An exact host is better than a pattern, and a longer path than a shorter one. `None` if it does not fit.
fn fit(key: &str, registry: &str, repository: &str) -> Option<(bool, usize)> {
    let host = host_of(key);
    let is_exact = host == registry;
    if !is_exact && !is_pattern_of(host, registry) {
        return None;
    }
    let path = split(key).1;
    let rest = repository.strip_prefix(path)?;
    let is_whole = path.is_empty() || rest.is_empty() || rest.starts_with('/');
    is_whole.then_some((is_exact, path.len()))
}

/// Whether a host matches a pattern, in which `*` is any text without dots.
fn is_pattern_of(pattern: &str, host: &str) -> bool {
    let (parts, of_host) = (pattern.split('.'), host.split('.'));
    pattern.contains('*')
        && parts.clone().count() == of_host.clone().count()
        && parts
            .zip(of_host)
            .all(|(pattern, part)| match pattern.split_once('*') {
                None => pattern == part,
                Some((start, end)) => {
                    part.len() >= start.len() + end.len()
                        && part.starts_with(start)
                        && part.ends_with(end)
                }
            })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn password_of(
        document: &serde_json::Value,
        registry: &str,
        repository: &str,
    ) -> Option<String> {
        let document = Document::parse("test".to_owned(), document.to_string().as_bytes()).unwrap();
        match document.of(registry, repository).unwrap()? {
            Secret::Password { user, password } => Some(format!("{user}:{}", *password)),
            Secret::IdentityToken(token) => Some(format!("token:{}", *token)),
        }
    }

    #[test]
    fn credential_is_only_of_the_host_that_its_entry_names() {
        let document = json!({"auths": {
            "registry.example.com": {"auth": "YTph"},
            "https://other.example.com:5000/v2/": {"username": "b", "password": "b"},
            "*.pattern.example.com": {"auth": "Yzpj"},
            "https://index.docker.io/v1/": {"auth": "ZDpk"},
            "token.example.com": {"auth": "ZTpl", "identitytoken": "t"},
        }});
        for (registry, expected) in [
            ("registry.example.com", Some("a:a")),
            ("registry.example.com:443", None),
            ("evil-registry.example.com", None),
            ("registry.example.com.evil.com", None),
            ("other.example.com:5000", Some("b:b")),
            ("other.example.com", None),
            ("x.pattern.example.com", Some("c:c")),
            ("pattern.example.com", None),
            ("x.y.pattern.example.com", None),
            ("x.pattern.example.com.evil.com", None),
            ("docker.io", Some("d:d")),
            ("token.example.com", Some("token:t")),
        ] {
            let found = password_of(&document, registry, "team/plugin");
            assert_eq!(found.as_deref(), expected, "{registry}");
        }
    }

    #[test]
    fn entry_with_the_longest_path_of_the_repository_is_used() {
        let document = json!({"auths": {
            "r.example.com": {"auth": "YTph"},
            "r.example.com/team": {"auth": "Yjpi"},
            "*.example.com/team/plugin": {"auth": "Yzpj"},
        }});
        for (repository, expected) in [
            ("other", "a:a"),
            ("team/plugin", "b:b"),
            ("teammates/plugin", "a:a"),
        ] {
            let found = password_of(&document, "r.example.com", repository);
            assert_eq!(found.as_deref(), Some(expected), "{repository}");
        }
        let other = password_of(&document, "x.example.com", "team/plugin");
        assert_eq!(other.as_deref(), Some("c:c"));
    }

    #[test]
    fn errors_of_documents_quote_nothing() {
        let broken = br#"{"auths": {"r.example.com": {"auth": 7, "password": "hunter2"}}}"#;
        let error = Document::parse("config.json".to_owned(), broken).unwrap_err();
        let of_entry = br#"{"auths": {"r.example.com": {"auth": "aHVudGVyMg"}}}"#;
        let document = Document::parse("config.json".to_owned(), of_entry).unwrap();
        let entry = document.of("r.example.com", "x").unwrap_err();
        for text in [
            error.to_string(),
            entry.to_string(),
            format!("{document:?}"),
        ] {
            assert!(text.starts_with("config.json"), "{text}");
            assert!(
                !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
                "{text}"
            );
        }
    }
}
