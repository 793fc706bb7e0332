//! Every field of every JobSet of the cases is explained: by what set it, or by the runtime's field that it comes from, with the value of
//! that field. The TrainJobs are admitted as by an API server, and rendered with the real plugins.

use std::{fs, sync::Arc};

use serde_json::{Value, json};
use trainyard_api::{FieldPath, Inputs, Runtime, StringMap, names, path::Segment};
use trainyard_model::{deadline::Deadline, plugin::Plugin, plugin_info::Settings};
use trainyard_plugin_folders::{cases, root};
use trainyard_policies::BUILT_INS;
use trainyard_render::{Catalog, ClusterFacts, InputJob, Provenance, Rendered, Renderer, Setter};
use trainyard_schema::Admission;
use trainyard_sdk::native::NativePlugin;

/// The built-in plugins, native instead of sandboxed.
fn renderer() -> Renderer {
    let plugins = BUILT_INS.iter().map(|(_, parts)| -> Arc<dyn Plugin> {
        Arc::new(NativePlugin::new(parts, Settings::built_in()).unwrap())
    });
    Renderer::new(plugins, ClusterFacts::default()).unwrap()
}

/// Renders the TrainJobs of all cases, each with its runtime. All TrainJobs of a case with expected objects must succeed, and a case with
/// expected errors must fail.
fn all() -> Vec<(String, Arc<Runtime>, Rendered)> {
    let renderer = renderer();
    let admission = Admission::default();
    let mut out = Vec::new();
    for (name, case) in cases(&root()).unwrap() {
        let text = fs::read_to_string(case.join("input.yaml")).unwrap();
        let inputs = Inputs::read_text("input.yaml", &text);
        let objects = inputs.objects.into_iter();
        let admitted = objects.map(|object| admission.admit(object, None, "default").unwrap());
        let (catalog, errors) = Catalog::new(admitted);
        let errors = errors.iter().map(ToString::to_string);
        let mut failed: Vec<String> = inputs.errors.iter().map(ToString::to_string).collect();
        failed.extend(errors);
        failed.extend(catalog.without_runtime.iter().map(ToString::to_string));
        // Those of another controller are printed by none of the commands.
        let is_mine = |job: &&InputJob| job.train_job.managed_by == names::MANAGED_BY_TRAINER;
        for job in catalog.jobs.iter().filter(is_mine) {
            match catalog.render(job, &renderer, &Deadline::none()) {
                Ok(rendered) => out.push((name.clone(), job.runtime.clone(), rendered)),
                Err(stopped) => failed.extend(stopped.lines()),
            }
        }
        let is_refused = case.join("expected.txt").exists();
        assert_eq!(!failed.is_empty(), is_refused, "{name}: {failed:#?}");
    }
    out
}

fn at<'v>(value: &'v Value, path: &[Segment]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Index(at) => value.get(at),
        Segment::Field(name) | Segment::Key(name) => value.get(name),
    })
}

/// Returns the paths of all values, including objects and lists.
fn paths(value: &Value, path: &FieldPath, out: &mut Vec<FieldPath>) {
    if !path.is_root() {
        out.push(path.clone());
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                paths(value, &path.key(name), out);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                paths(value, &path.index(index), out);
            }
        }
        _ => {}
    }
}

/// Whether the host may set the field by its own rules.
fn is_of_host(path: &str) -> bool {
    let ends = [".completions", ".count", ".replicas"];
    ["apiVersion", "kind", "metadata.namespace", "spec.suspend"].contains(&path)
        || ends.iter().any(|end| path.ends_with(end))
}

/// Whether the schema of the runtime defaulted the field of a row, or a parent of it.
fn is_default(runtime: &Runtime, row: &Provenance) -> bool {
    let placed: FieldPath = row.job_set_path.as_deref().unwrap().parse().unwrap();
    let (spec, template) = (
        FieldPath::of(["spec"]),
        FieldPath::of(["spec", "template", "spec"]),
    );
    let there = placed.moved(&spec, &template).unwrap();
    let mut defaults = runtime.defaulted.iter();
    defaults.any(|default| there.moved(default, &FieldPath::root()).is_some())
}

#[test]
fn every_field_of_every_case_is_explained() {
    let all = all();
    assert!(all.len() > 60, "{} cases", all.len());
    let (mut runtimes, mut others, mut defaults, mut plugins) = (0, 0, 0, 0);
    for (case, runtime, rendered) in &all {
        let texts = |map: &StringMap| -> Value {
            let each = map.iter().map(|(key, text)| (key.clone(), json!(text)));
            Value::Object(each.collect())
        };
        let template = &runtime.template;
        let template = json!({"metadata": {"labels": texts(&template.labels), "annotations": texts(&template.annotations)}});
        let (mut asked, root) = (Vec::new(), FieldPath::root());
        paths(&rendered.job_set, &root, &mut asked);
        for path in asked {
            let rows = rendered
                .explain(&path)
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            assert!(!rows.is_empty(), "{case}: {path}");
            for row in rows {
                let step = &row.steps[0];
                plugins +=
                    usize::from(matches!(&step.by, Setter::Plugin { name, .. } if name == "torch"));
                let Setter::Runtime { field } = &step.by else {
                    others += 1;
                    if matches!(step.by, Setter::Host { .. }) && !is_of_host(&row.path) {
                        defaults += 1;
                        assert!(is_default(runtime, &row), "{case}: {path}");
                    }
                    continue;
                };
                let field: FieldPath = field.parse().unwrap();
                let below = |start: &[&str]| field.moved(&FieldPath::of(start), &root);
                let spec = below(&["spec", "template", "spec"]);
                let metadata = below(&["spec", "template"]);
                let there = match (&spec, &metadata) {
                    (Some(path), _) => at(&runtime.template.spec, path.segments()),
                    (None, Some(path)) => at(&template, path.segments()),
                    // The policy's number of nodes.
                    _ => continue,
                };
                assert_eq!(there, step.to.as_ref(), "{case}: {path} is not {field}");
                runtimes += 1;
            }
        }
    }
    assert!(
        runtimes > 500 && others > 1000 && defaults > 50 && plugins > 500,
        "{runtimes} {others} {defaults} {plugins}"
    );
}
