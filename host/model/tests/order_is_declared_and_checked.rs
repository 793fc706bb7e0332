//! The order of plugins follows from what they declare; what has no order, or two orders, is refused when plugins are
//! loaded; what one TrainJob's values spoil is refused for that TrainJob.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::type_complexity,
    clippy::unwrap_used
)]

use std::{collections::BTreeMap, sync::Arc};

use crate::common::{manifest, plugin, plugin_under, with};
use serde_json::{Value, json};
use trainyard_model::{
    claims::Variables,
    plan::{Because, Generation, PlanError},
    plugin::{Plugin, Settings},
};

const T: &str = "pod-sets[@trainer]";
const C: &str = "pod-sets[@trainer].containers[node]";

fn of(name: &str, claims: &[(&str, &str)]) -> Arc<Plugin> {
    plugin(&manifest(name, claims))
}

fn of_with(name: &str, claims: &[(&str, &str)], more: Value) -> Arc<Plugin> {
    plugin(&with(manifest(name, claims), more))
}

fn errors(plugins: impl IntoIterator<Item = Arc<Plugin>>) -> Vec<String> {
    match Generation::new(plugins) {
        Ok(generation) => panic!("it is accepted: {:?}", generation.edges()),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// The order of those plugins, all active, without configuration.
fn order(plugins: impl IntoIterator<Item = Arc<Plugin>>) -> Vec<String> {
    let generation = Generation::new(plugins).unwrap();
    let names: Vec<_> = generation
        .plugins()
        .map(|p| p.id.name.to_string())
        .collect();
    planned(&generation, &names, &json!({})).unwrap()
}

fn planned<N: AsRef<str>>(
    generation: &Generation,
    names: &[N],
    config: &Value,
) -> Result<Vec<String>, Vec<PlanError>> {
    let variables = Variables {
        job: "llama".into(),
        config: Arc::new(config.clone()),
    };
    let active: BTreeMap<Arc<str>, Variables> = names
        .iter()
        .map(|name| (name.as_ref().into(), variables.clone()))
        .collect();
    let plan = generation.plan(&active)?;
    Ok(plan
        .iter()
        .map(|plugin| plugin.id.name.to_string())
        .collect())
}

#[test]
fn without_a_reason_names_decide() {
    assert_eq!(
        order([
            of("c", &[]),
            of("a", &[("writes", "labels[a]")]),
            of("b", &[("writes", "labels[b]")])
        ]),
        ["a", "b", "c"]
    );
}

#[test]
fn who_reads_a_path_runs_after_everyone_who_writes_it() {
    let (read, write) = (("reads", "labels[x]"), ("writes", "labels[x]"));
    assert_eq!(order([of("a", &[read]), of("z", &[write])]), ["z", "a"]);
    assert_eq!(
        order([
            of("a", &[("reads", "labels[*]")]),
            of("y", &[("writes", "labels[y*]")]),
            of("z", &[write])
        ]),
        ["y", "z", "a"]
    );
    assert_eq!(
        order([of("a", &[("reads", "labels[y]")]), of("z", &[write])]),
        ["a", "z"],
        "another key is no reason"
    );
    let generation = Generation::new([of("a", &[read]), of("z", &[write])]).unwrap();
    assert_eq!(
        generation.edges()[0].to_string(),
        "z writes what a touches at `labels[x]`"
    );
}

#[test]
fn a_name_and_an_ancestor_are_not_proven_apart() {
    let by_ancestor = of("a", &[("reads", "pod-sets[@trainer].volumes[v]")]);
    let by_name = of("z", &[("writes", "pod-sets[launcher].volumes[v]")]);
    assert_eq!(order([by_ancestor.clone(), by_name]), ["z", "a"]);
    let other_ancestor = of(
        "z",
        &[("writes", "pod-sets[@model-initializer].volumes[v]")],
    );
    assert_eq!(order([by_ancestor, other_ancestor]), ["a", "z"]);
}

#[test]
fn keys_are_apart_from_what_they_hold() {
    let keys = of("a", &[("reads", "pod-sets[*].containers[#]")]);
    let inside = of("z", &[("writes", "pod-sets[*].containers[node].env[X]")]);
    assert_eq!(order([keys.clone(), inside]), ["a", "z"]);
    let creator = of("z", &[("creates", "pod-sets[*].containers[new]")]);
    assert_eq!(order([keys, creator]), ["z", "a"]);
    let env_keys = of("a", &[("reads", "pod-sets[*].containers[node].env[#]")]);
    assert_eq!(
        order([
            env_keys,
            of("z", &[("writes", "pod-sets[*].containers[node].env[X]")])
        ]),
        ["z", "a"],
        "a write may add a key"
    );
}

#[test]
fn the_creator_of_a_container_runs_before_those_that_touch_it() {
    let creator = of(
        "z",
        &[("creates", "pod-sets[@trainer].init-containers[fetch]")],
    );
    for (claim, is_after) in [
        (
            ("reads", "pod-sets[node].init-containers[fetch].image"),
            true,
        ),
        (("writes", "pod-sets[*].init-containers[*].env[A]"), true),
        (("reads", "pod-sets[*].init-containers[#]"), true),
        (("writes", "pod-sets[*].containers[*].env[A]"), false),
        (
            ("writes", "pod-sets[*].init-containers[setup].env[A]"),
            false,
        ),
        (
            (
                "writes",
                "pod-sets[@model-initializer].init-containers[fetch].env[A]",
            ),
            false,
        ),
    ] {
        let expected = if is_after { ["z", "a"] } else { ["a", "z"] };
        assert_eq!(
            order([of("a", &[claim]), creator.clone()]),
            expected,
            "{claim:?}"
        );
    }
}

#[test]
fn reads_outside_of_transform_make_no_order() {
    let job = of(
        "a",
        &[
            ("reads", "job[/trainer]"),
            ("reads", "lookups[v1/ConfigMap/*]"),
        ],
    );
    let emitter = of(
        "z",
        &[
            ("writes", "objects[v1/ConfigMap/-a]"),
            ("writes", "labels[x]"),
        ],
    );
    assert_eq!(order([job, emitter]), ["a", "z"]);
}

#[test]
fn two_that_write_one_path_are_refused_by_name_with_the_path_and_the_ways_out() {
    let command = format!("{C}.command");
    let both = || {
        [
            of("flux", &[("writes", &command)]),
            of(
                "profiler",
                &[("writes", "pod-sets[*].containers[*].command")],
            ),
        ]
    };
    let [error] = &errors(both())[..] else {
        panic!()
    };
    assert_eq!(
        *error,
        format!(
            "plugins `flux` and `profiler` both write `{command}` (`flux` claims `{command}`, `profiler` claims `pod-sets[*].containers[*].command`): declare `after` in the manifest of one, or set `after`, `excludes` or `disabled` for one in the policy file"
        )
    );
    let creates = ("creates", "pod-sets[*].containers[x]");
    assert!(errors([of("a", &[creates]), of("b", &[creates])])[0].contains("both write"));
    let object = ("writes", "objects[v1/ConfigMap/-a*]");
    assert!(
        errors([
            of("a", &[object]),
            of("b", &[("writes", "objects[v1/ConfigMap/-abc]")])
        ])[0]
            .contains("objects")
    );
}

#[test]
fn a_conflict_names_the_place_where_the_claims_meet() {
    for (a, b, place) in [
        ("labels[te*]", "labels[team]", "labels[team]"),
        ("labels[*]", "labels[te*]", "labels[te*]"),
        (
            "pod-sets[@trainer].volumes[*]",
            "pod-sets[node].volumes[v*]",
            "pod-sets[node].volumes[v*]",
        ),
        (
            "pod-sets[@trainer].containers[*].env[A_*]",
            "pod-sets[*].containers[node].env[A_B*]",
            "pod-sets[@trainer].containers[node].env[A_B*]",
        ),
        (
            "pod-sets[*].containers[*].mounts[/dev/shm/]",
            "pod-sets[*].containers[*].mounts[/dev/*]",
            "pod-sets[*].containers[*].mounts[/dev/shm]",
        ),
    ] {
        for (x, y) in [(a, b), (b, a)] {
            let [error] = &errors([of("x", &[("writes", x)]), of("y", &[("writes", y)])])[..]
            else {
                panic!("{x} and {y}")
            };
            assert!(error.contains(&format!("both write `{place}`")), "{error}");
        }
    }
}

#[test]
fn two_spellings_of_one_mount_path_are_one_path() {
    let mounts = |path: &str| format!("pod-sets[*].containers[node].mounts[{path}]");
    for path in [
        "/dev/shm/",
        "//dev/shm",
        "/dev/./shm",
        "/x/../dev/shm",
        "/dev//sh*",
    ] {
        let one = of("a", &[("writes", &mounts(path))]);
        let other = of("b", &[("writes", &mounts("/dev/shm"))]);
        assert!(
            errors([one, other])[0].contains("mounts[/dev/shm]"),
            "{path}"
        );
    }
    let variable = of("a", &[("writes", &mounts("$config./path"))]);
    let literal = of("b", &[("writes", &mounts("/data"))]);
    let generation = Generation::new([variable, literal]).unwrap();
    planned(&generation, &["a", "b"], &json!({"path": "/data/"})).unwrap_err();
    planned(&generation, &["a", "b"], &json!({"path": "/data/x"})).unwrap();
}

#[test]
fn node_sets_of_two_plugins_that_can_be_active_together_are_a_conflict() {
    let of = |name: &str, when: &str| {
        let node_sets = json!([{"podSet": name, "when": "/on"}]);
        of_with(
            name,
            &[],
            json!({"activeWhen": when, "nodeSets": node_sets}),
        )
    };
    let [error] = &errors([of("a", "plugins"), of("mpi", "mlPolicy.mpi")])[..] else {
        panic!()
    };
    assert!(
        error.starts_with("plugins `a` and `mpi` both have `nodeSets`"),
        "{error}"
    );
    assert!(
        error.ends_with("or set `excludes` or `disabled` for one in the policy file"),
        "{error}"
    );
    Generation::new([of("flux", "mlPolicy.flux"), of("mpi", "mlPolicy.mpi")]).unwrap();
    let without = of_with("a", &[], json!({}));
    Generation::new([without, of("mpi", "mlPolicy.mpi")]).unwrap();
}

/// Each reads the names of all containers and adds one: an order that is declared says who sees whom.
#[test]
fn a_declared_order_breaks_the_cycle_of_two_that_list_and_add_containers() {
    for list in ["containers", "init-containers"] {
        for read in ["#", "*"] {
            let adder = |name: &str, more: Value| {
                let reads = format!("pod-sets[*].{list}[{read}]");
                let creates = format!("pod-sets[@trainer].{list}[of-{name}]");
                of_with(name, &[("reads", &reads), ("creates", &creates)], more)
            };
            let [error] = &errors([adder("a", json!({})), adder("b", json!({}))])[..] else {
                panic!()
            };
            assert!(error.contains("depend on each other in a cycle"), "{error}");
            for way_out in [
                "context.base",
                "declare `after`",
                "`excludes`",
                "`disabled`",
            ] {
                assert!(error.contains(way_out), "{error}");
            }
            let declared = adder("a", json!({"after": ["b"]}));
            assert_eq!(order([declared, adder("b", json!({}))]), ["b", "a"]);
        }
    }
    // What is in the other's container is another path.
    let looker = of_with(
        "a",
        &[
            ("reads", "pod-sets[*].containers[of-b].image"),
            ("creates", "pod-sets[*].containers[of-a]"),
        ],
        json!({"before": ["b"]}),
    );
    let other = of("b", &[("creates", "pod-sets[*].containers[of-b]")]);
    assert_eq!(errors([looker, other]).len(), 1);
}

#[test]
fn after_and_before_order_what_both_write() {
    let write = [("writes", "labels[x]")];
    for (a, z) in [
        (json!({"after": ["z"]}), json!({})),
        (json!({}), json!({"before": ["a"]})),
        (json!({"after": ["z"]}), json!({"before": ["a"]})),
    ] {
        assert_eq!(
            order([of_with("a", &write, a), of_with("z", &write, z)]),
            ["z", "a"]
        );
    }
}

#[test]
fn what_the_operator_declares_counts_before_what_manifests_say() {
    let write = [("writes", "labels[x]")];
    let settings = Settings {
        after: vec!["z".to_owned()],
        ..Settings::built_in()
    };
    let a = plugin_under(
        &with(manifest("a", &write), json!({"before": ["z"]})),
        settings,
    );
    assert_eq!(order([a, of("z", &write)]), ["z", "a"]);
}

#[test]
fn a_declared_order_replaces_the_derived_one_where_both_write_and_nowhere_else() {
    let write = ("writes", "labels[x]");
    // Both read and write x: readers after writers would be a cycle.
    let a = of_with(
        "a",
        &[write, ("reads", "labels[x]")],
        json!({"after": ["z"]}),
    );
    assert_eq!(
        order([a, of("z", &[write, ("reads", "labels[x]")])]),
        ["z", "a"]
    );
    // z reads y, which a alone writes: that z runs first can't be.
    let a = of_with(
        "a",
        &[write, ("writes", "labels[y]")],
        json!({"after": ["z"]}),
    );
    let [error] = &errors([a, of("z", &[write, ("reads", "labels[y]")])])[..] else {
        panic!()
    };
    assert_eq!(
        *error,
        "these plugins depend on each other in a cycle: a writes what z touches at `labels[y]`; z is declared to run before a; read from the base record (`context.base`), which needs no claim, take a declared order back, or set `excludes` or `disabled` for one in the policy file"
    );
}

#[test]
fn declarations_against_each_other_are_a_cycle() {
    let a = of_with("a", &[("writes", "labels[x]")], json!({"after": ["z"]}));
    let z = of_with("z", &[("writes", "labels[x]")], json!({"after": ["a"]}));
    let [error] = &errors([a, z])[..] else {
        panic!()
    };
    assert_eq!(
        *error,
        "these plugins depend on each other in a cycle: a is declared to run before z; z is declared to run before a; take a declared order back, or set `excludes` or `disabled` for one in the policy file"
    );
}

#[test]
fn a_cycle_is_refused_and_shown_once() {
    let reads_writes = |name, read, write| of(name, &[("reads", read), ("writes", write)]);
    let three = [
        reads_writes("a", "labels[c]", "labels[a]"),
        reads_writes("b", "labels[a]", "labels[b]"),
        reads_writes("c", "labels[b]", "labels[c]"),
        reads_writes("apart", "labels[a]", "labels[d]"),
    ];
    assert_eq!(
        errors(three),
        [
            "these plugins depend on each other in a cycle: a writes what b touches at `labels[a]`; b writes what c touches at `labels[b]`; c writes what a touches at `labels[c]`; read from the base record (`context.base`), which needs no claim, declare `after` between two that both write, or both add containers, there, or set `excludes` or `disabled` for one in the policy file"
        ]
    );
}

#[test]
fn a_cycle_that_needs_two_members_of_one_union_never_comes_up() {
    let ml = |name, when, read, write| {
        of_with(
            name,
            &[("reads", read), ("writes", write)],
            json!({"activeWhen": when}),
        )
    };
    let two = || {
        [
            ml("torch", "mlPolicy.torch", "labels[x]", "labels[t]"),
            ml("jax", "mlPolicy.jax", "labels[t]", "labels[j]"),
            of("x", &[("reads", "labels[j]"), ("writes", "labels[x]")]),
        ]
    };
    Generation::new(two()).unwrap();
    let [torch, _, x] = two();
    let own = ml("jax", "podGroupPolicy.jax", "labels[t]", "labels[j]");
    assert_eq!(errors([torch, own, x]).len(), 1, "of two unions they meet");
}

/// Every plugin is ordered with every other one: a search of all ways through them would not end.
#[test]
fn many_ordered_plugins_are_checked_in_no_time() {
    let plugins = (0..60).map(|n| {
        let reads: Vec<_> = (0..n).map(|m| format!("labels[{m}]")).collect();
        let write = format!("labels[{n}]");
        let mut claims: Vec<_> = reads.iter().map(|path| ("reads", path.as_str())).collect();
        claims.push(("writes", &write));
        of(&format!("p{n:02}"), &claims)
    });
    assert_eq!(order(plugins).len(), 60);
}

#[test]
fn members_of_one_union_are_no_conflict_and_one_switch_is_one_plugin() {
    let write = [("writes", "labels[x]")];
    let torch = of_with("torch", &write, json!({"activeWhen": "mlPolicy.torch"}));
    let jax = of_with("jax", &write, json!({"activeWhen": "mlPolicy.jax"}));
    let own = of_with("own", &write, json!({"activeWhen": "mlPolicy.plugin"}));
    let second = of_with("second", &write, json!({"activeWhen": "mlPolicy.plugin"}));
    Generation::new([torch.clone(), jax, own, second]).unwrap();
    let other = of_with("torch-too", &[], json!({"activeWhen": "mlPolicy.torch"}));
    let [error] = &errors([torch.clone(), other])[..] else {
        panic!()
    };
    assert_eq!(
        *error,
        "plugins `torch` and `torch-too` are both switched on by `mlPolicy.torch`, which means one plugin: leave one out, or disable it in the policy file"
    );
    assert!(errors([torch.clone(), torch])[0].contains("two plugins have the name `torch`"));
}

#[test]
fn variables_clash_for_the_job_that_makes_them_one_path() {
    let variable = of(
        "a",
        &[(
            "writes",
            "pod-sets[*].containers[node].mounts[$config./path]",
        )],
    );
    let literal = of(
        "b",
        &[("writes", "pod-sets[*].containers[*].mounts[/data]")],
    );
    let generation = Generation::new([variable, literal]).unwrap();
    assert_eq!(
        planned(&generation, &["a", "b"], &json!({"path": "/ssh"})).unwrap(),
        ["a", "b"]
    );
    assert_eq!(
        planned(&generation, &["a", "b"], &json!({})).unwrap(),
        ["a", "b"],
        "without a value it means nothing"
    );
    assert_eq!(
        planned(&generation, &["a"], &json!({"path": "/data"})).unwrap(),
        ["a"],
        "b is not active"
    );
    let clash = planned(&generation, &["a", "b"], &json!({"path": "/data"})).unwrap_err();
    let conflict = PlanError::Conflict {
        first: "a".into(),
        first_claim: "pod-sets[*].containers[node].mounts[$config./path]".to_owned(),
        second: "b".into(),
        second_claim: "pod-sets[*].containers[*].mounts[/data]".to_owned(),
        place: "pod-sets[*].containers[node].mounts[/data]".to_owned(),
    };
    assert_eq!(clash, [conflict]);
    let [possible] = &generation.possible_clashes()[..] else {
        panic!()
    };
    assert_eq!(
        possible.to_string(),
        "a writes `pod-sets[*].containers[node].mounts[$config./path]`, b writes `pod-sets[*].containers[*].mounts[/data]`: a TrainJob for which they are one place is refused"
    );
}

#[test]
fn a_variable_in_any_place_of_a_path_is_compared_by_value() {
    let of_job = |path: &str| of("a", &[("writes", path)]);
    for (path, other, clashes) in [
        (
            "pod-sets[$job].volumes[v]",
            "pod-sets[llama].volumes[v]",
            true,
        ),
        (
            "pod-sets[$job].volumes[v]",
            "pod-sets[node].volumes[v]",
            false,
        ),
        (
            "pod-sets[*].containers[$job].image",
            "pod-sets[*].containers[lla*].image",
            true,
        ),
        (
            "pod-sets[*].containers[$job].image",
            "pod-sets[*].containers[node].image",
            false,
        ),
        ("labels[$job]", "labels[$job]", true),
    ] {
        let generation = Generation::new([of_job(path), of("b", &[("writes", other)])]).unwrap();
        assert_eq!(generation.possible_clashes().len(), 1, "{path}");
        assert_eq!(
            planned(&generation, &["a", "b"], &json!({})).is_err(),
            clashes,
            "{path} and {other}"
        );
    }
}

#[test]
fn for_order_a_variable_counts_as_anything_and_declared_pairs_never_clash() {
    let writer = of("z", &[("writes", "labels[$config./key]")]);
    assert_eq!(
        order([of("a", &[("reads", "labels[x]")]), writer.clone()]),
        ["z", "a"]
    );
    let declared = of_with("a", &[("writes", "labels[x]")], json!({"after": ["z"]}));
    let generation = Generation::new([declared, writer]).unwrap();
    assert!(generation.possible_clashes().is_empty());
    assert_eq!(
        planned(&generation, &["a", "z"], &json!({"key": "x"})).unwrap(),
        ["z", "a"]
    );
}

/// The policies of the design, as far as the record has their fields: dns-searches, affinity terms, fs-group and objects
/// other than ConfigMaps are left out.
fn built_ins() -> Vec<Arc<Plugin>> {
    let t = |path: &str| format!("{T}.{path}");
    let c = |path: &str| format!("{C}.{path}");
    let all = |list: &str, path: &str| format!("pod-sets[*].{list}[*].{path}");
    let ps = |path: &str| format!("pod-sets[*].{path}");
    type Claims = Vec<(&'static str, String)>;
    let table: [(&str, &str, Claims); 9] = [
        (
            "dra",
            "resourceClaims",
            vec![
                ("writes", ps("resource-claims[*]")),
                ("writes", all("containers", "resource-claims[*]")),
                ("writes", ps("devices[resource-claim/*]")),
            ],
        ),
        (
            "torch",
            "mlPolicy.torch",
            vec![
                ("reads", t("devices[*]")),
                ("reads", c("requests[*]")),
                ("reads", c("command")),
                ("reads", c("args")),
                ("writes", all("containers", "env[PET_*]")),
                ("writes", all("init-containers", "env[PET_*]")),
                ("writes", c("ports[29500/TCP]")),
                ("writes", c("command")),
            ],
        ),
        (
            "jax",
            "mlPolicy.jax",
            vec![
                ("writes", c("env[JAX_*]")),
                ("writes", c("ports[29500/TCP]")),
            ],
        ),
        (
            "xgboost",
            "mlPolicy.xgboost",
            vec![
                ("reads", t("devices[*]")),
                ("reads", c("requests[*]")),
                ("writes", c("env[DMLC_*]")),
                ("writes", c("ports[29500/TCP]")),
            ],
        ),
        (
            "mpi",
            "mlPolicy.mpi",
            vec![
                ("reads", ps("devices[*]")),
                ("reads", ps("containers[node].requests[*]")),
                ("writes", "pod-sets[node].volumes[mpi-*]".to_owned()),
                ("writes", "pod-sets[launcher].volumes[mpi-*]".to_owned()),
                (
                    "writes",
                    "pod-sets[node].containers[node].mounts[$config./sshAuthMountPath]".to_owned(),
                ),
                (
                    "writes",
                    "pod-sets[launcher].containers[node].mounts[$config./sshAuthMountPath]"
                        .to_owned(),
                ),
                (
                    "writes",
                    "pod-sets[launcher].containers[node].mounts[/etc/mpi]".to_owned(),
                ),
                (
                    "writes",
                    "pod-sets[launcher].containers[node].env[OMPI_MCA_*]".to_owned(),
                ),
                (
                    "writes",
                    "pod-sets[launcher].containers[node].env[PRTE_MCA_*]".to_owned(),
                ),
                (
                    "writes",
                    "pod-sets[launcher].containers[node].env[I_MPI_*]".to_owned(),
                ),
                (
                    "writes",
                    "pod-sets[launcher].containers[node].env[HYDRA_*]".to_owned(),
                ),
            ],
        ),
        (
            "flux",
            "mlPolicy.flux",
            vec![
                ("reads", t("devices[*]")),
                ("reads", c("requests[*]")),
                ("reads", c("env[FLUX_*]")),
                ("creates", t("init-containers[flux-installer]")),
                ("writes", c("command")),
                ("writes", c("args")),
                ("writes", c("mounts[/mnt/flux]")),
                ("writes", c("mounts[/opt/software]")),
                ("writes", c("mounts[/etc/flux-config]")),
                ("writes", c("mounts[/curve]")),
                ("writes", c("mounts[/dev/shm]")),
                ("writes", t("volumes[flux-*]")),
                ("writes", t("volumes[spack-install]")),
                ("writes", t("volumes[shared-memory]")),
            ],
        ),
        (
            "coscheduling",
            "podGroupPolicy.coscheduling",
            vec![("writes", ps("pod-labels[scheduling.x-k8s.io/pod-group]"))],
        ),
        (
            "volcano",
            "podGroupPolicy.volcano",
            vec![(
                "writes",
                ps("pod-annotations[scheduling.k8s.io/group-name]"),
            )],
        ),
        (
            "train-job-status",
            "always",
            vec![
                ("reads", t("containers[#]")),
                ("writes", t("containers[*].env[KUBEFLOW_TRAINER_*]")),
                (
                    "writes",
                    t("containers[*].mounts[/var/run/secrets/kubeflow/trainer]"),
                ),
                ("writes", t("volumes[kubeflow-trainer-token]")),
                ("writes", "objects[v1/ConfigMap/-status]".to_owned()),
            ],
        ),
    ];
    let plugins = table.iter().map(|(name, when, claims)| {
        let claims: Vec<_> = claims
            .iter()
            .map(|(list, path)| (*list, path.as_str()))
            .collect();
        of_with(name, &claims, json!({"activeWhen": when}))
    });
    plugins.collect()
}

#[test]
fn the_policies_of_the_design_have_the_order_that_it_names() {
    let generation = Generation::new(built_ins()).unwrap();
    let config = json!({"sshAuthMountPath": "/root/.ssh"});
    for ml in ["torch", "jax", "mpi", "flux"] {
        assert_eq!(
            planned(
                &generation,
                &["coscheduling", "dra", ml, "train-job-status"],
                &config
            )
            .unwrap(),
            ["coscheduling", "dra", ml, "train-job-status"]
        );
        assert_eq!(
            planned(
                &generation,
                &["dra", ml, "train-job-status", "volcano"],
                &config
            )
            .unwrap(),
            ["dra", ml, "train-job-status", "volcano"]
        );
    }
    assert_eq!(
        planned(
            &generation,
            &["dra", "train-job-status", "volcano", "xgboost"],
            &config
        )
        .unwrap(),
        ["dra", "train-job-status", "volcano", "xgboost"]
    );
}

#[test]
fn the_overview_shows_members_that_stand_in_for_each_other_side_by_side() {
    let generation = Generation::new(built_ins()).unwrap();
    let lines: Vec<Vec<String>> = generation
        .overview()
        .into_iter()
        .map(|line| {
            line.into_iter()
                .map(|slot| slot.names.join(" | "))
                .collect()
        })
        .collect();
    assert_eq!(
        lines,
        [
            vec![
                "coscheduling",
                "dra",
                "flux | jax | mpi | torch",
                "train-job-status",
                "volcano"
            ],
            vec![
                "coscheduling",
                "dra",
                "train-job-status",
                "volcano",
                "xgboost"
            ],
        ]
    );
    let none = Generation::new([of("b", &[]), of("a", &[])])
        .unwrap()
        .overview();
    assert_eq!(none.len(), 1);
    assert_eq!(
        none[0]
            .iter()
            .map(|slot| slot.names.join(""))
            .collect::<String>(),
        "ab"
    );
}

#[test]
fn only_the_ssh_path_of_mpi_may_clash_among_the_policies_of_the_design() {
    let generation = Generation::new(built_ins()).unwrap();
    let clashes = generation.possible_clashes();
    assert!(
        clashes
            .iter()
            .all(|clash| &*clash.first == "mpi" && &*clash.second == "train-job-status"),
        "{clashes:?}"
    );
    assert!(!clashes.is_empty());
    let config = json!({"sshAuthMountPath": "/var/run/secrets/kubeflow/trainer"});
    let refused = planned(&generation, &["mpi", "train-job-status"], &config).unwrap_err();
    assert!(
        refused[0]
            .to_string()
            .contains("`mpi` and `train-job-status` both write"),
        "{refused:?}"
    );
}

#[test]
fn edges_say_why() {
    let generation = Generation::new(built_ins()).unwrap();
    let because = |first: &str, then: &str| {
        let edge = generation
            .edges()
            .iter()
            .find(|edge| &*edge.first == first && &*edge.then == then);
        edge.map(|edge| edge.because.clone())
    };
    let Some(Because::Path { path, .. }) = because("dra", "torch") else {
        panic!()
    };
    assert_eq!(path, "pod-sets[@trainer].devices[*]");
    assert_eq!(because("torch", "dra"), None);
    assert_eq!(because("torch", "flux"), None, "they never meet");
}

/// Plugins under settings that keep the first away from the others.
fn apart(name: &str, claims: &[(&str, &str)], excludes: &[&str]) -> Arc<Plugin> {
    let settings = Settings {
        excludes: excludes.iter().map(|name| (*name).to_owned()).collect(),
        ..Settings::built_in()
    };
    plugin_under(&manifest(name, claims), settings)
}

#[test]
fn plugins_that_are_kept_apart_are_in_no_conflict_and_in_no_train_job_together() {
    let writes = [("writes", "labels[x]")];
    assert_eq!(errors([of("a", &writes), of("b", &writes)]).len(), 1);
    for (a, b) in [
        (apart("a", &writes, &["b"]), of("b", &writes)),
        (of("a", &writes), apart("b", &writes, &["a"])),
    ] {
        let generation = Generation::new([a, b]).unwrap();
        assert_eq!(generation.edges(), []);
        assert_eq!(generation.excluded(), [("a".into(), "b".into())]);
        for alone in ["a", "b"] {
            assert_eq!(planned(&generation, &[alone], &json!({})).unwrap(), [alone]);
        }
        let refused = planned(&generation, &["a", "b"], &json!({})).unwrap_err();
        let said: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "plugins `a` and `b` are both active, and the policy file excludes one where the other is: switch one off in the runtime, or take it out of `excludes`"
            ]
        );
    }
}

#[test]
fn a_cycle_through_plugins_that_are_kept_apart_is_none() {
    let link = |name: &str, reads: &str, writes: &str, excludes: &[&str]| {
        apart(name, &[("reads", reads), ("writes", writes)], excludes)
    };
    let ring = |excludes: &[&str]| {
        [
            link("a", "labels[d]", "labels[a]", excludes),
            link("b", "labels[a]", "labels[b]", &[]),
            link("c", "labels[b]", "labels[c]", &[]),
            link("d", "labels[c]", "labels[d]", &[]),
        ]
    };
    assert_eq!(errors(ring(&[])).len(), 1);
    // Its neighbors, and one that it shares no path with.
    for excluded in ["b", "c", "d"] {
        Generation::new(ring(&[excluded])).unwrap();
    }
}

/// As many pairs as there can be, in cycles that none of them opens: searching ends, and what is found is a cycle.
#[test]
fn many_plugins_that_are_kept_apart_in_pairs_are_searched_in_bounds() {
    let name = |at: usize| format!("p{at:02}");
    let ring = (0..64).map(|at| {
        let (reads, writes) = (
            format!("labels[{at}]"),
            format!("labels[{}]", (at + 1) % 64),
        );
        let excludes = if at < 32 {
            vec![name(at + 32)]
        } else {
            Vec::new()
        };
        let excludes: Vec<_> = excludes.iter().map(String::as_str).collect();
        apart(
            &name(at),
            &[("reads", &reads), ("writes", &writes)],
            &excludes,
        )
    });
    // Whether it is told apart or not, it is a cycle of all or none.
    if let Err(errors) = Generation::new(ring) {
        assert!(
            errors
                .iter()
                .all(|error| matches!(error, PlanError::Cycle { .. }))
        );
    }
}
