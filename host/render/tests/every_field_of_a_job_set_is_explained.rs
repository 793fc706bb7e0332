//! Every field of every JobSet of tests/cases has an answer: who set it, or the runtime's field that it was taken from,
//! with the value that the runtime really has there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::{fs, path::Path, sync::Arc};

use serde_json::{Value, json};
use trainyard_api::{Admitted, FieldPath, Inputs, Runtime, StringMap, path::Segment};
use trainyard_model::{
    call::Call,
    manifest::{CONTRACT, Manifest},
    plugin::{Plugin, Settings},
    policy::{Finished, Phase, Policy},
};
use trainyard_render::{Catalog, ClusterFacts, Rendered, Renderer, Setter};

/// What `mlPolicy.torch` switches on: the cases have it, and what it writes is proven elsewhere.
struct Idle(Arc<Plugin>);

impl Policy for Idle {
    fn plugin(&self) -> &Arc<Plugin> {
        &self.0
    }

    fn run(&self, _: Phase, call: Box<Call>) -> Finished {
        Finished {
            call,
            end: Ok(()),
            fuel: None,
        }
    }
}

fn renderer() -> Renderer {
    let manifest = json!({
        "name": "torch", "version": "1.0.0", "contract": CONTRACT, "activeWhen": "mlPolicy.torch", "phases": ["transform"],
    });
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
    let plugin = Plugin::new(manifest, "native", Settings::built_in()).unwrap();
    let policy: Arc<dyn Policy> = Arc::new(Idle(Arc::new(plugin)));
    Renderer::new([policy], ClusterFacts::default()).unwrap()
}

/// What becomes of the TrainJobs of all cases, each with its runtime.
fn all() -> Vec<(String, Arc<Runtime>, Rendered)> {
    let renderer = renderer();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut out = Vec::new();
    for case in fs::read_dir(folder).unwrap() {
        let case = case.unwrap().path();
        let text = fs::read_to_string(case.join("input.yaml")).unwrap();
        let objects = Inputs::read_text("input.yaml", &text).objects.into_iter();
        let (catalog, _) = Catalog::new(objects.map(|object| Admitted::new(object, "default")));
        for job in &catalog.jobs {
            if let Ok(rendered) =
                renderer.render(&job.job, &job.runtime, "default", &Arc::default())
            {
                out.push((case.display().to_string(), job.runtime.clone(), rendered));
            }
        }
    }
    out
}

fn at<'v>(value: &'v Value, path: &[Segment]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Index(at) => value.get(at),
        Segment::Field(name) | Segment::Key(name) => value.get(name),
    })
}

/// The paths of all values, of those that hold others too.
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

/// Whether a field is one that the host may write by a rule of its own.
fn is_of_host(path: &str) -> bool {
    let ends = [".completions", ".count", ".replicas"];
    ["apiVersion", "kind", "metadata.namespace", "spec.suspend"].contains(&path)
        || ends.iter().any(|end| path.ends_with(end))
}

#[test]
fn in_every_case() {
    let all = all();
    assert!(all.len() > 60, "{} cases", all.len());
    let (mut runtimes, mut others) = (0, 0);
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
                let Setter::Runtime { field } = &step.by else {
                    others += 1;
                    let is_host = matches!(step.by, Setter::Host { .. });
                    assert!(!is_host || is_of_host(&row.path), "{case}: {path}");
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
    assert!(runtimes > 500 && others > 1000, "{runtimes} {others}");
}
