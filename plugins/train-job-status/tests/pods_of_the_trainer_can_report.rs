//! Every container of the trainer gets the URL, the token and the certificate authority of the status server, and no other pod does.

use serde_json::{Value, json};
use trainyard_model::object::Content;
use trainyard_plugin_train_job_status::PLUGIN;
use trainyard_sdk::mock::{MockJob, Outcome};

const URL: &str = "https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443";
const RESOURCE: &str = "trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/bert/status";
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\n";

/// A TrainJob whose trainer has two containers, and which has an initializer.
fn job() -> MockJob {
    MockJob::new("bert")
        .all_granted()
        .nodes(2)
        .pod_set("dataset-initializer", |set| {
            let set = set.ancestor("dataset-initializer");
            set.container("dataset-initializer", |c| c)
        })
        .pod_set("trainer", |set| {
            let set = set.ancestor("trainer").count(2);
            set.container("node", |c| c).container("sidecar", |c| c)
        })
}

fn with_server(job: MockJob) -> MockJob {
    job.fact("status/url", URL)
        .fact("host/status-ca", AUTHORITY)
}

fn env(outcome: &Outcome, container: &str, name: &str) -> Option<Value> {
    let container = format!("pod-sets[trainer].containers[{container}]");
    outcome.value(&format!("{container}.env[{name}]"))
}

#[test]
fn all_containers_of_the_trainer_are_told_where_to_report() {
    let outcome = with_server(job()).all_phases(&PLUGIN).unwrap();
    for container in ["node", "sidecar"] {
        for (name, value) in [
            (
                "KUBEFLOW_TRAINER_SERVER_URL",
                format!("{URL}/apis/{RESOURCE}"),
            ),
            (
                "KUBEFLOW_TRAINER_SERVER_CA_CERT",
                "/var/run/secrets/kubeflow/trainer/ca.crt".to_owned(),
            ),
            (
                "KUBEFLOW_TRAINER_SERVER_TOKEN",
                "/var/run/secrets/kubeflow/trainer/token".to_owned(),
            ),
        ] {
            let set = env(&outcome, container, name);
            assert_eq!(set, Some(json!(value)));
        }
        let mount = format!(
            "pod-sets[trainer].containers[{container}].mounts[/var/run/secrets/kubeflow/trainer]"
        );
        let mount = outcome.value(&mount).unwrap();
        assert_eq!(mount["name"], "kubeflow-trainer-token");
        assert_eq!(mount["readOnly"], true);
    }
    let others = outcome.writes().into_iter();
    let others: Vec<_> = others
        .filter(|(path, _)| !path.starts_with("pod-sets[trainer]"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn a_token_is_good_for_its_train_job_only() {
    let outcome = with_server(job()).all_phases(&PLUGIN).unwrap();
    let volume = outcome.value("pod-sets[trainer].volumes[kubeflow-trainer-token]");
    let token = json!({"audience": RESOURCE, "expirationSeconds": 3600, "path": "token"});
    let config_map =
        json!({"name": "bert-tls-config", "items": [{"key": "ca.crt", "path": "ca.crt"}]});
    let sources = json!([{"serviceAccountToken": token}, {"configMap": config_map}]);
    let expected = json!({"name": "kubeflow-trainer-token", "projected": {"sources": sources}});
    assert_eq!(volume, Some(expected));
}

/// The controller keeps the ConfigMap current. A reconcile with an older certificate must not replace it.
#[test]
fn the_authority_is_in_a_config_map_that_is_created_once() {
    let outcome = with_server(job()).all_phases(&PLUGIN).unwrap();
    let objects = outcome.objects();
    let [config_map] = &*objects else {
        unreachable!("{objects:?}")
    };
    assert_eq!(config_map.name.as_str(), "bert-tls-config");
    assert_eq!(config_map.apply.name(), "once");
    let Content::ConfigMap(data) = &config_map.content else {
        unreachable!("{config_map:?}")
    };
    assert!(
        format!("{data:?}").contains("BEGIN CERTIFICATE"),
        "{data:?}"
    );
}

/// With a certificate of a public authority, pods trust what their image trusts.
#[test]
fn without_an_authority_there_is_no_config_map() {
    let outcome = job().fact("status/url", URL).all_phases(&PLUGIN).unwrap();
    assert!(outcome.objects().is_empty());
    assert_eq!(
        env(&outcome, "node", "KUBEFLOW_TRAINER_SERVER_CA_CERT"),
        None
    );
    assert!(env(&outcome, "node", "KUBEFLOW_TRAINER_SERVER_URL").is_some());
    let volume = outcome
        .value("pod-sets[trainer].volumes[kubeflow-trainer-token]")
        .unwrap();
    assert_eq!(
        volume["projected"]["sources"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn without_a_status_server_nothing_changes() {
    let outcome = job().all_phases(&PLUGIN).unwrap();
    assert!(outcome.writes().is_empty() && outcome.objects().is_empty());
}

#[test]
fn a_runtime_without_a_trainer_is_not_changed() {
    let job = MockJob::new("bert")
        .all_granted()
        .pod_set("launcher", |set| set.container("node", |c| c));
    let outcome = with_server(job).all_phases(&PLUGIN).unwrap();
    assert!(outcome.writes().is_empty() && outcome.objects().is_empty());
}
