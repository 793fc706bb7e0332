//! The chart serves admission webhooks if it has a certificate for them, or if the controller creates one: API servers reach the pods, trust the certificate and call all webhooks
//! of `files/webhooks.yaml`. Without a certificate, nothing of this is rendered.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::Helm;

use crate::common::chart::{template, text};

const MANAGED: &str =
    "webhooks={\"certSecret\":\"cert\",\"injectCaFrom\":\"kubeflow-system/webhooks\"}";
const BY_HAND: &str = "webhooks={\"certSecret\":\"cert\",\"caBundle\":\"-----BEGIN CERTIFICATE-----\\nMA==\\n-----END CERTIFICATE-----\\n\"}";
/// What `base64` prints for this authority.
const ENCODED: &str =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";

type Rendered = BTreeMap<String, Vec<Value>>;

fn pod(rendered: &Rendered) -> &Value {
    &rendered["deployment.yaml"][0]["spec"]["template"]
}

/// Returns the item of a list with this name.
fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    let mut items = list.as_array().unwrap().iter();
    items
        .find(|item| item["name"] == name)
        .unwrap_or_else(|| panic!("there is no {name} in {list}"))
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn api_servers_reach_the_pods() {
    for helm in Helm::ALL {
        let port = "manager.config.webhook.port=9444";
        let rendered = template(
            helm,
            &[MANAGED, port, "manager.selectorLabels={\"a\":\"b\"}"],
        );
        let rendered = rendered.unwrap();
        let service = &rendered["webhooks.yaml"][0];
        let selector = &rendered["deployment.yaml"][0]["spec"]["selector"]["matchLabels"];
        assert_eq!(&service["spec"]["selector"], selector);
        let container = &pod(&rendered)["spec"]["containers"][0];
        let name = service["spec"]["ports"][0]["targetPort"].as_str().unwrap();
        assert_eq!(named(&container["ports"], name)["containerPort"], 9444);
        // They have no address that is known, so the rule has no peers.
        let policy = &rendered["network-policy.yaml"][0]["spec"]["ingress"];
        let rule = json!({"ports": [{"protocol": "TCP", "port": name}]});
        assert!(policy.as_array().unwrap().contains(&rule), "{policy}");
    }
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn certificate_is_mounted_where_the_controller_reads_it() {
    let rendered = template(Helm::Three, &[BY_HAND]).unwrap();
    let pod = pod(&rendered);
    let volume = named(&pod["spec"]["volumes"], "webhook-cert");
    assert_eq!(volume["secret"], json!({"secretName": "cert"}));
    let container = &pod["spec"]["containers"][0];
    let mount = named(&container["volumeMounts"], "webhook-cert");
    assert_eq!(mount["readOnly"], true);
    let flag = json!(format!(
        "--webhook-cert-dir={}",
        mount["mountPath"].as_str().unwrap()
    ));
    let args = container["args"].as_array().unwrap();
    assert!(args.contains(&flag), "{args:?}");
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn configurations_have_all_webhooks_and_the_authority() {
    let listed: Vec<_> = yaml::read(&text("files/webhooks.yaml"))
        .into_iter()
        .map(|document| document.unwrap().value)
        .collect();
    assert_eq!(listed.len(), 2);
    for (values, authority) in [(BY_HAND, Some(ENCODED)), (MANAGED, None)] {
        let rendered = template(Helm::Four, &[values]).unwrap();
        let (service, configurations) = rendered["webhooks.yaml"].split_first().unwrap();
        assert_eq!(configurations.len(), listed.len());
        for (found, listed) in configurations.iter().zip(&listed) {
            let mut expected = listed.clone();
            for webhook in expected["webhooks"].as_array_mut().unwrap() {
                webhook["failurePolicy"] = json!("Fail");
                let client = &mut webhook["clientConfig"];
                for field in ["name", "namespace"] {
                    client["service"][field] = service["metadata"][field].clone();
                }
                if let Some(authority) = authority {
                    client["caBundle"] = json!(authority);
                }
            }
            assert_eq!(found["webhooks"], expected["webhooks"]);
            assert_eq!(found["kind"], listed["kind"]);
            assert_eq!(found["metadata"]["name"], listed["metadata"]["name"]);
            let annotations = authority
                .is_none()
                .then(|| json!({"cert-manager.io/inject-ca-from": "kubeflow-system/webhooks"}));
            assert_eq!(found["metadata"].get("annotations"), annotations.as_ref());
        }
    }
}

/// Returns the rules of the roles that a template renders, by their kinds.
fn rules(rendered: &Rendered, template: &str) -> Vec<(Value, Value)> {
    let documents = rendered.get(template).map_or(&[][..], Vec::as_slice);
    let roles = documents.iter().filter(|role| role.get("rules").is_some());
    roles
        .map(|role| (role["kind"].clone(), role["rules"].clone()))
        .collect()
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn one_value_lets_the_controller_create_the_certificate() {
    for helm in Helm::ALL {
        let on = template(helm, &["manager.config.certManagement.enable=true"]).unwrap();
        let config = on["config.yaml"][0]["data"]["controller.yaml"]
            .as_str()
            .unwrap();
        let config = yaml::read(config).remove(0).unwrap().value;
        assert_eq!(config["certManagement"], json!({"enable": true}));
        let container = &pod(&on)["spec"]["containers"][0];
        assert!(!container["args"].to_string().contains("webhook"));
        assert_eq!(named(&container["ports"], "webhook")["containerPort"], 9443);
        let (service, configurations) = on["webhooks.yaml"].split_first().unwrap();
        assert_eq!(service["metadata"]["name"], "kubeflow-trainer-webhooks");
        for configuration in configurations {
            assert_eq!(configuration["metadata"].get("annotations"), None);
            for webhook in configuration["webhooks"].as_array().unwrap() {
                // The controller writes it, and Helm does not overwrite what it does not render.
                assert_eq!(webhook["clientConfig"].get("caBundle"), None);
            }
        }
        let verbs = |group: &str, resource: &str, name: &str| json!({"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": ["get", "update", "watch"]});
        let group = "admissionregistration.k8s.io";
        assert_eq!(
            rules(&on, "rbac/certificates.yaml"),
            [
                (
                    json!("ClusterRole"),
                    json!([
                        verbs(
                            group,
                            "mutatingwebhookconfigurations",
                            "defaulter.trainer.kubeflow.org"
                        ),
                        verbs(
                            group,
                            "validatingwebhookconfigurations",
                            "validator.trainer.kubeflow.org"
                        ),
                    ])
                ),
                (
                    json!("Role"),
                    json!([
                        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["kubeflow-trainer-webhook-cert"], "verbs": ["get", "patch", "watch"]},
                        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
                    ])
                ),
            ]
        );
        let policy = on["admission.yaml"][0]["spec"]["validations"][0].to_string();
        assert!(policy.contains("object.metadata.name == 'kubeflow-trainer-webhook-cert'"));
        let renamed =
            "manager.config.certManagement={\"enable\":true,\"webhookSecretName\":\"other\"}";
        let renamed = template(helm, &[renamed]).unwrap();
        let (_, role) = &rules(&renamed, "rbac/certificates.yaml")[1];
        assert_eq!(role[0]["resourceNames"], json!(["other"]));
        let policy = renamed["admission.yaml"][0]["spec"]["validations"][0].to_string();
        assert!(policy.contains("object.metadata.name == 'other'"));
    }
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn metrics_are_protected_with_the_same_certificate() {
    let metrics = "manager.config.metrics={\"bindAddress\":\":8443\",\"secureServing\":true,\"auth\":{\"enabled\":true}}";
    let monitor = "serviceMonitor.enabled=true";
    let managed = "manager.config.certManagement.enable=true";
    let on = template(Helm::Three, &[metrics, monitor, managed]).unwrap();
    let endpoint = &on["monitoring.yaml"][0]["spec"]["endpoints"][0];
    assert_eq!(endpoint["scheme"], "https");
    assert_eq!(
        endpoint["tlsConfig"]["ca"]["secret"],
        json!({"name": "kubeflow-trainer-webhook-cert", "key": "ca.crt"})
    );
    assert!(endpoint["bearerTokenFile"].is_string());
    let rules = rules(&on, "rbac/certificates.yaml");
    assert_eq!(rules.len(), 4);
    let readers = rules
        .iter()
        .filter(|(_, rules)| rules[0]["nonResourceURLs"] == json!(["/metrics"]));
    assert_eq!(readers.count(), 1);
    let off = template(Helm::Three, &[monitor]).unwrap();
    assert!(!off.contains_key("rbac/certificates.yaml"));
    assert_eq!(
        off["monitoring.yaml"][0]["spec"]["endpoints"],
        json!([{"port": "monitoring-port", "honorLabels": true}])
    );
    for (values, why) in [
        (
            vec![metrics],
            "manager.config.metrics.secureServing: it requires a certificate",
        ),
        (
            vec!["manager.config.metrics.auth.enabled=true", managed],
            "manager.config.metrics.auth.enabled: tokens would be sent over plain HTTP",
        ),
        (
            vec![BY_HAND, managed],
            "manager.config.certManagement.enable: webhooks.certSecret is set, too",
        ),
    ] {
        let error = template(Helm::Four, &values).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn without_a_certificate_nothing_changes() {
    let off = template(Helm::Three, &[]).unwrap();
    assert!(!off.contains_key("webhooks.yaml"));
    for (file, documents) in &off {
        let text = json!(documents).to_string();
        assert!(!text.contains("webhook"), "{file}: {text}");
    }
    let on = template(Helm::Three, &[MANAGED]).unwrap();
    let differing = on
        .iter()
        .filter(|(file, documents)| off.get(*file) != Some(*documents));
    let differing: Vec<_> = differing.map(|(file, _)| file.as_str()).collect();
    assert_eq!(
        differing,
        ["deployment.yaml", "network-policy.yaml", "webhooks.yaml"]
    );
}
