//! A label or annotation that an API server would refuse for an object of a plugin is an error of the rendering, before anything is applied.

use trainyard_model::{contract::handle, plugin::Phase};

use crate::common::{Scripted, render, texts};

#[test]
fn invalid_labels_and_annotations_are_refused_with_the_plugin() {
    let with = |label: (&'static str, &'static str), annotation: &'static str| {
        let claims = [("writes", "objects[v1/ConfigMap/-x]")];
        render(&[Scripted::new("a", &claims, move |phase, call| {
            if phase != Phase::Build {
                return Ok(());
            }
            let object = call.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-x", None)?;
            call.object_set_label(object, label.0, label.1)?;
            call.object_set_annotation(object, annotation, "any text")
        })])
    };
    with(("example.com/team", "a"), "example.com/Note").unwrap();
    for (label, annotation, place) in [
        (("team name", "a"), "note", "metadata.labels[team name]"),
        (("team", "a b"), "note", "metadata.labels[team]"),
        (("team", "a"), "a/b/c", "metadata.annotations[a/b/c]"),
    ] {
        let problems = texts(&with(label, annotation).unwrap_err());
        assert_eq!(problems.len(), 1, "{problems:?}");
        let problem = problems.concat();
        assert!(
            problem.starts_with(&format!("ConfigMap `job-x`: {place}: ")),
            "{problem}"
        );
        let who = "(the API server would refuse the object; set by the plugin a)";
        assert!(problem.ends_with(who), "{problem}");
    }
}
