//! If the feature gate is on, the chart lets pods of all namespaces reach the status server, and gives the controller the permissions that it
//! needs for it. Without it, nothing of this is rendered.

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::Helm;

use crate::common::{
    chart::{assert_starts, config_of, refusal, template},
    command, stdout,
};

const ON: [&str; 3] = [
    "webhooks={\"certSecret\":\"cert\",\"injectCaFrom\":\"kubeflow-system/webhooks\"}",
    "manager.config.featureGates={\"TrainJobStatus\":true}",
    "manager.config.statusServer={\"port\":10444,\"qps\":50}",
];

/// Returns the item of a list with this name.
fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    let mut items = list.as_array().unwrap().iter();
    items.find(|item| item["name"] == name).unwrap()
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn pods_of_all_namespaces_reach_the_status_server() {
    for helm in Helm::ALL {
        let rendered = template(helm, &ON).unwrap();
        let service = &rendered["service.yaml"][0];
        assert_eq!(
            service["metadata"]["name"],
            "kubeflow-trainer-controller-manager"
        );
        let port = named(&service["spec"]["ports"], "status-server");
        assert_eq!(
            (&port["port"], &port["targetPort"]),
            (&json!(10444), &json!("status-server"))
        );
        let container =
            &rendered["deployment.yaml"][0]["spec"]["template"]["spec"]["containers"][0];
        let port = named(&container["ports"], "status-server");
        assert_eq!(port["containerPort"], 10444);
        let rules = rendered["network-policy.yaml"][0]["spec"]["ingress"]
            .as_array()
            .unwrap();
        let rule = json!({"ports": [{"protocol": "TCP", "port": "status-server"}]});
        assert!(rules.contains(&rule), "{rules:?}");
        let config = config_of(&rendered);
        assert!(config.contains("TrainJobStatus: true"), "{config}");
    }
    let without_metrics = [&ON[..], &["manager.config.metrics.bindAddress=\"0\""]].concat();
    let rendered = template(Helm::Three, &without_metrics).unwrap();
    let ports = &rendered["service.yaml"][0]["spec"]["ports"];
    assert_eq!(ports.as_array().unwrap().len(), 1);
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn the_controller_has_the_permissions_that_it_prints() {
    let arguments = [
        "rbac",
        "--feature-gates=TrainJobStatus=true",
        "--plugins-source=Cluster",
    ];
    let output = command(&arguments).output().unwrap();
    let printed = yaml::read(&stdout(&output)).remove(0).unwrap().value;
    let rendered = template(Helm::Three, &ON).unwrap();
    let roles = rendered["rbac/controller.yaml"].iter();
    let mut roles = roles.filter(|role| role["kind"] == "ClusterRole");
    let sorted = |role: &Value| {
        let rules = role["rules"].as_array().unwrap().iter();
        let mut rules: Vec<_> = rules.map(ToString::to_string).collect();
        rules.sort_unstable();
        rules
    };
    assert_eq!(sorted(roles.next().unwrap()), sorted(&printed));
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn without_the_feature_gate_nothing_is_rendered() {
    for values in [
        &[][..],
        &["manager.config.statusServer={\"port\":1,\"qps\":5,\"burst\":10}"],
    ] {
        let rendered = template(Helm::Three, values).unwrap();
        for (file, documents) in &rendered {
            let text = json!(documents).to_string();
            assert!(!text.contains("status-server"), "{file}: {text}");
            assert!(!text.contains("tokenreviews"), "{file}: {text}");
        }
        assert_starts(config_of(&rendered));
    }
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn values_that_cannot_work_are_refused() {
    let error = refusal(Helm::Three, &ON[1..]);
    assert!(
        error.contains("featureGates.TrainJobStatus: pods report progress over TLS"),
        "{error}"
    );
    let managed = "manager.config.certManagement={\"enable\":true}";
    template(Helm::Three, &[managed, ON[1]]).unwrap();
    let same = [&ON[..2], &["manager.config.statusServer.port=9443"]].concat();
    let error = refusal(Helm::Three, &same);
    assert!(
        error.contains("statusServer.port: 9443 is also another port"),
        "{error}"
    );
    for wrong in [
        "manager.config.featureGates={\"TrainJob\":true}",
        "manager.config.statusServer.port=\"a\"",
    ] {
        refusal(Helm::Three, &[wrong]);
    }
}
