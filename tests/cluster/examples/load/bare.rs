//! A client that only makes the writes.

use anyhow::{Context as _, Result};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    AT_ONCE,
    objects::{JOB_SET, api},
};

/// The objects that a controller wrote for one TrainJob.
pub(crate) struct Template {
    map: ConfigMap,
    owners: Value,
    spec: Value,
}

impl Template {
    pub(crate) fn of(map: ConfigMap, job_set: &DynamicObject) -> Result<Self> {
        let spec = job_set.data.get("spec").context("a JobSet without spec")?;
        Ok(Self {
            map,
            owners: json!(job_set.metadata.owner_references),
            spec: spec.clone(),
        })
    }

    /// Writes the same objects for this number of other names.
    pub(crate) async fn write(&self, client: &Client, namespace: &str, count: usize) -> Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let job_sets = api(client, namespace, JOB_SET);
        stream::iter(0..count)
            .map(|number| self.write_one(&maps, &job_sets, format!("bare-{number}")))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    async fn write_one(
        &self,
        maps: &Api<ConfigMap>,
        job_sets: &Api<DynamicObject>,
        name: String,
    ) -> Result<()> {
        let mut map = self.map.clone();
        map.metadata = ObjectMeta {
            name: Some(format!("{name}-runtime-snapshot")),
            owner_references: map.metadata.owner_references,
            ..ObjectMeta::default()
        };
        let job_set = json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": name, "ownerReferences": self.owners}, "spec": self.spec,
        });
        maps.create(&PostParams::default(), &map).await?;
        let applied = Patch::Apply(&job_set);
        job_sets
            .patch(&name, &PatchParams::apply("trainer"), &applied)
            .await?;
        Ok(())
    }
}
