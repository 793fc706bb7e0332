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

/// What the API server does about unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// Refuse the object.
    Strict,
    /// Drop them, with a warning each.
    #[default]
    Warn,
    /// Drop them in silence.
    Ignore,
}

/// How an object is written.
#[derive(Clone, Debug, Default)]
pub struct Write {
    /// In whose name; the server's guess where it is empty.
    pub manager: String,
    /// What is done about unknown fields.
    pub validation: Validation,
    /// Whether an apply takes over fields that others manage.
    pub force: bool,
    /// Whether to answer as if, and store nothing.
    pub dry_run: bool,
}

impl Write {
    /// A write in this manager's name.
    pub fn by(manager: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            ..Self::default()
        }
    }

    /// A write that fails on unknown fields.
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

/// The objects of one kind, in one namespace where the kind knows namespaces.
#[derive(Clone, Copy)]
pub struct Api<'a> {
    client: &'a Client,
    resource: &'a Resource,
    namespace: &'a str,
}

impl<'a> Api<'a> {
    pub(crate) fn new(client: &'a Client, resource: &'a Resource, namespace: &'a str) -> Self {
        Self {
            client,
            resource,
            namespace,
        }
    }

    /// Creates the object.
    ///
    /// # Errors
    /// No answer. This holds for every call: what a server refuses is an answer.
    pub async fn create(&self, object: &Value, write: &Write) -> Result<Answer> {
        let path = self.resource.collection(self.namespace) + &write.query();
        self.call(Method::POST, &path, Some(("application/json", object)))
            .await
    }

    /// Replaces the object.
    ///
    /// # Errors
    /// No answer, or an object without a name.
    pub async fn replace(&self, object: &Value, write: &Write) -> Result<Answer> {
        let path = self.path(name(object)?) + &write.query();
        self.call(Method::PUT, &path, Some(("application/json", object)))
            .await
    }

    /// Replaces the status of the object, and nothing else.
    ///
    /// # Errors
    /// No answer, or an object without a name.
    pub async fn replace_status(&self, object: &Value, write: &Write) -> Result<Answer> {
        let path = self.path(name(object)?) + "/status" + &write.query();
        self.call(Method::PUT, &path, Some(("application/json", object)))
            .await
    }

    /// Server-side apply.
    ///
    /// # Errors
    /// No answer, or an object without a name.
    pub async fn apply(&self, object: &Value, write: &Write) -> Result<Answer> {
        let path = self.path(name(object)?) + &write.query();
        let body = ("application/apply-patch+yaml", object);
        self.call(Method::PATCH, &path, Some(body)).await
    }

    /// Merges a patch into the object of that name (JSON merge patch).
    ///
    /// # Errors
    /// No answer.
    pub async fn merge(&self, name: &str, patch: &Value, write: &Write) -> Result<Answer> {
        let path = self.path(name) + &write.query();
        let body = ("application/merge-patch+json", patch);
        self.call(Method::PATCH, &path, Some(body)).await
    }

    /// Reads the object of that name.
    ///
    /// # Errors
    /// No answer.
    pub async fn get(&self, name: &str) -> Result<Answer> {
        self.call(Method::GET, &self.path(name), None).await
    }

    /// Reads all objects.
    ///
    /// # Errors
    /// No answer.
    pub async fn list(&self) -> Result<Answer> {
        let path = self.resource.collection(self.namespace);
        self.call(Method::GET, &path, None).await
    }

    /// All objects as `kubectl get` shows them: the names of the columns, and the cells of each object.
    ///
    /// # Errors
    /// No answer, or the server refused.
    pub async fn table(&self) -> Result<Value> {
        let path = self.resource.collection(self.namespace);
        let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
        let request = Request::get(&path).header(header::ACCEPT, accept);
        let request = request.body(Body::from(Vec::new()))?;
        Ok(self.answer(request).await?.accepted()?)
    }

    /// All objects.
    ///
    /// # Errors
    /// No answer, or the server refused.
    pub async fn items(&self) -> Result<Vec<Value>> {
        let mut list = self.list().await?.accepted()?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => bail!("no list: {list}"),
        }
    }

    /// Deletes the object of that name.
    ///
    /// # Errors
    /// No answer.
    pub async fn delete(&self, name: &str) -> Result<Answer> {
        self.call(Method::DELETE, &self.path(name), None).await
    }

    /// Waits until there is an object of that name of which this holds, and returns it.
    ///
    /// # Errors
    /// The server refused to show it, or it did not come about in three minutes: with the object as it was last.
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
                    "not seen of {name} after {} s: {what}; it is {last:#}",
                    WITHIN.as_secs()
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until this holds of all objects together, and returns them.
    ///
    /// # Errors
    /// The server refused to show them, or it did not come about in three minutes: with the objects as they were last.
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
                    "not seen after {} s: {what}; there is {items:#}",
                    WITHIN.as_secs()
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.resource.collection(self.namespace))
    }

    /// Calls, and reads again what a server that has just started is not ready to show.
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
            format!("{method} {path}: {status}, and no JSON: {text}")
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
        .context("an object without metadata.name")
}
