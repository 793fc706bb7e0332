//! A TrainJob that needs a skipped plugin is refused with the reason, and every other TrainJob is rendered.

use trainyard_model::{
    deadline::Deadline,
    manifest::ActiveWhen,
    plugin_info::{Exemptions, JobSelector},
};
use trainyard_render::{ClusterFacts, Declared, Renderer, SkippedPlugin};

use crate::common;

/// A skipped file, with a reason that names it.
fn skipped(file: &str, declared: Option<(&str, &str)>) -> SkippedPlugin {
    let declared = declared.map(|(name, when)| Declared {
        name: name.to_owned(),
        active_when: when.parse::<ActiveWhen>().unwrap(),
        exemptions: Exemptions::default(),
    });
    SkippedPlugin {
        declared,
        why: format!("{file}: is broken"),
        is_disabled: false,
    }
}

/// A TrainJob and its runtime with this ML policy, these plugins and these fields of pods.
fn input(ml_policy: &str, plugins: &str, pod: &str) -> String {
    format!(
        "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: runtime}}
spec:
  mlPolicy: {{{ml_policy}}}
  plugins: [{plugins}]
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
          spec:
            template:
              spec:
                {pod}
                containers:
                - {{name: node, image: base}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: job}}
spec: {{runtimeRef: {{name: runtime}}}}
"
    )
}

const CLAIMS: &str = "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]";

/// Returns the problems of the TrainJob in a process without these plugins.
fn problems(
    input: &str,
    skipped: &[SkippedPlugin],
    loaded: Vec<std::sync::Arc<dyn trainyard_model::plugin::Plugin>>,
) -> Vec<String> {
    let catalog = common::catalog(input);
    let renderer = Renderer::new(loaded, ClusterFacts::default())
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    let renderer = renderer.with_skipped(skipped.to_vec());
    match common::render_job(&renderer, &catalog.jobs[0]) {
        Ok(_) => Vec::new(),
        Err(stopped) => stopped.lines(),
    }
}

#[test]
fn plugin_activated_by_other_fields_is_missing_where_it_would_be_active() {
    let always = [skipped("guard.wasm", Some(("guard", "always")))];
    let refused =
        ["the plugin `guard`, which `always` activates, was skipped: guard.wasm: is broken"];
    assert_eq!(problems(&input("", "", ""), &always, Vec::new()), refused);

    let claims = [skipped("dra.wasm", Some(("dra", "resourceClaims")))];
    let refused =
        ["the plugin `dra`, which `resourceClaims` activates, was skipped: dra.wasm: is broken"];
    assert_eq!(
        problems(&input("", "", CLAIMS), &claims, Vec::new()),
        refused
    );
    let none: [&str; 0] = [];
    assert_eq!(problems(&input("", "", ""), &claims, Vec::new()), none);
}

/// Where the operator has disabled a plugin, or lets TrainJobs disable it, a file that cannot be loaded is not missing.
#[test]
fn skipped_plugin_that_is_disabled_for_a_train_job_is_not_missing() {
    let with = |exemptions: Exemptions| {
        let mut guard = skipped("guard.wasm", Some(("guard", "always")));
        guard.declared.as_mut().unwrap().exemptions = exemptions;
        [guard]
    };
    let of_namespace = |namespace: &str| Exemptions {
        disabled_for: JobSelector {
            namespaces: [namespace.to_owned()].into(),
            ..JobSelector::default()
        },
        ..Exemptions::default()
    };
    let by_train_jobs = Exemptions {
        train_jobs_may_disable: true,
        ..Exemptions::default()
    };
    let plain = input("", "", "");
    let annotations = "annotations: {trainyard.dev/disabled-plugins: guard}";
    let opted_out = plain.replace("{name: job}", &format!("{{name: job, {annotations}}}"));
    for (input, exemptions, count) in [
        (&plain, of_namespace("default"), 0),
        (&plain, of_namespace("other"), 1),
        (&plain, by_train_jobs.clone(), 1),
        (&opted_out, by_train_jobs, 0),
        (&opted_out, Exemptions::default(), 2),
    ] {
        let found = problems(input, &with(exemptions), Vec::new());
        assert_eq!(found.len(), count, "{found:?}");
    }
}

#[test]
fn plugin_of_a_gang_policy_is_missing_where_the_runtime_selects_it() {
    let gang = |policy: &str| {
        let plugins = format!("podGroupPolicy: {policy}\n  plugins:");
        input("", "", "").replace("plugins:", &plugins)
    };
    let volcano = [skipped(
        "volcano.wasm",
        Some(("volcano", "podGroupPolicy.volcano")),
    )];
    let refused = problems(&gang("{volcano: {}}"), &volcano, Vec::new());
    let [problem] = &refused[..] else {
        panic!("{refused:?}")
    };
    assert!(
        problem.contains("spec.podGroupPolicy.volcano: ")
            && problem.contains("volcano.wasm: is broken"),
        "{problem}"
    );
    let refused = problems(&gang("{coscheduling: {}}"), &volcano, Vec::new());
    let [problem] = &refused[..] else {
        panic!("{refused:?}")
    };
    assert!(
        problem.contains("spec.podGroupPolicy.coscheduling: no loaded plugin handles this policy")
            && !problem.contains("volcano"),
        "{problem}"
    );
    let none: [&str; 0] = [];
    assert_eq!(problems(&gang("{}"), &volcano, Vec::new()), none);
}

#[test]
fn other_train_jobs_render() {
    let others = [
        skipped("a.wasm", Some(("a", "plugins"))),
        skipped("b.wasm", Some(("b", "mlPolicy.plugin"))),
        skipped("c.wasm", Some(("c", "mlPolicy.mpi"))),
        skipped("d.wasm", None),
    ];
    let none: [&str; 0] = [];
    assert_eq!(problems(&input("", "", CLAIMS), &others, Vec::new()), none);
}

/// A skipped version of a loaded plugin does not affect the TrainJob.
#[test]
fn skipped_plugin_with_a_loaded_name_is_not_missing() {
    let same = common::Scripted::new("guard", &[], |_, _| Ok(()));
    let again = [skipped("guard-2.wasm", Some(("guard", "always")))];
    let none: [&str; 0] = [];
    let found = problems(&input("", "", ""), &again, vec![same.plugin()]);
    assert_eq!(found, none);
}

#[test]
fn error_has_only_the_reason_of_the_named_file() {
    let all = [
        skipped("other.wasm", Some(("other", "plugins"))),
        skipped("unread.wasm", None),
        skipped("wanted.wasm", Some(("wanted", "plugins"))),
    ];
    let one = input("", "{name: wanted}", "");
    let refused =
        ["spec.plugins[0].name: no loaded plugin has the name `wanted`: wanted.wasm: is broken"];
    assert_eq!(problems(&one, &all, Vec::new()), refused);

    let policy = [
        skipped("mpi.wasm", Some(("mpi", "mlPolicy.mpi"))),
        skipped("flux.wasm", Some(("flux", "mlPolicy.flux"))),
    ];
    let refused = ["spec.mlPolicy.mpi: no loaded plugin handles this policy: mpi.wasm: is broken"];
    assert_eq!(
        problems(&input("mpi: {}", "", ""), &policy, Vec::new()),
        refused
    );
}

/// A plugin whose manifest cannot be read may be any plugin, so it is only named if no other skipped plugin matches.
#[test]
fn unreadable_plugin_may_be_the_missing_one() {
    let all = [
        skipped("other.wasm", Some(("other", "plugins"))),
        skipped("unread.wasm", None),
    ];
    let one = input("", "{name: wanted}", "");
    let refused = [
        "spec.plugins[0].name: no loaded plugin has the name `wanted`; no loaded plugin is activated by `plugins`; a plugin that failed to load may be the one requested: unread.wasm: is broken",
    ];
    assert_eq!(problems(&one, &all, Vec::new()), refused);
    assert_eq!(
        problems(&one, &all[..1], Vec::new()),
        [
            "spec.plugins[0].name: no loaded plugin has the name `wanted`; no loaded plugin is activated by `plugins`; declare it with a PolicyPlugin, or correct the name"
        ]
    );
}

#[test]
fn missing_plugins_are_reported_before_misconfigured_ones() {
    let loaded = common::Scripted::new("here", &[], |_, _| Ok(()));
    let one = input(
        "",
        "{name: here, config: {no: such key}}, {name: wanted}",
        "",
    );
    let all = [skipped("wanted.wasm", Some(("wanted", "plugins")))];
    let found = problems(&one, &all, vec![loaded.plugin()]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("wanted.wasm: is broken"), "{found:?}");
    assert!(found[1].contains("spec.plugins[0].config"), "{found:?}");
}

/// Resource claims of pods are kept without a plugin, as in the reference; a warning says that their devices are not counted.
#[test]
fn resource_claims_without_a_plugin_are_reported() {
    let renderer = Renderer::new(Vec::new(), ClusterFacts::default()).unwrap();
    let warnings = |pod: &str| {
        let catalog = common::catalog(&input("", "", pod));
        let rendered = catalog
            .render(&catalog.jobs[0], &renderer, &Deadline::none())
            .unwrap();
        let warnings = rendered.warnings.iter().map(ToString::to_string);
        warnings.collect::<Vec<_>>()
    };
    assert_eq!(
        warnings(CLAIMS),
        [
            "the pods have resource claims, but no loaded plugin handles them; the claims are left unchanged, and their devices are not counted"
        ]
    );
    assert!(warnings("").is_empty());
}
