//! Objects of a cluster, read as they are.

use std::fmt::Display;

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use serde_json::Value;

/// The most objects of a page.
const PAGE: u32 = 100;

/// The kinds that are read.
pub(crate) const CLUSTER_RUNTIME: Kind =
    Kind("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime");
pub(crate) const CONFIG_MAP: Kind = Kind("", "v1", "ConfigMap");
pub(crate) const EVENT: Kind = Kind("", "v1", "Event");
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
        let failed = |error: &dyn Display| {
            format!(
                "{} {}/{name} cannot be read: {error}",
                kind.2, self.namespace
            )
        };
        let found = self.api(&kind.resource()).get_opt(name).await;
        let found = found.map_err(|error| failed(&error))?;
        let value = found.map(serde_json::to_value).transpose();
        value.map_err(|error| failed(&error))
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
        let failed = |error: &dyn Display| {
            let within = match self.namespace.as_str() {
                "" => "of the cluster".to_owned(),
                namespace => format!("in namespace {namespace}"),
            };
            format!("{} {within} cannot be listed: {error}", resource.plural)
        };
        let mut params = ListParams {
            label_selector: selection.labels.map(str::to_owned),
            field_selector: selection.fields.map(str::to_owned),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        let (mut objects, mut bytes) = (Vec::new(), 0);
        loop {
            let page = self.api(resource).list(&params).await;
            let page = page.map_err(|error| failed(&error))?;
            for object in page.items {
                let object = serde_json::to_value(object).map_err(|error| failed(&error))?;
                bytes += object.to_string().len();
                if objects.len() == selection.most || bytes > selection.most_bytes {
                    return Ok((objects, true));
                }
                objects.push(object);
            }
            match page.metadata.continue_ {
                Some(next) if !next.is_empty() => params.continue_token = Some(next),
                _ => return Ok((objects, false)),
            }
        }
    }

    /// Returns the text of the answer to a GET.
    pub(crate) async fn text(&self, path: &str) -> Result<String, String> {
        let failed = |error: &dyn Display| format!("{path} cannot be read: {error}");
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| failed(&error))?;
        let text = self.client.request_text(request).await;
        text.map_err(|error| failed(&error))
    }
}

/// Returns a text in a value.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// Returns the items of a list in a value.
pub(crate) fn items<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}
