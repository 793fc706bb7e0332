//! A plugin that is always active is disabled for the TrainJobs that the operator's settings name, and for those that these settings let
//! disable it. Every other TrainJob that wants to be without it is refused.

use std::sync::Arc;

use trainyard_model::{
    deadline::Deadline,
    plugin_info::{Exemptions, JobSelector},
};
use trainyard_render::{DisabledBy, Problem, Rendered};

use crate::common::{Scripted, catalog, input, refused, render_job, renderer, texts};

/// A plugin with these exemptions, which sets no field.
fn plugin(name: &str, active_when: &str, exemptions: Exemptions) -> Scripted {
    let mut plugin = Scripted::new(name, &[], |_, _| Ok(()));
    plugin.active_when = active_when.to_owned();
    plugin.exemptions = exemptions;
    plugin
}

fn guard(exemptions: Exemptions) -> [Scripted; 1] {
    [plugin("guard", "always", exemptions)]
}

fn disabled_for(namespaces: &[&str], runtimes: &[&str]) -> Exemptions {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Exemptions {
        disabled_for: JobSelector {
            namespaces: set(namespaces),
            runtimes: set(runtimes),
        },
        ..Exemptions::default()
    }
}

fn by_train_jobs() -> Exemptions {
    Exemptions {
        train_jobs_may_disable: true,
        ..Exemptions::default()
    }
}

/// Returns the input with this list in the TrainJob's annotation.
fn annotated(input: &str, list: &str) -> String {
    let annotations = format!("annotations: {{trainyard.dev/disabled-plugins: \"{list}\"}}");
    input.replace("{name: job}", &format!("{{name: job, {annotations}}}"))
}

/// Returns the plugins that ran, and those that were disabled.
fn plugins(rendered: &Rendered) -> (Vec<&str>, Vec<(&str, &DisabledBy)>) {
    let ran = rendered.plan.iter().map(|active| &*active.plugin.id.name);
    let disabled = rendered.disabled.iter();
    let disabled = disabled.map(|one| (&*one.plugin.id.name, &one.by));
    (ran.collect(), disabled.collect())
}

/// Renders a TrainJob with plugins in the namespace `default`.
fn render(loaded: &[Scripted], input: &str) -> Result<Rendered, Vec<Problem>> {
    let catalog = catalog(input);
    render_job(&renderer(loaded).unwrap(), &catalog.jobs[0]).map_err(refused)
}

#[test]
fn operator_disables_a_plugin_for_a_namespace() {
    let loaded = guard(disabled_for(&["sandbox"], &[]));
    let catalog = catalog(&input(&loaded));
    let (job, renderer) = (&catalog.jobs[0], renderer(&loaded).unwrap());
    for (namespace, is_disabled) in [("default", false), ("sandbox", true), ("Sandbox", false)] {
        let (lookups, deadline) = (Arc::default(), Deadline::none());
        let rendered =
            renderer.render(&job.train_job, &job.runtime, namespace, &lookups, &deadline);
        let rendered = rendered.unwrap();
        let (ran, disabled) = plugins(&rendered);
        let by = DisabledBy::Namespace("sandbox".to_owned());
        if is_disabled {
            assert_eq!((ran, disabled), (vec![], vec![("guard", &by)]));
        } else {
            assert_eq!((ran, disabled), (vec!["guard"], vec![]), "{namespace}");
        }
    }
}

/// A user who may create runtimes in a namespace cannot get rid of a plugin by the name of a runtime.
#[test]
fn operator_disables_a_plugin_for_a_runtime_of_one_kind() {
    let cluster = input(&[]);
    let namespaced = cluster
        .replace("ClusterTrainingRuntime", "TrainingRuntime")
        .replace(
            "{runtimeRef: {name: runtime}",
            "{runtimeRef: {kind: TrainingRuntime, name: runtime}",
        );
    for (runtime, of_cluster, of_namespace) in [
        ("ClusterTrainingRuntime/runtime", true, false),
        ("TrainingRuntime/default/runtime", false, true),
        ("TrainingRuntime/other/runtime", false, false),
        ("ClusterTrainingRuntime/other", false, false),
        ("runtime", false, false),
    ] {
        let loaded = guard(disabled_for(&[], &[runtime]));
        for (input, is_disabled) in [(&cluster, of_cluster), (&namespaced, of_namespace)] {
            let rendered = render(&loaded, input).unwrap();
            let (ran, disabled) = plugins(&rendered);
            let by = DisabledBy::Runtime(runtime.to_owned());
            let wanted = if is_disabled {
                (vec![], vec![("guard", &by)])
            } else {
                (vec!["guard"], vec![])
            };
            assert_eq!((ran, disabled), wanted, "{runtime}\n{input}");
        }
    }
}

#[test]
fn operator_enables_a_plugin_for_some_train_jobs_only() {
    let by = DisabledBy::NotSelected;
    for (namespaces, runtimes, is_enabled) in [
        (&["default"][..], &[][..], true),
        (&["other"], &[], false),
        (&["other"], &["ClusterTrainingRuntime/runtime"], true),
        (&[], &["TrainingRuntime/default/runtime"], false),
    ] {
        let selected = disabled_for(namespaces, runtimes).disabled_for;
        let loaded = guard(Exemptions {
            enabled_for: selected,
            ..Exemptions::default()
        });
        let rendered = render(&loaded, &input(&loaded)).unwrap();
        let wanted = match is_enabled {
            true => (vec!["guard"], vec![]),
            false => (vec![], vec![("guard", &by)]),
        };
        assert_eq!(plugins(&rendered), wanted, "{namespaces:?} {runtimes:?}");
    }
}

#[test]
fn train_job_disables_a_plugin_where_it_may() {
    let loaded = guard(by_train_jobs());
    let plain = input(&loaded);
    let rendered = render(&loaded, &plain).unwrap();
    assert_eq!(plugins(&rendered), (vec!["guard"], vec![]));
    for list in ["guard", " guard ,, guard"] {
        let rendered = render(&loaded, &annotated(&plain, list)).unwrap();
        let by = DisabledBy::TrainJob;
        assert_eq!(plugins(&rendered), (vec![], vec![("guard", &by)]));
    }
    // A plugin that the operator disables anyway may be named.
    let loaded = guard(disabled_for(&["default"], &[]));
    let rendered = render(&loaded, &annotated(&plain, "guard")).unwrap();
    assert_eq!(plugins(&rendered).0, [""; 0]);
}

#[test]
fn other_names_are_refused_with_the_reason() {
    let claims = Exemptions {
        train_jobs_may_disable: true,
        ..disabled_for(&["default"], &["ClusterTrainingRuntime/runtime"])
    };
    let loaded = [
        plugin("guard", "always", Exemptions::default()),
        plugin("free", "always", by_train_jobs()),
        // Settings of a plugin that is not always active have no effect.
        plugin("listed", "plugins", claims.clone()),
        plugin("claims", "resourceClaims", claims),
    ];
    let plain = input(&loaded);
    for (list, wanted) in [
        (
            "guard",
            "the operator does not allow TrainJobs to disable the plugin `guard`; remove it, or ask the operator to set `trainJobsMayDisable` for it in its PolicyPlugin",
        ),
        (
            "listed",
            "the plugin `listed` cannot be disabled, because it is not always active, but activated by `plugins`; remove it, or use a runtime that does not activate the plugin",
        ),
        (
            "claims",
            "the plugin `claims` cannot be disabled, because it is not always active, but activated by `resourceClaims`; remove it, or use a runtime that does not activate the plugin",
        ),
        (
            "gaurd",
            "no loaded plugin has the name `gaurd`; did you mean `guard`?; loaded: free (always), guard (always)",
        ),
        (
            "free, Guard",
            "no loaded plugin has the name `Guard`; did you mean `guard`?; loaded: free (always), guard (always)",
        ),
    ] {
        let problems = render(&loaded, &annotated(&plain, list)).unwrap_err();
        let wanted = format!("metadata.annotations[trainyard.dev/disabled-plugins]: {wanted}");
        assert_eq!(texts(&problems), [wanted]);
    }
    let rendered = render(&loaded, &annotated(&plain, "free")).unwrap();
    assert_eq!(plugins(&rendered).0, ["guard", "listed"]);
}

/// An annotation can have thousands of names, with any characters.
#[test]
fn refused_names_are_bounded_and_cleaned() {
    let loaded = guard(Exemptions::default());
    let names: Vec<_> = (0..1000).map(|at| format!("{at:x}")).collect();
    let many = annotated(&input(&loaded), &names.join(","));
    let problems = texts(&render(&loaded, &many).unwrap_err());
    assert_eq!(problems.len(), 17, "{problems:?}");
    assert!(problems.iter().any(|it| {
        it.ends_with("984 more names and values of plugins are refused; correct the first 16")
    }));
    let hidden = annotated(&input(&loaded), r"a\u202e\e[2J, x");
    let problems = texts(&render(&loaded, &hidden).unwrap_err());
    assert!(
        problems[0].contains(r"`a\u{202e}\u{1b}[2J`"),
        "{problems:?}"
    );
    let long = annotated(&input(&loaded), &"x".repeat(4000));
    let problems = texts(&render(&loaded, &long).unwrap_err());
    assert!(problems[0].len() < 300, "{problems:?}");
}
