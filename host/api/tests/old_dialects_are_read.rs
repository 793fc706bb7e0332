//! Objects written for earlier releases are read. Each old form leads to a warning that shows the current one, or to an error.

use proptest::prelude::*;
use serde_json::{Value, json};
use trainyard_api::{
    FieldPath,
    dialect::{Conversion, convert},
    yaml,
};

fn modern(text: &str) -> (Value, Conversion) {
    let mut value = yaml::read(text).into_iter().next().unwrap().unwrap().value;
    let conversion = convert(&mut value);
    (value, conversion)
}

fn of_kind(kind: &str, spec: &str) -> (Value, Conversion) {
    modern(&format!(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {spec}"
    ))
}

fn job(spec: &str) -> (Value, Conversion) {
    of_kind("TrainJob", spec)
}

fn runtime(spec: &str) -> (Value, Conversion) {
    of_kind("ClusterTrainingRuntime", spec)
}

/// The paths of the warnings.
fn warned(conversion: &Conversion) -> Vec<String> {
    assert_eq!(conversion.errors, []);
    let warnings = conversion.warnings.iter();
    warnings.map(|warning| warning.path.to_string()).collect()
}

fn errors(conversion: &Conversion) -> Vec<String> {
    conversion.errors.iter().map(ToString::to_string).collect()
}

fn path(fields: &[&str]) -> FieldPath {
    let step = |path: FieldPath, field: &&str| match field.parse() {
        Ok(index) => path.index(index),
        Err(_) => path.field(*field),
    };
    fields.iter().fold(FieldPath::root(), step)
}

#[test]
fn old_versions_become_the_current_one() {
    for version in ["kubeflow.org/v2alpha1", "trainer.kubeflow.org/v2alpha1"] {
        for kind in ["TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"] {
            let text = format!("{{apiVersion: {version}, kind: {kind}, spec: {{}}}}");
            let (value, conversion) = modern(&text);
            assert_eq!(value["apiVersion"], "trainer.kubeflow.org/v1alpha1");
            assert_eq!(warned(&conversion), ["apiVersion"]);
        }
    }
    let foreign = "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {labels: {a: b}}}";
    let (value, conversion) = modern(foreign);
    assert_eq!(value["apiVersion"], "kubeflow.org/v1");
    assert_eq!(conversion, Conversion::default());
}

#[test]
fn old_runtime_group_is_converted() {
    let (value, conversion) = job("{runtimeRef: {name: torch, apiGroup: kubeflow.org}}");
    assert_eq!(
        value["spec"]["runtimeRef"]["apiGroup"],
        "trainer.kubeflow.org"
    );
    assert_eq!(warned(&conversion), ["spec.runtimeRef.apiGroup"]);
}

#[test]
fn processes_as_a_keyword_or_string_are_converted() {
    let (value, conversion) = job("{trainer: {numProcPerNode: auto, numNodes: 2}}");
    assert_eq!(value["spec"]["trainer"], json!({"numNodes": 2}));
    assert_eq!(warned(&conversion), ["spec.trainer.numProcPerNode"]);
    let (value, conversion) = job("{trainer: {numProcPerNode: \"8\"}}");
    assert_eq!(value["spec"]["trainer"]["numProcPerNode"], 8);
    assert_eq!(warned(&conversion).len(), 1);
    let (_, conversion) = job("{trainer: {numProcPerNode: gpu}}");
    let wanted = "spec.trainer.numProcPerNode: must be a number (set `cpu` and `gpu` in the runtime's mlPolicy.torch.numProcPerNode); found";
    assert!(errors(&conversion)[0].starts_with(wanted));
    let (value, conversion) = job("{trainer: {numProcPerNode: many}}");
    let kept = &value["spec"]["trainer"]["numProcPerNode"];
    assert_eq!(kept, "many", "the schema refuses it");
    assert_eq!(conversion, Conversion::default());
}

#[test]
fn pod_template_overrides_become_patches_in_order() {
    let (value, conversion) = job(r#"
  podTemplateOverrides:
  - targetJobs: [{name: node}, {name: launcher}]
    metadata: {labels: {team: nlp}}
    spec: {nodeSelector: {a: "1"}}
  - targetJobs: [{name: node}, {name: node}]
    spec: {nodeSelector: {a: "2"}, resourceClaims: [{name: c, resourceClaimTemplateName: t}]}
"#);
    assert_eq!(warned(&conversion), ["spec.podTemplateOverrides"]);
    let both =
        json!({"metadata": {"labels": {"team": "nlp"}}, "spec": {"nodeSelector": {"a": "1"}}});
    let claims = json!([{"name": "c", "resourceClaimTemplateName": "t"}]);
    let again = json!({"spec": {"nodeSelector": {"a": "2"}, "resourceClaims": claims}});
    let job =
        |name: &str, pods: &Value| json!({"name": name, "template": {"spec": {"template": pods}}});
    let entry = |manager: &str, jobs: Value| {
        let template = json!({"spec": {"replicatedJobs": jobs}});
        json!({"manager": manager, "trainingRuntimeSpec": {"template": template}})
    };
    let wanted = json!({"runtimePatches": [
        entry("trainer.kubeflow.org/pod-template-overrides", json!([job("node", &both), job("launcher", &both)])),
        entry("trainer.kubeflow.org/pod-template-overrides-2", json!([job("node", &again)])),
    ]});
    assert_eq!(value["spec"], wanted);
}

#[test]
fn pod_spec_overrides_become_pod_spec_fields() {
    let (value, conversion) = job(r#"
  podSpecOverrides:
  - targetJobs: [{name: node}]
    serviceAccountName: trainer
    containers: [{name: node, env: [{name: A, value: b}]}]
"#);
    assert_eq!(warned(&conversion), ["spec.podSpecOverrides"]);
    let template = "/spec/runtimePatches/0/trainingRuntimeSpec/template";
    let pod = value.pointer(&format!(
        "{template}/spec/replicatedJobs/0/template/spec/template/spec"
    ));
    let containers = json!([{"name": "node", "env": [{"name": "A", "value": "b"}]}]);
    let wanted = json!({"serviceAccountName": "trainer", "containers": containers});
    assert_eq!(pod, Some(&wanted));
}

#[test]
fn labels_and_annotations_move_to_the_job_set() {
    let (value, conversion) = job("{labels: {team: nlp}, annotations: {a: b}}");
    assert_eq!(warned(&conversion), ["spec.labels", "spec.annotations"]);
    let metadata = value.pointer("/spec/runtimePatches/0/trainingRuntimeSpec/template/metadata");
    let wanted = json!({"labels": {"team": "nlp"}, "annotations": {"a": "b"}});
    assert_eq!(metadata, Some(&wanted));
    assert_eq!(value["spec"].as_object().unwrap().len(), 1);
}

#[test]
fn earlier_conversions_are_replaced_and_other_entries_follow() {
    let (value, conversion) = job(r#"
  podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {a: new}}}]
  runtimePatches:
  - {manager: trainer.kubeflow.org/pod-template-overrides, trainingRuntimeSpec: {template: {metadata: {labels: {a: old}}}}}
  - manager: kueue.x-k8s.io/manager
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {nodeSelector: {a: kueue}}}}}}]}}}
  - {manager: trainer.kubeflow.org/pod-template-overrides-2, trainingRuntimeSpec: {}}
"#);
    assert_eq!(errors(&conversion), Vec::<String>::new());
    let patches = value["spec"]["runtimePatches"].as_array().unwrap();
    let managers: Vec<_> = patches.iter().map(|patch| &patch["manager"]).collect();
    let ours = "trainer.kubeflow.org/pod-template-overrides";
    assert_eq!(managers, [ours, "kueue.x-k8s.io/manager"]);
    let first = patches[0].to_string();
    assert!(first.contains("new") && !first.contains("old"), "{first}");
}

#[test]
fn contradicting_forms_are_both_named() {
    let (_, conversion) = job("{podSpecOverrides: [], podTemplateOverrides: []}");
    let wanted = "spec.podSpecOverrides: must not be set together with podTemplateOverrides; remove one of the two";
    assert_eq!(errors(&conversion), [wanted]);
    let (_, conversion) = job(r#"
  labels: {team: nlp, same: "1"}
  podTemplateOverrides: [{targetJobs: [{name: node}], spec: {tolerations: [{key: a}]}}]
  runtimePatches:
  - manager: me.example.com/x
    trainingRuntimeSpec:
      template:
        metadata: {labels: {team: vision, same: "1"}}
        spec: {replicatedJobs: [{name: other}, {name: node, template: {spec: {template: {spec: {tolerations: [{key: b}]}}}}}]}
"#);
    let there = "spec.runtimePatches[0].trainingRuntimeSpec.template";
    let pod = "spec.replicatedJobs[1].template.spec.template.spec";
    let wanted = [
        format!(
            "spec.labels[team]: differs from {there}.metadata.labels[team]; set only one of the two"
        ),
        format!(
            "spec.podTemplateOverrides[0].spec.tolerations: differs from {there}.{pod}.tolerations; set only one of the two"
        ),
    ];
    assert_eq!(errors(&conversion), wanted);
}

/// The errors for an old override together with another manager's patch of the same pods.
fn mix(old: &str, patch: &str) -> Vec<String> {
    let (_, conversion) = job(&format!(
        "
  podTemplateOverrides: [{{targetJobs: [{{name: node}}], spec: {old}}}]
  runtimePatches:
  - manager: me.example.com/x
    trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{{name: node, template: {{spec: {{template: {{spec: {patch}}}}}}}}}]}}}}}}
"
    ));
    errors(&conversion)
}

#[test]
fn mixed_forms_are_compared_as_merged() {
    let mounts = |text: &str| format!("{{containers: [{{name: node, volumeMounts: [{text}]}}]}}");
    let data = mounts("{name: data, mountPath: /data}");
    let elsewhere = mounts("{name: data, mountPath: /scratch}");
    assert_eq!(mix(&data, &elsewhere), [""; 0], "mounts are keyed by path");
    let other = mounts("{name: other, mountPath: /data}");
    let old = "spec.podTemplateOverrides[0].spec";
    let found = mix(&data, &other);
    let wanted = format!("{old}.containers[0].volumeMounts[0].name: differs from ");
    assert!(
        found.len() == 1 && found[0].starts_with(&wanted),
        "{found:?}"
    );
    for (field, one, two) in [
        (
            "volumes",
            "emptyDir: {}",
            "persistentVolumeClaim: {claimName: c}",
        ),
        (
            "resourceClaims",
            "resourceClaimName: c",
            "resourceClaimTemplateName: t",
        ),
    ] {
        let with = |source: &str| format!("{{{field}: [{{name: a, {source}}}]}}");
        let found = mix(&with(one), &with(two));
        let wanted = format!("{old}.{field}[0]: differs from ");
        assert!(
            found.len() == 1 && found[0].starts_with(&wanted),
            "{found:?}"
        );
        assert_eq!(mix(&with(one), &with(one)), [""; 0]);
    }
}

#[test]
fn fields_lost_in_a_merge_are_differences() {
    let old = "spec.podTemplateOverrides[0].spec";
    let ports = |text: &str| format!("{{containers: [{{name: node, ports: [{text}]}}]}}");
    let one = ports("{containerPort: 80, name: a}");
    let found = mix(
        &one,
        &ports("{containerPort: 81, name: c}, {containerPort: 80, name: b}"),
    );
    let wanted = format!("{old}.containers[0].ports[0].name: differs from ");
    assert!(
        found.len() == 1 && found[0].starts_with(&wanted) && found[0].contains("ports[1].name"),
        "ports are keyed by number: {found:?}"
    );
    let other = ports("{containerPort: 81, name: a}");
    assert_eq!(mix(&one, &other), [""; 0]);
    let aliases =
        |ip: &str, host: &str| format!("{{hostAliases: [{{ip: {ip}, hostnames: [{host}]}}]}}");
    let store = aliases("10.0.0.1", "store");
    let both = mix(&store, &aliases("10.0.0.2", "cache"));
    assert_eq!(both, [""; 0], "host aliases are keyed by address");
    let found = mix(&store, &aliases("10.0.0.1", "cache"));
    assert!(
        found.len() == 1 && found[0].contains("hostAliases[0].hostnames"),
        "{found:?}"
    );
}

#[test]
fn later_errors_name_the_original_field() {
    let (_, conversion) = job(r#"
  labels: {a: b}
  podSpecOverrides: [{targetJobs: [{name: node}], nodeSelector: 5}]
  runtimePatches: [{manager: me.example.com/x}]
"#);
    let template = [
        "spec",
        "runtimePatches",
        "0",
        "trainingRuntimeSpec",
        "template",
    ];
    let pods = [
        "spec",
        "replicatedJobs",
        "0",
        "template",
        "spec",
        "template",
    ];
    for (now, before) in [
        (
            [&template[..], &["metadata", "labels", "a"]].concat(),
            "spec.labels.a",
        ),
        (
            [&template[..], &pods, &["spec", "nodeSelector"]].concat(),
            "spec.podSpecOverrides[0].nodeSelector",
        ),
        (
            [&template[..], &pods[..3], &["name"]].concat(),
            "spec.podSpecOverrides[0].targetJobs[0].name",
        ),
        (
            vec!["spec", "runtimePatches", "1", "manager"],
            "spec.runtimePatches[0].manager",
        ),
        (vec!["spec", "trainer"], "spec.trainer"),
    ] {
        assert_eq!(conversion.written(&path(&now)).to_string(), before);
    }
}

#[test]
fn invalid_overrides_are_refused_with_their_paths() {
    let (value, conversion) = job(r#"
  podTemplateOverrides:
  - {spec: {}}
  - {targetJobs: node}
  - {targetJobs: [{}]}
  - 5
"#);
    let wanted = [
        "spec.podTemplateOverrides[0].targetJobs: is required",
        "spec.podTemplateOverrides[1].targetJobs: must be a list; found the string \"node\"",
        "spec.podTemplateOverrides[2].targetJobs[0].name: is required",
        "spec.podTemplateOverrides[3]: must be an object; found the integer 5",
    ];
    assert_eq!(errors(&conversion), wanted);
    let patches = value["spec"].get("runtimePatches");
    assert_eq!(patches, None, "no part was converted");
}

#[test]
fn fields_of_torch_that_its_plugin_reads_are_kept() {
    let (value, conversion) =
        runtime("{mlPolicy: {torch: {numProcPerNode: auto, elasticPolicy: {maxNodes: 4}}}}");
    let torch = &value["spec"]["mlPolicy"]["torch"];
    let kept = json!({"numProcPerNode": "auto", "elasticPolicy": {"maxNodes": 4}});
    assert_eq!(torch, &kept);
    assert_eq!(warned(&conversion), [""; 0]);
}

#[test]
fn ancestor_label_on_pods_is_reported() {
    let (_, conversion) = runtime(
        r#"
  mlPolicy: {}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: null
          spec: {template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
"#,
    );
    let job = "spec.template.spec.replicatedJobs[0].template.spec.template.metadata";
    let wanted = format!("{job}.labels[trainer.kubeflow.org/trainjob-ancestor-step]");
    assert_eq!(warned(&conversion), [wanted]);
}

const KEYS: &[&str] = &[
    "annotations",
    "labels",
    "manager",
    "metadata",
    "name",
    "numProcPerNode",
    "podSpecOverrides",
    "podTemplateOverrides",
    "replicatedJobs",
    "runtimePatches",
    "spec",
    "targetJobs",
    "template",
    "trainer",
    "trainingRuntimeSpec",
];

/// Arbitrary specs of a TrainJob, including old forms.
fn any_spec() -> impl Strategy<Value = Value> {
    let leaves = [
        json!(null),
        json!("auto"),
        json!("node"),
        json!(5),
        json!([{"name": "node"}]),
    ];
    let leaf = prop::sample::select(leaves.to_vec());
    leaf.prop_recursive(5, 48, 4, |inner| {
        let member = (
            prop::sample::select(KEYS).prop_map(str::to_owned),
            inner.clone(),
        );
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::Array),
            prop::collection::vec(member, 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    /// No input crashes the conversion, and converting twice changes nothing more.
    #[test]
    fn conversion_is_idempotent(spec in any_spec()) {
        let api_version = "trainer.kubeflow.org/v1alpha1";
        let mut value = json!({"apiVersion": api_version, "kind": "TrainJob", "spec": spec});
        let first = convert(&mut value);
        prop_assume!(first.errors.is_empty());
        let once = value.clone();
        let second = convert(&mut value);
        prop_assert_eq!(&value, &once);
        prop_assert_eq!(second.warnings, vec![]);
    }
}
