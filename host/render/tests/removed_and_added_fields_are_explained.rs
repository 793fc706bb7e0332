//! Removed fields are explained, a container that a plugin added is attributed to it, and numbers that the runtime does not set are
//! attributed to what chose them.

use serde_json::{Value, json};
use trainyard_model::plugin::Phase;
use trainyard_render::{Provenance, Rendered, Setter};

use crate::common::{Scripted, container, pod_set, render};

const POD: &str = "spec.replicatedJobs[node].template.spec.template.spec";

/// A TrainJob whose plugin removes an env var of the runtime and adds an init container.
fn rendered() -> Rendered {
    let mut plugin = Scripted::new(
        "plugin",
        &[
            ("writes", "pod-sets[*].containers[node].env[P0_OVER]"),
            ("creates", "pod-sets[node].init-containers[fetch]"),
        ],
        |phase, call| {
            if phase == Phase::Transform {
                let node = container(call, "node")?;
                call.container_remove_env(node, "P0_OVER")?;
                let set = pod_set(call, "node")?;
                call.pod_set_add_init_container(set, "fetch", "fetch:1")?;
            }
            Ok(())
        },
    );
    plugin.reserved_env = vec!["P0_OVER".into()];
    render(&[plugin]).unwrap_or_else(|problems| panic!("{}", problems[0]))
}

fn explain(rendered: &Rendered, path: &str) -> Vec<Provenance> {
    let found = rendered.explain(&path.parse().unwrap());
    found.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn fields_removed_by_a_plugin_are_explained_at_their_former_path() {
    let rendered = rendered();
    for path in [
        "containers[node].env[P0_OVER]",
        "containers[0].env[P0_OVER].value",
    ] {
        let found = explain(&rendered, &format!("{POD}.{path}"));
        let [row] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert!(matches!(&row.steps[0].by, Setter::Plugin { name, .. } if name == "plugin"));
        let (from, to) = (row.steps[0].from.clone(), row.steps[0].to.clone());
        assert_eq!((from, to), (Some(json!("runtime")), None));
        assert_eq!(row.job_set_path, None);
    }
    let env = explain(&rendered, &format!("{POD}.containers[node].env"));
    let paths: Vec<&str> = env.iter().map(|row| row.path.as_str()).collect();
    let node = "pod-sets[node].containers[node]";
    assert_eq!(
        paths,
        ["P0_OVER", "USERS"].map(|name| format!("{node}.env[{name}]"))
    );
}

#[test]
fn added_container_is_attributed_to_its_plugin() {
    let rendered = rendered();
    let image = explain(&rendered, &format!("{POD}.initContainers[2].image"));
    assert_eq!(image[0].path, "pod-sets[node].init-containers[fetch].image");
    let named = explain(&rendered, &format!("{POD}.initContainers[fetch].name"));
    assert_eq!(named.len(), 1);
    assert_eq!(named[0].path, "pod-sets[node].init-containers[fetch]");
    assert_eq!(named[0].steps[0].to, Some(json!({"name": "fetch"})));
    let both = explain(&rendered, "pod-sets[node].init-containers[fetch]");
    assert_eq!(both.len(), 2, "{both:?}");
}

#[test]
fn defaulted_numbers_are_attributed_to_the_host() {
    let rendered = rendered();
    let job = "spec.replicatedJobs[node]";
    for (path, reported) in [
        ("template.spec.parallelism", "pod-sets[node].count"),
        (
            "template.spec.completions",
            "spec.replicatedJobs[node].template.spec.completions",
        ),
        ("replicas", "pod-sets[node].replicas"),
    ] {
        let found = explain(&rendered, &format!("{job}.{path}"));
        assert_eq!((found.len(), found[0].path.as_str()), (1, reported));
        let step = &found[0].steps[0];
        assert!(matches!(step.by, Setter::Host { .. }), "{step:?}");
        assert_eq!(
            (step.from.clone(), step.to.clone()),
            (None, Some(Value::from(1)))
        );
        assert_eq!(explain(&rendered, reported), found);
    }
}
