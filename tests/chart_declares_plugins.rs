//! With `plugins.source: Cluster`, the chart installs what declares plugins by OCI reference: PolicyPlugins, their roles, who may sign them, and
//! how registries are reached. By default, no plugin from a registry is accepted.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::Helm;

use crate::common::{
    chart::{assert_starts, config_of, schema, template, text},
    command, root, stderr, stdout,
};

const CLUSTER: &str = "plugins.source=\"Cluster\"";
const SIGNERS: &str = "plugins.signers=[{\"name\":\"acme\",\"publicKey\":\"-----BEGIN PUBLIC KEY-----\\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENxgwF0ZTDDgz3Fl0AIP3nnKYf0Yd\\nCzn3TTqSSGvlco1Yy8FBXRxeNopf8642dgAgXwMnlRVbk/LSm7bWmv35xw==\\n-----END PUBLIC KEY-----\\n\",\"plugins\":[\"tracer\"],\"repositories\":[\"registry.example.com/acme/*\"]}]";
const DECLARED: &str = "plugins.declared=[{\"name\":\"tracer\",\"spec\":{\"source\":{\"oci\":{\"reference\":\"registry.example.com/acme/tracer:1.0.0@sha256:0000000000000000000000000000000000000000000000000000000000000000\"}},\"grants\":[\"annotations[example.com/trace]\"]}},{\"name\":\"jax\",\"spec\":{\"disabled\":true}}]";
const ROLES: &str = "plugins.roles=\"# Written by `trainyard rbac`.\\napiVersion: rbac.authorization.k8s.io/v1\\nkind: ClusterRole\\nmetadata:\\n  name: trainyard:plugin:tracer\\n  labels: {rbac.trainyard.dev/aggregate-to-controller: \\\"true\\\"}\\nrules:\\n- apiGroups: [\\\"\\\"]\\n  resources: [nodes]\\n  verbs: [get, list, watch]\\n\"";
/// All values for plugins of registries.
const ALL: [&str; 10] = [
    CLUSTER,
    SIGNERS,
    DECLARED,
    ROLES,
    "plugins.unsigned=[\"registry.example.com/experiments/*\"]",
    "plugins.rollout={\"steps\":[5,25],\"interval\":\"10m\"}",
    "plugins.store={\"persistentVolumeClaim\":{\"claimName\":\"plugins\"}}",
    "plugins.registryConfig=\"pull\"",
    "plugins.registries={\"mirrors\":{\"registry.example.com\":{\"endpoint\":[\"https://mirror.internal\"]}},\"configs\":{\"mirror.internal\":{\"tls\":{\"ca_file\":\"/registry-ca/ca.pem\"}}}}",
    "plugins.registryAuthorities={\"configMap\":{\"name\":\"authorities\"}}",
];
const MANAGER: &str = "kubeflow-trainer-controller-manager";
const LABEL: &str = "rbac.trainyard.dev/aggregate-to-controller";

/// Returns the object of a kind with a name.
fn object<'v>(objects: &'v [Value], kind: &str, name: &str) -> &'v Value {
    let mut objects = objects.iter();
    let is_it = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == name;
    objects
        .find(is_it)
        .unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn has(list: &Value, item: &Value) -> bool {
    list.as_array().unwrap().contains(item)
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn values_for_registries_reach_the_controller() {
    for helm in Helm::ALL {
        let rendered = template(helm, &ALL).unwrap();
        let config = config_of(&rendered);
        assert_starts(config);
        let plugins = &yaml::read(config).remove(0).unwrap().value["plugins"];
        assert_eq!(plugins["source"], "Cluster");
        assert_eq!(plugins["signers"][0]["name"], "acme");
        assert_eq!(
            plugins["unsigned"],
            json!(["registry.example.com/experiments/*"])
        );
        assert_eq!(
            plugins["rollout"],
            json!({"steps": [5, 25], "interval": "10m"})
        );
        let map = &rendered["config.yaml"][0]["data"];
        let registries = yaml::read(map["registries.yaml"].as_str().unwrap());
        let registries = &registries[0].as_ref().unwrap().value;
        let tls = &registries["configs"]["mirror.internal"]["tls"];
        assert_eq!(tls["ca_file"], "/registry-ca/ca.pem");

        let pod = &rendered["deployment.yaml"][0]["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        for (argument, mount, volume) in [
            (
                "--plugin-store=/store",
                json!({"name": "store", "mountPath": "/store"}),
                json!({"name": "store", "persistentVolumeClaim": {"claimName": "plugins"}}),
            ),
            (
                "--registry-config=/registry-config/config.json",
                json!({"name": "registry-config", "mountPath": "/registry-config", "readOnly": true}),
                json!({"name": "registry-config", "secret": {
                    "secretName": "pull", "items": [{"key": ".dockerconfigjson", "path": "config.json"}],
                }}),
            ),
            (
                "--registries=/etc/trainyard/registries.yaml",
                json!({"name": "registry-ca", "mountPath": "/registry-ca", "readOnly": true}),
                json!({"name": "registry-ca", "configMap": {"name": "authorities"}}),
            ),
        ] {
            assert!(has(&container["args"], &json!(argument)), "{container}");
            assert!(has(&container["volumeMounts"], &mount), "{container}");
            assert!(has(&pod["volumes"], &volume), "{pod}");
        }
        // The user of the pod can write to the volume.
        assert_eq!(pod["securityContext"]["fsGroup"], 65532);
    }
}

/// A pod starts with an empty store, and no signers.
#[test]
#[ignore = "needs Go: `make test-chart`"]
fn nothing_of_a_registry_is_accepted_by_default() {
    let rendered = template(Helm::Three, &[CLUSTER]).unwrap();
    let config = config_of(&rendered);
    let plugins = &yaml::read(config).remove(0).unwrap().value["plugins"];
    assert_eq!(*plugins, json!({"source": "Cluster"}));
    let pod = &rendered["deployment.yaml"][0]["spec"]["template"]["spec"];
    let arguments = &pod["containers"][0]["args"];
    assert!(
        has(arguments, &json!("--plugin-store=/var/trainyard/store")),
        "{arguments}"
    );
    assert!(!arguments.to_string().contains("--regist"), "{arguments}");
    assert!(pod["securityContext"].get("fsGroup").is_none(), "{pod}");
    assert!(!rendered.contains_key("plugins.yaml"));
}

/// The roles of plugins are their own, and are aggregated to one that only the controller has.
#[test]
#[ignore = "needs Go: `make test-chart`"]
fn roles_of_plugins_are_aggregated() {
    for helm in Helm::ALL {
        let rendered = template(helm, &ALL).unwrap();
        let roles = &rendered["rbac/controller.yaml"];
        let own = object(roles, "ClusterRole", MANAGER);
        assert!(!own.to_string().contains("nodes"), "{own}");
        let aggregated = object(roles, "ClusterRole", &format!("{MANAGER}-plugins"));
        // A tool that compares the release with the cluster must not remove what Kubernetes adds.
        assert!(aggregated.get("rules").is_none(), "{aggregated}");
        assert_eq!(
            aggregated["aggregationRule"],
            json!({"clusterRoleSelectors": [{"matchLabels": {LABEL: "true"}}]})
        );
        let of_plugin = object(roles, "ClusterRole", "trainyard:plugin:tracer");
        assert_eq!(of_plugin["metadata"]["labels"][LABEL], "true");
        assert_eq!(of_plugin["rules"][0]["resources"], json!(["nodes"]));
        let bindings = &rendered["rbac/bindings.yaml"];
        let binding = object(
            bindings,
            "ClusterRoleBinding",
            &format!("{MANAGER}-plugins"),
        );
        let subjects =
            json!([{"kind": "ServiceAccount", "name": MANAGER, "namespace": "kubeflow-system"}]);
        assert_eq!(binding["subjects"], subjects);
    }
}

/// People only read PolicyPlugins: a grant of `image` makes whoever writes one an administrator.
#[test]
#[ignore = "needs Go: `make test-chart`"]
fn no_role_for_people_writes_policy_plugins() {
    let rendered = template(Helm::Three, &ALL).unwrap();
    let mut readers = BTreeSet::new();
    for role in rendered["rbac/users.yaml"]
        .iter()
        .filter(|it| it["kind"] == "ClusterRole")
    {
        for rule in role["rules"].as_array().unwrap() {
            if rule["apiGroups"] == json!(["trainyard.dev"]) {
                assert_eq!(rule["verbs"], json!(["get", "list", "watch"]), "{role}");
                readers.insert(role["metadata"]["name"].as_str().unwrap());
            }
        }
    }
    assert_eq!(readers, ["kubeflow-trainer-view"].into());
    // The Job may write only those that it applies, and only while it runs.
    let jobs = &rendered["plugins.yaml"];
    let role = object(jobs, "ClusterRole", "kubeflow-trainer-plugins");
    assert_eq!(
        role["rules"],
        json!([{
            "apiGroups": ["trainyard.dev"], "resources": ["policyplugins"], "resourceNames": ["tracer", "jax"],
            "verbs": ["create", "patch"],
        }])
    );
    for object in jobs {
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(annotations["helm.sh/hook"], "post-install,post-upgrade");
        let policy = annotations["helm.sh/hook-delete-policy"].as_str();
        assert!(policy.unwrap().contains("hook-succeeded"), "{object}");
    }
}

/// The command of the Job accepts the objects of the ConfigMap: it then misses only its cluster.
#[test]
#[ignore = "needs Go: `make test-chart`"]
fn job_applies_the_declared_plugins() {
    let rendered = template(Helm::Three, &ALL).unwrap();
    let jobs = &rendered["plugins.yaml"];
    let map = object(jobs, "ConfigMap", "kubeflow-trainer-plugins");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.yaml");
    fs::write(&file, map["data"]["objects.yaml"].as_str().unwrap()).unwrap();
    let pod = &object(jobs, "Job", "kubeflow-trainer-plugins")["spec"]["template"]["spec"];
    assert_eq!(
        pod["containers"][0]["args"],
        json!(["plugin", "apply", "--filename=/objects/objects.yaml"])
    );
    let run = || {
        let mut apply = command(&["plugin", "apply", "--kubeconfig", "/none.yaml", "-f"]);
        stderr(&apply.arg(&file).output().unwrap())
    };
    let said = run();
    assert!(
        said.contains("/none.yaml") && !said.contains("objects.yaml"),
        "{said}"
    );
    fs::write(
        &file,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    )
    .unwrap();
    let said = run();
    assert!(said.contains("is not a PolicyPlugin"), "{said}");
}

/// The chart refuses what the CRD refuses, before anything is installed.
#[test]
fn schema_has_every_field_of_policy_plugins() {
    let crd = yaml::read(&text("files/crds/policyplugins.yaml"));
    let crd = &crd[0].as_ref().unwrap().value;
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let schema = schema();
    let declared = &schema["properties"]["plugins"]["properties"]["declared"]["items"];
    let ours = &declared["properties"]["spec"];
    let names = |schema: &Value| {
        let properties = schema["properties"].as_object().unwrap();
        properties.keys().cloned().collect::<BTreeSet<_>>()
    };
    assert_eq!(names(ours), names(spec));
    for (name, property) in ours["properties"].as_object().unwrap() {
        if name != "config" {
            assert_eq!(property["type"], spec["properties"][name]["type"], "{name}");
        }
    }
    for source in ["oci", "file"] {
        let path = |schema: &Value| names(&schema["properties"]["source"]["properties"][source]);
        assert_eq!(path(ours), path(spec), "{source}");
    }
}

/// The chart adds to the role of the controller what `trainyard rbac` does.
#[test]
fn rules_are_those_of_the_rbac_command() {
    let rules = |source: &str| {
        let cache = tempfile::tempdir().unwrap();
        let mut rbac = command(&["rbac", "--plugins-source", source]);
        let output = rbac
            .env("TRAINYARD_CACHE_DIR", cache.path())
            .output()
            .unwrap();
        let role = yaml::read(&stdout(&output)).remove(0).unwrap().value;
        role["rules"].as_array().unwrap().clone()
    };
    let before = rules("File");
    let mut added = rules("Cluster");
    added.retain(|rule| !before.contains(rule));
    let file = root().join("charts/trainyard/files/cluster-plugins-rules.yaml");
    let file = yaml::read(&fs::read_to_string(file).unwrap());
    assert_eq!(file[0].as_ref().unwrap().value, json!(added));
}
