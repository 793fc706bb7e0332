//! With `shadow.enabled`, the chart installs one pod that compares TrainJobs. Its only role has no verb that writes, and neither an object nor
//! a label is one of the controller's, beside which it runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use trainyard_cluster::Helm;

use crate::common::chart::{assert_starts, config_of, refusal, template};

const SHADOW: &str = "shadow.enabled=true";

type Rendered = BTreeMap<String, Vec<Value>>;

fn names(rendered: &Rendered) -> BTreeSet<(String, String)> {
    let objects = rendered.values().flatten();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    objects
        .map(|object| (text(&object["kind"]), text(&object["metadata"]["name"])))
        .collect()
}

/// Values of a release of the controller, such as those that were written for the move.
const OTHERS: [&str; 8] = [
    "plugins.source=\"Cluster\"",
    "plugins.declared=[{\"name\":\"jax\",\"spec\":{\"disabled\":true}}]",
    "plugins.store={\"emptyDir\":{}}",
    "manager.config.certManagement.enable=true",
    "manager.config.featureGates.TrainJobStatus=true",
    "manager.replicas=3",
    "runtimes.defaultEnabled=true",
    "crds.enabled=true",
];

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn release_of_the_shadow_mode_writes_nothing() {
    for helm in Helm::ALL {
        let others = template(helm, &OTHERS).unwrap();
        let rendered = template(helm, &[&OTHERS[..], &[SHADOW]].concat()).unwrap();
        let expected = [
            "ClusterRole",
            "ClusterRoleBinding",
            "ConfigMap",
            "Deployment",
            "NetworkPolicy",
            "Service",
            "ServiceAccount",
        ];
        let found = names(&rendered);
        let kinds: Vec<_> = found.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, expected);
        assert!(found.is_disjoint(&names(&others)), "{found:?}");

        let role = rendered["rbac/controller.yaml"].iter();
        let role = role.filter(|object| object["kind"] == "ClusterRole");
        let rules = role.flat_map(|role| role["rules"].as_array().unwrap());
        let rules: Vec<_> = rules.collect();
        assert!(rules.len() > 5, "{rules:?}");
        for rule in rules {
            let verbs = rule["verbs"].as_array().unwrap();
            let reads = [json!("get"), json!("list"), json!("watch")];
            assert!(verbs.iter().all(|verb| reads.contains(verb)), "{rule}");
            let resources = rule["resources"].to_string();
            assert!(
                !resources.contains("secrets") && !resources.contains('*'),
                "{rule}"
            );
        }
        let binding = &rendered["rbac/bindings.yaml"][0];
        assert_eq!(binding["roleRef"]["name"], "trainyard-shadow");
        assert_eq!(binding["subjects"][0]["name"], "trainyard-shadow");

        let deployment = &rendered["deployment.yaml"][0]["spec"];
        assert_eq!(deployment["replicas"], 1);
        let pod = &deployment["template"];
        let arguments = pod["spec"]["containers"][0]["args"].as_array().unwrap();
        assert!(arguments.contains(&json!("--shadow")), "{arguments:?}");
        assert_eq!(pod["spec"]["serviceAccountName"], "trainyard-shadow");
        // Services of the controller do not select the pod.
        let label = "app.kubernetes.io/component";
        for (labels, component) in [
            (&pod["metadata"]["labels"], "shadow"),
            (&rendered["service.yaml"][0]["spec"]["selector"], "shadow"),
            (&others["service.yaml"][0]["spec"]["selector"], "manager"),
        ] {
            assert_eq!(labels[label], component);
        }
        assert_starts(config_of(&rendered));
    }
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn values_that_let_the_shadow_mode_write_are_refused() {
    let role = |verb: &str| {
        let role = format!(
            "kind: ClusterRole\\nrules:\\n- apiGroups: [example.com]\\n  resources: [flavors]\\n  verbs: [get, {verb}]\\n"
        );
        format!("plugins.roles=\"{role}\"")
    };
    template(Helm::Three, &[SHADOW, &role("list")]).unwrap();
    template(Helm::Three, &["plugins.source=\"File\"", &role("patch")]).unwrap();
    let error = refusal(Helm::Three, &[SHADOW, &role("patch")]);
    let advice = "plugins.roles: the verb patch, but the shadow mode only reads; set the output of `trainyard rbac --shadow`";
    assert!(error.contains(advice), "{error}");
    let auth = [
        "manager.config.metrics={\"bindAddress\":\":8443\",\"secureServing\":true,\"auth\":{\"enabled\":true}}",
        "webhooks={\"certSecret\":\"cert\",\"caBundle\":\"-----BEGIN CERTIFICATE-----\\nMA==\\n-----END CERTIFICATE-----\\n\"}",
    ];
    template(Helm::Three, &auth).unwrap();
    let error = refusal(Helm::Three, &[&auth[..], &[SHADOW]].concat());
    assert!(
        error.contains("manager.config.metrics.auth.enabled: the shadow mode"),
        "{error}"
    );
}
