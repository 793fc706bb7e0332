//! An API server accepts every field of the chart with its default values and with others, and stores each of them as it is. The pods satisfy
//! the Pod Security level `restricted`.

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use trainyard_api::{Inputs, Object};
use trainyard_cluster::{
    ControlPlane, Helm, Install, Test, apply, install, prometheus_operator_crd,
};

const NAMESPACE: &str = "kubeflow-system";
/// The values without a default.
const IMAGE: &str = "image.repository=example.com/trainyard";

/// Values that change which objects there are, or which fields they have.
const VARIANTS: &[(&str, &[&str])] = &[
    ("default", &[]),
    (
        "one replica",
        &[
            "manager.replicas=1",
            "manager.config.leaderElection.leaderElect=false",
            "networkPolicy.enabled=false",
        ],
    ),
    (
        "monitoring",
        &[
            "serviceMonitor={\"enabled\":true,\"labels\":{\"release\":\"prometheus\"},\"interval\":\"30s\"}",
            "prometheusRule={\"enabled\":true,\"labels\":{\"release\":\"prometheus\"}}",
            "grafanaDashboard.enabled=true",
            "networkPolicy.metricsFrom=[{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":\"monitoring\"}}}]",
        ],
    ),
    ("no metrics", &["manager.config.metrics.bindAddress=\"0\""]),
    (
        "webhooks with cert-manager",
        &[
            "webhooks={\"certSecret\":\"cert\",\"injectCaFrom\":\"kubeflow-system/cert\"}",
            "webhook.failurePolicy=\"Ignore\"",
        ],
    ),
    (
        "webhooks with a certificate of the controller, and protected metrics",
        &[
            "manager.config.certManagement.enable=true",
            "manager.config.metrics={\"bindAddress\":\":8443\",\"secureServing\":true,\"auth\":{\"enabled\":true}}",
            "manager.config.tls={\"minVersion\":\"VersionTLS13\",\"nextProtos\":[\"http/1.1\"]}",
            "serviceMonitor.enabled=true",
        ],
    ),
    (
        "webhooks without metrics",
        &[
            "webhooks={\"certSecret\":\"cert\",\"caBundle\":\"-----BEGIN CERTIFICATE-----\\nMA==\\n-----END CERTIFICATE-----\\n\"}",
            "manager.config.metrics.bindAddress=\"0\"",
            "manager.config.webhook.port=10250",
        ],
    ),
    (
        "plugins",
        &[
            "plugins.volume={\"image\":{\"reference\":\"example.com/plugins:1\"}}",
            "plugins.source=\"File\"",
            "plugins.policy=\"apiVersion: trainyard.dev/v1alpha1\\nkind: PolicyFile\\n\"",
            "runtimes.install=\"all\"",
        ],
    ),
    (
        "plugins of a claim",
        &[
            "plugins.volume={\"persistentVolumeClaim\":{\"claimName\":\"plugins\",\"readOnly\":true}}",
            "runtimes.defaultEnabled=true",
        ],
    ),
    ("no plugins in the cluster", &["plugins.source=\"File\""]),
    (
        "plugins of registries",
        &[
            "plugins.source=\"Cluster\"",
            "plugins.declared=[{\"name\":\"tracer\",\"spec\":{\"source\":{\"oci\":{\"reference\":\"registry.example.com/acme/tracer:1@sha256:0000000000000000000000000000000000000000000000000000000000000000\"}}}}]",
            "plugins.signers=[{\"name\":\"acme\",\"publicKey\":\"-----BEGIN PUBLIC KEY-----\\nMA==\\n-----END PUBLIC KEY-----\\n\",\"plugins\":[\"tracer\"],\"repositories\":[\"registry.example.com/acme/*\"]}]",
            "plugins.unsigned=[\"registry.example.com/experiments/*\"]",
            "plugins.rollout={\"steps\":[5,25],\"interval\":\"10m\"}",
            "plugins.store={\"persistentVolumeClaim\":{\"claimName\":\"plugins\"}}",
            "plugins.registryConfig=\"pull\"",
            "plugins.registries={\"configs\":{\"registry.example.com\":{\"tls\":{\"ca_file\":\"/registry-ca/ca.pem\"}}}}",
            "plugins.registryAuthorities={\"secret\":{\"secretName\":\"authorities\"}}",
            "plugins.roles=\"kind: ClusterRole\\nmetadata: {name: \\\"trainyard:plugin:tracer\\\"}\\nrules: [{apiGroups: [\\\"\\\"], resources: [nodes], verbs: [get]}]\\n\"",
        ],
    ),
    (
        "plugin files of a volume, declared in the cluster",
        &[
            "plugins.source=\"Cluster\"",
            "plugins.volume={\"image\":{\"reference\":\"example.com/plugins:1\"}}",
            "plugins.declared=[{\"name\":\"tracer\",\"spec\":{\"source\":{\"file\":{\"name\":\"tracer.wasm\"}}}}]",
        ],
    ),
    (
        "progress",
        &[
            "manager.config.featureGates={\"TrainJobStatus\":true}",
            "manager.config.certManagement.enable=true",
            "manager.config.statusServer.port=10443",
        ],
    ),
    (
        "shadow mode with plugins",
        &[
            "shadow.enabled=true",
            "plugins.volume={\"emptyDir\":{}}",
            "plugins.roles=\"kind: ClusterRole\\nrules: [{apiGroups: [\\\"\\\"], resources: [nodes], verbs: [get, list, watch]}]\\n\"",
        ],
    ),
    (
        "shadow mode",
        &["shadow.enabled=true", "serviceMonitor.enabled=true"],
    ),
    (
        "pods",
        &[
            "image={\"digest\":\"sha256:0000000000000000000000000000000000000000000000000000000000000000\",\"pullSecrets\":[{\"name\":\"pull\"}]}",
            "commonLabels={\"team\":\"ml\"}",
            "manager.selectorLabels={\"tier\":\"one\"}",
            "manager.labels={\"team\":\"ml\"}",
            "manager.podAnnotations={\"example.com/a\":\"b\"}",
            "manager.priorityClassName=\"system-cluster-critical\"",
            "manager.nodeSelector={\"kubernetes.io/os\":\"linux\"}",
            "manager.affinity={\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1,\"preference\":{\"matchExpressions\":[{\"key\":\"pool\",\"operator\":\"In\",\"values\":[\"system\"]}]}}]}}",
            "manager.tolerations=[{\"key\":\"system\",\"operator\":\"Exists\"}]",
            "manager.env=[{\"name\":\"TRAINYARD_LOG\",\"value\":\"info\"}]",
            "manager.envFrom=[{\"configMapRef\":{\"name\":\"more\",\"optional\":true}}]",
            "manager.volumes=[{\"name\":\"more\",\"emptyDir\":{}}]",
            "manager.volumeMounts=[{\"name\":\"more\",\"mountPath\":\"/more\"}]",
            "manager.config.leaderElection={\"resourceNamespace\":\"default\",\"resourceName\":\"ours\"}",
            "runtimes={\"install\":[\"torch-distributed\"],\"installer\":{\"resources\":{\"limits\":{\"memory\":\"1Gi\"}},\"nodeSelector\":{\"kubernetes.io/os\":\"linux\"},\"tolerations\":[{\"operator\":\"Exists\"}]}}",
        ],
    ),
];

/// Returns the objects of the chart with these values.
fn rendered(helm: Helm, values: &[&str]) -> Result<Vec<Object>> {
    let json = values.iter().flat_map(|value| ["--set-json", value]);
    let arguments: Vec<_> = ["--set", IMAGE].into_iter().chain(json).collect();
    let mut objects = Vec::new();
    for (template, documents) in helm.template(&arguments)? {
        let inputs = Inputs::read_text(&template, &documents.join("---\n"));
        objects.extend(inputs.into_result()?.objects);
    }
    Ok(objects)
}

/// Returns the pod of a Deployment or a Job.
fn pod(object: &Object) -> Value {
    let template = &object.value["spec"]["template"];
    let mut metadata = template["metadata"].clone();
    metadata["name"] = json!(format!("{}-pod", object.metadata.name));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}

/// Returns the paths of values that the API server stores differently. Tools that compare a release with a cluster would report them each time.
fn differing(ours: &Value, stored: &Value, path: String) -> Vec<String> {
    match (ours, stored) {
        (Value::Object(ours), Value::Object(stored)) => {
            let members = ours
                .iter()
                .map(|(key, value)| (key, value, stored.get(key).unwrap_or(&Value::Null)));
            members
                .flat_map(|(key, ours, stored)| differing(ours, stored, format!("{path}/{key}")))
                .collect()
        }
        (Value::Array(ours), Value::Array(stored)) if ours.len() == stored.len() => {
            let items = ours.iter().zip(stored).enumerate();
            items
                .flat_map(|(at, (ours, stored))| differing(ours, stored, format!("{path}/{at}")))
                .collect()
        }
        _ if ours == stored => Vec::new(),
        _ => vec![format!("{path}: {ours} is stored as {stored}")],
    }
}

async fn every_variant_is_accepted(plane: &ControlPlane) -> Result<()> {
    let namespaces: Api<DynamicObject> = Api::all_with(
        plane.client().clone(),
        &ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&()),
    );
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    });
    // Another test may have created it.
    let params = PatchParams::apply("test").force();
    let patch = Patch::Apply(&namespace);
    namespaces.patch(NAMESPACE, &params, &patch).await?;
    for plural in ["servicemonitors", "prometheusrules"] {
        install(
            plane,
            &prometheus_operator_crd(plural)?,
            Install::ServerSide,
        )
        .await?;
    }
    let pods: Api<DynamicObject> = Api::namespaced_with(
        plane.client().clone(),
        NAMESPACE,
        &ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&()),
    );
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    for (name, values) in VARIANTS {
        let objects = rendered(Helm::Three, values).with_context(|| (*name).to_owned())?;
        let four = rendered(Helm::Four, values)?;
        let of = |objects: &[Object]| {
            objects
                .iter()
                .map(|object| object.value.clone())
                .collect::<Vec<_>>()
        };
        ensure!(
            of(&objects) == of(&four),
            "{name}: the versions of helm differ"
        );
        let mut checked = 0;
        for object in &objects {
            // Pods need these two.
            let is_needed = ["ServiceAccount", "PriorityClass"].contains(&object.kind.as_str());
            let applied = apply(plane, object, !is_needed).await;
            let applied = applied.with_context(|| format!("{name}: {}", object.location()))?;
            let differs = differing(&object.value, &applied, String::new());
            ensure!(
                differs.is_empty(),
                "{name}: {}: {differs:?}",
                object.location()
            );
        }
        for object in &objects {
            if ["Deployment", "Job"].contains(&object.kind.as_str()) {
                let pod = serde_json::from_value(pod(object))?;
                let created = pods.create(&dry_run, &pod).await;
                created.with_context(|| format!("{name}: the pod of {}", object.kind))?;
                checked += 1;
            }
        }
        let has = |start| values.iter().any(|value| value.starts_with(start));
        let jobs = usize::from(has("runtimes")) + usize::from(has("plugins.declared"));
        ensure!(checked == 1 + jobs, "{name}: {checked} pods");
    }
    // Pod Security is checked at all.
    let mut unrestricted = pod(rendered(Helm::Three, &[])?
        .iter()
        .find(|object| object.kind == "Deployment")
        .context("no Deployment")?);
    unrestricted["spec"]["containers"][0]["securityContext"] = json!({});
    let refused = pods
        .create(&dry_run, &serde_json::from_value(unrestricted)?)
        .await;
    let error = refused
        .err()
        .context("a pod with the default privileges was accepted")?;
    ensure!(error.to_string().contains("PodSecurity"), "{error}");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    tests![every_variant_is_accepted]
}
