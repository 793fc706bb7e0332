//! Where the compared objects come from.

use serde_json::Value;
use trainyard_api::{Inputs, Object, names};
use trainyard_divergences::live::is_secret;

use super::live::{KINDS, OwnedObjects};
use crate::{
    args::InputArgs,
    input, policy,
    report::{self, ErrorList},
};

/// The objects of a cluster or of files.
#[derive(Default)]
pub(super) struct Source {
    /// TrainJobs, runtimes, and what plugins look up.
    pub(super) objects: Vec<Object>,
    /// PolicyPlugins, which count as given by `--policy`.
    pub(super) policy_plugins: Vec<Object>,
    /// What the reference made.
    pub(super) live: OwnedObjects,
    /// What could not be read, so that something is not compared.
    pub(super) gaps: Vec<String>,
    /// What was not in the input. This is no error, because the input is whatever the user wants to compare.
    pub(super) notes: Vec<String>,
}

/// Reads files: a dump of a cluster, or the files of users.
pub(super) fn of_files(args: &InputArgs) -> Result<Source, ErrorList> {
    let inputs = Inputs::read(&args.filename, std::io::stdin());
    inputs.warnings.iter().for_each(report::warn);
    let mut failure = ErrorList::default();
    let mut source = Source {
        gaps: inputs.errors.iter().map(ToString::to_string).collect(),
        ..Source::default()
    };
    for object in input::selected(inputs.objects, args, &mut failure) {
        source.add(object);
    }
    failure.or_ok(())?;
    for (api_version, kind) in KINDS {
        if !source.live.has_read(api_version, kind) {
            source.notes.push(missing(api_version, kind).to_owned());
        }
        if !source
            .live
            .has_read(names::JOB_SET_API_VERSION, names::JOB_SET)
        {
            // Then the other kinds are not needed.
            break;
        }
    }
    Ok(source)
}

impl Source {
    fn add(&mut self, mut object: Object) {
        let (api_version, kind) = (object.api_version.clone(), object.kind.clone());
        if policy::is_policy_plugin(&object) {
            self.policy_plugins.push(object);
            return;
        }
        if is_secret(&api_version, &kind) {
            return;
        }
        if input::is_train_job(&object) || input::is_runtime(&object) {
            without_server_fields(&mut object.value);
            self.objects.push(object);
            return;
        }
        if KINDS.contains(&(&api_version, &kind)) {
            self.live.reads(&api_version, &kind);
            if let Some(other) = self.live.add(std::mem::take(&mut object.value)) {
                object.value = other;
                self.objects.push(object);
            }
            return;
        }
        self.objects.push(object);
    }
}

/// Removes what users do not write.
pub(super) fn without_server_fields(object: &mut Value) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.map(|metadata| metadata.remove("managedFields"));
}

/// Returns what follows if the input has no object of a kind.
fn missing(api_version: &str, kind: &str) -> &'static str {
    match (api_version, kind) {
        ("v1", _) => {
            "the input has no ConfigMaps: TrainJobs are rendered from the current runtimes, and not from those in their snapshots"
        }
        ("scheduling.x-k8s.io/v1alpha1", _) => {
            "the input has no PodGroups of the coscheduling plugin, so they are not compared"
        }
        ("scheduling.volcano.sh/v1beta1", _) => {
            "the input has no PodGroups of Volcano, so they are not compared"
        }
        _ => {
            "the input has no JobSets: which rows may concern a TrainJob follows from what it uses"
        }
    }
}
