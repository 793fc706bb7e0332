//! PodGroups, by which batch schedulers start all pods of a gang or none.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;
use trainyard_api::yaml;

use crate::{go, oracle, resource::Resource};

/// The module of coscheduling, and its CRD in it.
const COSCHEDULING: (&str, &str) = (
    "sigs.k8s.io/scheduler-plugins",
    "manifests/coscheduling/crd.yaml",
);
/// Volcano's CRD. No module that is available contains it.
const VOLCANO: &str = include_str!("../crds/podgroups.scheduling.volcano.sh.yaml");

/// A kind of PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodGroups {
    /// The kind of kube-scheduler's plugin coscheduling.
    Coscheduling,
    /// Volcano's kind.
    Volcano,
}

impl PodGroups {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Coscheduling, Self::Volcano];

    /// Returns the key of `podGroupPolicy` in a runtime.
    pub fn policy(self) -> &'static str {
        match self {
            Self::Coscheduling => "coscheduling",
            Self::Volcano => "volcano",
        }
    }

    /// Returns the CustomResourceDefinition: that of coscheduling from the Go module that the reference requires.
    ///
    /// # Errors
    /// Go is missing, the download failed, or the definition cannot be parsed.
    pub fn definition(self) -> Result<Value> {
        let text = match self {
            Self::Coscheduling => {
                let (module, file) = COSCHEDULING;
                let path = go::source(Path::new(oracle::FOLDER), module)?.join(file);
                fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?
            }
            Self::Volcano => VOLCANO.to_owned(),
        };
        let definition = yaml::read(&text).into_iter().next();
        let definition = definition.context("the CRD of PodGroups is empty")??;
        Ok(definition.value)
    }

    /// Returns the paths of its objects.
    pub fn resource(self) -> Resource {
        let root = match self {
            Self::Coscheduling => "/apis/scheduling.x-k8s.io/v1alpha1",
            Self::Volcano => "/apis/scheduling.volcano.sh/v1beta1",
        };
        Resource::namespaced(root, "podgroups")
    }
}
