//! A difference, with the TrainJob and the runtime that it comes from.

use std::ops::Deref;

use serde_json::Value;
use trainyard_api::yaml;
use trainyard_model::record::Accelerators;

use crate::answer::{Difference, Refusal};

/// The documents of an input, for a cluster with the default accelerators.
pub struct Documents {
    all: Vec<Value>,
    accelerators: Accelerators,
}

impl Documents {
    /// The documents that can be parsed.
    pub fn read(text: &str) -> Self {
        let documents = yaml::read(text).into_iter().flatten();
        Self {
            all: documents.map(|document| document.value).collect(),
            accelerators: Accelerators::default(),
        }
    }

    /// Returns the name of the TrainJob to which the object belongs.
    fn train_job_of(&self, object: &str) -> &str {
        let plain = object.rsplit('/').next().unwrap_or_default();
        let jobs = self
            .all
            .iter()
            .filter(|document| document["kind"] == "TrainJob");
        let mut names = jobs.filter_map(|job| job["metadata"]["name"].as_str());
        let is_its = |name: &&str| {
            plain
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('-'))
        };
        names.find(is_its).unwrap_or_default()
    }

    /// Returns the difference with its TrainJob and runtime, and the objects that Trainyard made of the input.
    pub fn see<'d>(&'d self, difference: &'d Difference, made: &'d [Value]) -> Seen<'d> {
        let object = match difference {
            Difference::RefusedByTrainyard(refusal) | Difference::RefusedByReference(refusal) => {
                &refusal.object
            }
            Difference::Dropped(field) | Difference::Unwarned(field) => {
                field.split(": ").next().unwrap_or_default()
            }
            Difference::Field { object, .. } => object,
        };
        let (kind, name) = object.split_once(' ').unwrap_or_default();
        let (kind, name) = match kind {
            "JobSet" | "PodGroup" => ("TrainJob", name),
            // The name of an emitted object starts with the TrainJob's name.
            "ConfigMap" | "Secret" => ("TrainJob", self.train_job_of(name)),
            kind => (kind, name),
        };
        let of_kind = |kind: &str, name: &str| {
            // Of duplicates, the last one counts.
            self.all
                .iter()
                .rev()
                .find(|document| document["kind"] == kind && is_named(document, name))
                .unwrap_or(&Value::Null)
        };
        if kind == "TrainJob" {
            let job = of_kind(kind, name);
            let reference = &job["spec"]["runtimeRef"];
            let kind = reference["kind"]
                .as_str()
                .unwrap_or("ClusterTrainingRuntime");
            let runtime = of_kind(kind, reference["name"].as_str().unwrap_or_default());
            Seen {
                difference,
                made,
                subject: Subject {
                    job,
                    runtime,
                    documents: &self.all,
                    accelerators: &self.accelerators,
                },
            }
        } else {
            // Any TrainJob of the runtime will do.
            let names_it =
                |document: &&Value| document["kind"] == "TrainJob" && is_named_by(document, name);
            let job = self.all.iter().find(names_it).unwrap_or(&Value::Null);
            let runtime = of_kind(kind, name);
            Seen {
                difference,
                made,
                subject: Subject {
                    job,
                    runtime,
                    documents: &self.all,
                    accelerators: &self.accelerators,
                },
            }
        }
    }
}

/// Returns whether this is the object's name, with or without a namespace.
fn is_named(document: &Value, name: &str) -> bool {
    let plain = name.rsplit('/').next().unwrap_or_default();
    document["metadata"]["name"] == plain
}

/// Returns whether a TrainJob references this runtime, whose name can follow a namespace.
fn is_named_by(job: &Value, runtime: &str) -> bool {
    job["spec"]["runtimeRef"]["name"] == runtime.rsplit('/').next().unwrap_or_default()
}

/// A TrainJob with its runtime, which are null if there are none.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'d> {
    /// The TrainJob, as its author wrote it.
    pub job: &'d Value,
    /// Its runtime.
    pub runtime: &'d Value,
    /// All documents of the input.
    pub documents: &'d [Value],
    /// The resources that Trainyard counts as accelerators.
    pub accelerators: &'d Accelerators,
}

impl<'d> Subject<'d> {
    /// Returns the TrainJob's `spec.trainer`.
    pub fn trainer(&self) -> &'d Value {
        &self.job["spec"]["trainer"]
    }

    pub fn policy(&self) -> &'d Value {
        &self.runtime["spec"]["mlPolicy"]
    }

    /// Returns the number of nodes that the TrainJob or the runtime sets.
    pub fn nodes(&self) -> &'d Value {
        match &self.trainer()["numNodes"] {
            Value::Null => &self.policy()["numNodes"],
            nodes => nodes,
        }
    }

    /// Returns whether an MPI launcher is the only node.
    pub fn launcher_is_the_only_node(&self) -> bool {
        self.policy()["mpi"]["runLauncherAsNode"] == true && self.nodes() == 1
    }

    /// Returns the replicated jobs of the runtime.
    pub fn replicated_jobs(&self) -> impl Iterator<Item = &'d Value> {
        self.runtime["spec"]["template"]["spec"]["replicatedJobs"]
            .as_array()
            .into_iter()
            .flatten()
    }

    /// Returns the pod specs of the runtime.
    pub fn pods(&self) -> impl Iterator<Item = &'d Value> {
        self.replicated_jobs().map(pod)
    }

    /// Returns the containers `node` of the runtime.
    pub fn node_containers(&self) -> impl Iterator<Item = &'d Value> {
        self.replicated_jobs()
            .flat_map(|job| pod(job)["containers"].as_array().into_iter().flatten())
            .filter(|container| container["name"] == "node")
    }

    /// Returns the runtime patches of the TrainJob.
    pub fn patches(&self) -> impl Iterator<Item = &'d Value> {
        self.job["spec"]["runtimePatches"]
            .as_array()
            .into_iter()
            .flatten()
    }

    /// Returns the pod specs in the runtime patches, and in overrides of earlier releases.
    pub fn patched_pods(&self) -> impl Iterator<Item = &'d Value> {
        let of_patches = self.patches().flat_map(|patch| {
            let jobs = &patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"];
            jobs.as_array().into_iter().flatten()
        });
        let overrides = self.job["spec"]["podTemplateOverrides"].as_array();
        let of_overrides = overrides.into_iter().flatten().map(|one| &one["spec"]);
        of_patches.map(pod).chain(of_overrides)
    }
}

/// A difference with its TrainJob and its runtime.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'d> {
    /// The difference.
    pub difference: &'d Difference,
    /// The objects that Trainyard made of the input.
    pub made: &'d [Value],
    /// What it comes from.
    pub subject: Subject<'d>,
}

impl<'d> Deref for Seen<'d> {
    type Target = Subject<'d>;

    fn deref(&self) -> &Subject<'d> {
        &self.subject
    }
}

impl<'d> Seen<'d> {
    /// Returns the path of the different field of a rendered object; empty for other differences.
    pub fn path(&self) -> &'d str {
        match self.difference {
            Difference::Field { path, .. } => path,
            _ => "",
        }
    }

    /// Returns whether the difference is in the quota that Kueue computes. Trainyard's side is computed from its JobSet.
    pub fn is_of_quota(&self) -> bool {
        [".count", ".requests[", ".claims["]
            .iter()
            .any(|need| self.needs(need))
    }

    /// Returns whether the difference is one of what a pod set needs: `.count`, `.requests[` or `.claims[`.
    pub fn needs(&self, what: &str) -> bool {
        let job = self.path().strip_prefix("spec.replicatedJobs[");
        job.and_then(|job| job.split_once(']'))
            .is_some_and(|(_, need)| need.starts_with(what))
    }

    /// Returns the reference's value.
    pub fn theirs(&self) -> Option<&'d Value> {
        match self.difference {
            Difference::Field { reference, .. } => reference.as_ref(),
            _ => None,
        }
    }

    /// Returns Trainyard's value.
    pub fn ours(&self) -> Option<&'d Value> {
        match self.difference {
            Difference::Field { trainyard, .. } => trainyard.as_ref(),
            _ => None,
        }
    }

    /// Returns whether only Trainyard refuses a field with this prefix.
    pub fn we_refuse(&self, field: &str) -> bool {
        self.our_refusal()
            .is_some_and(|refusal| refusal.field.starts_with(field))
    }

    /// Returns Trainyard's message, if only Trainyard refuses the input.
    pub fn our_refusal(&self) -> Option<&'d Refusal> {
        match self.difference {
            Difference::RefusedByTrainyard(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns the reference's message, if only the reference refuses the input.
    pub fn their_refusal(&self) -> Option<&'d Refusal> {
        match self.difference {
            Difference::RefusedByReference(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns whether the reference's CRDs do not have a field with this prefix.
    pub fn they_drop(&self, field: &str) -> bool {
        match self.difference {
            Difference::Dropped(dropped) => dropped
                .split_once(": ")
                .is_some_and(|(_, path)| path.starts_with(field)),
            _ => false,
        }
    }

    /// Returns whether the path is below this replicated job.
    pub fn is_of(&self, job: &Value) -> bool {
        let name = job["name"].as_str().unwrap_or_default();
        self.path()
            .starts_with(&format!("spec.replicatedJobs[{name}]"))
    }
}

/// The label with the step of a TrainJob that a replicated job runs.
pub const STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// Returns whether the Job template of a replicated job has the label of the trainer.
pub fn is_trainer(job: &Value) -> bool {
    job["template"]["metadata"]["labels"][STEP] == "trainer"
}

/// Returns the pod spec of a replicated job.
pub(crate) fn pod(job: &Value) -> &Value {
    &job["template"]["spec"]["template"]["spec"]
}
