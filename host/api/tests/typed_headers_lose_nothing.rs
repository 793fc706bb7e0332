//! Fields that Trainyard acts on are typed and get Kubernetes' defaults; everything else stays as written, in its order.

use serde_json::{Value, json};
use trainyard_api::{
    FieldPath, Inputs, JobSet, Object, Runtime, StringMap, TrainJob, list, names,
    nulls::drop_nulls,
    runtime::{KeyedPolicy, Member, RuntimeKind},
};

fn object(text: &str) -> Object {
    Inputs::read_text("f.yaml", text)
        .into_result()
        .unwrap()
        .objects
        .remove(0)
}

const RUNTIME: &str = "apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch, namespace: ignored, labels: {z: a, b: c}, finalizers: [f]}
spec:
  mlPolicy: {numNodes: 2, torch: {numProcPerNode: auto, unknown: [1]}}
  plugins: [{name: nccl, config: {level: 2}}, {name: plain}]
  template:
    metadata: {labels: {a: b}, annotations: null}
    spec:
      network: {enableDNSHostnames: true, newerField: {x: ~, z: 0755}}
      replicatedJobs:
      - name: node
        template:
          metadata: null
          spec:
            template:
              spec:
                initContainers: null
                containers:
                - {name: node, unheardOf: 1, resources: {requests: null, limits: null}}
";

#[test]
fn runtime_keeps_its_template() {
    let object = object(RUNTIME);
    let runtime = Runtime::read(&object).unwrap();
    assert_eq!(
        (runtime.kind, runtime.metadata.namespace.as_deref()),
        (RuntimeKind::Cluster, None)
    );
    assert_eq!(runtime.metadata.rest.get("finalizers"), Some(&json!(["f"])));
    let wanted = r#"{"network":{"enableDNSHostnames":true,"newerField":{"z":493}},"replicatedJobs":[{"name":"node","template":{"spec":{"template":{"spec":{"containers":[{"name":"node","unheardOf":1,"resources":{}}]}}}}}]}"#;
    assert_eq!(runtime.template.spec.to_string(), wanted);
    assert_eq!(
        runtime.template.labels.get("a").map(String::as_str),
        Some("b")
    );
    let policy = runtime.ml_policy.unwrap();
    assert_eq!(policy.num_nodes, Some(2));
    assert_eq!(
        policy.member,
        Some(Member::Key(KeyedPolicy {
            key: "torch".to_owned(),
            config: json!({"numProcPerNode": "auto", "unknown": [1]})
        }))
    );
    let plugins: Vec<_> = runtime
        .plugins
        .iter()
        .map(|plugin| (plugin.name.as_str(), plugin.config.clone()))
        .collect();
    assert_eq!(
        plugins,
        [("nccl", json!({"level": 2})), ("plain", json!({}))]
    );
    assert_eq!(
        runtime.plugins[0].config_path.to_string(),
        "spec.plugins[0].config"
    );
    let labels: Vec<_> = runtime.metadata.labels.keys().collect();
    assert_eq!(labels, ["z", "b"]);
}

#[test]
fn gang_policy_has_its_key_and_value() {
    let read = |policy: &str| {
        let text = format!(
            "apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: r}}
spec: {{podGroupPolicy: {policy}, template: {{spec: {{}}}}}}
"
        );
        Runtime::read(&object(&text)).unwrap().pod_group_policy
    };
    for (policy, key, config) in [
        ("{coscheduling: {}}", "coscheduling", json!({})),
        (
            "{volcano: {networkTopology: {mode: soft}, unknown: [1]}}",
            "volcano",
            json!({"networkTopology": {"mode": "soft"}, "unknown": [1]}),
        ),
        ("{coscheduling: null, volcano: {}}", "volcano", json!({})),
    ] {
        let key = key.to_owned();
        assert_eq!(
            read(policy),
            Some(Member::Key(KeyedPolicy { key, config })),
            "{policy}"
        );
    }
    for policy in ["{}", "null", "{coscheduling: null}"] {
        assert_eq!(read(policy), None, "{policy}");
    }
}

#[test]
fn plugins_annotation_is_equivalent_to_the_field() {
    let text = "apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata:
  name: r
  namespace: ml
  annotations: {trainyard.dev/plugins: '[{\"name\": \"a\", \"config\": {\"x\": 1}}]'}
spec: {mlPolicy: {torch: null, plugin: {name: own}}, template: {spec: {}}}
";
    let runtime = Runtime::read(&object(text)).unwrap();
    assert_eq!(
        (runtime.kind, runtime.metadata.namespace.as_deref()),
        (RuntimeKind::Namespaced, Some("ml"))
    );
    assert_eq!(runtime.plugins.len(), 1);
    assert_eq!(
        (runtime.plugins[0].name.as_str(), &runtime.plugins[0].config),
        ("a", &json!({"x": 1}))
    );
    assert_eq!(
        runtime.plugins[0].name_path.to_string(),
        "metadata.annotations[trainyard.dev/plugins][0].name"
    );
    assert_eq!(
        runtime.plugins[0].config_path.to_string(),
        "metadata.annotations[trainyard.dev/plugins][0].config"
    );
    match runtime.ml_policy.unwrap().member {
        Some(Member::Plugin(plugin)) => {
            assert_eq!((plugin.name.as_str(), plugin.config), ("own", json!({})));
            assert_eq!(
                plugin.config_path.to_string(),
                "spec.mlPolicy.plugin.config"
            );
        }
        other => panic!("{other:?}"),
    }
    let same = text.replace(
        "spec: {mlPolicy",
        "spec: {plugins: [{name: a, config: {x: 1}}], mlPolicy",
    );
    assert_eq!(
        Runtime::read(&object(&same)).unwrap().plugins[0]
            .config_path
            .to_string(),
        "spec.plugins[0].config"
    );
}

#[test]
fn train_job_gets_its_defaults() {
    let text = "apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert}
spec: {runtimeRef: {name: torch}, runtimePatches: [], labels: {}, podTemplateOverrides: null}
status: {conditions: []}
";
    let job = TrainJob::read(&object(text)).unwrap();
    assert_eq!(
        (job.runtime_ref.kind, job.runtime_ref.name.as_str()),
        (RuntimeKind::Cluster, "torch")
    );
    assert_eq!((job.suspend, job.active_deadline_seconds), (false, None));
    assert_eq!(job.managed_by, names::MANAGED_BY_TRAINER);
    assert_eq!(
        (job.trainer, job.initializer.dataset, job.initializer.model),
        (None, None, None)
    );
    assert_eq!(job.metadata.namespace, None);
}

#[test]
fn train_job_keeps_untyped_fragments() {
    let text = "apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert, namespace: ml, uid: u-1}
spec:
  runtimeRef: {name: torch, kind: TrainingRuntime, apiGroup: trainer.kubeflow.org}
  initializer:
    dataset: {storageUri: '', env: [{name: A, value: ''}]}
    model: {storageUri: hf://a/b, secretRef: {name: token}}
  trainer:
    image: ''
    command: []
    args: [-x, ~x]
    numNodes: 3.0
    numProcPerNode: 0b10
    resourcesPerNode: {limits: {nvidia.com/gpu: 8, cpu: 1e3}, claims: [{name: c}], later: 1}
    env: [{name: P, valueFrom: {fieldRef: {fieldPath: metadata.name, later: 1}}}, {name: Q}]
  suspend: on
  activeDeadlineSeconds: 60
  managedBy: kueue.x-k8s.io/multikueue
";
    let job = TrainJob::read(&object(text)).unwrap();
    let trainer = job.trainer.unwrap();
    assert_eq!(job.runtime_ref.kind, RuntimeKind::Namespaced);
    assert_eq!(trainer.image, None);
    assert_eq!(trainer.command, Some(vec![]));
    assert_eq!(trainer.args, Some(vec!["-x".to_owned(), "~x".to_owned()]));
    assert_eq!(
        (trainer.num_nodes, trainer.num_proc_per_node),
        (Some(3), Some(2))
    );
    let resources = json!({"limits": {"nvidia.com/gpu": 8, "cpu": 1000}, "claims": [{"name": "c"}], "later": 1});
    assert_eq!(trainer.resources_per_node, Some(resources));
    assert_eq!(
        trainer.env[0].value_from,
        Some(json!({"fieldRef": {"fieldPath": "metadata.name", "later": 1}}))
    );
    assert_eq!(
        (trainer.env[1].value.as_deref(), &trainer.env[1].value_from),
        (None, &None)
    );
    let (dataset, model) = (
        job.initializer.dataset.unwrap(),
        job.initializer.model.unwrap(),
    );
    assert_eq!(
        (dataset.storage_uri, dataset.env[0].value.as_deref()),
        (None, Some(""))
    );
    assert_eq!(
        (
            model.storage_uri.as_deref(),
            model.secret_ref.map(|secret| secret.name)
        ),
        (Some("hf://a/b"), Some("token".to_owned()))
    );
    assert_eq!((job.suspend, job.active_deadline_seconds), (true, Some(60)));
    assert_eq!(job.managed_by, names::MANAGED_BY_MULTIKUEUE);
    assert_eq!(job.metadata.uid.as_deref(), Some("u-1"));
    assert_eq!(job.spec["trainer"]["numNodes"], json!(3));
}

#[test]
fn nulls_count_as_absent_but_stay_in_lists() {
    let mut value = json!({"a": null, "b": {"c": null, "d": [null, {"e": null, "f": 1}]}, "g": []});
    drop_nulls(&mut value);
    assert_eq!(value, json!({"b": {"d": [null, {"f": 1}]}, "g": []}));
}

#[test]
fn key_order_is_fixed_in_job_sets_and_lists() {
    let strings = |pairs: &[(&str, &str)]| -> StringMap {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let set = JobSet {
        name: "bert".to_owned(),
        namespace: Some("ml".to_owned()),
        labels: strings(&[("z", "1"), ("a", "2")]),
        annotations: StringMap::new(),
        spec: json!({"suspend": false, "replicatedJobs": []}),
    };
    let value = set.into_value();
    let wanted = r#"{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"bert","namespace":"ml","labels":{"z":"1","a":"2"}},"spec":{"suspend":false,"replicatedJobs":[]}}"#;
    assert_eq!(value.to_string(), wanted);
    let items = list::list(vec![value.clone()]);
    assert_eq!(
        items.to_string(),
        format!(r#"{{"apiVersion":"v1","kind":"List","items":[{wanted}]}}"#)
    );
    assert_eq!(list::unpack(items), Ok(vec![value]));
    assert_eq!(list::unpack(Value::Null), Err(Value::Null));
}

#[test]
fn paths_are_spelled_as_in_kubernetes() {
    let path = FieldPath::root()
        .field("spec")
        .field("env")
        .index(2)
        .field("labels")
        .key("a.b/c");
    assert_eq!(path.to_string(), "spec.env[2].labels[a.b/c]");
    assert_eq!(FieldPath::root().to_string(), "");
}
