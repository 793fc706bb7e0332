//! Two plugins that write one path are refused when they are loaded, with both claims and the shared path. If only the values of a TrainJob
//! make two paths equal, only that TrainJob is refused.

use serde_json::json;
use trainyard_model::{
    plan::{Generation, PlanError, SharedPath, SharedPaths},
    plugin_info::Settings,
};

use crate::common::{
    manifest,
    plans::{C, apart, errors, of, of_with, planned},
    plugin_under, with,
};

/// What the error of two that write one path ends in.
fn remedies(a: &str, b: &str) -> String {
    format!(
        "declare `after` or `before` in one of the manifests, or set one of these in a PolicyPlugin: `after: [{b}]` for `{a}` or `after: [{a}]` for `{b}` to order them, `excludes: [{b}]` for `{a}` to refuse TrainJobs that use both, `disabled: true` for `{a}` or `disabled: true` for `{b}` to disable one"
    )
}

#[test]
fn conflict_names_both_plugins_the_path_and_the_resolutions() {
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
            "plugins `flux` and `profiler` both write `{command}` (`profiler` claims `pod-sets[*].containers[*].command`); {}",
            remedies("flux", "profiler")
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

/// An `after` in the other manifest would make a cycle.
#[test]
fn conflict_offers_the_only_order_that_their_other_claims_allow() {
    let [error] = &errors([
        of("nic", &[("writes", "labels[a]"), ("writes", "labels[b]")]),
        of("flux", &[("writes", "labels[a]"), ("reads", "labels[b]")]),
    ])[..] else {
        panic!()
    };
    assert!(
        error.contains("; declare `after: [nic]` in the manifest of `flux` or `before: [flux]` in that of `nic`, or set one of these in a PolicyPlugin: `after: [nic]` for `flux` to order them, "),
        "{error}"
    );
}

#[test]
fn conflict_names_the_path_where_the_claims_overlap() {
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
fn conflict_names_all_shared_paths() {
    let claims =
        ["labels[a]", "labels[b*]", "pod-sets[*].volumes[$job]"].map(|path| ("writes", path));
    let other = ["pod-sets[*].volumes[x]", "labels[*]", "labels[a]"].map(|path| ("writes", path));
    let [error] = &errors([of("x", &claims), of("on", &other)])[..] else {
        panic!()
    };
    // A path of a variable is compared when a TrainJob is planned.
    assert_eq!(
        *error,
        format!(
            "plugins `on` and `x` both write `labels[a]` (`on` claims `labels[*]`) and `labels[b*]` (`on` claims `labels[*]`); {}",
            remedies("on", "x")
                .replace("name: on", "name: \"on\"")
                .replace("[on]", "[\"on\"]")
        )
    );
    let paths: Vec<_> = (0..100).map(|at| format!("labels[l{at}]")).collect();
    let many: Vec<_> = paths.iter().map(|path| ("writes", &**path)).collect();
    let [error] = &errors([of("x", &many), of("y", &many)])[..] else {
        panic!()
    };
    assert!(error.contains("`labels[l0]`, `labels[l1]`, "), "{error}");
    assert!(
        error.contains("`labels[l31]` and 68 more paths; "),
        "{error}"
    );
}

#[test]
fn equivalent_mount_paths_conflict() {
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
fn equivalent_dns_domains_conflict() {
    let searches = |domain: &str| format!("pod-sets[*].dns-searches[{domain}]");
    let one = of("a", &[("writes", &searches("team.svc."))]);
    let other = of("b", &[("writes", &searches("team.svc"))]);
    assert!(errors([one, other])[0].contains("dns-searches[team.svc]"));
}

#[test]
fn node_sets_of_two_active_plugins_conflict() {
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
        error.ends_with("or set one of these in a PolicyPlugin: `excludes: [mpi]` for `a` to refuse TrainJobs that use both, `disabled: true` for `a` or `disabled: true` for `mpi` to disable one"),
        "{error}"
    );
    Generation::new([of("flux", "mlPolicy.flux"), of("mpi", "mlPolicy.mpi")]).unwrap();
    let without = of_with("a", &[], json!({}));
    Generation::new([without, of("mpi", "mlPolicy.mpi")]).unwrap();
}

#[test]
fn members_of_one_union_do_not_conflict_and_activation_is_exclusive() {
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
        "plugins `torch` and `torch-too` are both activated by `mlPolicy.torch`, which can activate only one plugin; remove one of them, or set one of these in a PolicyPlugin: `disabled: true` for `torch` or `disabled: true` for `torch-too` to disable one"
    );
    assert!(errors([torch.clone(), torch])[0].contains("two plugins have the name `torch`"));
}

#[test]
fn variables_clash_only_for_train_jobs_that_make_them_equal() {
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
    let path = SharedPath {
        place: "pod-sets[*].containers[node].mounts[/data]".to_owned(),
        first_claim: "pod-sets[*].containers[node].mounts[$config./path]".to_owned(),
        second_claim: "pod-sets[*].containers[*].mounts[/data]".to_owned(),
    };
    let conflict = PlanError::Conflict {
        first: "a".into(),
        second: "b".into(),
        shared: SharedPaths {
            listed: vec![path],
            more: 0,
        },
        ways: generation.ways_out("a", "b"),
    };
    assert_eq!(clash, [conflict]);
    let [possible] = &generation.possible_clashes()[..] else {
        panic!()
    };
    assert_eq!(
        possible.to_string(),
        "a writes `pod-sets[*].containers[node].mounts[$config./path]` and b writes `pod-sets[*].containers[*].mounts[/data]`; a TrainJob in which both are the same field is refused"
    );
}

#[test]
fn variables_are_compared_by_value_anywhere_in_a_path() {
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
fn excluded_plugins_do_not_conflict_and_never_run_together() {
    let writes = [("writes", "labels[x]")];
    assert_eq!(errors([of("a", &writes), of("b", &writes)]).len(), 1);
    for (a, b) in [
        (apart("a", &writes, &["b"]), of("b", &writes)),
        // Excluding itself has no effect.
        (apart("a", &writes, &["a", "b"]), of("b", &writes)),
        (of("a", &writes), apart("b", &writes, &["a"])),
    ] {
        let generation = Generation::new([a, b]).unwrap();
        assert_eq!(generation.edges(), []);
        assert_eq!(generation.excluded(), [("a".into(), "b".into())]);
        for alone in ["a", "b"] {
            assert_eq!(planned(&generation, &[alone], &json!({})).unwrap(), [alone]);
        }
        let refused = planned(&generation, &["a", "b"], &json!({})).unwrap_err();
        let printed: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            printed,
            [
                "plugins `a` and `b` are both active for this TrainJob, but a PolicyPlugin excludes the combination; disable one in the runtime, or remove it from `excludes`"
            ]
        );
    }
}

#[test]
fn a_manifest_excludes_plugins_with_which_it_cannot_work() {
    let writes = [("writes", "labels[x]")];
    let excluding = of_with("a", &writes, json!({"excludes": ["b"]}));
    let generation = Generation::new([excluding, of("b", &writes)]).unwrap();
    assert_eq!(generation.excluded(), [("a".into(), "b".into())]);
    let refused = planned(&generation, &["a", "b"], &json!({})).unwrap_err();
    let printed: Vec<_> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        printed,
        [
            "plugins `a` and `b` are both active for this TrainJob, but the manifest of `a` excludes the combination; disable one in the runtime, or have the operator order them by `after` in a PolicyPlugin"
        ]
    );
}

#[test]
fn the_operators_order_takes_precedence_over_an_exclusion() {
    let writes = [("writes", "labels[x]")];
    let excluding = of_with("a", &writes, json!({"excludes": ["b"]}));
    let settings = Settings {
        after: vec!["a".to_owned()],
        ..Settings::built_in()
    };
    let ordered = plugin_under(&manifest("b", &writes), settings);
    let generation = Generation::new([excluding, ordered]).unwrap();
    assert_eq!(generation.excluded(), []);
    let order = planned(&generation, &["a", "b"], &json!({})).unwrap();
    assert_eq!(order, ["a", "b"]);
}

#[test]
fn plugins_that_are_always_active_cannot_exclude_each_other() {
    let always = json!({"activeWhen": "always"});
    let settings = Settings {
        excludes: vec!["b".to_owned()],
        ..Settings::built_in()
    };
    let excluding = plugin_under(&with(manifest("a", &[]), always.clone()), settings);
    let sometimes = of("b", &[]);
    Generation::new([excluding.clone(), sometimes]).unwrap();
    let found = errors([excluding, of_with("b", &[], always)]);
    assert_eq!(found.len(), 1, "{found:?}");
    let printed = &found[0];
    assert!(
        printed.starts_with("plugins `a` and `b` exclude each other, but both are active for every TrainJob (`always`), so none could run; remove the exclusion, or set "),
        "{printed}"
    );
}

/// An error offers only what would be accepted.
#[test]
fn ways_out_of_a_conflict_work() {
    let write = ("writes", "labels[x]");
    let always = json!({"activeWhen": "always"});
    let [error] = &errors([
        of_with("a", &[write], always.clone()),
        of_with("b", &[write], always.clone()),
    ])[..] else {
        panic!()
    };
    assert!(error.contains("`after: [a]` for `b`"), "{error}");
    assert!(
        !error.contains("excludes"),
        "both are always active: {error}"
    );
    let [error] = &errors([of_with("a", &[write], always), of("b", &[write])])[..] else {
        panic!()
    };
    assert!(error.contains("`excludes: [b]` for `a`"), "{error}");
    // b reads what only a writes, so it cannot run first.
    let a = of("a", &[write, ("writes", "labels[y]")]);
    let b = of("b", &[write, ("reads", "labels[y]")]);
    let [error] = &errors([a, b])[..] else {
        panic!()
    };
    assert!(error.contains("`after: [a]` for `b`"), "{error}");
    assert!(!error.contains("`after: [b]` for `a`"), "{error}");
    // Each reads what the other writes: no order of the two works.
    let a = of(
        "a",
        &[write, ("writes", "labels[y]"), ("reads", "labels[z]")],
    );
    let b = of(
        "b",
        &[write, ("reads", "labels[y]"), ("writes", "labels[z]")],
    );
    let found = errors([a, b]);
    assert!(
        found.iter().all(|error| !error.contains("after")),
        "{found:?}"
    );
}

/// A port whose number is in the configuration is compared as a number with its protocol.
#[test]
fn ports_of_configurations_are_compared_by_value() {
    let path = |port: &str| format!("pod-sets[*].containers[node].ports[{port}]");
    let a = of("a", &[("writes", &path("$config./port/TCP"))]);
    let b = of("b", &[("writes", &path("29500/TCP"))]);
    let generation = Generation::new([a, b]).unwrap();
    assert_eq!(generation.possible_clashes().len(), 1);
    for (port, clashes) in [
        (json!(29500), true),
        (json!(29501), false),
        (json!("29500"), false),
        (json!(null), false),
    ] {
        let planned = planned(&generation, &["a", "b"], &json!({"port": port}));
        assert_eq!(planned.is_err(), clashes, "{port}");
    }
}
