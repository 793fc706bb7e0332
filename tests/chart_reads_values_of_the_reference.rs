//! The chart reads the values of the Kubeflow Trainer's chart that mean the same, and refuses the others with what to do. The controller
//! accepts each configuration that the chart writes, and plugins are mounted with their policy file and their roles.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::Helm;

use crate::common::{
    chart::{assert_starts, config_of, refusal, refused, template},
    command,
};

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn values_of_the_reference_are_refused_with_what_to_do() {
    for (path, advice) in refused() {
        let parent = path.rsplit('.').next().unwrap();
        let value = match parent {
            "image" | "commonLabels" => "{\"a\":\"b\"}",
            "imagePullSecrets" => "[{}]",
            "trainingRuntime" | "clusterTrainingRuntime" => "1",
            "nameOverride" | "webhookServiceName" | "webhookSecretName" => "\"trainer\"",
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
            "image={\"registry\":\"registry.example.com\",\"repository\":\"ml/trainyard\",\"tag\":\"1\"}",
            "image.pullPolicy=\"Always\"",
            "image.pullSecrets=[{\"name\":\"pull\"}]",
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
            "manager.config.health={\"readinessEndpointName\":\"readyz\",\"livenessEndpointName\":\"healthz\"}",
            "manager.config.health.healthProbeBindAddress=\":9001\"",
            "manager.config.controller.groupKindConcurrency.trainJob=5",
            "manager.config.clientConnection={\"qps\":0.5,\"burst\":100}",
            "manager.config.leaderElection={\"resourceName\":\"ours\",\"resourceNamespace\":\"leases\",\"leaseDuration\":\"30s\"}",
            "manager.config.featureGates={}",
            "manager.config.webhook={\"port\":9000,\"host\":\"\"}",
            "manager.config.certManagement={\"enable\":false,\"webhookServiceName\":\"\",\"webhookSecretName\":\"\"}",
            "webhook.failurePolicy=\"Ignore\"",
            "webhooks={\"certSecret\":\"cert\",\"injectCaFrom\":\"kubeflow-system/cert\"}",
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
            json!([
                {"name": "metrics", "containerPort": 8443},
                {"name": "health", "containerPort": 9001},
                {"name": "webhook", "containerPort": 9000},
            ]),
        ),
        (
            &rendered["service.yaml"][0]["spec"]["ports"][0]["port"],
            json!(8443),
        ),
        (
            &rendered["webhooks.yaml"][1]["webhooks"][0]["failurePolicy"],
            json!("Ignore"),
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
    assert_eq!(config["webhook"], json!({"port": 9000, "host": ""}));
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
        "webhook": {"port": 9000, "host": "127.0.0.1"},
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
    // The chart's own value.
    let plugins = config.as_object_mut().unwrap().remove("plugins");
    assert_eq!(plugins, Some(json!({"source": "Cluster"})));
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
            set("plugins.source", json!("File")),
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
