//! Objects of a cluster, read as they are.

use kube::{
    Api, Client, Resource as _,
    api::{ApiResource, DynamicObject, ListParams},
    core::{GroupVersionKind, Request},
};
use serde_json::Value;
use trainyard_controller::client::{is_too_large, message_of, segment};

/// The most objects of a page.
const PAGE: u32 = 500;

/// The kinds that are read.
pub(crate) const CLUSTER_RUNTIME: Kind =
    Kind("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime");
pub(crate) const CONFIG_MAP: Kind = Kind("", "v1", "ConfigMap");
pub(crate) const EVENT: Kind = Kind("", "v1", "Event");
pub(crate) const NAMESPACE: Kind = Kind("", "v1", "Namespace");
pub(crate) const PLUGIN_REVISION: Kind = Kind("trainyard.dev", "v1alpha1", "PluginRevision");
pub(crate) const POLICY_PLUGIN: Kind = Kind("trainyard.dev", "v1alpha1", "PolicyPlugin");
pub(crate) const POD: Kind = Kind("", "v1", "Pod");
pub(crate) const JOB_SET: Kind = Kind("jobset.x-k8s.io", "v1alpha2", "JobSet");
pub(crate) const RUNTIME: Kind = Kind("trainer.kubeflow.org", "v1alpha1", "TrainingRuntime");
pub(crate) const TRAIN_JOB: Kind = Kind("trainer.kubeflow.org", "v1alpha1", "TrainJob");

/// A kind: its group, version and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
);

impl Kind {
    /// Returns the name of its resource.
    pub(crate) fn plural(self) -> String {
        self.resource().plural
    }

    fn resource(self) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk(self.0, self.1, self.2))
    }
}

/// Which objects are listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'s> {
    pub(crate) labels: Option<&'s str>,
    pub(crate) fields: Option<&'s str>,
    /// The most objects.
    pub(crate) most: usize,
    /// The most bytes of all objects together.
    pub(crate) most_bytes: usize,
}

impl Default for Selection<'_> {
    fn default() -> Self {
        Self {
            labels: None,
            fields: None,
            most: 500,
            most_bytes: 32 << 20,
        }
    }
}

/// Reads objects in a namespace, or of the cluster if its name is empty. An error is a whole sentence.
#[derive(Clone)]
pub(crate) struct LiveObjects {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl LiveObjects {
    fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        match self.namespace.as_str() {
            "" => Api::all_with(self.client.clone(), resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, resource),
        }
    }

    /// Returns an object; `None` if it does not exist.
    pub(crate) async fn get(&self, kind: Kind, name: &str) -> Result<Option<Value>, String> {
        let failed = |error: String| {
            let place = match self.namespace.as_str() {
                "" => String::new(),
                namespace => format!("{namespace}/"),
            };
            format!("{} {place}{name} cannot be read: {error}", kind.2)
        };
        let found = self.api(&kind.resource()).get_opt(&segment(name)).await;
        let found = found.map_err(|error| failed(message_of(&error)))?;
        let value = found.map(serde_json::to_value).transpose();
        value.map_err(|error| failed(error.to_string()))
    }

    /// Returns objects of a kind in the order of their names, and whether there are more.
    pub(crate) async fn list(
        &self,
        kind: Kind,
        selection: Selection<'_>,
    ) -> Result<(Vec<Value>, bool), String> {
        self.list_resource(&kind.resource(), selection).await
    }

    /// The same for a kind whose version was discovered.
    pub(crate) async fn list_resource(
        &self,
        resource: &ApiResource,
        selection: Selection<'_>,
    ) -> Result<(Vec<Value>, bool), String> {
        let failed = |error: &kube::Error| {
            let within = match self.namespace.as_str() {
                "" => "of the cluster".to_owned(),
                namespace => format!("in namespace {namespace}"),
            };
            let error = message_of(error);
            format!("{} {within} cannot be listed: {error}", resource.plural)
        };
        let params = ListParams {
            label_selector: selection.labels.map(str::to_owned),
            field_selector: selection.fields.map(str::to_owned),
            ..ListParams::default()
        };
        let namespace = Some(self.namespace.as_str()).filter(|name| !name.is_empty());
        let mut pages = Pages::new(&self.client, resource, namespace, params);
        let (mut objects, mut bytes) = (Vec::new(), 0);
        while let Some(page) = pages.next().await.map_err(|error| failed(&error))? {
            for object in page {
                bytes += object.to_string().len();
                if objects.len() == selection.most || bytes > selection.most_bytes {
                    return Ok((objects, true));
                }
                objects.push(object);
            }
        }
        Ok((objects, false))
    }

    /// Returns the text of the answer to a GET.
    pub(crate) async fn text(&self, path: &str) -> Result<String, String> {
        let failed = |error: String| format!("{path} cannot be read: {error}");
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let text = self.client.request_text(request).await;
        text.map_err(|error| failed(message_of(&error)))
    }
}

/// The pages of a list. A page that is too large for the client is requested again with fewer objects.
pub(crate) struct Pages {
    client: Client,
    resource: ApiResource,
    request: Request,
    /// Of the next page; `None` after the last one.
    params: Option<ListParams>,
}

impl Pages {
    /// Returns the pages of a kind in a namespace, or of all namespaces.
    pub(crate) fn new(
        client: &Client,
        resource: &ApiResource,
        namespace: Option<&str>,
        params: ListParams,
    ) -> Self {
        Self {
            client: client.clone(),
            resource: resource.clone(),
            request: Request::new(DynamicObject::url_path(resource, namespace)),
            params: Some(params.limit(PAGE)),
        }
    }

    /// Returns the objects of the next page, in the order of their names.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Value>>, kube::Error> {
        let Some(mut params) = self.params.take() else {
            return Ok(None);
        };
        let mut answer = self.answer(&mut params).await?;
        let more = text(&answer, "/metadata/continue").filter(|token| !token.is_empty());
        if let Some(token) = more {
            self.params = Some(params.continue_token(token));
        }
        let Some(Value::Array(mut items)) = answer.get_mut("items").map(Value::take) else {
            return Ok(Some(Vec::new()));
        };
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            // The items of a list do not have their kind.
            let ApiResource {
                api_version, kind, ..
            } = &self.resource;
            item.insert("apiVersion".to_owned(), api_version.as_str().into());
            item.insert("kind".to_owned(), kind.as_str().into());
        }
        Ok(Some(items))
    }

    async fn answer(&self, params: &mut ListParams) -> Result<Value, kube::Error> {
        loop {
            let request = self.request.list(params);
            let request = request.map_err(kube::Error::BuildRequest)?;
            match (self.client.request(request).await, params.limit) {
                (Err(error), Some(limit)) if limit > 1 && is_too_large(&error) => {
                    params.limit = Some(limit / 2);
                }
                (answer, _) => return answer,
            }
        }
    }
}

/// Returns a text in a value.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// Returns the value of an annotation.
pub(crate) fn annotation<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    let annotations = object.pointer("/metadata/annotations")?;
    annotations.get(name)?.as_str()
}

/// Returns the items of a list in a value.
pub(crate) fn items<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}
