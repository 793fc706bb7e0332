//! The runtimes of deploy/ that the reference ships too.

use std::fs;

use serde_json::Value;
use trainyard_api::yaml;
use trainyard_cluster::Oracle;

use crate::common::root;

/// Their names.
pub(super) const NAMES: [&str; 3] = [
    "jax-distributed",
    "torch-distributed",
    "xgboost-distributed",
];

/// The text of a runtime, and the image of its trainer.
pub(super) struct Shipped {
    pub(super) text: String,
    pub(super) image: String,
}

impl Shipped {
    /// The runtime of deploy/.
    pub(super) fn ours(name: &str) -> Self {
        let file = root().join("deploy/runtimes").join(name);
        Self::read(fs::read_to_string(file.with_extension("yaml")).unwrap())
    }

    /// The runtime of the reference.
    pub(super) fn theirs(name: &str) -> Self {
        let folder = Oracle::reference().unwrap().join("manifests/base/runtimes");
        let file = folder.join(name.replace('-', "_"));
        Self::read(fs::read_to_string(file.with_extension("yaml")).unwrap())
    }

    fn read(text: String) -> Self {
        let documents = yaml::read(&text).into_iter();
        let mut values = documents.map(|document| document.unwrap().value);
        let pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
        let image = values
            .next()
            .and_then(|value| value.pointer(&format!("{pod}/containers/0/image")).cloned());
        let image = image.as_ref().and_then(Value::as_str).unwrap().to_owned();
        Self { text, image }
    }

    /// The image without its tag, which is that of a release.
    pub(super) fn repository(&self) -> &str {
        let image = &self.image;
        image.split_once(':').map_or(image, |(name, _)| name)
    }

    /// An input of a TrainJob on the runtime.
    pub(super) fn input(&self, name: &str, trainer: &str) -> String {
        let runtime = &self.text;
        format!(
            "{runtime}\n---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: bert, namespace: ml}}\n\
             spec: {{runtimeRef: {{name: {name}}}, trainer: {trainer}}}\n"
        )
    }
}
