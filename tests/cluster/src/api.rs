//! Calls on the objects of one kind, with the full answer of the API server.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::Value;

use crate::{
    answer::{Answer, warning},
    resource::Resource,
    wait::{PAUSE, WITHIN},
};

/// How the API server handles unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// Refuses the object.
    Strict,
    /// Drops them, with a warning for each.
    #[default]
    Warn,
    /// Drops them silently.
    Ignore,
}

/// The options of a write.
#[derive(Clone, Debug, Default)]
pub struct Write {
    /// The field manager. If empty, the server derives it from the client.
    pub manager: String,
    /// How unknown fields are handled.
    pub validation: Validation,
    /// Whether an apply takes over fields that others manage.
    pub force: bool,
    /// Whether it is a dry run, which stores nothing.
    pub dry_run: bool,
}

impl Write {
    /// Returns a write of this field manager.
    pub fn by(manager: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            ..Self::default()
        }
    }

    /// Returns a write that fails on unknown fields.
    pub fn strict() -> Self {
        Self {
            validation: Validation::Strict,
            ..Self::default()
        }
    }

    fn query(&self) -> String {
        let validation = match self.validation {
            Validation::Strict => "Strict",
            Validation::Warn => "Warn",
            Validation::Ignore => "Ignore",
        };
        let mut query = format!("?fieldValidation={validation}");
        if !self.manager.is_empty() {
            query.push_str("&fieldManager=");
            query.push_str(&self.manager);
        }
        if self.force {
            query.push_str("&force=true");
        }
        if self.dry_run {
            query.push_str("&dryRun=All");
        }
        query
    }
}

/// The objects of one kind, in one namespace if the kind is namespaced.
#[derive(Clone, Copy)]
pub struct Api<'a> {
    client: &'a Client,
    resource: &'a Resource,
    namespace: &'a str,
}

impl<'a> Api<'a> {
    /// Returns the objects as a client accesses them.
    pub fn new(client: &'a Client, resource: &'a Resource, namespace: &'a str) -> Self {
        Self {
            client,
            resource,
            namespace,
        }
    }

    /// Creates the object.
    ///
    /// # Errors
    /// The server did not answer. This applies to every call: a refusal is an answer.
    pub async fn create(&self, object: &Value, write: &Write) -> Result<Answer> {
        let path = self.resource.collection(self.namespace) + &write.query();
        self.call(Method::POST, &path, Some(("application/json", object)))
            .await
    }

    /// Replaces the object.
    ///
    /// # Errors
    /// The server did not answer, or the object has no name.
    pub async fn replace(&self, object: &Value, write: &Write) -> Result<Answer> {
        let path = self.path(name(object)?) + &write.query();
        self.call(Method::PUT, &path, Some(("application/json", object)))
            .await
    }

    /// Replaces only the status of the object.
    ///
    /// # Errors
    /// The server did not answer, or the object has no name.
    pub async fn replace_status(&self, object: &Value, write: &Write) -> Result<Answer> {
        let path = self.path(name(object)?) + "/status" + &write.query();
        self.call(Method::PUT, &path, Some(("application/json", object)))
            .await
    }

    /// Applies the object on the server side.
    ///
    /// # Errors
    /// The server did not answer, or the object has no name.
    pub async fn apply(&self, object: &Value, write: &Write) -> Result<Answer> {
        let path = self.path(name(object)?) + &write.query();
        let body = ("application/apply-patch+yaml", object);
        self.call(Method::PATCH, &path, Some(body)).await
    }

    /// Merges a patch into an object (JSON merge patch).
    ///
    /// # Errors
    /// The server did not answer.
    pub async fn merge(&self, name: &str, patch: &Value, write: &Write) -> Result<Answer> {
        let path = self.path(name) + &write.query();
        let body = ("application/merge-patch+json", patch);
        self.call(Method::PATCH, &path, Some(body)).await
    }

    /// Reads an object.
    ///
    /// # Errors
    /// The server did not answer.
    pub async fn get(&self, name: &str) -> Result<Answer> {
        self.call(Method::GET, &self.path(name), None).await
    }

    /// Reads all objects.
    ///
    /// # Errors
    /// The server did not answer.
    pub async fn list(&self) -> Result<Answer> {
        let path = self.resource.collection(self.namespace);
        self.call(Method::GET, &path, None).await
    }

    /// Returns all objects as `kubectl get` shows them: the names of the columns, and the cells of each object.
    ///
    /// # Errors
    /// The server did not answer, or refused.
    pub async fn table(&self) -> Result<Value> {
        let path = self.resource.collection(self.namespace);
        let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
        let request = Request::get(&path).header(header::ACCEPT, accept);
        let request = request.body(Body::from(Vec::new()))?;
        Ok(self.answer(request).await?.accepted()?)
    }

    /// Returns all objects.
    ///
    /// # Errors
    /// The server did not answer, or refused.
    pub async fn items(&self) -> Result<Vec<Value>> {
        let mut list = self.list().await?.accepted()?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => bail!("not a list: {list}"),
        }
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// The server did not answer.
    pub async fn delete(&self, name: &str) -> Result<Answer> {
        self.call(Method::DELETE, &self.path(name), None).await
    }

    /// Waits until an object exists and meets the condition, and returns it.
    ///
    /// # Errors
    /// The server refused to show it, or the timeout expired: with the last state of the object.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let deadline = Instant::now() + WITHIN;
        loop {
            let answer = self.get(name).await?;
            let last = if answer.status == StatusCode::NOT_FOUND {
                Value::Null
            } else {
                let object = answer.accepted()?;
                if holds(&object) {
                    return Ok(object);
                }
                object
            };
            if Instant::now() > deadline {
                bail!(
                    "{name}: timed out after {} s waiting until {what}; it is {last:#}",
                    WITHIN.as_secs()
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until the list of all objects meets the condition, and returns it.
    ///
    /// # Errors
    /// The server refused to show them, or the timeout expired: with the last state of the objects.
    pub async fn until_all(
        &self,
        what: &str,
        hold: impl Fn(&[Value]) -> bool,
    ) -> Result<Vec<Value>> {
        let deadline = Instant::now() + WITHIN;
        loop {
            let items = self.items().await?;
            if hold(&items) {
                return Ok(items);
            }
            if Instant::now() > deadline {
                let items = Value::Array(items);
                bail!(
                    "timed out after {} s waiting until {what}; found {items:#}",
                    WITHIN.as_secs()
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.resource.collection(self.namespace))
    }

    /// Calls the server, and retries a read that a starting server is not ready to answer.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Answer> {
        let deadline = Instant::now() + WITHIN;
        loop {
            let answer = self.call_once(method.clone(), path, body).await?;
            let is_starting = answer.status == StatusCode::TOO_MANY_REQUESTS;
            if method != Method::GET || !is_starting || Instant::now() > deadline {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn call_once(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Answer> {
        let mut request = Request::builder().method(&method).uri(path);
        let mut bytes = Vec::new();
        if let Some((kind, value)) = body {
            request = request.header(header::CONTENT_TYPE, kind);
            bytes = serde_json::to_vec(value)?;
        }
        self.answer(request.body(Body::from(bytes))?).await
    }

    async fn answer(&self, request: Request<Body>) -> Result<Answer> {
        let (method, path) = (request.method().clone(), request.uri().clone());
        let response = self.client.send(request).await;
        let response = response.with_context(|| format!("{method} {path}"))?;
        let status = response.status();
        let warnings = response.headers().get_all(header::WARNING);
        let warnings = warnings.iter().filter_map(warning).collect();
        let bytes = response.into_body().collect().await?.to_bytes();
        let body = serde_json::from_slice(&bytes).with_context(|| {
            let text = String::from_utf8_lossy(&bytes);
            format!("{method} {path}: {status}, and the body is not JSON: {text}")
        })?;
        Ok(Answer {
            status,
            warnings,
            body,
        })
    }
}

fn name(object: &Value) -> Result<&str> {
    object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .context("the object has no metadata.name")
}
