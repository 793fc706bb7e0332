//! Errors of a policy file name the file and the field, and are reported together with those of plugins and input.

use std::fs;

use trainyard_plugin_folders::plugins;

use crate::common::{
    policy_file::{NO_JOB, policy, refused, refused_with},
    root, trainyard,
};

#[test]
fn pinned_digest_is_required() {
    let wanted = format!("sha256:{}", "0".repeat(64));
    let error = refused("plan", policy(&format!("digest: \"{wanted}\"")), NO_JOB);
    assert!(
        error.contains(&format!("its PolicyPlugin accepts only digest {wanted}")),
        "{error}"
    );
}

#[test]
fn errors_of_plugins_and_input_are_reported_in_one_run() {
    for command in ["plan", "render", "explain"] {
        let error = refused(command, policy("config: {a: 1}"), NO_JOB);
        assert!(
            error.contains("there is no TrainJob in the input"),
            "{error}"
        );
        assert!(error.contains("torch"), "{error}");
    }
}

/// Returns the errors of a policy file.
fn errors(policy: impl AsRef<[u8]>) -> Vec<String> {
    let printed = refused("plan", policy, NO_JOB);
    let errors = printed
        .lines()
        .filter_map(|line| line.strip_prefix("error: policy.yaml:"));
    let without_line = |error: &str| error.split_once(' ').unwrap().1.to_owned();
    errors.map(without_line).collect()
}

#[test]
fn errors_in_the_policy_file_name_their_field() {
    let header = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\n";
    let with = |rest: &str| format!("{header}{rest}").into_bytes();
    let too_large = vec![b'#'; (1 << 20) + 1];
    for (file, wanted) in [
        (
            Vec::new(),
            vec![
                "is empty; it must begin with `apiVersion: trainyard.dev/v1alpha1` and `kind: PolicyPlugin`, or ",
            ],
        ),
        (too_large, vec!["is larger than 1048576 bytes"]),
        (
            vec![0xff, 0xfe, b'a', 0],
            vec!["is not UTF-8 text (it starts like UTF-16); save it as UTF-8"],
        ),
        (b"kind: [".to_vec(), vec!["line 1, column 8: "]),
        (
            b"kind: PolicyFile\nplugins: [{grants: 5}]".to_vec(),
            vec![
                "plugins[0].grants: must be a list; found 5",
                "plugins[0].name: is missing",
                "apiVersion: is missing",
            ],
        ),
        (
            with("plugins: [{name: a, limits: {fuel: 0}}, {name: b, limits: {feul: 1}}]"),
            vec![
                "plugins[0].limits.fuel: must be at least 1; found 0",
                "plugins[1].limits.feul: unknown field; did you mean `fuel`?",
            ],
        ),
        (
            with("plugins: [{name: a}, {name: b, grants: ['labels[team]', 'pod-sets[']}]"),
            vec!["plugins[1].grants[1]: "],
        ),
        (
            with("plugins: [{name: a, grants: ['pod-sets[@trainr].containers[node].image']}]"),
            vec!["plugins[0].grants[0]: no pod set is `@trainr`; did you mean `@trainer`?"],
        ),
        (
            with("plugins: [{name: a}, {name: b, limits: {fuel: 1e30}}]"),
            vec!["plugins[1].limits.fuel: "],
        ),
        (
            with("plugins: [{name: a}, {name: b}, {name: a}, {name: b}]"),
            vec![
                "plugins[2].name: `a` is already listed in plugins[0]; merge the two entries",
                "plugins[3].name: `b` is already listed in plugins[1]; merge the two entries",
            ],
        ),
    ] {
        let mut found = errors(file);
        let mut wanted = wanted;
        found.sort();
        wanted.sort_unstable();
        assert_eq!(found.len(), wanted.len(), "{found:#?}");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(found.starts_with(wanted), "{found}\n{wanted}");
        }
    }
}

/// Settings under a misspelled name would leave the intended plugin without its limits, digest and order.
#[test]
fn unloaded_plugin_is_an_error_with_a_suggestion() {
    let named = |names: &str| {
        format!("apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: {names}")
    };
    let loaded: Vec<_> = plugins(&root()).unwrap().into_keys().collect();
    let tracer = format!(
        "plugins[0].before[0]: no loaded plugin has the name `tracer`; the loaded plugins are {}; load the plugin, or remove its name here",
        loaded.join(", ")
    );
    for (file, wanted) in [
        (
            named(
                "[{name: torhc, digest: \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"}]",
            ),
            vec!["plugins[0].name: no loaded plugin has the name `torhc`; did you mean `torch`?"],
        ),
        (
            named("[{name: torch, after: [torhc], before: [tracer], excludes: [torhc]}]"),
            vec![
                "plugins[0].after[0]: no loaded plugin has the name `torhc`; did you mean `torch`?",
                &tracer,
                "plugins[0].excludes[0]: no loaded plugin has the name `torhc`; did you mean `torch`?",
            ],
        ),
    ] {
        assert_eq!(errors(&file), wanted);
        // A controller starts without the plugin, and reports it before it connects to a cluster.
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("policy.yaml"), &file).unwrap();
        let arguments = [
            "controller",
            "--policy",
            "policy.yaml",
            "--kubeconfig",
            "none",
        ];
        let output = trainyard(folder.path(), &arguments);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(printed.contains("plugins are loaded"), "{printed}");
        let skipped = printed
            .lines()
            .filter(|line| line.contains("plugin skipped"));
        let skipped: Vec<serde_json::Value> = skipped
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let skipped = skipped.iter().map(|line| {
            let text = |member: &str| line["fields"][member].as_str().unwrap().to_owned();
            format!("{}: {}", text("file"), text("why"))
        });
        let wanted = wanted
            .iter()
            .map(|wanted| format!("policy.yaml:3: {wanted}"));
        assert_eq!(skipped.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    }
}

/// Only plugins that no TrainJob can avoid are disabled for some TrainJobs.
#[test]
fn only_plugins_that_are_always_active_are_disabled_for_some_train_jobs() {
    let named = |names: &str| {
        format!("apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: {names}")
    };
    let not_always = |plugin: &str, when: &str| {
        format!(
            "is only for plugins that are active `always`, but `{plugin}` is activated by `{when}`; remove the key, or set `disabled: true` to disable the plugin for all TrainJobs"
        )
    };
    let (torch, dra) = (
        not_always("torch", "mlPolicy.torch"),
        not_always("dra", "resourceClaims"),
    );
    let found = errors(named(
        "[{name: torch, disabledFor: {namespaces: [a]}, trainJobsMayDisable: true}, {name: dra, disabledFor: {runtimes: [ClusterTrainingRuntime/a]}}]",
    ));
    let wanted = [
        format!("plugins[0].disabledFor: {torch}"),
        format!("plugins[0].trainJobsMayDisable: {torch}"),
        format!("plugins[1].disabledFor: {dra}"),
    ];
    assert_eq!(found, wanted);
    // It is an error of the file even if the plugin is disabled.
    let found = errors(named(
        "[{name: torch, disabled: true, trainJobsMayDisable: true}]",
    ));
    assert_eq!(found, [format!("plugins[0].trainJobsMayDisable: {torch}")]);
    // A setting that is not set has no effect.
    let unset = "[{name: torch, disabledFor: {}, trainJobsMayDisable: false}]";
    assert_eq!(errors(named(unset)), [""; 0]);
}

#[test]
fn namespaces_and_runtimes_must_be_names() {
    let header = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\n";
    let runtimes = "a, ClusterTrainingRuntime/, ClusterTrainingRuntime/a/b, TrainingRuntime/a, TrainingRuntime/A/b, ClusterTrainingRuntime/a.b-c, TrainingRuntime/a/b.c";
    let mut found = errors(format!(
        "{header}plugins: [{{name: a, disabledFor: {{namespaces: [ok, Not, \"a\\eb\", 5], runtimes: [{runtimes}], jobs: [a]}}, trainJobsMayDisable: yes please}}]"
    ));
    found.sort();
    let wanted = [
        "plugins[0].disabledFor.jobs: unknown field; valid fields are namespaces, runtimes",
        "plugins[0].disabledFor.namespaces[1]: `Not` is not the name of a namespace; ",
        "plugins[0].disabledFor.namespaces[2]: `a\\u{1b}b` is not the name of a namespace; ",
        "plugins[0].disabledFor.namespaces[3]: must be a string; found 5",
        "plugins[0].disabledFor.runtimes[0]: `a` is not a runtime; write `ClusterTrainingRuntime/NAME`, or `TrainingRuntime/NAMESPACE/NAME` for a runtime in a namespace",
        "plugins[0].disabledFor.runtimes[1]: ",
        "plugins[0].disabledFor.runtimes[2]: ",
        "plugins[0].disabledFor.runtimes[3]: ",
        "plugins[0].disabledFor.runtimes[4]: ",
        "plugins[0].trainJobsMayDisable: must be true or false; found `yes please`",
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.starts_with(wanted), "{found}\n{wanted}");
    }
}

/// A large file is refused with its first errors, and the number of the others.
#[test]
fn errors_of_a_large_file_are_bounded() {
    let header = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins:\n";
    for entry in [
        // The schema, the check of paths, and the check of names refuse these.
        |at: usize| format!("- {{name: p{at}, zzz: 1}}\n"),
        |at| format!("- {{name: p{at}, grants: [x]}}\n"),
        |at| format!("- {{name: p{at}}}\n"),
    ] {
        let entries: String = (0..3_000).map(entry).collect();
        let printed = refused("plan", format!("{header}{entries}"), NO_JOB);
        let with_lines = printed.matches("error: policy.yaml:").count();
        let more =
            "error: policy.yaml: 2900 more errors are not printed; correct those above first\n";
        assert!(printed.contains(more), "{printed}");
        assert_eq!(with_lines, 101, "{printed}");
        assert!(
            printed.contains("error: policy.yaml:103: plugins[99]"),
            "{printed}"
        );
    }
}

#[test]
fn refused_plugin_is_not_reported_as_unknown() {
    let unknown = "no loaded plugin has the name `nccl`";
    let names_nccl =
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{name: nccl}]";
    assert!(refused("plan", names_nccl, NO_JOB).contains(unknown));
    // The refused file may be the plugin that the policy file names.
    let printed = refused_with(&["plan", "--plugin", "nccl.wasm"], names_nccl, NO_JOB);
    assert!(
        printed.contains("error: nccl.wasm: ") && !printed.contains(unknown),
        "{printed}"
    );
}

#[test]
fn two_plugins_with_one_name_are_reported_with_their_files() {
    let torch = concat!(env!("OUT_DIR"), "/torch.wasm");
    let granted = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{name: torch, grants: ['pod-sets[@trainer].containers[node].command']}]";
    let printed = refused_with(&["plan", "--plugin", torch], granted, NO_JOB);
    let wanted = format!(
        "error: the plugin file {torch} has the same name `torch` as the built-in plugin; plugin names must be unique"
    );
    assert!(printed.lines().any(|line| line == wanted), "{printed}");
}

#[test]
fn plugin_file_can_be_given_only_once() {
    let torch = concat!(env!("OUT_DIR"), "/torch.wasm");
    for (first, second) in [
        (torch.to_owned(), torch.to_owned()),
        (
            torch.to_owned(),
            torch.replace("/torch.wasm", "/./torch.wasm"),
        ),
        ("gone.wasm".to_owned(), "gone.wasm".to_owned()),
    ] {
        let arguments = ["plan", "--plugin", &first, "--plugin", &second];
        let printed = refused_with(&arguments, policy("limits: {}"), NO_JOB);
        let wanted = format!("error: the plugin file {second} is passed twice; pass it once");
        assert_eq!(
            printed.lines().filter(|line| **line == wanted).count(),
            1,
            "{printed}"
        );
        // Errors of the input, and of the file itself, are reported once.
        let errors = printed.lines().filter(|line| line.starts_with("error: "));
        assert_eq!(errors.count(), 3, "{printed}");
    }
}

/// Errors of the schema, of paths and limits, of names, and duplicates are reported in one run.
#[test]
fn errors_of_every_kind_are_reported_in_one_run() {
    let long = "a".repeat(64);
    let file = format!(
        "apiVersion: trainyard.dev/v1alpha1
kind: PolicyFile
clusterDomian: x
clusterDomain: cluster.{long}
catalogNamespace: A_B
obeyedDomains: {{add: [a_b, example.com, app.kubernetes.io], remove: [run.ai, x.io]}}
facts: {{host/version: '1', 'Site/Region': north, site/rack: 7, site/zone: x}}
accelerators: [nvidia.com/gpu, nvidia.com/mig-*, example.com/*, gpu, 'nvidia.com/g pu', '*', 'Example.com/gpu', 5]
plugins:
- {{name: a, grants: ['labels[team]', 'pod-sets['], limits: {{fuel: 1e30, wallClockMs: 1}}}}
- {{name: b, grants: ['pod-sets[', 7], limits: {{feul: 1, handles: 1e30}}, digest: x}}
- {{name: a, before: [a], excludes: [b, a], disabled: 1}}
"
    );
    let mut found = errors(file);
    found.sort();
    let wanted = [
        "accelerators[3]: `gpu` is not the name of an extended resource, such as `example.com/gpu`, ",
        "accelerators[4]: `nvidia.com/g pu` is not the name ",
        "accelerators[5]: `*` is not the name ",
        "accelerators[6]: `Example.com/gpu` is not the name ",
        "accelerators[7]: must be a string; found 5",
        "catalogNamespace: `A_B` is not the name of a namespace",
        "clusterDomain: `cluster.aaaa",
        "clusterDomian: unknown field; did you mean `clusterDomain`?",
        "facts.Site/Region: is not the name of a fact; ",
        "facts.host/version: names that begin with `host/` are reserved for the host",
        "facts.site/rack: must be a string; found 7",
        "obeyedDomains.add[0]: `a_b` is not a DNS domain",
        "obeyedDomains.add[2]: no controller obeys keys of `app.kubernetes.io`",
        "obeyedDomains.remove[1]: `x.io` is not in the shipped list",
        "plugins[0].grants[1]: ",
        "plugins[0].limits.fuel: ",
        "plugins[0].limits.wallClockMs: must be at least 10; found 1",
        "plugins[1].digest: ",
        "plugins[1].grants[0]: ",
        "plugins[1].grants[1]: must be a string; found 7",
        "plugins[1].limits.feul: unknown field; did you mean `fuel`?",
        "plugins[1].limits.handles: ",
        "plugins[2].before[0]: `a` cannot run before itself",
        "plugins[2].disabled: must be ",
        "plugins[2].excludes[1]: `a` excludes itself; to disable the plugin, set `disabled: true`",
        "plugins[2].name: `a` is already listed in plugins[0]; merge the two entries",
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.starts_with(wanted), "{found}\n{wanted}");
    }
}

#[test]
fn facts_are_limited_to_32_kib() {
    let with = |bytes: usize| {
        let text = "x".repeat(bytes);
        format!("apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nfacts: {{a: {text}}}")
    };
    assert_eq!(errors(with((32 << 10) - 1)), [""; 0]);
    let found = errors(with(32 << 10));
    assert_eq!(
        found,
        [
            "facts: the facts have 32769 bytes of names and values, but at most 32768 are allowed; remove some"
        ]
    );
}

#[test]
fn cluster_domain_must_be_a_dns_name() {
    let with = |domain: &str| {
        format!("apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nclusterDomain: {domain:?}")
    };
    for good in ["cluster.local", "k8s", "a-1.b"] {
        assert_eq!(errors(with(good)), [""; 0], "{good}");
    }
    for bad in [
        "cluster.local.",
        ".local",
        "a..b",
        "-a.b",
        "A.b",
        "a_b",
        "a b",
        "",
    ] {
        let errors = errors(with(bad));
        assert_eq!(errors.len(), 1, "{bad}: {errors:?}");
        assert!(errors[0].starts_with("clusterDomain: "), "{errors:?}");
    }
}
