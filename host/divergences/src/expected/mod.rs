//! What Trainyard's value has to be where a row lists a difference, as a function of the TrainJob, its runtime and the reference's value. A
//! number that follows from other fields, such as the processes of a node from its devices, is computed from what Trainyard made of these,
//! which is compared too. Nothing here calls the code of the policies or of the rendering.
//!
//! - `input`: values that the TrainJob, a patch or the runtime has at the path of the difference;
//! - `devices`: the accelerators and the CPUs of a node;
//! - `env`: the env vars and the port of Torch, JAX and XGBoost;
//! - `order`: the order of containers and of env vars.

pub(crate) mod devices;
pub(crate) mod env;
pub(crate) mod input;
pub(crate) mod order;

use serde_json::{Value, json};

use crate::seen::{STEP, Seen, is_trainer};

/// Trainyard has nothing there.
pub(crate) fn nothing(seen: &Seen<'_>) -> bool {
    seen.ours().is_none()
}

/// Returns whether Trainyard's value is this one.
pub(crate) fn is(seen: &Seen<'_>, expected: Option<&Value>) -> bool {
    seen.ours() == expected
}

impl<'d> Seen<'d> {
    /// Returns the JobSet that Trainyard made of the TrainJob.
    pub(crate) fn job_set(&self) -> &'d Value {
        let is_its = |object: &&Value| {
            object["kind"] == "JobSet" && object["metadata"]["name"] == self.job["metadata"]["name"]
        };
        self.made.iter().find(is_its).unwrap_or(&Value::Null)
    }

    /// Returns the replicated jobs of this JobSet.
    pub(crate) fn made_jobs(&self) -> impl Iterator<Item = &'d Value> {
        let jobs = self.job_set()["spec"]["replicatedJobs"].as_array();
        jobs.into_iter().flatten()
    }

    /// Returns the name of the replicated job in the path of the difference.
    pub(crate) fn set_name(&self) -> &'d str {
        let rest = self.path().strip_prefix("spec.replicatedJobs[");
        rest.and_then(|rest| rest.split_once(']'))
            .map_or("", |(name, _)| name)
    }

    /// Returns the replicated job of this name.
    pub(crate) fn made_job(&self, name: &str) -> &'d Value {
        let mut jobs = self.made_jobs();
        jobs.find(|job| job["name"] == name).unwrap_or(&Value::Null)
    }

    /// Returns the trainer, whose label can be on the Job or on its pods.
    pub(crate) fn made_trainer(&self) -> &'d Value {
        let of_pod = |job: &&Value| {
            job["template"]["spec"]["template"]["metadata"]["labels"][STEP] == "trainer"
        };
        let mut jobs = self.made_jobs();
        let of_job = jobs.find(|job| is_trainer(job));
        of_job
            .or_else(|| self.made_jobs().find(of_pod))
            .unwrap_or(&Value::Null)
    }

    /// Returns the TrainJob's name.
    pub(crate) fn name(&self) -> &'d str {
        self.job["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Returns the subdomain of the pods' DNS names.
    pub(crate) fn subdomain(&self) -> &'d str {
        let network = &self.runtime["spec"]["template"]["spec"]["network"];
        network["subdomain"].as_str().unwrap_or(self.name())
    }

    /// Returns the DNS name of a pod of the first Job of a replicated job.
    pub(crate) fn address(&self, job: &Value, pod: u64) -> String {
        let set = job["name"].as_str().unwrap_or_default();
        format!("{}-{set}-0-{pod}.{}", self.name(), self.subdomain())
    }

    /// Returns the number of processes of a node in the TrainJob, or else in the runtime.
    pub(crate) fn explicit_processes(&self, policy: &str, at_least: u64) -> Option<u64> {
        let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
        let of_runtime = || {
            let number = number(&self.policy()[policy]["numProcPerNode"]);
            number.filter(|number| *number >= at_least)
        };
        number(&self.trainer()["numProcPerNode"]).or_else(of_runtime)
    }
}

/// Returns how many pods of a replicated job run at once.
pub(crate) fn pods_of(job: &Value) -> u64 {
    let spec = &job["template"]["spec"];
    let at_once = spec["parallelism"].as_u64().unwrap_or(1);
    at_once.min(spec["completions"].as_u64().unwrap_or(at_once))
}

/// Returns a container of a replicated job.
pub(crate) fn container<'v>(job: &'v Value, list: &str, name: &str) -> &'v Value {
    let containers = &job["template"]["spec"]["template"]["spec"][list];
    let mut containers = containers.as_array().into_iter().flatten();
    containers
        .find(|container| container["name"] == name)
        .unwrap_or(&Value::Null)
}

/// The counts of the trainer, whatever the runtime's template has: its number of nodes.
pub(crate) fn nodes(seen: &Seen<'_>) -> Option<Value> {
    let path = seen.path();
    let is_count = [".template.spec.parallelism", ".template.spec.completions"]
        .iter()
        .any(|end| path.ends_with(end));
    let nodes = seen.nodes().as_u64()?;
    is_count.then(|| json!(nodes))
}
