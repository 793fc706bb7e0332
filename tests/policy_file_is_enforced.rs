//! The settings of a policy file take effect, for built-in plugins too: grants, limits, configuration, order, the cluster's domain and
//! facts.

use std::{fs, path::Path};

use serde_json::{Value, json};
use trainyard_cluster::with_manifest;

use crate::common::{
    declared_plugin::policy_plugins,
    policy_file::{policy, refused_with, run},
    runtime, stderr, stdout, test_plugin, trainyard,
};

/// A TrainJob with Torch and the plugin `site` of tests/plugins, which shows its settings in the pods.
fn site_job() -> String {
    job("mlPolicy: {numNodes: 2, torch: {}}, plugins: [{name: site}],")
}

/// Returns a TrainJob of a runtime with these fields.
fn job(runtime_spec: &str) -> String {
    let job = "---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job}
spec: {runtimeRef: {name: runtime}}
";
    runtime("name: runtime", runtime_spec, "") + job
}

/// Returns a policy file with these settings of the plugin `site` and these of all plugins.
fn site_policy(of_site: &str, of_file: &str) -> String {
    format!(
        "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{{name: site, {of_site}}}]\n{of_file}"
    )
}

/// The grant that the plugin `site` needs to load, and the order that resolves its conflict.
const SITE_NEEDS: &str =
    "grants: ['pod-sets[@trainer].node-selector[example.com/pool]'], after: [torch]";

/// Returns the rendered pod spec under a policy file, and its env vars by name.
fn site_pod(policy: &str) -> (Value, impl Fn(&str) -> Option<String> + use<>) {
    site_pod_of(policy, &site_job())
}

fn site_pod_of(policy: &str, input: &str) -> (Value, impl Fn(&str) -> Option<String> + use<>) {
    let site = test_plugin("site");
    let arguments = ["render", "-o", "json", "--plugin", &site];
    let output = run(&arguments, policy, input);
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

#[test]
fn default_of_the_rendezvous_port_is_the_operators() {
    for (plugin, var) in [
        ("torch", "PET_MASTER_PORT"),
        ("jax", "JAX_COORDINATOR_ADDRESS"),
        ("xgboost", "DMLC_TRACKER_PORT"),
    ] {
        let policy = format!(
            "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: [{{name: {plugin}, config: {{rendezvousPort: 29600}}}}]"
        );
        let input = job(&format!("mlPolicy: {{numNodes: 2, {plugin}: {{}}}},"));
        let printed = stdout(&run(&["render"], policy, &input));
        assert!(printed.contains("containerPort: 29600"), "{printed}");
        let mut lines = printed.lines();
        assert!(lines.any(|line| line.contains(var)), "{printed}");
        let value = lines.next().unwrap_or_default();
        assert!(value.contains("29600"), "{var}: {value}");
    }
}

#[test]
fn claim_beyond_the_defaults_needs_a_grant() {
    let claim = "pod-sets[@trainer].node-selector[example.com/pool]";
    let error = site_refused(&site_policy("after: [torch]", ""));
    assert!(
        error.contains(&format!("claims to write `{claim}`, which is not granted")),
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
fn one_policy_file_is_printed_for_several_plugins() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| trainyard(folder.path(), arguments);
    let (site, team) = (test_plugin("site"), test_plugin("team"));
    let coscheduling = fs::read(concat!(env!("OUT_DIR"), "/coscheduling.wasm")).unwrap();
    let scheduler = json!({
        "name": "gangs", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform", "build"],
        "operatorConfigSchema": {
            "type": "object",
            "properties": {
                "queue": {"type": "string", "description": "The queue of all gangs."},
                "seconds": {"type": "integer", "default": 60},
            },
            "required": ["queue"],
        },
    });
    let gangs = with_manifest(&coscheduling, &scheduler.to_string()).unwrap();
    fs::write(folder.path().join("gangs.wasm"), gangs).unwrap();
    let printed = stdout(&run(&[
        "plugin",
        "inspect",
        "--policy",
        &site,
        &team,
        "gangs.wasm",
    ]));
    for line in [
        "  # config:\n",
        "  #   \"queue\": ... # string; required; The queue of all gangs.\n",
        "  #   \"seconds\": 60 # integer\n",
    ] {
        assert!(printed.contains(line), "{line:?} is not in {printed}");
    }
    // The operator fills in the configuration.
    let filled = printed
        .replace("  # config:", "  config:")
        .replace("  #   \"queue\": ...", "    \"queue\": all")
        .replace("  #   \"seconds\"", "    \"seconds\"")
        + "---\n"
        + &policy("before: [site]");
    fs::write(folder.path().join("policy.yaml"), filled).unwrap();
    let plugins = [
        "--plugin",
        &site,
        "--plugin",
        &team,
        "--plugin",
        "gangs.wasm",
    ];
    let plan = [&["plan", "--policy", "policy.yaml"][..], &plugins].concat();
    assert!(stdout(&run(&plan)).contains("gangs"));

    let twice = run(&["plugin", "inspect", "--policy", &site, &site]);
    assert!(twice.stdout.is_empty());
    let error = stderr(&twice);
    assert!(error.contains("is the plugin site, like "), "{error}");
    let several = run(&["plugin", "inspect", &site, &team]);
    assert_eq!(
        stderr(&several),
        "error: pass one plugin; only --policy takes several\n"
    );
}

#[test]
fn inspect_lists_why_a_plugin_would_not_be_loaded() {
    let refusals = |plugin: String| -> Vec<String> {
        let arguments = ["plugin", "inspect", "-o", "json", &plugin];
        let json = stdout(&trainyard(Path::new("."), &arguments));
        let inspected: Value = serde_json::from_str(&json).unwrap();
        serde_json::from_value(inspected["refusals"].clone()).unwrap()
    };
    assert_eq!(refusals(test_plugin("team")), [""; 0]);
    let site = refusals(test_plugin("site"));
    // Loading stops at the missing grant. With it, the conflict with a built-in plugin is next.
    let granted = "grants: ['pod-sets[@trainer].node-selector[example.com/pool]']";
    let errors = ["after: []", granted].map(|more| site_refused(&site_policy(more, "")));
    assert_eq!(site.len(), errors.len(), "{site:?}");
    for (refusal, error) in site.iter().zip(errors) {
        assert!(error.contains(refusal), "{refusal}\n{error}");
    }
}

/// Whatever a policy file grants, a component with several memories or with too many instances cannot run.
#[test]
fn inspect_refuses_components_that_cannot_run() {
    let two_memories = b"\0asm\x01\0\0\0\x05\x05\x02\0\x01\0\x01";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plugin.wasm");
    let plugin = fs::read(test_plugin("team")).unwrap();
    let of_components = [
        ("memories", with_module(&plugin, two_memories, 0)),
        ("instances", with_module(&plugin, b"\0asm\x01\0\0\0", 100)),
    ];
    for (problem, component) in of_components {
        fs::write(&file, component).unwrap();
        let load = ["plan", "--plugin", file.to_str().unwrap()];
        let refused = stderr(&trainyard(folder.path(), &load));
        assert!(refused.contains(problem), "{refused}");
        for more in [&[][..], &["-o", "json"], &["--policy"]] {
            let inspect = [&["plugin", "inspect", file.to_str().unwrap()], more].concat();
            let output = trainyard(folder.path(), &inspect);
            assert_eq!(output.status.code(), Some(1));
            assert!(output.stdout.is_empty());
            assert_eq!(stderr(&output), refused);
        }
    }
}

/// Adds a core module at the end of a component, and up to 127 instances of it.
fn with_module(component: &[u8], module: &[u8], instances: u8) -> Vec<u8> {
    let length = |rest: &[u8]| {
        let bytes = rest.iter().take_while(|byte| **byte >= 128).count() + 1;
        let digits = rest.iter().take(bytes).rev();
        let value = digits.fold(0, |value, byte| value << 7 | usize::from(byte & 127));
        (bytes, value)
    };
    let (mut rest, mut modules) = (&component[8..], 0);
    while let [id, after @ ..] = rest {
        modules += u8::from(*id == 1);
        let (bytes, size) = length(after);
        rest = &after[bytes + size..];
    }
    let section = |id: u8, content: Vec<u8>| {
        let (low, high) = (content.len() as u8 & 127 | 128, (content.len() >> 7) as u8);
        [vec![id, low, high], content].concat()
    };
    let list = [vec![instances], [0, modules, 0].repeat(instances.into())].concat();
    [
        component.to_vec(),
        section(1, module.to_vec()),
        section(2, list),
    ]
    .concat()
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
        error.contains("plugin site") && error.contains("`config` in its PolicyPlugin"),
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
        error.contains("plugins `site` and `torch` are both active for this TrainJob, but a PolicyPlugin excludes the combination")
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
    let beside = policy_plugins(&format!(
        "[{{name: torch, disabled: true}}, {{name: site, {SITE_NEEDS}}}]"
    ));
    let error = site_refused(&beside);
    assert!(
        error.contains("spec.mlPolicy.torch: no loaded plugin handles this policy: the plugin `torch` is disabled in its PolicyPlugin"),
        "{error}"
    );
    let error = site_refused(&site_policy("disabled: true", ""));
    assert!(
        error.contains(
            "no loaded plugin has the name `site`: the plugin `site` is disabled in its PolicyPlugin"
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
        table.contains("\ndisabled: torch (PolicyPlugin)\n"),
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
            && error.contains(
                "exceeded its limit of 2 writes; raise `limits.writes` in its PolicyPlugin"
            ),
        "{error}"
    );
}

#[test]
fn facts_reach_the_plugins_that_read_them() {
    let region = |facts: &str| site_pod(&site_policy(SITE_NEEDS, facts)).1("SITE_REGION");
    assert_eq!(region(""), None);
    assert_eq!(region("facts: {site/zone: a}"), None);
    let north = region("facts: {site/region: 'north-3', site/zone: a}");
    assert_eq!(north.as_deref(), Some("north-3"));
}

/// The catalog is one namespace, and an object that is not in it does not exist.
#[test]
fn catalog_is_the_operators_namespace() {
    let racks = |namespace: &str| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: racks{namespace}}}\ndata: {{rack: r7}}\n"
        )
    };
    let named = site_policy(SITE_NEEDS, "catalogNamespace: shared\n");
    let without = site_policy(SITE_NEEDS, "");
    for (policy, namespace, found) in [
        (&named, ", namespace: shared", true),
        (&named, ", namespace: other", false),
        (&named, "", false),
        (&without, ", namespace: shared", false),
    ] {
        let (_, env) = site_pod_of(policy, &(site_job() + &racks(namespace)));
        let wanted = found.then(|| "r7".to_owned());
        assert_eq!(env("SITE_RACK"), wanted, "{policy}{namespace}");
    }
}

/// A claim on a key of a domain that the operator adds needs a grant by its name.
#[test]
fn operators_change_the_domains_that_controllers_obey() {
    let label = "pod-sets[*].pod-labels[example.com/team]";
    let plugin = test_plugin("team");
    let arguments = ["render", "--plugin", &plugin];
    let policy = |domains: &str, grants: &str| {
        format!(
            "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nobeyedDomains: {domains}\nplugins: [{{name: team, grants: [{grants}]}}]\n"
        )
    };
    let input = job("mlPolicy: {numNodes: 2}, plugins: [{name: team}],");
    let printed = stdout(&run(&arguments, policy("{}", ""), &input));
    assert!(printed.contains("example.com/team"), "{printed}");
    let added = "{add: [example.com]}";
    let refused = refused_with(&arguments, policy(added, ""), &input);
    assert!(
        refused.contains(&format!("`{label}`, which is not granted")),
        "{refused}"
    );
    let all = "'labels[*]', 'pod-sets[*].pod-labels[*]', 'pod-sets[*].pod-annotations[*]'";
    let refused = refused_with(&arguments, policy(added, all), &input);
    assert!(refused.contains("which is not granted"), "{refused}");
    let named = format!(
        "'labels[example.com/team]', '{label}', 'pod-sets[*].pod-annotations[example.com/cost-center]'"
    );
    run(&arguments, policy(added, &named), &input);
}

#[test]
fn grants_without_effect_are_warned_about() {
    let unused = "labels[example.com/unused]";
    let needs = SITE_NEEDS.replace("grants: [", &format!("grants: ['{unused}', "));
    let site = test_plugin("site");
    let output = run(
        &["render", "--plugin", &site],
        site_policy(&needs, ""),
        &site_job(),
    );
    let warned = stderr(&output);
    let wanted = format!("plugins[0].grants[0]: `{unused}` covers no claim of plugin site");
    assert!(warned.contains(&wanted), "{warned}");
    assert!(!warned.contains("grants[1]"), "{warned}");
}
