//! Authorization: the credential itself, or a token of the server that the registry names.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderMap, Method, StatusCode, Uri,
    header::{self, HeaderValue},
};
use serde::Deserialize;
use trainyard_text::clean;
use zeroize::Zeroizing;

use super::{
    Repository,
    challenge::Challenge,
    endpoint::{escaped, with_query},
    wire::{Authorization, Call, Received},
};
use crate::{
    credentials::{Secret, secret_text},
    error::{Problem, RegistryError},
    limits::ANSWER_BYTES,
    progress::Progress,
    transport::{host, shown_url},
};

/// The name of this program for token servers.
const CLIENT: &str = "trainyard";

/// The answer of a token server. Some have one name, and some the other.
#[derive(Deserialize)]
struct Issued {
    #[serde(default, deserialize_with = "secret_text")]
    token: Option<Zeroizing<String>>,
    #[serde(default, deserialize_with = "secret_text")]
    access_token: Option<Zeroizing<String>>,
}

impl Repository<'_> {
    /// Sends a request with the authorization that was accepted last, and authorizes if the registry asks for it.
    pub(super) async fn call(&self, call: &Call) -> Result<Received, Problem> {
        let key = self.key();
        let known = self.wire.accepted(&key);
        let received = self
            .wire
            .exchange(&self.endpoint, call, known.as_ref())
            .await?;
        if received.status() != StatusCode::UNAUTHORIZED || !received.is_own {
            return self.allowed(received, known.is_some_and(|known| known.is_of_user));
        }
        let authorization = self.authorize(received.headers()).await?;
        let received = self
            .wire
            .exchange(&self.endpoint, call, Some(&authorization))
            .await?;
        let received = self.allowed(received, authorization.is_of_user)?;
        self.wire.accept(key, authorization);
        Ok(received)
    }

    /// What an authorization is valid for.
    fn key(&self) -> String {
        format!("{} {} {}", self.endpoint.host(), self.name, self.actions())
    }

    const fn actions(&self) -> &'static str {
        if self.pushes { "pull,push" } else { "pull" }
    }

    fn allowed(&self, received: Received, is_known: bool) -> Result<Received, Problem> {
        let is_denied = matches!(
            received.status(),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        );
        if is_denied && received.is_own {
            return Err(self.unauthorized(is_known).into());
        }
        Ok(received)
    }

    fn unauthorized(&self, is_known: bool) -> RegistryError {
        RegistryError::Unauthorized {
            host: clean(&self.endpoint.registry),
            repository: self.name.clone(),
            credential: if is_known {
                "with the configured credential"
            } else {
                "without a credential"
            },
            action: if self.pushes { "push" } else { "pull" },
        }
    }

    async fn authorize(&self, headers: &HeaderMap) -> Result<Authorization, Problem> {
        let secret = self.secret().await?;
        let challenges = headers.get_all(header::WWW_AUTHENTICATE).iter();
        let challenges = challenges.filter_map(|header| Challenge::parse(header.to_str().ok()?));
        let challenges: Vec<_> = challenges.collect();
        let bearer = challenges.iter().find_map(|challenge| match challenge {
            Challenge::Bearer { realm, service } => Some((realm, service.as_deref())),
            Challenge::Basic => None,
        });
        if let Some((realm, service)) = bearer {
            let token = self.token(realm, service, secret.as_ref()).await?;
            return Ok(Authorization {
                value: self.value("Bearer", &token)?,
                is_of_user: secret.is_some(),
            });
        }
        if !challenges.contains(&Challenge::Basic) {
            let host = self.endpoint.host();
            return Err(RegistryError::Challenge { host }.into());
        }
        match secret {
            Some(Secret::Password { user, password }) => Ok(Authorization {
                value: self.value("Basic", &basic(&user, &password))?,
                is_of_user: true,
            }),
            other => Err(self.unauthorized(other.is_some()).into()),
        }
    }

    /// Looks up the credential of this registry, or of this mirror, in a thread of its own: a helper may take long.
    async fn secret(&self) -> Result<Option<Secret>, Problem> {
        let credentials = Arc::clone(&self.wire.credentials);
        let (registry, name) = (self.endpoint.registry.clone(), self.name.clone());
        let found = tokio::task::spawn_blocking(move || credentials.of(&registry, &name)).await;
        // A thread that ended in any other way found none.
        Ok(found.unwrap_or(Ok(None))?)
    }

    fn value(&self, scheme: &str, text: &str) -> Result<HeaderValue, Problem> {
        let text = Zeroizing::new(format!("{scheme} {text}"));
        let value = HeaderValue::from_str(&text);
        let mut value = value.map_err(|_| RegistryError::Token {
            host: self.endpoint.host(),
            server: self.endpoint.host(),
            reason: "it has invalid characters".to_owned(),
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn token_error(&self, server: &Uri, reason: String) -> Problem {
        RegistryError::Token {
            host: self.endpoint.host(),
            server: host(server),
            reason,
        }
        .into()
    }

    /// Requests a token for this repository alone, whatever scope the registry asks for. Redirects of the token server are not followed.
    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        secret: Option<&Secret>,
    ) -> Result<Zeroizing<String>, Problem> {
        let server = self.realm(realm)?;
        let failure = |reason: String| self.token_error(&server, reason);
        let (call, authorization) = self.token_request(&server, service, secret)?;
        let answer = self
            .wire
            .send(&call, &call.uri, authorization.as_ref())
            .await?;
        let status = answer.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.unauthorized(secret.is_some()).into());
        }
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(RegistryError::Unavailable {
                host: host(&server),
                status,
                message: String::new(),
            }
            .into());
        }
        if !status.is_success() {
            return Err(failure(format!("it answered {status}")));
        }
        let received = Received::of(answer, call.uri);
        let body = self
            .wire
            .read(received, "a token", ANSWER_BYTES, &Progress::NONE)
            .await?;
        let body = Zeroizing::new(body);
        // The error of serde_json could quote the token.
        let issued: Option<Issued> = serde_json::from_slice(&body).ok();
        let token = issued.and_then(|issued| issued.token.or(issued.access_token));
        let token = token.filter(|token| !token.is_empty());
        token.ok_or_else(|| failure("its answer has none".to_owned()))
    }

    /// Returns the request for a token, and its authorization.
    fn token_request(
        &self,
        server: &Uri,
        service: Option<&str>,
        secret: Option<&Secret>,
    ) -> Result<(Call, Option<HeaderValue>), Problem> {
        let scope = format!("repository:{}:{}", self.name, self.actions());
        let mut parameters = vec![("scope", scope.as_str())];
        parameters.extend(service.map(|service| ("service", service)));
        let authorization = match secret {
            Some(Secret::IdentityToken(token)) => {
                parameters.extend([("grant_type", "refresh_token"), ("client_id", CLIENT)]);
                parameters.push(("refresh_token", token.as_str()));
                return Ok((form(server, &parameters), None));
            }
            Some(Secret::Password { user, password }) => {
                Some(self.value("Basic", &basic(user, password))?)
            }
            None => None,
        };
        let uri = with_query(server, &parameters);
        let uri = uri.ok_or_else(|| self.token_error(server, "its URL is invalid".to_owned()))?;
        Ok((Call::new(Method::GET, uri), authorization))
    }

    /// Returns the URL of the token server. It may be any host, as that of Docker Hub, but gets nothing without encryption that
    /// the registry itself would not.
    fn realm(&self, realm: &str) -> Result<Uri, RegistryError> {
        let uri: Option<Uri> = realm.parse().ok();
        let uri = uri.filter(|uri| {
            let has_user = uri
                .authority()
                .is_some_and(|authority| authority.as_str().contains('@'));
            self.endpoint.may_send_to(uri) && !has_user
        });
        uri.ok_or_else(|| RegistryError::Realm {
            host: self.endpoint.host(),
            realm: shown_url(realm),
        })
    }
}

fn basic(user: &str, password: &str) -> Zeroizing<String> {
    let both = Zeroizing::new(format!("{user}:{password}"));
    Zeroizing::new(STANDARD.encode(both.as_bytes()))
}

fn form(server: &Uri, parameters: &[(&str, &str)]) -> Call {
    let fields: Vec<_> = parameters
        .iter()
        .map(|(name, value)| format!("{name}={}", escaped(value)))
        .collect();
    Call::new(Method::POST, server.clone())
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .upload(Bytes::from(fields.join("&")), Progress::NONE)
}
