//! The mock host returns what the host would: errors with the missing claim, grants, lookups, objects and warnings.

use std::cell::Cell;

use serde_json::json;
use trainyard_sdk::{
    Build, Check, Context, Failure, KeyFile, Mount, Phases, PluginParts, Port, Transform,
    mock::{MockJob, Outcome},
};

struct Scripts;

impl Transform for Scripts {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let topology = ctx.lookups().get("v1", "ConfigMap", "topology");
        let zone = topology.and_then(|map| map.text("/data/zone"));
        ctx.because("the topology says so");
        for pod_set in ctx.info().nodes() {
            let node = pod_set.container("node").ok_or("no node")?;
            node.default_env("ZONE", &zone.clone().unwrap_or_default());
            node.put_port(&Port::tcp(9000).named("metrics"));
            let files = [KeyFile::new("run.sh", "bin/run.sh").mode(0o555)];
            pod_set.put_own_config_map("scripts", "-scripts", Some(0o444), &files);
            node.put_mount(
                &Mount::new("scripts", "/scripts")
                    .sub_path("bin")
                    .read_only(),
            );
        }
        ctx.log("debug", "done");
        Ok(())
    }
}

impl Build for Scripts {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let map = ctx.objects().emit("v1", "ConfigMap", "-scripts", None);
        map.append("run.sh", "echo ");
        map.append("run.sh", &ctx.job().nodes().to_string());
        Ok(())
    }
}

impl Check for Scripts {
    fn check(ctx: &Context) {
        if ctx.job().nodes() > 2 {
            ctx.warn("many nodes", Some("spec.trainer.numNodes"));
        }
        if ctx.job().suspended() {
            ctx.error("can't wait", None);
        }
    }
}

const CLAIMS: &str = r#"{"name":"scripts","activeWhen":"plugins","claims":{
    "reads":["lookups[v1/ConfigMap/topology]"],
    "writes":["pod-sets[*].containers[node].env[ZONE]","pod-sets[*].containers[node].ports[9000/TCP]",
        "pod-sets[*].containers[node].mounts[/scripts]","pod-sets[*].volumes[scripts]","objects[v1/ConfigMap/-scripts]"]}}"#;

const fn plugin(manifest: &'static str) -> PluginParts {
    PluginParts {
        manifest,
        parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform","build","check"]}"#,
        phases: Phases {
            transform: Some(Scripts::transform),
            build: Some(Scripts::build),
            check: Some(Scripts::check),
        },
    }
}

fn job() -> MockJob {
    MockJob::new("bert").trainer(3, |c| c.image("busybox"))
}

fn topology() -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "topology"}, "data": {"zone": "a"}})
}

fn node(outcome: &Outcome, field: &str) -> Option<serde_json::Value> {
    outcome.value(&format!("pod-sets[node].containers[node].{field}"))
}

#[test]
fn writes_objects_warnings_and_log_are_collected() {
    let outcome = job()
        .object(topology())
        .all_phases(&plugin(CLAIMS))
        .unwrap();
    assert_eq!(node(&outcome, "env[ZONE]"), Some(json!("a")));
    assert_eq!(
        node(&outcome, "ports[9000/TCP]"),
        Some(json!({"name": "metrics", "containerPort": 9000}))
    );
    assert_eq!(
        node(&outcome, "mounts[/scripts]"),
        Some(
            json!({"name": "scripts", "mountPath": "/scripts", "subPath": "bin", "readOnly": true})
        )
    );
    let volume = outcome.value("pod-sets[node].volumes[scripts]").unwrap();
    assert_eq!(
        volume.pointer("/configMap/items"),
        Some(&json!([{"key": "run.sh", "path": "bin/run.sh", "mode": 0o555}]))
    );
    assert_eq!(
        outcome
            .reason("pod-sets[node].containers[node].env[ZONE]")
            .as_deref(),
        Some("the topology says so")
    );
    let texts: Vec<_> = outcome
        .objects()
        .iter()
        .filter_map(|object| object.text("run.sh"))
        .collect();
    assert_eq!(texts, ["echo 3"]);
    assert_eq!(outcome.warnings(), ["spec.trainer.numNodes: many nodes"]);
    assert_eq!(outcome.errors(), Vec::<String>::new());
    assert_eq!(outcome.log(), ["debug: done"]);
}

#[test]
fn check_errors_are_returned_with_the_writes() {
    let outcome = job()
        .suspended()
        .object(topology())
        .all_phases(&plugin(CLAIMS))
        .unwrap();
    assert_eq!(outcome.errors(), ["can't wait"]);
    assert!(!outcome.writes().is_empty());
}

#[test]
fn train_job_values_override_defaults() {
    let outcome = MockJob::new("bert")
        .object(topology())
        .pod_set("node", |set| {
            set.ancestor("trainer")
                .container("node", |c| c.train_job_env("ZONE", "b"))
        })
        .transform(&plugin(CLAIMS))
        .unwrap();
    assert_eq!(node(&outcome, "env[ZONE]"), None);
}

#[test]
fn missing_object_is_named() {
    let error = job().transform(&plugin(CLAIMS)).unwrap_err().to_string();
    assert!(
        error.contains("scripts 0.1.0") && error.contains("ConfigMap `topology`"),
        "{error}"
    );
}

#[test]
fn unserved_kind_reads_as_none() {
    let outcome = job()
        .not_served("v1", "ConfigMap")
        .transform(&plugin(CLAIMS))
        .unwrap();
    assert_eq!(node(&outcome, "env[ZONE]"), Some(json!("")));
}

#[test]
fn missing_claim_is_printed_in_manifest_syntax() {
    let manifest = r#"{"name":"scripts","activeWhen":"plugins","claims":{"reads":["lookups[v1/ConfigMap/topology]"]}}"#;
    let error = job()
        .object(topology())
        .transform(&plugin(manifest))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("write `pod-sets[node].containers[node].env[ZONE]`")
            && error.ends_with(r#"add `"pod-sets[@nodes].containers[node].env[ZONE]"` to `claims.writes` in the manifest"#),
        "{error}"
    );
}

#[test]
fn claim_beyond_the_default_grants_needs_a_grant() {
    let manifest = r#"{"name":"scripts","activeWhen":"plugins","claims":{"writes":["pod-sets[*].containers[node].image"]}}"#;
    let error = job().transform(&plugin(manifest)).unwrap_err().to_string();
    assert!(
        error.contains("grants") && error.contains("image"),
        "{error}"
    );
    // Granted, it comes as far as its first touch without a claim.
    let error = job()
        .all_granted()
        .transform(&plugin(manifest))
        .unwrap_err()
        .to_string();
    assert!(error.contains("lookups[v1/ConfigMap/topology]"), "{error}");
}

struct Pinned;

impl Transform for Pinned {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        for pod_set in ctx.info().with_ancestor("trainer") {
            pod_set.put_node_selector("example.com/pool", "training");
            ctx.info().set_label("pinned", "true");
        }
        Ok(())
    }
}

const PINNED: PluginParts = PluginParts {
    manifest: r#"{"name":"pinned","activeWhen":"plugins",
        "claims":{"writes":["pod-sets[@trainer].node-selector[example.com/pool]","labels[pinned]"]}}"#,
    parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform"]}"#,
    phases: Phases {
        transform: Some(Pinned::transform),
        ..Phases::NONE
    },
};

#[test]
fn grants_and_limits_match_a_policy_file() {
    let grant = "pod-sets[@trainer].node-selector[example.com/pool]";
    let error = job().transform(&PINNED).unwrap_err().to_string();
    assert!(error.contains(&format!("grants: [\"{grant}\"]")), "{error}");
    let outcome = job().grants(&[grant]).transform(&PINNED).unwrap();
    let selected = outcome.value("pod-sets[node].node-selector[example.com/pool]");
    assert_eq!(selected, Some(json!("training")));
    let granted = || job().grants(&[grant]);
    for (job, problem) in [
        (
            granted().limit("writes", 1),
            "exceeded its limit of 1 writes",
        ),
        (
            granted().limit("write", 1),
            "the limits are refused: unknown field `write`",
        ),
        (job().grants(&["pod-sets["]), "the grant `pod-sets[`: "),
    ] {
        let error = job.transform(&PINNED).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
        // What `unwrap` prints.
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}

struct Gang;

impl Transform for Gang {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        ctx.keep("region", &ctx.fact("site/region").unwrap_or_default());
        Ok(())
    }
}

impl Build for Gang {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let gang = ["node".to_owned()];
        let map = ctx.objects().emit("v1", "ConfigMap", "-gang", None);
        map.append("region", &ctx.kept("region").unwrap_or_default());
        map.append("members", &ctx.info().gang_members(&gang).to_string());
        for quantity in ctx.info().gang_requests(&gang) {
            map.append(&quantity.resource.replace('/', "_"), &quantity.amount);
        }
        Ok(())
    }
}

const GANG: PluginParts = PluginParts {
    manifest: r#"{"name":"gang","activeWhen":"plugins","claims":{
        "reads":["lookups[v1/LimitRange/*]","lookups[node.k8s.io/v1/RuntimeClass/*]"],
        "writes":["objects[v1/ConfigMap/-gang]"]}}"#,
    parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform","build"]}"#,
    phases: Phases {
        transform: Some(Gang::transform),
        build: Some(Gang::build),
        ..Phases::NONE
    },
};

#[test]
fn gangs_facts_and_kept_texts_are_supported() {
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "range"},
        "spec": {"limits": [{"type": "Container", "default": {"memory": "1Gi"}}]},
    });
    let class = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"},
        "overhead": {"podFixed": {"cpu": "250m"}},
    });
    let outcome = MockJob::new("bert")
        .all_granted()
        .fact("site/region", "north")
        .object(range)
        .object(class)
        .pod_set("node", |set| {
            set.ancestor("trainer")
                .count(4)
                .raw("runtimeClassName", json!("kata"))
                .container("node", |c| {
                    c.limit("nvidia.com/gpu", "8").request("cpu", "2")
                })
        })
        .all_phases(&GANG)
        .unwrap();
    let objects = outcome.objects();
    let object = objects.first().unwrap();
    for (key, text) in [
        ("region", "north"),
        ("members", "4"),
        ("cpu", "9"),
        ("memory", "4Gi"),
        ("nvidia.com_gpu", "32"),
    ] {
        assert_eq!(object.text(key), Some(text), "{key}");
    }
}

thread_local! {
    /// How often `Late` was called in transform.
    static TRANSFORMS: Cell<u32> = const { Cell::new(0) };
}

struct Late;

impl Transform for Late {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        TRANSFORMS.set(TRANSFORMS.get() + 1);
        if ctx.job().suspended() {
            ctx.error("can't wait", None);
        }
        for pod_set in ctx.info().nodes() {
            pod_set.put_own_config_map("late", "-late", None, &[]);
        }
        Ok(())
    }
}

impl Build for Late {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let topology = ctx.lookups().get("v1", "ConfigMap", "topology");
        let zone = topology.and_then(|map| map.text("/data/zone"));
        if let Some(zone) = zone {
            let map = ctx.objects().emit("v1", "ConfigMap", "-late", None);
            map.append("zone", &zone);
        }
        Ok(())
    }
}

const LATE: PluginParts = PluginParts {
    manifest: r#"{"name":"late","activeWhen":"plugins","claims":{
        "reads":["lookups[v1/ConfigMap/topology]"],
        "writes":["pod-sets[*].volumes[late]","objects[v1/ConfigMap/-late]"]}}"#,
    parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform","build"]}"#,
    phases: Phases {
        transform: Some(Late::transform),
        build: Some(Late::build),
        ..Phases::NONE
    },
};

#[test]
fn a_lookup_in_build_starts_over_with_transform() {
    TRANSFORMS.set(0);
    let outcome = job().object(topology()).all_phases(&LATE).unwrap();
    assert_eq!((TRANSFORMS.get(), outcome.objects().len()), (2, 1));
}

#[test]
fn no_phase_follows_one_that_reports_an_error() {
    let outcome = job().suspended().object(topology()).all_phases(&LATE);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.errors(), ["can't wait"]);
    assert!(outcome.objects().is_empty());
}

#[test]
fn an_own_object_that_is_not_emitted_is_an_error() {
    let job = job().not_served("v1", "ConfigMap");
    let error = job.all_phases(&LATE).unwrap_err().to_string();
    let place = "pod-sets[node].volumes[late]: ";
    assert!(
        error.starts_with(place) && error.contains("`bert-late`"),
        "{error}"
    );
}
