//! The TrainJobs, from a few numbers.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use trainyard_api::{Admitted, Inputs};
use trainyard_model::session::Session;
use trainyard_render::{Catalog, Rendered, Renderer};

/// What a TrainJob and its runtime are made of.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Its name.
    pub name: &'static str,
    pod_sets: usize,
    containers: usize,
    env: usize,
    nodes: usize,
}

/// One container with five env vars.
pub const SMALL: Size = Size {
    name: "small",
    pod_sets: 1,
    containers: 1,
    env: 5,
    nodes: 4,
};

/// Six pod sets of four containers with forty env vars each, and 512 nodes.
pub const LARGE: Size = Size {
    name: "large",
    pod_sets: 6,
    containers: 4,
    env: 40,
    nodes: 512,
};

impl Size {
    /// The TrainJob and its runtime, as a file has them.
    #[must_use]
    pub fn input(self) -> String {
        let jobs: Vec<_> = (0..self.pod_sets)
            .map(|at| self.replicated_job(at))
            .collect();
        let runtime = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
            "metadata": {"name": "bench"},
            "spec": {
                "mlPolicy": {"numNodes": 1, "torch": {}},
                "plugins": [{"name": "nccl"}, {"name": "shared-memory"}, {"name": "team"}],
                "template": {"spec": {"replicatedJobs": jobs}},
            },
        });
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {
                "name": "bench",
                "labels": {"example.com/team": "vision"},
                "annotations": {"example.com/cost-center": "4711"},
            },
            "spec": {
                "runtimeRef": {"name": "bench"},
                "trainer": {"numNodes": self.nodes, "image": "registry.example.com/vision/train:2.4"},
            },
        });
        format!("{runtime}\n---\n{job}\n")
    }

    fn replicated_job(self, at: usize) -> Value {
        let (name, labels) = match at {
            0 => (
                "node".to_owned(),
                json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}),
            ),
            _ => (format!("helper-{at}"), json!({})),
        };
        let containers: Vec<_> = (0..self.containers).map(|at| self.container(at)).collect();
        json!({
            "name": name,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"template": {"spec": {"containers": containers}}},
            },
        })
    }

    fn container(self, at: usize) -> Value {
        let name = if at == 0 {
            "node".to_owned()
        } else {
            format!("side-{at}")
        };
        let env: Vec<_> = (0..self.env)
            .map(|at| json!({"name": format!("SETTING_{at}"), "value": format!("value {at} of a run")}))
            .collect();
        json!({
            "name": name, "image": "registry.example.com/base:1", "command": ["torchrun", "train.py"],
            "env": env, "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "512Gi"}},
        })
    }
}

/// A TrainJob that was read, with its runtime.
pub struct Job {
    catalog: Catalog,
}

impl Job {
    /// Reads one of that size.
    ///
    /// # Errors
    /// The input is wrong.
    pub fn read(size: Size) -> Result<Self> {
        let objects = Inputs::read_text(size.name, &size.input()).objects;
        let (catalog, errors) = Catalog::new(
            objects
                .into_iter()
                .map(|object| Admitted::new(object, "default")),
        );
        match errors.into_iter().next() {
            None => Ok(Self { catalog }),
            Some(error) => bail!(error),
        }
    }

    fn job(&self) -> Result<&trainyard_render::Job> {
        self.catalog.jobs.first().context("no TrainJob")
    }

    /// What its plugins are called on.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn session(&self, renderer: &Renderer) -> Result<Session> {
        let job = self.job()?;
        let session = renderer.session(&job.job, &job.runtime, &job.namespace);
        session.map_err(|problems| anyhow::anyhow!("{problems:?}"))
    }

    /// Renders it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn render(&self, renderer: &Renderer) -> Result<Rendered> {
        let job = self.job()?;
        let rendered = renderer.render(&job.job, &job.runtime, &job.namespace, &Arc::default());
        rendered.map_err(|problems| anyhow::anyhow!("{problems:?}"))
    }
}
