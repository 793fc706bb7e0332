//! The chart refuses wrong and contradicting values with the value and what to write instead.

use trainyard_cluster::Helm;

use crate::common::{
    chart::{IMAGE, refusal},
    stderr,
};

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

const CLUSTER: &str = "plugins.source=\"Cluster\"";

/// Values, and texts of the errors with which helm refuses them.
const WRONG: &[(&[&str], &[&str])] = &[
    (
        &["jobset.install=true"],
        &["jobset.install: only the package of a release contains JobSet's chart"],
    ),
    (
        &["jobset.install=\"yes\""],
        &["at '/jobset/install': got string, want boolean"],
    ),
    (
        &["manager.replica=3"],
        &["at '/manager': additional properties 'replica' not allowed"],
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
        &["image.repository=\"registry.example.com:5000/trainyard:1.0\""],
        &[
            "image.repository: registry.example.com:5000/trainyard:1.0 has a tag; set image.tag to 1.0",
        ],
    ),
    (
        &["image.repository=\"https://registry.example.com/trainyard\""],
        &["image.repository: https://registry.example.com/trainyard is a URL"],
    ),
    (
        &["manager.resources.limits.memory=\"lots\""],
        &["at '/manager/resources/limits/memory'"],
    ),
    (
        &["plugins.policy=\"policy.yaml\""],
        &["plugins.policy: is no policy file"],
    ),
    (
        &["image.tag=\"v2.3.0\""],
        &["image.tag: v2.3.0 is a version of the Kubeflow Trainer"],
    ),
    (
        &[
            "image.registry=\"ghcr.io\"",
            "image.repository=\"registry.example.com/trainyard\"",
        ],
        &["image.registry: ghcr.io would stand before registry.example.com/trainyard"],
    ),
    (
        &[
            "shadow.enabled=true",
            "manager.config.metrics.secureServing=true",
        ],
        &[
            "manager.config.metrics.secureServing: it requires a certificate; the shadow mode has none",
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
    (
        &["plugins.source=\"cluster\""],
        &["at '/plugins/source': value must be one of 'Cluster', 'File'"],
    ),
    (
        &[CLUSTER, "plugins.policy=\"kind: PolicyPlugin\""],
        &[
            "plugins.policy: it has no effect with plugins.source Cluster; put its PolicyPlugins into plugins.declared",
        ],
    ),
    (
        &[CLUSTER, "manager.config.policyFile=\"/policy.yaml\""],
        &["manager.config.policyFile: it has no effect with plugins.source Cluster"],
    ),
    (
        &[
            "plugins.source=\"File\"",
            "plugins.unsigned=[\"registry.example.com/a\"]",
        ],
        &[
            "plugins.unsigned: it has no effect with plugins.source File; set plugins.source to Cluster",
        ],
    ),
    (
        &[
            "plugins.source=\"File\"",
            "plugins.declared=[{\"name\":\"jax\"}]",
        ],
        &["plugins.declared: it has no effect with plugins.source File"],
    ),
    (
        &["manager.config.plugins={\"unsigned\":[\"registry.example.com/a\"]}"],
        &["manager.config.plugins.unsigned: set plugins.unsigned instead"],
    ),
    (
        &[
            CLUSTER,
            "plugins.declared=[{\"name\":\"jax\"},{\"name\":\"jax\"}]",
        ],
        &["plugins.declared: jax is there twice"],
    ),
    (
        &[
            CLUSTER,
            "plugins.declared=[{\"name\":\"a\",\"spec\":{\"source\":{\"oci\":{\"reference\":\"registry.example.com/a:1\"}}}}]",
        ],
        &[
            "plugins.declared: a comes from a registry, but nobody may sign plugins; set plugins.signers",
        ],
    ),
    (
        &[
            CLUSTER,
            "plugins.declared=[{\"name\":\"a\",\"spec\":{\"source\":{\"file\":{\"name\":\"a.wasm\"}}}}]",
        ],
        &[
            "plugins.declared: a is a file, but there is no directory of plugins; set plugins.volume",
        ],
    ),
    (
        &[
            CLUSTER,
            "plugins.declared=[{\"name\":\"a\",\"spec\":{\"grant\":[]}}]",
        ],
        &["additional properties 'grant' not allowed"],
    ),
    (
        &[
            CLUSTER,
            "plugins.registries={\"configs\":{\"a\":{\"tls\":{\"ca_file\":\"/registry-ca/a.pem\"}}}}",
        ],
        &[
            "plugins.registries: a has the certificate authority /registry-ca/a.pem; set plugins.registryAuthorities",
        ],
    ),
    (
        &[
            CLUSTER,
            "plugins.roles=\"kind: ClusterRole\\nmetadata: {name: kubeflow-trainer-controller-manager}\"",
        ],
        &[
            "plugins.roles: a document is not the ClusterRole of a plugin; set the output of `trainyard rbac -f`",
        ],
    ),
    (
        &[
            "plugins.source=\"File\"",
            "plugins.roles=\"kind: ClusterRole\\nmetadata: {name: \\\"trainyard:plugin:a\\\"}\"",
        ],
        &["plugins.roles: trainyard:plugin:a is aggregated only with plugins.source Cluster"],
    ),
    (
        &["plugins.source=\"File\"", "plugins.roles=\"no: [roles\""],
        &["plugins.roles: a document is neither a ClusterRole nor a Role"],
    ),
    (
        &["webhooks.certSecret=\"cert\""],
        &[
            "webhooks.certSecret: API servers need the authority of the certificate in cert; set webhooks.caBundle",
            "or webhooks.injectCaFrom to the NAMESPACE/NAME",
        ],
    ),
    (
        &[
            "webhooks.certSecret=\"cert\"",
            "webhooks.injectCaFrom=\"ns/cert\"",
            "webhooks.caBundle=\"-----BEGIN CERTIFICATE-----\"",
        ],
        &["webhooks.injectCaFrom: ns/cert would replace webhooks.caBundle"],
    ),
    (
        &["webhooks.injectCaFrom=\"ns/cert\""],
        &["webhooks.injectCaFrom: it has no effect without a certificate; set webhooks.certSecret"],
    ),
    (
        &["webhooks.caBundle=\"-----BEGIN CERTIFICATE-----\""],
        &["webhooks.caBundle: it has no effect without a certificate; set webhooks.certSecret"],
    ),
    // The template encodes it.
    (
        &["webhooks.caBundle=\"LS0tLS1CRUdJTg==\""],
        &["at '/webhooks/caBundle'", "does not match pattern"],
    ),
    (
        &["webhooks.injectCaFrom=\"cert\""],
        &["at '/webhooks/injectCaFrom'", "does not match pattern"],
    ),
    (
        &["webhook.failurePolicy=\"ignore\""],
        &["at '/webhook/failurePolicy'"],
    ),
    (
        &[
            "webhooks.certSecret=\"cert\"",
            "webhooks.injectCaFrom=\"ns/cert\"",
            "manager.config.webhook.port=8081",
        ],
        &["manager.config.webhook.port: 8081 is also the port of the probes or of metrics"],
    ),
    (
        &["manager.config.webhook.certDir=\"/certs\""],
        &["manager.config.webhook.certDir: the chart mounts the certificate"],
    ),
    // All errors at once.
    (
        &[
            "image.repository=\"\"",
            "manager.config.leaderElection.leaderElect=false",
        ],
        &["image.repository: ", "manager.replicas: "],
    ),
];

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn wrong_values_are_refused() {
    for (values, errors) in WRONG {
        for helm in Helm::ALL {
            let error = refusal(helm, values);
            for expected in *errors {
                assert!(error.contains(expected), "{helm:?} {values:?}: {error}");
            }
        }
    }
}
