//! Several plugins of one test run in the order of their claims and declarations, each with its own settings, and conflicts are errors of the
//! host: for a TrainJob that the test builds, and for one in YAML.

use serde_json::{Value, json};
use trainyard_sdk::{
    Build, Context, Failure, Phases, PluginParts, Transform, Writing,
    mock::{MockError, MockInput, MockJob, MockPlugin, Outcome},
};

/// Sets the label that another plugin reads.
struct Marks;

impl Transform for Marks {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let operator = ctx.job().operator_config();
        let zone = operator.text("/zone").unwrap_or_default();
        ctx.info().set_label("zone", &zone);
        Ok(())
    }
}

/// Copies the label to an env var of each node, with its configuration.
struct Copies;

impl Transform for Copies {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let zone = ctx.info().label("zone").ok_or("no zone")?;
        let prefix = ctx.job().config().text("/prefix").unwrap_or_default();
        for set in ctx.info().nodes() {
            if let Some(node) = set.container("node") {
                node.put_env("ZONE", &format!("{prefix}{zone}"));
            }
        }
        Ok(())
    }
}

impl Build for Copies {
    fn build(ctx: &Context) -> Result<(), Failure> {
        ctx.objects().emit("v1", "ConfigMap", "-zone", None);
        Ok(())
    }
}

const fn plugin(manifest: &'static str, transform: Writing, build: Option<Writing>) -> PluginParts {
    PluginParts {
        manifest,
        parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform","build"]}"#,
        phases: Phases {
            transform: Some(transform),
            build,
            ..Phases::NONE
        },
    }
}

/// The last name, so the order is not that of the names.
const MARKS: PluginParts = plugin(
    r#"{"name":"z-marks","activeWhen":"plugins","claims":{"writes":["labels[zone]"]},
        "operatorConfigSchema":{"properties":{"zone":{"type":"string"}}}}"#,
    Marks::transform,
    None,
);

const COPIES: PluginParts = plugin(
    r#"{"name":"copies","activeWhen":"plugins","configSchema":{"properties":{"prefix":{"type":"string"}}},
        "claims":{"reads":["labels[zone]"],"writes":["pod-sets[@nodes].containers[node].env[ZONE]","objects[v1/ConfigMap/-zone]"]}}"#,
    Copies::transform,
    Some(Copies::build),
);

/// Writes what [`COPIES`] writes.
const ALSO: PluginParts = plugin(
    r#"{"name":"also","activeWhen":"plugins","claims":{"reads":["labels[zone]"],"writes":["pod-sets[@nodes].containers[node].env[ZONE]"]}}"#,
    Copies::transform,
    None,
);

fn marks() -> MockPlugin {
    MockPlugin::new(&MARKS).operator_config(json!({"zone": "a"}))
}

fn job() -> MockJob {
    MockJob::new("bert").trainer(2, |node| node.image("train"))
}

fn zone(outcome: &Outcome) -> Option<Value> {
    outcome.value("pod-sets[node].containers[node].env[ZONE]")
}

/// A TrainJob whose runtime names these plugins.
fn yaml(plugins: &str) -> String {
    format!(
        r#"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: with-plugins}}
spec:
  mlPolicy: {{numNodes: 2}}
  plugins: [{plugins}]
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
          spec: {{template: {{spec: {{containers: [{{name: node, image: train}}]}}}}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: bert}}
spec: {{runtimeRef: {{name: with-plugins}}}}
"#
    )
}

#[test]
fn a_reader_runs_after_the_writer() {
    let outcome = job()
        .config(json!({"prefix": "zone-"}))
        .beside(marks(), json!({}))
        .all_phases(&COPIES)
        .unwrap();
    assert_eq!(outcome.order(), ["z-marks", "copies"]);
    assert_eq!(zone(&outcome), Some(json!("zone-a")));
    assert_eq!(outcome.value("labels[zone]"), Some(json!("a")));
    assert_eq!(outcome.objects().len(), 1);
}

#[test]
fn the_order_is_that_of_the_plan_in_yaml() {
    let yaml = yaml("{name: copies, config: {prefix: zone-}}, {name: z-marks}");
    let input = MockInput::new(&yaml).plugin(&COPIES).plugin(marks());
    let rendered = input.render().unwrap();
    assert_eq!(rendered.outcome().order(), ["z-marks", "copies"]);
    assert_eq!(zone(rendered.outcome()), Some(json!("zone-a")));
    let node = rendered.container("node", "node").unwrap();
    assert_eq!(
        node.get("env"),
        Some(&json!([{"name": "ZONE", "value": "zone-a"}]))
    );
    assert_eq!(
        rendered.job_set().pointer("/metadata/labels/zone"),
        Some(&json!("a"))
    );
}

#[test]
fn plugins_that_write_the_same_field_are_refused() {
    const CLASH: &str =
        "plugins `also` and `copies` both write `pod-sets[@nodes].containers[node].env[ZONE]`";
    let built = job().beside(&ALSO, json!({})).transform(&COPIES);
    let yaml = yaml("{name: also}, {name: copies}");
    let input = MockInput::new(&yaml).plugin(&COPIES).plugin(&ALSO);
    for error in [built.unwrap_err(), input.render().unwrap_err()] {
        assert!(matches!(error, MockError::Order(_)), "{error}");
        assert!(error.to_string().starts_with(CLASH), "{error}");
        assert!(error.to_string().contains("declare `after`"), "{error}");
    }
}

#[test]
fn a_declared_order_resolves_the_conflict() {
    for (first, second) in [("also", "copies"), ("copies", "also")] {
        let with = |plugin: MockPlugin, name| match name == second {
            true => plugin.after(&[first]),
            false => plugin,
        };
        let yaml = yaml("{name: also}, {name: copies}, {name: z-marks}");
        let rendered = MockInput::new(&yaml)
            .plugin(marks())
            .plugin(with(MockPlugin::new(&ALSO), "also"))
            .plugin(with(MockPlugin::new(&COPIES), "copies"))
            .render();
        let rendered = rendered.unwrap();
        assert_eq!(rendered.outcome().order(), ["z-marks", first, second]);
    }
    let also = MockPlugin::new(&ALSO).after(&["copies"]);
    let job = job().beside(also, json!({})).beside(marks(), json!({}));
    let outcome = job.transform(&COPIES).unwrap();
    assert_eq!(outcome.order(), ["z-marks", "copies", "also"]);
}

#[test]
fn a_cycle_is_refused() {
    const BACK: PluginParts = plugin(
        r#"{"name":"back","activeWhen":"plugins","claims":{"reads":["pod-sets[@nodes].containers[node].env[ZONE]"],"writes":["labels[zone]"]}}"#,
        Marks::transform,
        None,
    );
    let error = job().beside(&BACK, json!({})).transform(&COPIES);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("depend on each other in a cycle"), "{error}");
}

#[test]
fn excluded_plugins_are_refused_if_both_are_active() {
    const ALONE: PluginParts = plugin(
        r#"{"name":"alone","activeWhen":"plugins","excludes":["z-marks"],"claims":{}}"#,
        |_| Ok(()),
        None,
    );
    let built = job().beside(marks(), json!({})).transform(&ALONE);
    let yaml = yaml("{name: alone}, {name: z-marks}");
    let input = MockInput::new(&yaml).plugin(&ALONE).plugin(marks());
    for error in [built.unwrap_err(), input.render().unwrap_err()] {
        let error = error.to_string();
        assert!(
            error.contains("the manifest of `alone` excludes"),
            "{error}"
        );
    }
}

#[test]
fn each_plugin_has_its_own_grants_and_configuration() {
    const SELECTS: PluginParts = plugin(
        r#"{"name":"selects","activeWhen":"plugins","claims":{"writes":["pod-sets[@nodes].node-selector[pool]"]}}"#,
        |ctx| {
            let nodes = ctx.info().nodes();
            nodes
                .iter()
                .for_each(|set| set.put_node_selector("pool", "a"));
            Ok(())
        },
        None,
    );
    const GRANT: &str = "pod-sets[@nodes].node-selector[pool]";
    // What is granted to one is not granted to the other.
    let error = job().beside(&SELECTS, json!({})).grants(&[GRANT]);
    let error = error.transform(&MARKS).unwrap_err().to_string();
    assert!(error.contains(&format!("grants: [\"{GRANT}\"]")), "{error}");
    let granted = MockPlugin::new(&SELECTS).grants(&[GRANT]);
    let outcome = job().beside(granted, json!({})).transform(&MARKS).unwrap();
    let pool = outcome.value("pod-sets[node].node-selector[pool]");
    assert_eq!(pool, Some(json!("a")));
    // A configuration is checked by the schema of its own plugin.
    let error = job()
        .beside(&COPIES, json!({"prefix": 1}))
        .transform(&MARKS);
    let error = error.unwrap_err();
    assert!(matches!(error, MockError::Config(_)), "{error}");
    assert!(error.to_string().contains("plugin copies"), "{error}");
    // A limit is that of its plugin.
    let limited = MockPlugin::new(&SELECTS).all_granted().limit("writes", 0);
    let error = job().beside(limited, json!({})).transform(&MARKS);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("plugin selects") && error.contains("writes"),
        "{error}"
    );
}

/// Claims do not show what a plugin writes into a container that it added, so only the calls show this conflict.
#[test]
fn changes_of_an_added_container_without_an_order_are_refused() {
    const ADDS: PluginParts = plugin(
        r#"{"name":"adds","activeWhen":"plugins","claims":{"creates":["pod-sets[node].containers[agent]"]}}"#,
        |ctx| {
            let nodes = ctx.info().nodes();
            let set = nodes.first().ok_or("no nodes")?;
            set.add_container("agent", "agent:1").put_env("X", "adds");
            Ok(())
        },
        None,
    );
    const SETS: PluginParts = plugin(
        r#"{"name":"sets","activeWhen":"plugins","claims":{
            "reads":["pod-sets[*].containers[#]"],"writes":["pod-sets[*].containers[*].env[X]"]}}"#,
        |ctx| {
            let nodes = ctx.info().nodes();
            let containers = nodes.iter().flat_map(|set| set.containers());
            containers.for_each(|container| container.put_env("X", "sets"));
            Ok(())
        },
        None,
    );
    const GRANT: &str = "pod-sets[node].containers[agent]";
    const CLASH: &str = "pod-sets[node].containers[agent].env[X]: the plugins adds 0.1.0 (native) and sets 0.1.0 (native) both change it";
    let built = job()
        .grants(&[GRANT])
        .beside(&SETS, json!({}))
        .transform(&ADDS);
    let built = built.unwrap_err();
    assert!(matches!(built, MockError::Clash(_)), "{built}");
    let yaml = yaml("{name: adds}, {name: sets}");
    let rendered = MockInput::new(&yaml)
        .plugin(MockPlugin::new(&ADDS).grants(&[GRANT]))
        .plugin(&SETS)
        .render();
    for error in [built.to_string(), rendered.unwrap_err().to_string()] {
        assert!(error.contains(CLASH), "{error}");
    }
    let sets = MockPlugin::new(&SETS).after(&["adds"]);
    let job = job().all_granted().beside(sets, json!({}));
    let outcome = job.transform(&ADDS).unwrap();
    let agent = outcome.value("pod-sets[node].containers[agent].env[X]");
    assert_eq!(agent, Some(json!("sets")));
}
