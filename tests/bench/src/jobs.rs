//! Generates the TrainJobs of the benchmarks.

use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use trainyard_api::{Admitted, Inputs, names::NODE};
use trainyard_model::{
    deadline::Deadline,
    lookup::{LookupKey, Lookups, ObjectKey},
    session::Session,
};
use trainyard_render::{Catalog, Rendered, Renderer};

use crate::{
    entries::{self, Entry},
    policies::config,
};

/// The parameters of a TrainJob and its runtime.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Its name.
    pub name: &'static str,
    pod_sets: usize,
    containers: usize,
    env: usize,
    nodes: usize,
    policy: &'static Entry,
    gang: Option<&'static Entry>,
    is_chained: bool,
    is_claimed: bool,
}

/// One pod set with one container with five env vars, of Torch.
pub static SMALL: LazyLock<Size> = LazyLock::new(|| Size {
    name: "small",
    pod_sets: 1,
    containers: 1,
    env: 5,
    nodes: 4,
    policy: entries::torch(),
    gang: None,
    is_chained: false,
    is_claimed: false,
});

/// Six pod sets of four containers with forty env vars each, and 512 nodes, of Torch.
pub static LARGE: LazyLock<Size> = LazyLock::new(|| Size {
    name: "large",
    pod_sets: 6,
    containers: 4,
    env: 40,
    nodes: 512,
    ..*SMALL
});

/// The API of resource claims, and the kind and the name of their template.
const TEMPLATE: [&str; 3] = ["resource.k8s.io/v1", "ResourceClaimTemplate", "gpus"];

impl Size {
    /// Returns the same job with another policy, or with a PodGroup.
    #[must_use]
    pub fn of(self, entry: &'static Entry) -> Self {
        if entry.is_gang() {
            Self {
                gang: Some(entry),
                ..self
            }
        } else {
            Self {
                policy: entry,
                ..self
            }
        }
    }

    /// Returns the same job with another number of nodes.
    #[must_use]
    pub fn nodes(self, nodes: usize) -> Self {
        Self { nodes, ..self }
    }

    /// Returns the same job with a runtime that enables the other plugins of the chain.
    #[must_use]
    pub fn chained(self) -> Self {
        Self {
            is_chained: true,
            ..self
        }
    }

    /// Returns the same job with eight GPUs per node by a resource claim instead of an extended resource.
    #[must_use]
    pub fn claimed(self) -> Self {
        Self {
            is_claimed: true,
            ..self
        }
    }

    /// Returns the TrainJob and its runtime as YAML.
    #[must_use]
    pub fn input(self) -> String {
        let mut jobs: Vec<_> = (0..self.pod_sets)
            .map(|at| self.replicated_job(at))
            .collect();
        if self.policy.settings.trainer != NODE {
            jobs.push(self.named(&self.policy.settings.trainer));
        }
        let plugins = if self.is_chained {
            let names = ["nccl-fabric", "shared-memory", "team"].into_iter();
            names
                .map(|name| json!({"name": name, "config": config(name)}))
                .collect()
        } else {
            json!([])
        };
        let mut ml_policy = self.policy.member();
        ml_policy.insert("numNodes".to_owned(), 1.into());
        let runtime = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
            "metadata": {"name": self.policy.settings.runtime},
            "spec": {
                "mlPolicy": ml_policy,
                "podGroupPolicy": self.gang.map(Entry::member),
                "plugins": plugins,
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
                "runtimeRef": {"name": self.policy.settings.runtime},
                "trainer": {
                    "numNodes": self.nodes, "image": "registry.example.com/vision/train:2.4",
                    "command": self.policy.settings.command,
                },
            },
        });
        let mut documents = vec![runtime, job];
        if self.is_claimed {
            let [api_version, kind, name] = TEMPLATE;
            let exactly = json!({"deviceClassName": "gpu.example.com", "count": 8});
            documents.push(json!({
                "apiVersion": api_version, "kind": kind, "metadata": {"name": name},
                "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
            }));
        }
        let documents: Vec<_> = documents.iter().map(Value::to_string).collect();
        documents.join("\n---\n")
    }

    fn replicated_job(self, at: usize) -> Value {
        match at {
            0 => self.named(NODE),
            _ => self.named(&format!("helper-{at}")),
        }
    }

    fn named(self, name: &str) -> Value {
        let labels = match name == self.policy.settings.trainer {
            true => json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}),
            false => json!({}),
        };
        let containers: Vec<_> = (0..self.containers).map(|at| self.container(at)).collect();
        let [_, _, template] = TEMPLATE;
        let claims = match self.is_claimed {
            true => json!([{"name": "gpus", "resourceClaimTemplateName": template}]),
            false => json!([]),
        };
        let pod = json!({"containers": containers, "resourceClaims": claims});
        json!({
            "name": name,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"template": {"spec": pod}},
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
        let resources = if self.is_claimed {
            json!({"limits": {"memory": "512Gi"}})
        } else {
            json!({"limits": {"nvidia.com/gpu": 8, "memory": "512Gi"}})
        };
        json!({
            "name": name, "image": "registry.example.com/base:1", "command": self.policy.settings.command,
            "env": env, "resources": resources,
        })
    }
}

/// A parsed TrainJob with its runtime.
pub struct Job {
    catalog: Catalog,
    lookups: Arc<Lookups>,
}

impl Job {
    /// Parses a job.
    ///
    /// # Errors
    /// The input is invalid.
    pub fn read(size: Size) -> Result<Self> {
        let objects = Inputs::read_text(size.name, &size.input()).objects;
        let (catalog, errors) = Catalog::new(
            objects
                .into_iter()
                .map(|object| Admitted::new(object, "default")),
        );
        if let Some(error) = errors.into_iter().next() {
            bail!(error);
        }
        let mut job = Self {
            catalog,
            lookups: Arc::default(),
        };
        job.lookups = Arc::new(job.looked_up()?);
        Ok(job)
    }

    /// Returns the lookups of DRA and of PodGroups, which a controller has when it renders again.
    fn looked_up(&self) -> Result<Lookups> {
        let [api_version, kind, name] = TEMPLATE.map(str::to_owned);
        let served = LookupKey::Served {
            api_version: api_version.clone(),
            kind: kind.clone(),
        };
        let template = LookupKey::Object(ObjectKey::new(api_version, kind, name));
        let ranges = LookupKey::All {
            api_version: "v1".to_owned(),
            kind: "LimitRange".to_owned(),
        };
        let mut lookups = Lookups::default();
        for key in [served, template, ranges] {
            if let Some(answer) = self.catalog.answer(self.job()?, &key, None) {
                lookups.insert(key, answer);
            }
        }
        Ok(lookups)
    }

    fn job(&self) -> Result<&trainyard_render::InputJob> {
        self.catalog.jobs.first().context("no TrainJob")
    }

    /// Returns the input of its plugins.
    ///
    /// # Errors
    /// The job is invalid.
    pub fn session(&self, renderer: &Renderer) -> Result<Session> {
        let job = self.job()?;
        let session = renderer.session(&job.train_job, &job.runtime, &job.namespace);
        let session = session.map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
        Ok(session.with_lookups(self.lookups.clone()))
    }

    /// Renders it.
    ///
    /// # Errors
    /// The job is refused.
    pub fn render(&self, renderer: &Renderer) -> Result<Rendered> {
        let job = self.job()?;
        let rendered = renderer.render(
            &job.train_job,
            &job.runtime,
            &job.namespace,
            &self.lookups,
            &Deadline::none(),
        );
        rendered.map_err(|problems| anyhow::anyhow!("{problems:?}"))
    }

    /// Renders it and encodes its objects as a client that applies them does.
    ///
    /// # Errors
    /// The job is refused.
    pub fn encoded(&self, renderer: &Renderer) -> Result<Vec<Vec<u8>>> {
        let rendered = self.render(renderer)?;
        let encoded = rendered.all_objects().map(serde_json::to_vec);
        Ok(encoded.collect::<Result<_, _>>()?)
    }
}
