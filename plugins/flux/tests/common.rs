//! Helpers for the tests of this crate.

use trainyard_model::object::{Content, EmittedObject};
use trainyard_plugin_flux::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, MockPodSet, Outcome};

pub const NODE: &str = "pod-sets[node].containers[node]";
pub const INSTALLER: &str = "pod-sets[node].init-containers[flux-installer]";

/// A TrainJob `lammps` of four nodes, for the plugin with all its claims granted, as it ships.
pub fn job(
    set: impl FnOnce(MockPodSet) -> MockPodSet,
    node: impl FnOnce(MockContainer) -> MockContainer,
) -> MockJob {
    let node = |container: MockContainer| node(container.command(&["lmp", "-in", "in file"]));
    MockJob::new("lammps")
        .namespace("hpc")
        .all_granted()
        .nodes(4)
        .pod_set("node", |pods| {
            set(pods.ancestor("trainer").count(4).container("node", node))
        })
}

/// That TrainJob with another node container.
pub fn of_node(node: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    job(|set| set, node)
}

pub fn outcome(job: MockJob) -> Outcome {
    let outcome = job
        .all_phases(&PLUGIN)
        .unwrap_or_else(|error| panic!("{error}"));
    let errors = outcome.errors();
    assert!(errors.is_empty(), "{errors:?}");
    outcome
}

/// What the plugin refuses a TrainJob for.
pub fn errors(job: MockJob) -> Vec<String> {
    job.transform(&PLUGIN).unwrap().errors()
}

fn object<'o>(outcome: &'o Outcome, kind: &str) -> &'o EmittedObject {
    let mut objects = outcome.objects().into_iter();
    objects.find(|object| object.kind.kind() == kind).unwrap()
}

/// A file of the ConfigMap.
pub fn file(outcome: &Outcome, name: &str) -> String {
    let map = object(outcome, "ConfigMap");
    assert_eq!(map.name.as_str(), "lammps-flux-entrypoint");
    match &map.content {
        Content::ConfigMap(data) => data.text(name).unwrap().clone(),
        other => panic!("{other:?}"),
    }
}

/// The certificate, with placeholders for the keys.
pub fn certificate(outcome: &Outcome) -> String {
    let secret = object(outcome, "Secret");
    assert_eq!(secret.name.as_str(), "lammps-flux-curve");
    match &secret.content {
        Content::Secret { secret_type, data } => {
            assert_eq!(secret_type.as_str(), "Opaque");
            data.text("curve.cert").unwrap().shown().to_owned()
        }
        other => panic!("{other:?}"),
    }
}

/// A value of the settings that the scripts read, as the shell reads it: the values here hold no quote.
pub fn setting(outcome: &Outcome, name: &str) -> String {
    let settings = file(outcome, "settings.sh");
    let mut lines = settings.lines();
    let name = format!("trainyard_{name}=");
    let value = lines.find_map(|line| line.strip_prefix(&name));
    value.unwrap().trim_matches('\'').to_owned()
}
