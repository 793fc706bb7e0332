//! The chart documents each of its values, refuses wrong ones with the value and what to write instead, and reads the values of the Kubeflow
//! Trainer's chart or refuses them. The controller accepts each configuration that the chart writes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::Helm;
use trainyard_plugin_folders::runtimes;

use crate::common::{command, root, stderr};

fn text(file: &str) -> String {
    fs::read_to_string(root().join("charts/trainyard").join(file)).unwrap()
}

fn values() -> Value {
    yaml::read(&text("values.yaml")).remove(0).unwrap().value
}

fn schema() -> Value {
    serde_json::from_str(&text("values.schema.json")).unwrap()
}

/// Returns the values that are refused unless they are empty, with what to do instead.
fn refused() -> BTreeMap<String, String> {
    let list = yaml::read(&text("files/refused-values.yaml"))
        .remove(0)
        .unwrap()
        .value;
    serde_json::from_value(list).unwrap()
}

/// Adds the paths of all properties of a schema.
fn properties(schema: &Value, path: &str, all: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        properties(property, &format!("{path}."), all);
        all.insert(path);
    }
}

/// Adds the paths of all values, except of those within free-form values.
fn paths(values: &Value, path: &str, known: &BTreeSet<String>, all: &mut BTreeSet<String>) {
    for (name, value) in values.as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        let is_known = known
            .iter()
            .any(|known| known.starts_with(&format!("{path}.")));
        if is_known {
            paths(value, &format!("{path}."), known, all);
        }
        all.insert(path);
    }
}

#[test]
fn schema_and_file_of_values_list_the_same() {
    let mut known = BTreeSet::new();
    properties(&schema(), "", &mut known);
    let mut listed = BTreeSet::new();
    paths(&values(), "", &known, &mut listed);
    let unknown: Vec<_> = listed.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let refused = refused();
    let is_below =
        |path: &str, parent: &str| path == parent || path.starts_with(&format!("{parent}."));
    let mut missing: Vec<_> = known.difference(&listed).collect();
    // The configuration has a page of its own.
    missing.retain(|path| {
        let is_refused = refused
            .keys()
            .any(|refused| is_below(path, refused) || is_below(refused, path));
        !is_refused
            && !is_below(path, "manager.config")
            && !["fullnameOverride", "global"].contains(&path.as_str())
    });
    missing.retain(|path| {
        !path.starts_with("runtimes.installer.resources.")
            && !path.starts_with("manager.resources.")
    });
    assert!(missing.is_empty(), "{missing:?}");
    for path in refused.keys() {
        let mut ancestors = path
            .match_indices('.')
            .map(|(end, _)| &path[..end])
            .chain([path.as_str()]);
        assert!(ancestors.any(|path| known.contains(path)), "{path}");
    }
}

#[test]
fn every_value_has_a_comment_above_its_block() {
    let text = text("values.yaml");
    let lines: Vec<_> = text.lines().collect();
    let is_top = |line: &str| line.ends_with(':') || line.contains(": ");
    let tops: Vec<_> = (0..lines.len())
        .filter(|at| !lines[*at].starts_with([' ', '#']) && is_top(lines[*at]))
        .collect();
    assert!(tops.len() > 8, "{tops:?}");
    for at in tops {
        let is_commented = at > 0 && lines[at - 1].starts_with('#');
        // These three share a comment.
        let shares = ["prometheusRule:", "grafanaDashboard:"].contains(&lines[at]);
        assert!(is_commented || shares, "{}", lines[at]);
    }
}

/// The keys of docs/configuration.md, and those that only the Kubeflow Trainer's chart has.
#[test]
fn schema_has_every_key_of_the_configuration() {
    let manual = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let (_, table) = manual
        .split_once("| key | default | meaning |\n|---|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let documented: BTreeSet<_> = rows
        .map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect();
    let mut known = BTreeSet::new();
    properties(
        &schema()["properties"]["manager"]["properties"]["config"],
        "",
        &mut known,
    );
    let leaves: BTreeSet<_> = known
        .iter()
        .filter(|path| {
            !known
                .iter()
                .any(|other| other.starts_with(&format!("{path}.")))
        })
        .cloned()
        .collect();
    let of_the_reference = [
        "certManagement",
        "controller.groupKindConcurrency.clusterTrainingRuntime",
        "controller.groupKindConcurrency.trainJob",
        "controller.groupKindConcurrency.trainingRuntime",
        "featureGates",
        "health.livenessEndpointName",
        "health.readinessEndpointName",
        "metrics.secureServing",
        "statusServer",
        "webhook",
    ];
    assert_eq!(
        leaves,
        &documented | &of_the_reference.map(str::to_owned).into()
    );
}

#[test]
fn schema_lists_the_shipped_runtimes() {
    let schema = schema();
    let install = &schema["properties"]["runtimes"]["properties"]["install"]["oneOf"];
    assert_eq!(install[0]["const"], "all");
    let names: Vec<_> = runtimes(&root()).unwrap().into_keys().collect();
    assert_eq!(install[1]["items"]["enum"], json!(names));
}

/// The image, which has no default.
const IMAGE: [&str; 2] = ["--set-json", "image.repository=\"example.com/trainyard\""];

/// Returns what the chart renders to with these values, or helm's error.
fn template(helm: Helm, values: &[&str]) -> Result<BTreeMap<String, Vec<Value>>, String> {
    let arguments: Vec<_> = values
        .iter()
        .flat_map(|value| ["--set-json", value])
        .collect();
    let rendered = helm
        .template(
            &[
                &IMAGE[..],
                &["--set-json", "crds.enabled=false"],
                &arguments,
            ]
            .concat(),
        )
        .map_err(|error| error.to_string())?;
    let parsed = rendered.into_iter().map(|(template, documents)| {
        let documents = documents.iter();
        let values = documents.map(|text| yaml::read(text).remove(0).unwrap().value);
        (template, values.collect())
    });
    Ok(parsed.collect())
}

/// Returns helm's error with these values.
fn refusal(helm: Helm, values: &[&str]) -> String {
    let refused = template(helm, values).err();
    refused.unwrap_or_else(|| panic!("{helm:?} accepts {values:?}"))
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn chart_passes_lint() {
    for helm in Helm::ALL {
        let output = helm.lint(&IMAGE).unwrap();
        let printed = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            stderr(&output)
        );
        assert!(output.status.success(), "{printed}");
        let warnings = printed.lines().filter(|line| line.contains("[WARNING]"));
        assert_eq!(warnings.count(), 0, "{printed}");
    }
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn wrong_values_are_refused() {
    for (values, errors) in [
        (
            &["manager.replica=3"][..],
            &["at '/manager': additional properties 'replica' not allowed"][..],
        ),
        (
            &["replicas=3"],
            &["additional properties 'replicas' not allowed"],
        ),
        (
            &["manager.replicas=\"two\""],
            &["at '/manager/replicas': got string, want integer"],
        ),
        (
            &["manager.replicas=-1"],
            &["at '/manager/replicas': minimum: got -1, want 0"],
        ),
        (
            &["crds.enabled=\"yes\""],
            &["at '/crds/enabled': got string, want boolean"],
        ),
        (
            &["image.tag=1.0"],
            &["at '/image/tag': got number, want string"],
        ),
        (
            &["image.repository=\"\""],
            &["image.repository: not set; no image is published yet"],
        ),
        (
            &["image.repository=\"kubeflow/trainer/trainer-controller-manager\""],
            &[
                "image.repository: kubeflow/trainer/trainer-controller-manager is the image of the Kubeflow Trainer",
            ],
        ),
        (
            &["runtimes.install=[\"torch\"]"],
            &["at '/runtimes/install'", "'torch-distributed'"],
        ),
        (
            &["runtimes.install=\"some\""],
            &["at '/runtimes/install': value must be 'all'"],
        ),
        (
            &["plugins.volume={\"image\":{},\"emptyDir\":{}}"],
            &["at '/plugins/volume': maxProperties"],
        ),
        (
            &["commonLabels={\"app.kubernetes.io/name\":\"x\"}"],
            &["commonLabels: the chart sets the label app.kubernetes.io/name itself"],
        ),
        (
            &["manager.config.leaderElection.leaseDuration=15"],
            &["at '/manager/config/leaderElection/leaseDuration'"],
        ),
        (
            &["manager.config.controller.concurency=5"],
            &["additional properties 'concurency' not allowed"],
        ),
        (
            &["manager.config.metrics.bindAddress=\"8080\""],
            &[
                "at '/manager/config/metrics/bindAddress'",
                "does not match pattern",
            ],
        ),
        (
            &["manager.config.leaderElection.leaderElect=false"],
            &["manager.replicas: 2 replicas need leader election"],
        ),
        (
            &[
                "manager.config.metrics.bindAddress=\"0\"",
                "serviceMonitor.enabled=true",
            ],
            &["serviceMonitor.enabled: metrics are disabled"],
        ),
        (
            &["manager.config.health.healthProbeBindAddress=\"0\""],
            &[
                "manager.config.health.healthProbeBindAddress: the probes of the Deployment need the port",
            ],
        ),
        (
            &["manager.config.metrics.bindAddress=\":8081\""],
            &["manager.config.metrics.bindAddress: :8081 is also the port of the probes"],
        ),
        (
            &[
                "plugins.volume={\"emptyDir\":{}}",
                "manager.config.pluginDir=\"/p\"",
            ],
            &["manager.config.pluginDir: plugins.volume sets it already"],
        ),
        (
            &["plugins.policy=\"x\"", "manager.config.policyFile=\"/p\""],
            &["manager.config.policyFile: plugins.policy sets it already"],
        ),
        (
            &[
                "manager.config.controller={\"concurrency\":1,\"groupKindConcurrency\":{\"trainJob\":2}}",
            ],
            &[
                "manager.config.controller.groupKindConcurrency.trainJob: controller.concurrency is set too",
            ],
        ),
        // All errors at once.
        (
            &[
                "image.repository=\"\"",
                "manager.config.leaderElection.leaderElect=false",
            ],
            &["image.repository: ", "manager.replicas: "],
        ),
    ] {
        for helm in Helm::ALL {
            let error = refusal(helm, values);
            for expected in errors {
                assert!(error.contains(expected), "{helm:?} {values:?}: {error}");
            }
        }
    }
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn values_of_the_reference_are_refused_with_what_to_do() {
    for (path, advice) in refused() {
        let parent = path.rsplit('.').next().unwrap();
        let value = match parent {
            "webhook" | "certManagement" | "statusServer" | "featureGates" | "image"
            | "commonLabels" => "{\"a\":\"b\"}",
            "imagePullSecrets" => "[{}]",
            "trainingRuntime" | "clusterTrainingRuntime" => "1",
            "nameOverride" => "\"trainer\"",
            _ => "true",
        };
        let error = refusal(Helm::Three, &[&format!("{path}={value}")]);
        assert!(
            error.contains(&format!("{path}: {advice}")),
            "{path}: {error}"
        );
    }
    let error = refusal(Helm::Three, &["fullnameOverride=\"mine\""]);
    assert!(
        error.contains("fullnameOverride: names of objects"),
        "{error}"
    );
}

/// Returns the container of the Deployment or of the Job.
fn container<'v>(rendered: &'v BTreeMap<String, Vec<Value>>, template: &str) -> &'v Value {
    let object = rendered[template].last().unwrap();
    &object["spec"]["template"]["spec"]["containers"][0]
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn values_of_the_reference_have_the_same_meaning() {
    let rendered = template(
        Helm::Three,
        &[
            "fullnameOverride=\"kubeflow-trainer\"",
            "jobset={\"install\":false,\"fullnameOverride\":\"jobset\"}",
            "dataCache={\"enabled\":false,\"lws\":{\"install\":true}}",
            "image={\"registry\":\"registry.example.com\",\"repository\":\"ml/trainyard\",\"tag\":\"1\",\"pullPolicy\":\"Always\",\"pullSecrets\":[{\"name\":\"pull\"}]}",
            "manager.replicas=3",
            "manager.labels={\"team\":\"ml\"}",
            "manager.selectorLabels={\"tier\":\"one\"}",
            "manager.podAnnotations={\"example.com/a\":\"b\"}",
            "manager.nodeSelector={\"pool\":\"system\"}",
            "manager.affinity={\"nodeAffinity\":{}}",
            "manager.tolerations=[{\"operator\":\"Exists\"}]",
            "manager.env=[{\"name\":\"A\",\"value\":\"b\"}]",
            "manager.envFrom=[{\"configMapRef\":{\"name\":\"c\"}}]",
            "manager.volumes=[{\"name\":\"v\",\"emptyDir\":{}}]",
            "manager.volumeMounts=[{\"name\":\"v\",\"mountPath\":\"/v\"}]",
            "manager.resources.requests.cpu=\"2\"",
            "manager.config.metrics={\"bindAddress\":\":8443\",\"secureServing\":false}",
            "manager.config.health={\"healthProbeBindAddress\":\":9000\",\"readinessEndpointName\":\"readyz\",\"livenessEndpointName\":\"healthz\"}",
            "manager.config.controller.groupKindConcurrency.trainJob=5",
            "manager.config.clientConnection={\"qps\":0.5,\"burst\":100}",
            "manager.config.leaderElection={\"resourceName\":\"ours\",\"resourceNamespace\":\"leases\",\"leaseDuration\":\"30s\"}",
            "manager.config.featureGates={}",
            "runtimes.torchDistributed.enabled=true",
            "runtimes.torchtuneDistributed.llama3_2_1B.enabled=true",
            "runtimes.installer.tolerations=[{\"operator\":\"Exists\"}]",
        ],
    )
    .unwrap();
    let deployment = &rendered["deployment.yaml"][0];
    let pod = &deployment["spec"]["template"];
    let container = container(&rendered, "deployment.yaml");
    for (found, expected) in [
        (&deployment["metadata"]["labels"]["team"], json!("ml")),
        (&deployment["spec"]["replicas"], json!(3)),
        (
            &deployment["spec"]["selector"]["matchLabels"]["tier"],
            json!("one"),
        ),
        (&pod["metadata"]["labels"]["tier"], json!("one")),
        (&pod["metadata"]["labels"]["team"], json!("ml")),
        (&pod["metadata"]["annotations"]["example.com/a"], json!("b")),
        (&pod["spec"]["nodeSelector"], json!({"pool": "system"})),
        (&pod["spec"]["affinity"], json!({"nodeAffinity": {}})),
        (&pod["spec"]["tolerations"], json!([{"operator": "Exists"}])),
        (&pod["spec"]["imagePullSecrets"], json!([{"name": "pull"}])),
        (
            &container["image"],
            json!("registry.example.com/ml/trainyard:1"),
        ),
        (&container["imagePullPolicy"], json!("Always")),
        (&container["env"][1], json!({"name": "A", "value": "b"})),
        (
            &container["envFrom"][0],
            json!({"configMapRef": {"name": "c"}}),
        ),
        (
            &container["resources"]["requests"],
            json!({"cpu": "2", "memory": "128Mi"}),
        ),
        (
            &container["ports"],
            json!([{"name": "metrics", "containerPort": 8443}, {"name": "health", "containerPort": 9000}]),
        ),
        (
            &rendered["service.yaml"][0]["spec"]["ports"][0]["port"],
            json!(8443),
        ),
        (
            &rendered["disruption-budget.yaml"][0]["spec"]["selector"],
            deployment["spec"]["selector"].clone(),
        ),
        (
            &rendered["network-policy.yaml"][0]["spec"]["podSelector"],
            deployment["spec"]["selector"].clone(),
        ),
    ] {
        assert_eq!(found, &expected);
    }
    let last = |list: &Value| list.as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        last(&pod["spec"]["volumes"]),
        json!({"name": "v", "emptyDir": {}})
    );
    assert_eq!(
        last(&container["volumeMounts"]),
        json!({"name": "v", "mountPath": "/v"})
    );
    let config: Value = yaml::read(config_of(&rendered)).remove(0).unwrap().value;
    assert_eq!(config["controller"], json!({"concurrency": 5}));
    assert_eq!(
        config["clientConnection"],
        json!({"qps": 0.5, "burst": 100})
    );
    let role = rendered["rbac/controller.yaml"]
        .iter()
        .find(|role| role["kind"] == "Role")
        .unwrap();
    assert_eq!(role["metadata"]["namespace"], "leases");
    assert_eq!(role["rules"][1]["resourceNames"], json!(["ours"]));
    let job = &rendered["runtimes.yaml"][3]["spec"]["template"]["spec"];
    assert_eq!(
        job["containers"][0]["args"],
        json!([
            "runtimes",
            "--apply",
            "torch-distributed",
            "torchtune-llama3.2-1b"
        ])
    );
    assert_eq!(job["tolerations"], json!([{"operator": "Exists"}]));
    assert_starts(config_of(&rendered));
}

fn config_of(rendered: &BTreeMap<String, Vec<Value>>) -> &str {
    rendered["config.yaml"][0]["data"]["controller.yaml"]
        .as_str()
        .unwrap()
}

/// Checks that the controller accepts a configuration: it then misses only its cluster.
fn assert_starts(config: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("controller.yaml");
    fs::write(&file, config).unwrap();
    let output = command(&["controller", "--kubeconfig", "/none.yaml", "--config"])
        .arg(&file)
        .env("TRAINYARD_CACHE_DIR", folder.path())
        .output()
        .unwrap();
    let log = stderr(&output);
    assert!(
        log.contains("/none.yaml") && !log.contains("controller.yaml:"),
        "{config}\n{log}"
    );
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn configuration_has_every_key_that_is_set() {
    let keys = json!({
        "leaderElection": {
            "leaderElect": true, "leaseDuration": "1m30s", "renewDeadline": "10s", "retryPeriod": "500ms", "resourceLock": "leases",
            "resourceName": "ours", "resourceNamespace": "leases",
        },
        "metrics": {"bindAddress": "127.0.0.1:8080"},
        "health": {"healthProbeBindAddress": "[::]:8081"},
        "controller": {"concurrency": 32, "renderTimeout": "1m"},
        "clientConnection": {"qps": 50, "burst": 100},
        "jobSet": {"writeDefaults": true},
        "logging": {"format": "text", "level": "debug"},
    });
    let rendered = template(Helm::Three, &[&format!("manager.config={keys}")]).unwrap();
    let mut config: Value = yaml::read(config_of(&rendered)).remove(0).unwrap().value;
    for key in ["apiVersion", "kind"] {
        assert!(config.as_object_mut().unwrap().remove(key).is_some());
    }
    assert_eq!(config, keys);
    assert_starts(config_of(&rendered));
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn plugins_are_mounted_with_their_policy_and_roles() {
    let roles = command(&["rbac"]).output().unwrap();
    let roles = String::from_utf8(roles.stdout)
        .unwrap()
        .replace("- limitranges", "- flavors");
    let policy = "apiVersion: trainyard.dev/v1alpha1\nkind: Policy\nplugins: []\n";
    let of = |policy: &str| {
        let set = |path: &str, value: Value| format!("{path}={value}");
        let values = [
            set(
                "plugins.volume",
                json!({"image": {"reference": "example.com/plugins:1"}}),
            ),
            set("plugins.policy", json!(policy)),
            set("plugins.roles", json!(roles)),
        ];
        template(Helm::Three, &values.each_ref().map(String::as_str)).unwrap()
    };
    let rendered = of(policy);
    let pod = &rendered["deployment.yaml"][0]["spec"]["template"]["spec"];
    let has = |list: &Value, item: Value| {
        assert!(list.as_array().unwrap().contains(&item), "{item}: {list}")
    };
    has(
        &pod["volumes"],
        json!({"name": "plugins", "image": {"reference": "example.com/plugins:1"}}),
    );
    has(
        &pod["volumes"],
        json!({"name": "policy", "configMap": {"name": "kubeflow-trainer-policy"}}),
    );
    let mounts = &pod["containers"][0]["volumeMounts"];
    has(
        mounts,
        json!({"name": "plugins", "mountPath": "/plugins", "readOnly": true}),
    );
    has(
        mounts,
        json!({"name": "policy", "mountPath": "/policy", "readOnly": true}),
    );
    let config: Value = yaml::read(config_of(&rendered)).remove(0).unwrap().value;
    assert_eq!(config["pluginDir"], "/plugins");
    assert_eq!(config["policyFile"], "/policy/policy.yaml");
    let maps = &rendered["config.yaml"];
    assert_eq!(maps[1]["metadata"]["name"], "kubeflow-trainer-policy");
    assert_eq!(maps[1]["data"]["policy.yaml"], policy);
    let cluster_role = &rendered["rbac/controller.yaml"][0];
    assert!(
        cluster_role["rules"].to_string().contains("flavors"),
        "{cluster_role}"
    );
    // A changed policy file is rolled out.
    let checksum = |rendered: &BTreeMap<String, Vec<Value>>| {
        rendered["deployment.yaml"][0]["spec"]["template"]["metadata"]["annotations"]["checksum/config"].clone()
    };
    assert_ne!(
        checksum(&rendered),
        checksum(&of("apiVersion: trainyard.dev/v1alpha1\nkind: Policy\n"))
    );
}
