//! The order of plugins follows from their declarations, whatever their load order.

use std::sync::Arc;

use serde_json::json;
use trainyard_model::{
    facts::Facts,
    plan::{Candidate, Generation},
    plugin_info::{PluginInfo, Settings},
    record::Accelerators,
};

use crate::common::{
    manifest,
    plans::{errors, of, of_with, order, planned},
    plugin_under, with,
};

#[test]
fn plugins_without_a_constraint_are_ordered_by_name() {
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
fn readers_run_after_writers() {
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
        "z writes `labels[x]`, which a depends on"
    );
}

#[test]
fn name_and_ancestor_selectors_may_overlap() {
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
fn key_sets_do_not_overlap_their_subtrees() {
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
fn creator_of_a_container_runs_before_its_users() {
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
            ("writes", "pod-sets[*].init-containers[@base].env[A]"),
            false,
        ),
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
fn reads_outside_transform_do_not_affect_order() {
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
fn operator_order_overrides_manifests() {
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
fn declared_order_replaces_derived_order_only_where_both_write() {
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
    // `a` writes more than the path that `z` both reads and writes.
    let a = of_with("a", &[("writes", "labels[*]")], json!({"after": ["z"]}));
    assert_eq!(
        order([a, of("z", &[write, ("reads", "labels[x]")])]),
        ["z", "a"]
    );
    // `z` reads `y`, which only `a` writes, so `z` cannot run first.
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
        "these plugins depend on each other in a cycle: a writes `labels[y]`, which z depends on; z is declared to run before a; read from the base record (`context.base`), which needs no claim, remove or reverse a declared order, or set one of these in a PolicyPlugin: `excludes: [z]` for `a` to refuse TrainJobs that use both, `disabled: true` for `a` or `disabled: true` for `z` to disable one"
    );
}

#[test]
fn generation_knows_declared_orders_and_what_runs_after_others() {
    let write = ("writes", "labels[x]");
    let generation = Generation::new([
        of("a", &[write]),
        of_with("b", &[write], json!({"after": ["a"]})),
        of("c", &[("reads", "labels[x]")]),
    ])
    .unwrap();
    for (one, other, is_declared) in [("a", "b", true), ("b", "c", false), ("a", "c", false)] {
        assert_eq!(generation.is_declared(one, other), is_declared);
        assert_eq!(generation.is_declared(other, one), is_declared);
    }
    for (name, others, is_after) in [
        ("b", &["a", "c"][..], true),
        ("c", &["b"], true),
        ("a", &["b", "c"], false),
        ("c", &[], false),
    ] {
        let others = others.iter().copied().collect();
        assert_eq!(generation.is_after_any(name, &others), is_after, "{name}");
    }
}

#[test]
fn preference_breaks_ties_before_names() {
    let plugins = || [of("a", &[]), of("b", &[]), of("c", &[])];
    let preferring = Generation::new(plugins()).unwrap();
    let preferring = preferring.with_preference(["c".into(), "b".into()]);
    let order = planned(&preferring, &["a", "b", "c"], &json!({})).unwrap();
    assert_eq!(order, ["c", "b", "a"]);
}

/// Every plugin is ordered with every other one: a search of all ways through them would not end.
#[test]
fn many_ordered_plugins_are_checked_in_bounded_steps() {
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
fn variables_match_anything_for_order_and_declared_pairs_never_clash() {
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

/// A plugin that counts accelerators, and requests another resource: two of them need no order.
fn fabric(name: &str) -> Arc<PluginInfo> {
    let nic = format!("pod-sets[@nodes].containers[node].limits[example.com/{name}]");
    of(
        name,
        &[("reads", "pod-sets[@nodes].devices[*]"), ("writes", &nic)],
    )
}

#[test]
fn devices_order_only_after_those_who_change_accelerators() {
    let requests = |resource: &str| format!("pod-sets[*].containers[*].requests[{resource}]");
    let first = |path: &str, verb: &'static str| of("z", &[(verb, path)]);
    let alone = Generation::new([fabric("a"), fabric("b")]).unwrap();
    assert!(alone.edges().is_empty(), "{:?}", alone.edges());
    for (verb, path, is_first) in [
        ("writes", requests("nvidia.com/gpu"), true),
        ("writes", requests("nvidia.com/*"), true),
        ("writes", requests("nvidia.com/mig-1g.5gb"), true),
        ("writes", requests("nvidia.com/gpumem"), true),
        ("writes", requests("*"), true),
        ("writes", requests("$config./resource"), true),
        ("writes", requests("example.com/nic"), false),
        (
            "writes",
            "pod-sets[*].containers[other].limits[nvidia.com/gpu]".to_owned(),
            false,
        ),
        (
            "writes",
            "pod-sets[*].init-containers[node].limits[nvidia.com/gpu]".to_owned(),
            false,
        ),
        (
            "writes",
            "pod-sets[*].devices[resource-claim/*]".to_owned(),
            true,
        ),
        (
            "creates",
            "pod-sets[launcher].containers[node]".to_owned(),
            true,
        ),
        (
            "creates",
            "pod-sets[launcher].containers[no*]".to_owned(),
            true,
        ),
        (
            "creates",
            "pod-sets[launcher].containers[helper]".to_owned(),
            false,
        ),
    ] {
        let generation = Generation::new([fabric("a"), first(&path, verb)]).unwrap();
        assert_eq!(!generation.edges().is_empty(), is_first, "{verb} {path}");
    }
    let counts = || of("a", &[("reads", "pod-sets[*].devices[*]")]);
    for (container, is_first) in [("node", true), ("no*", true), ("helper", false)] {
        let path = format!("pod-sets[launcher].containers[{container}]");
        let generation = Generation::new([counts(), first(&path, "creates")]).unwrap();
        assert_eq!(!generation.edges().is_empty(), is_first, "{path}");
    }
    // A claim to write devices includes reading them.
    let sets_devices = of("a", &[("writes", "pod-sets[@nodes].devices[*]")]);
    let gpus = of("z", &[("writes", &requests("nvidia.com/gpu"))]);
    assert_eq!(order([sets_devices, gpus]), ["z", "a"]);
    // A declared order decides between two that both count and write accelerators.
    let counts_and_writes = |name: &str, more| {
        let gpus = requests("nvidia.com/gpu");
        of_with(
            name,
            &[("reads", "pod-sets[*].devices[*]"), ("writes", &gpus)],
            more,
        )
    };
    let declared = counts_and_writes("a", json!({"after": ["b"]}));
    assert_eq!(
        order([declared, counts_and_writes("b", json!({}))]),
        ["b", "a"]
    );
    let error = errors([
        fabric("a"),
        of(
            "gpus",
            &[
                (
                    "reads",
                    "pod-sets[*].containers[node].limits[example.com/a]",
                ),
                (
                    "writes",
                    "pod-sets[*].containers[node].limits[nvidia.com/gpu]",
                ),
            ],
        ),
    ]);
    assert!(
        error[0].contains(
            "gpus writes `pod-sets[*].containers[node].limits[nvidia.com/gpu]`, which a depends on"
        ),
        "{error:?}"
    );
}

#[test]
fn refused_plugins_still_have_an_overview() {
    let accelerators = Accelerators::default();
    let variable = ("writes", "labels[$config./key]");
    let accepted = || [of("a", &[variable]), of("b", &[("writes", "labels[x]")])];
    let generation = Generation::new(accepted()).unwrap();
    let accepted = Candidate::new(accepted(), &accelerators);
    assert!(accepted.errors().is_empty());
    assert_eq!(accepted.possible_clashes(), generation.possible_clashes());
    assert_eq!(accepted.possible_clashes().len(), 1);
    assert_eq!(accepted.overview(), generation.overview());
    assert_eq!(accepted.overview()[0].len(), 2);
    let facts = Facts::default();
    assert_eq!(accepted.digest(&facts), generation.digest(&facts));
    let refused = [of("c", &[variable]), of("d", &[variable])];
    let refused = refused.into_iter().chain([
        of_with(
            "e",
            &[("writes", "labels[y]"), ("reads", "labels[z]")],
            json!({}),
        ),
        of("f", &[("writes", "labels[z]"), ("reads", "labels[y]")]),
    ]);
    let refused = Candidate::new(refused, &accelerators);
    let [error] = refused.errors() else {
        panic!("{:?}", refused.errors())
    };
    assert_eq!(error.plugins(), ["e", "f"]);
    assert_eq!(refused.overview()[0].len(), 2, "without the cycle");
}

#[test]
fn operators_list_of_accelerators_is_what_orders_plugins() {
    let npus = Accelerators::new(["example.com/a"]);
    let ordered = Candidate::new([fabric("a"), fabric("b")], &npus);
    let edges: Vec<_> = ordered.edges().iter().map(ToString::to_string).collect();
    assert_eq!(
        edges,
        ["a writes `pod-sets[@nodes].containers[node].limits[example.com/a]`, which b depends on"]
    );
}
