//! The settings of a policy file take effect, for built-in plugins too: grants, limits, configuration, order, the cluster's domain,
//! digests. Its errors are reported with all others.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::{fs, path::Path, process::Output};

use serde_json::Value;

use crate::common::{runtime, stdout, test_plugin, trainyard};

/// A TrainJob that Torch and the plugin `site` of tests/plugins, which shows in the pods what it gets, act on.
fn site_job() -> String {
    job("mlPolicy: {numNodes: 2, torch: {}}, plugins: [{name: site}],")
}

/// A TrainJob of a runtime with these fields.
fn job(runtime_spec: &str) -> String {
    let job = "---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job}
spec: {runtimeRef: {name: runtime}}
";
    runtime("name: runtime", runtime_spec, "") + job
}

/// A policy file with these settings of the plugin `site`, and of the file itself.
fn site_policy(of_site: &str, of_file: &str) -> String {
    format!(
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{{name: site, {of_site}}}]\n{of_file}"
    )
}

/// The grant that the plugin `site` needs to load, and the order that resolves its conflict.
const SITE_NEEDS: &str =
    "grants: ['pod-sets[@trainer].node-selector[example.com/pool]'], after: [torch]";

/// The rendered pod spec under a policy file, and its env vars by name.
fn site_pod(policy: &str) -> (Value, impl Fn(&str) -> Option<String> + use<>) {
    let site = test_plugin("site");
    let arguments = ["render", "-o", "json", "--plugin", &site];
    let output = run(&arguments, policy, &site_job());
    let objects: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let job_set = objects.pointer("/items/0").unwrap_or(&objects);
    let pod = job_set.pointer("/spec/replicatedJobs/0/template/spec/template/spec");
    let pod = pod.unwrap().clone();
    let env = pod["containers"][0]["env"].clone();
    let value = move |name: &str| {
        let mut vars = env.as_array().into_iter().flatten();
        let found = vars.find(|var| var["name"] == *name)?;
        found["value"].as_str().map(str::to_owned)
    };
    (pod, value)
}

fn site_refused(policy: &str) -> String {
    let site = test_plugin("site");
    refused_with(&["render", "--plugin", &site], policy, &site_job())
}

fn run(arguments: &[&str], policy: impl AsRef<[u8]>, input: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input.yaml"), input).unwrap();
    fs::write(folder.path().join("policy.yaml"), policy).unwrap();
    let files = ["-f", "input.yaml", "--policy", "policy.yaml"];
    trainyard(folder.path(), &[arguments, &files].concat())
}

#[test]
fn claim_beyond_the_defaults_needs_a_grant() {
    let claim = "pod-sets[@trainer].node-selector[example.com/pool]";
    let error = site_refused(&site_policy("after: [torch]", ""));
    assert!(
        error.contains(&format!(
            "it claims to write `{claim}`, which is not granted"
        )),
        "{error}"
    );
    let other = "after: [torch], grants: ['pod-sets[@trainer].node-selector[example.com/zone]']";
    assert!(site_refused(&site_policy(other, "")).contains("which is not granted"));
    let (pod, _) = site_pod(&site_policy(SITE_NEEDS, ""));
    assert_eq!(pod["nodeSelector"]["example.com/pool"], "training");
}

#[test]
fn inspect_prints_the_policy_file_a_plugin_needs() {
    let inspect = |more: &[&str]| {
        let site = test_plugin("site");
        let arguments = [&["plugin", "inspect", &site], more].concat();
        stdout(&trainyard(Path::new("."), &arguments))
    };
    let claim = "pod-sets[@trainer].node-selector[example.com/pool]";
    let shown = inspect(&[]);
    assert!(
        shown.contains(&format!("  writes {claim} (needs a grant)\n")),
        "{shown}"
    );
    assert_eq!(shown.matches("(needs a grant)").count(), 1, "{shown}");
    let json: Value = serde_json::from_str(&inspect(&["-o", "json"])).unwrap();
    assert_eq!(json["neededGrants"], serde_json::json!([claim]));
    let policy = inspect(&["--policy"]) + "  after: [torch]\n";
    for policy in [policy.clone(), policy.replace("# digest:", "digest:")] {
        let (pod, _) = site_pod(&policy);
        assert_eq!(
            pod["nodeSelector"]["example.com/pool"], "training",
            "{policy}"
        );
    }
}

#[test]
fn configuration_reaches_its_plugin_if_the_schema_allows_it() {
    let with = |config: &str| site_policy(&format!("{SITE_NEEDS}, config: {config}"), "");
    let proxy = |config: &str| site_pod(&with(config)).1("SITE_PROXY");
    assert_eq!(proxy("{}"), None);
    assert_eq!(
        proxy("{proxy: 'http://proxy:3128'}").as_deref(),
        Some("http://proxy:3128")
    );
    let error = site_refused(&with("{proxy: 3128}"));
    assert!(
        error.contains("plugin site") && error.contains("`config` in the policy file"),
        "{error}"
    );
}

#[test]
fn before_and_after_order_two_writers_of_one_path() {
    let grant = "grants: ['pod-sets[@trainer].node-selector[example.com/pool]']";
    let error = site_refused(&site_policy(grant, ""));
    assert!(
        error.contains("site") && error.contains("torch") && error.contains("PET_NNODES"),
        "{error}"
    );
    for (order, last) in [("before", "2"), ("after", "site")] {
        let (_, env) = site_pod(&site_policy(&format!("{grant}, {order}: [torch]"), ""));
        assert_eq!(env("PET_NNODES").as_deref(), Some(last), "{order}");
    }
}

#[test]
fn excluded_plugins_do_not_conflict_and_never_run_together() {
    let grant = "grants: ['pod-sets[@trainer].node-selector[example.com/pool]']";
    let policy = site_policy(&format!("{grant}, excludes: [torch]"), "");
    let error = site_refused(&policy);
    assert!(
        error.contains("plugins `site` and `torch` are both active, and the policy file excludes one where the other is")
            && !error.contains("both write"),
        "{error}"
    );
    let alone = job("mlPolicy: {numNodes: 2}, plugins: [{name: site}],");
    let site = test_plugin("site");
    stdout(&run(&["render", "--plugin", &site], &policy, &alone));
}

#[test]
fn disabled_plugin_fails_only_train_jobs_that_name_it() {
    let without_torch = policy("disabled: true");
    let beside = without_torch.replace("}]", &format!("}}, {{name: site, {SITE_NEEDS}}}]"));
    let error = site_refused(&beside);
    assert!(
        error.contains("spec.mlPolicy.torch: no loaded plugin handles this policy: the plugin `torch` is disabled in the policy file"),
        "{error}"
    );
    let error = site_refused(&site_policy("disabled: true", ""));
    assert!(
        error.contains(
            "no loaded plugin has the name `site`: the plugin `site` is disabled in the policy file"
        ),
        "{error}"
    );
    let neither = job("mlPolicy: {numNodes: 2},");
    stdout(&run(&["plan"], &without_torch, &neither));
    // Without a TrainJob, `plan` reports it.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("policy.yaml"), without_torch).unwrap();
    let table = stdout(&trainyard(
        folder.path(),
        &["plan", "--policy", "policy.yaml"],
    ));
    assert!(
        table.contains("\ndisabled: torch (policy file)\n"),
        "{table}"
    );
}

#[test]
fn cluster_domain_is_taken_from_the_file() {
    for (file, domain) in [
        ("", "cluster.local"),
        ("clusterDomain: k8s.example.com", "k8s.example.com"),
    ] {
        let (_, env) = site_pod(&site_policy(SITE_NEEDS, file));
        assert_eq!(env("SITE_DOMAIN").as_deref(), Some(domain));
    }
}

#[test]
fn limit_ends_only_the_calls_of_its_plugin() {
    let error = site_refused(&site_policy(
        &format!("{SITE_NEEDS}, limits: {{writes: 2}}"),
        "",
    ));
    assert!(
        error.contains("plugin site 0.1.0")
            && error.contains("used up its 2 writes; `limits.writes` in the policy file raises it"),
        "{error}"
    );
}

/// The standard error of a command, which must refuse its input.
fn refused(command: &str, policy: impl AsRef<[u8]>, input: &str) -> String {
    refused_with(&[command], policy, input)
}

fn refused_with(arguments: &[&str], policy: impl AsRef<[u8]>, input: &str) -> String {
    let output = run(arguments, policy, input);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

const NO_JOB: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";

fn policy(of_torch: &str) -> String {
    format!(
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{{name: torch, {of_torch}}}]"
    )
}

#[test]
fn pinned_digest_is_required() {
    let wanted = format!("sha256:{}", "0".repeat(64));
    let error = refused("plan", policy(&format!("digest: \"{wanted}\"")), NO_JOB);
    assert!(
        error.contains(&format!(
            "only the digest {wanted} is accepted under this name"
        )),
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

/// The errors of a policy file.
fn errors(policy: impl AsRef<[u8]>) -> Vec<String> {
    let said = refused("plan", policy, NO_JOB);
    let errors = said
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
                "is empty; it must begin with `apiVersion: trainyard.dev/v1alpha1` and `kind: PolicyFile`",
            ],
        ),
        (
            with(&format!("---\n{header}")),
            vec!["contains 2 YAML documents; merge them into one"],
        ),
        (too_large, vec!["is larger than 1048576 bytes"]),
        (
            vec![0xff, 0xfe, b'a', 0],
            vec!["is not UTF-8 text (it begins as UTF-16 does): save it as UTF-8"],
        ),
        (b"kind: [".to_vec(), vec!["line 1, column 8: "]),
        (
            b"kind: PolicyFile\nplugins: [{grants: 5}]".to_vec(),
            vec![
                "plugins[0].grants: is 5; it must be a list",
                "plugins[0].name: is missing",
                "apiVersion: is missing",
            ],
        ),
        (
            with("plugins: [{name: a, limits: {fuel: 0}}, {name: b, limits: {feul: 1}}]"),
            vec![
                "plugins[0].limits.fuel: is 0; it must be at least 1",
                "plugins[1].limits.feul: unknown field; did you mean `fuel`?",
            ],
        ),
        (
            with("plugins: [{name: a}, {name: b, grants: ['labels[team]', 'pod-sets[']}]"),
            vec!["plugins[1].grants[1]: "],
        ),
        (
            with("plugins: [{name: a}, {name: b, limits: {fuel: 1e30}}]"),
            vec!["plugins[1].limits.fuel: "],
        ),
        (
            with("plugins: [{name: a}, {name: b}, {name: a}, {name: b}]"),
            vec![
                "plugins[2].name: `a` is there twice, in plugins[0] first: make one entry of the two",
                "plugins[3].name: `b` is there twice, in plugins[1] first: make one entry of the two",
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
                "plugins[0].before[0]: no loaded plugin has the name `tracer`; loaded are dra, flux, mpi, torch; load the plugin, or take it out of the policy file",
                "plugins[0].excludes[0]: no loaded plugin has the name `torhc`; did you mean `torch`?",
            ],
        ),
    ] {
        assert_eq!(errors(&file), wanted);
        // A controller does not start either, and reports it before it connects to a cluster.
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
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        for wanted in wanted {
            assert!(said.contains(&format!("policy.yaml:3: {wanted}")), "{said}");
        }
    }
}

#[test]
fn refused_plugin_is_not_reported_as_unknown() {
    let unknown = "no loaded plugin has the name `nccl`";
    let names_nccl =
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{name: nccl}]";
    assert!(refused("plan", names_nccl, NO_JOB).contains(unknown));
    // The refused file may be the plugin that the policy file names.
    let said = refused_with(&["plan", "--plugin", "nccl.wasm"], names_nccl, NO_JOB);
    assert!(
        said.contains("error: nccl.wasm: ") && !said.contains(unknown),
        "{said}"
    );
}

#[test]
fn two_plugins_with_one_name_are_reported_with_their_files() {
    let torch = concat!(env!("OUT_DIR"), "/torch.wasm");
    let granted = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{name: torch, grants: ['pod-sets[@trainer].containers[node].command']}]";
    let said = refused_with(&["plan", "--plugin", torch], granted, NO_JOB);
    let wanted = format!(
        "error: the plugin file {torch} has the name `torch`, as the built-in plugin has: a run has one plugin of a name"
    );
    assert!(said.lines().any(|line| line == wanted), "{said}");
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
        let said = refused_with(&arguments, policy("limits: {}"), NO_JOB);
        let wanted = format!("error: the plugin file {second} is given twice: give it once");
        assert_eq!(
            said.lines().filter(|line| **line == wanted).count(),
            1,
            "{said}"
        );
        // Errors of the input, and of the file itself, are reported once.
        let errors = said.lines().filter(|line| line.starts_with("error: "));
        assert_eq!(errors.count(), 3, "{said}");
    }
}

/// No error hides another: those of the schema, of paths and limits, of names, and duplicates are reported in one run.
#[test]
fn errors_of_every_kind_are_reported_in_one_run() {
    let long = "a".repeat(64);
    let file = format!(
        "apiVersion: trainyard.dev/v1alpha1
kind: PolicyFile
clusterDomian: x
clusterDomain: cluster.{long}
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
        "accelerators[3]: `gpu` is no name of a device's resource: write one as `example.com/gpu`, ",
        "accelerators[4]: `nvidia.com/g pu` is no name ",
        "accelerators[5]: `*` is no name ",
        "accelerators[6]: `Example.com/gpu` is no name ",
        "accelerators[7]: is 5; it must be a string",
        "clusterDomain: `cluster.aaaa",
        "clusterDomian: unknown field; did you mean `clusterDomain`?",
        "facts.Site/Region: is not a name of a fact; ",
        "facts.host/version: names that begin with `host/` are the host's own",
        "facts.site/rack: is 7; it must be a string",
        "plugins[0].grants[1]: ",
        "plugins[0].limits.fuel: ",
        "plugins[0].limits.wallClockMs: is 1; it must be at least 10",
        "plugins[1].digest: ",
        "plugins[1].grants[0]: ",
        "plugins[1].grants[1]: is 7; it must be a string",
        "plugins[1].limits.feul: unknown field; did you mean `fuel`?",
        "plugins[1].limits.handles: ",
        "plugins[2].before[0]: `a` can't run before itself",
        "plugins[2].disabled: is 1; it must be ",
        "plugins[2].excludes[1]: `a` excludes itself: to leave it out, set `disabled: true`",
        "plugins[2].name: `a` is there twice, in plugins[0] first: make one entry of the two",
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.starts_with(wanted), "{found}\n{wanted}");
    }
}

#[test]
fn facts_reach_the_plugins_that_read_them() {
    let region = |facts: &str| site_pod(&site_policy(SITE_NEEDS, facts)).1("SITE_REGION");
    assert_eq!(region(""), None);
    assert_eq!(region("facts: {site/zone: a}"), None);
    let north = region("facts: {site/region: 'north-3', site/zone: a}");
    assert_eq!(north.as_deref(), Some("north-3"));
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
            "facts: the facts have 32769 bytes, names and texts together, and 32768 at most may be set; leave some out"
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
