//! Each field that a runtime patch sets is explained by the patch's manager and path; fields of the template are not. Plugins are selected
//! by the patched template, and see it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trainyard_model::{
    call::Call,
    contract::VERSION,
    manifest::Manifest,
    plugin::{Phase, Plugin},
    plugin_info::{PluginInfo, Settings},
};
use trainyard_render::{ClusterFacts, Provenance, Rendered, Renderer, Setter};

use crate::common::{self, FunctionPlugin, catalog, render_job};

const POD: &str = "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template";

/// A TrainJob with two patches. The second one has this pod template.
fn rendered(plugins: Vec<Arc<dyn Plugin>>, pod: &Value) -> Rendered {
    let text = format!(
        r#"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: runtime}}
spec:
  template:
    metadata: {{labels: {{team: ml}}}}
    spec:
      replicatedJobs:
      - name: first
        template: {{spec: {{template: {{spec: {{containers: [{{name: first, image: i}}]}}}}}}}}
      - name: node
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
          spec:
            template:
              spec:
                nodeSelector: {{zone: a}}
                tolerations: [{{key: spot}}]
                dnsConfig: {{searches: [old.example]}}
                schedulingGates: [{{name: kept.example.com/gate}}]
                containers: [{{name: node, image: i, env: [{{name: A, value: runtime}}, {{name: KEPT, value: runtime}}]}}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: job}}
spec:
  runtimeRef: {{name: runtime}}
  runtimePatches:
  - manager: example.com/labels
    trainingRuntimeSpec: {{template: {{metadata: {{labels: {{team: ml, cost: low}}}}}}}}
  - manager: example.com/pods
    trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{{name: node, template: {{spec: {{template: {pod}}}}}}}]}}}}}}
"#
    );
    let catalog = catalog(&text);
    let renderer = Renderer::new(plugins, ClusterFacts::default()).unwrap();
    render_job(&renderer, &catalog.jobs[0])
        .unwrap_or_else(|stopped| panic!("{:?}", stopped.lines()))
}

#[test]
fn every_patched_field_names_its_manager_and_path() {
    let pod = json!({
        "metadata": {"annotations": {"note": "x"}},
        "spec": {
            "schedulingGates": [{"name": "new.example.com/gate"}],
            "tolerations": [{"key": "gpu"}],
            "securityContext": {"fsGroup": 7},
            "dnsConfig": {"searches": ["old.example", "new.example"]},
            "nodeSelector": {"zone": "a", "pool": "gpu"},
            "containers": [{"name": "node", "env": [{"name": "B", "value": "b"}, {"name": "A", "value": "patched"}]}],
        },
    });
    let rendered = rendered(Vec::new(), &pod);
    let provenance = rendered.provenance();
    let reported: Vec<_> = provenance
        .iter()
        .filter_map(|provenance| {
            let [step] = &*provenance.steps else {
                panic!("{provenance:?}")
            };
            let Setter::Patch { manager, field } = &step.by else {
                return None;
            };
            let place = provenance.job_set_path.clone().unwrap();
            Some((
                provenance.path.as_str(),
                place.replace("spec.replicatedJobs[1].template.spec.template", "POD"),
                manager.as_str(),
                field.replace(POD, "PATCH"),
                step.from.clone().unwrap_or_default(),
            ))
        })
        .collect();
    let pods = "example.com/pods";
    let named = "spec.replicatedJobs[node].template.spec.template.spec";
    let path = |field: &str| format!("{named}.{field}");
    let tolerations = path("tolerations");
    let expected = [
        (
            "labels[cost]",
            "metadata.labels[cost]",
            "example.com/labels",
            "spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.labels[cost]",
            Value::Null,
        ),
        (
            "pod-sets[node].containers[node].env[A]",
            "POD.spec.containers[0].env[0]",
            pods,
            "PATCH.spec.containers[0].env[1]",
            json!("runtime"),
        ),
        (
            "pod-sets[node].containers[node].env[B]",
            "POD.spec.containers[0].env[2]",
            pods,
            "PATCH.spec.containers[0].env[0]",
            Value::Null,
        ),
        (
            "pod-sets[node].dns-searches[new.example]",
            "POD.spec.dnsConfig.searches[1]",
            pods,
            "PATCH.spec.dnsConfig.searches[1]",
            Value::Null,
        ),
        (
            "pod-sets[node].fs-group",
            "POD.spec.securityContext.fsGroup",
            pods,
            "PATCH.spec.securityContext.fsGroup",
            Value::Null,
        ),
        (
            "pod-sets[node].node-selector[pool]",
            "POD.spec.nodeSelector[pool]",
            pods,
            "PATCH.spec.nodeSelector[pool]",
            Value::Null,
        ),
        (
            "pod-sets[node].pod-annotations[note]",
            "POD.metadata.annotations[note]",
            pods,
            "PATCH.metadata.annotations[note]",
            Value::Null,
        ),
        (
            "pod-sets[node].scheduling-gates[new.example.com/gate]",
            "POD.spec.schedulingGates[1]",
            pods,
            "PATCH.spec.schedulingGates[0]",
            Value::Null,
        ),
        (
            &tolerations,
            "POD.spec.tolerations",
            pods,
            "PATCH.spec.tolerations",
            json!([{"key": "spot"}]),
        ),
    ]
    .map(|(path, place, manager, field, from)| {
        (path, place.to_owned(), manager, field.to_owned(), from)
    });
    assert_eq!(reported, expected);
    for field in [
        "spec.replicatedJobs[node].template.spec.template.spec.containers[node].env[B]",
        "spec.replicatedJobs[1].template.spec.template.spec.containers[0].env[2]",
        "pod-sets[node].containers[node]",
    ] {
        let found = rendered.explain(&field.parse().unwrap()).unwrap();
        let patched = |row: &&Provenance| matches!(&row.steps[0].by, Setter::Patch { .. });
        assert_eq!(found.iter().filter(patched).count(), found.len(), "{field}");
    }
}

#[test]
fn resource_claims_of_a_patch_activate_plugins_that_see_the_patched_template() {
    let manifest = json!({
        "name": "devices", "version": "1.0.0", "contract": VERSION, "activeWhen": "resourceClaims", "phases": ["transform"],
        "claims": {"reads": ["pod-sets[*].containers[*].env[*]"]},
    });
    let plugin = |manifest: &Value| {
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        Arc::new(PluginInfo::new(manifest, "native", Settings::built_in()).unwrap())
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let plugin = || -> Vec<Arc<dyn Plugin>> {
        let seen = seen.clone();
        let record_env = move |_: Phase, call: &mut Call| {
            let container = common::container(call, "node")?;
            let env = call.container_env(container, "A")?;
            seen.lock().unwrap().push(format!("{env:?}"));
            Ok(())
        };
        vec![Arc::new(FunctionPlugin::new(plugin(&manifest), record_env))]
    };
    let env = json!([{"name": "node", "env": [{"name": "A", "value": "patched"}]}]);
    rendered(plugin(), &json!({"spec": {"containers": env}}));
    assert_eq!(*seen.lock().unwrap(), [] as [String; 0]);
    let claims = json!([{"name": "gpu", "resourceClaimTemplateName": "four"}]);
    let with_claims = json!({"spec": {"containers": env, "resourceClaims": claims}});
    let rendered = rendered(plugin(), &with_claims);
    assert_eq!(rendered.plan.len(), 1);
    let seen = seen.lock().unwrap();
    assert!(seen.len() == 1 && seen[0].contains("patched"), "{seen:?}");
    let pods = rendered
        .job_set
        .pointer("/spec/replicatedJobs/1/template/spec/template/spec");
    assert_eq!(pods.unwrap()["resourceClaims"], claims);
}
