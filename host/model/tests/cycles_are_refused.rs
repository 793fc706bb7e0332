//! Plugins that depend on each other in a cycle are refused when they are loaded, with the cycle.

use serde_json::{Value, json};
use trainyard_model::plan::{Generation, PlanError};

use crate::common::plans::{apart, errors, of, of_with, order};

/// Each reads the names of all containers and adds one: an order that is declared says who sees whom.
#[test]
fn declared_order_breaks_a_cycle_of_container_plugins() {
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
                "`after: [b]` for `a`",
                "`after: [a]` for `b`",
                "`excludes: [b]` for `a`",
                "`disabled: true` for `a`",
            ] {
                assert!(error.contains(way_out), "{error}");
            }
            let declared = adder("a", json!({"after": ["b"]}));
            assert_eq!(order([declared, adder("b", json!({}))]), ["b", "a"]);
        }
    }
    // What is in the other's container is another path, and so is a list to which only the other adds.
    for (reads, creates, others) in [
        (
            "pod-sets[*].containers[of-b].image",
            "pod-sets[*].containers[of-a]",
            "pod-sets[*].containers[of-b]",
        ),
        (
            "pod-sets[*].containers[#]",
            "pod-sets[*].init-containers[of-a]",
            "pod-sets[*].containers[of-b]",
        ),
        (
            "pod-sets[*].containers[#]",
            "pod-sets[launcher].containers[of-a]",
            "pod-sets[node].containers[of-b]",
        ),
    ] {
        let looker = of_with(
            "a",
            &[("reads", reads), ("creates", creates)],
            json!({"before": ["b"]}),
        );
        let other = of("b", &[("creates", others)]);
        assert_eq!(errors([looker, other]).len(), 1, "{creates} {others}");
    }
}

/// Neither reads, and no order is declared, so only the operator can break the cycle.
#[test]
fn plugins_that_write_into_each_others_containers_are_a_cycle() {
    let writer = |name: &str, other: &str| {
        let creates = format!("pod-sets[*].containers[of-{name}]");
        let writes = format!("pod-sets[*].containers[of-{other}].env[X]");
        of(name, &[("creates", &creates), ("writes", &writes)])
    };
    let [error] = &errors([writer("a", "b"), writer("b", "a")])[..] else {
        panic!()
    };
    assert_eq!(
        *error,
        "these plugins depend on each other in a cycle: a creates `pod-sets[*].containers[of-a].env[X]`, which b depends on; b creates `pod-sets[*].containers[of-b].env[X]`, which a depends on; set one of these in a PolicyPlugin: `excludes: [b]` for `a` to refuse TrainJobs that use both, `disabled: true` for `a` or `disabled: true` for `b` to disable one"
    );
}

#[test]
fn contradicting_declarations_are_a_cycle() {
    let a = of_with("a", &[("writes", "labels[x]")], json!({"after": ["z"]}));
    let z = of_with("z", &[("writes", "labels[x]")], json!({"after": ["a"]}));
    let [error] = &errors([a, z])[..] else {
        panic!()
    };
    assert_eq!(
        *error,
        "these plugins depend on each other in a cycle: a is declared to run before z; z is declared to run before a; remove or reverse a declared order, or set one of these in a PolicyPlugin: `excludes: [z]` for `a` to refuse TrainJobs that use both, `disabled: true` for `a` or `disabled: true` for `z` to disable one"
    );
}

#[test]
fn cycle_is_refused_and_shown_once() {
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
            "these plugins depend on each other in a cycle: a writes `labels[a]`, which b depends on; b writes `labels[b]`, which c depends on; c writes `labels[c]`, which a depends on; read from the base record (`context.base`), which needs no claim, or set one of these in a PolicyPlugin: `excludes: [b]` for `a` or `excludes: [c]` for `a` or `excludes: [c]` for `b` to refuse TrainJobs that use both, `disabled: true` for `a` or `disabled: true` for `b` or `disabled: true` for `c` to disable one"
        ]
    );
}

#[test]
fn cycle_between_members_of_one_union_is_ignored() {
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

#[test]
fn cycle_between_excluded_plugins_is_ignored() {
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
    // Exclusions of a plugin that is only after the cycle do not open it.
    let after = link("e", "labels[d]", "labels[e]", &["a", "b"]);
    assert_eq!(errors(ring(&[]).into_iter().chain([after])).len(), 1);
}

/// As many pairs as there can be, in cycles that none of them opens: searching ends, and what is found is a cycle.
#[test]
fn cycle_search_with_many_exclusions_is_bounded() {
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
    // Whether the members are distinguished or not, the cycle includes all of them or none.
    if let Err(errors) = Generation::new(ring) {
        assert!(
            errors
                .iter()
                .all(|error| matches!(error, PlanError::Cycle { .. }))
        );
    }
}
