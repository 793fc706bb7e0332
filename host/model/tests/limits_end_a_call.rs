//! What a call uses of the host is counted where it is used: bytes over imports, handles, writes, log lines, containers and objects.

use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    limits::Limits,
    plugin::{Limit, Phase},
};

use crate::common::{self, call, container, limited, manifest, plugin_under, pod_set};

fn call_under(phase: Phase, limits: Limits) -> Call {
    let claims = [
        ("writes", "pod-sets[*].containers[*].env[*]"),
        ("writes", "pod-sets[*].containers[*].command"),
        ("reads", "pod-sets[*].containers[*].mounts[*]"),
        ("writes", "labels[*]"),
        ("creates", "pod-sets[*].init-containers[*]"),
        ("writes", "objects[v1/ConfigMap/*]"),
        ("writes", "objects[v1/Secret/*]"),
        ("reads", "lookups[v1/ConfigMap/*]"),
    ];
    call(
        phase,
        &plugin_under(&manifest("p", &claims), limited(limits)),
    )
}

type MethodCall = fn(&mut Call, u32) -> Result<(), Fault>;

/// Emits the ConfigMap of a step.
fn emitted(call: &mut Call, n: u32) -> Result<handle::Object, Fault> {
    let suffix = format!("-{n}");
    call.objects_emit(handle::Objects(0), "v1", "ConfigMap", &suffix, None)
}

/// Steps until the call ends; how many went well, and why it ended.
fn steps_until_the_end(phase: Phase, limits: Limits, step: MethodCall) -> (u32, Fault) {
    let mut call = call_under(phase, limits);
    for n in 0..1_000_000 {
        if let Err(fault) = step(&mut call, n) {
            return (n, fault);
        }
    }
    panic!("it never ends")
}

#[test]
fn bytes_are_counted_in_both_directions() {
    let limits = Limits {
        import_bytes: 10_000,
        ..Limits::default()
    };
    let table: &[(&str, Phase, MethodCall, u32)] = &[
        (
            "text in",
            Phase::Transform,
            |c, _| {
                let n = container(c, "node", "node");
                c.container_put_env(n, "A", &"x".repeat(1000))
            },
            10,
        ),
        (
            "a list in",
            Phase::Transform,
            |c, _| {
                let n = container(c, "node", "node");
                c.container_set_command(n, &vec![String::new(); 100])
            },
            13,
        ),
        (
            "a name in",
            Phase::Transform,
            |c, _| {
                c.info_set_label(handle::Info(0), &"k".repeat(2000), "")
                    .map(drop)
            },
            5,
        ),
        (
            "text out",
            Phase::Transform,
            |c, _| {
                c.context_fit_name(handle::Context(0), &"x".repeat(900), 63)
                    .map(drop)
            },
            11,
        ),
        (
            "what is not there",
            Phase::Check,
            |c, _| c.job_label(handle::Job(0), &"x".repeat(1000)).map(drop),
            10,
        ),
        (
            "a pointer",
            Phase::Check,
            |c, _| {
                let d = c.job_config(handle::Job(0))?;
                c.document_text(d, &format!("/{}", "x".repeat(999)))
                    .map(drop)
            },
            10,
        ),
        (
            "a reason",
            Phase::Transform,
            |c, _| c.context_because(handle::Context(0), &"x".repeat(1000)),
            10,
        ),
        (
            "mounts",
            Phase::Transform,
            |c, _| {
                let n = container(c, "node", "node");
                c.container_mounts(n).map(drop)
            },
            243,
        ),
        (
            "a label of an object",
            Phase::Build,
            |c, n| {
                let object = emitted(c, n)?;
                c.object_set_label(object, &"x".repeat(1000), "")
            },
            9,
        ),
        (
            "an annotation of an object",
            Phase::Build,
            |c, n| {
                let object = emitted(c, n)?;
                c.object_set_annotation(object, &"x".repeat(1000), "")
            },
            9,
        ),
        (
            "an object's text",
            Phase::Build,
            |c, n| {
                let object = emitted(c, n)?;
                c.object_append(object, "k", &"x".repeat(1000))
            },
            9,
        ),
        (
            "an object's bytes",
            Phase::Build,
            |c, n| {
                let object = emitted(c, n)?;
                c.object_set_binary(object, "k", &[0; 1000])
            },
            9,
        ),
        (
            "key material, by the text that is made of it",
            Phase::Build,
            |c, n| {
                let object =
                    c.objects_emit(handle::Objects(0), "v1", "Secret", &format!("-{n}"), None)?;
                let text = c.objects_random(handle::Objects(0), &format!("a{n}"), 512, "hex")?;
                c.object_append_secret(object, "k", text)
            },
            9,
        ),
        (
            "a log line",
            Phase::Check,
            |c, _| c.context_log(handle::Context(0), "info", &"x".repeat(1000)),
            10,
        ),
        (
            "a log level",
            Phase::Check,
            |c, _| c.context_log(handle::Context(0), &"x".repeat(20_000), ""),
            0,
        ),
        (
            "addresses",
            Phase::Check,
            |c, _| {
                let s = pod_set(c, "node");
                c.pod_set_addresses(s, 0, 100).map(drop)
            },
            80,
        ),
        (
            "a quantity",
            Phase::Check,
            |c, _| {
                c.context_quantity_ceil(handle::Context(0), &"1".repeat(1000))
                    .map(drop)
            },
            10,
        ),
    ];
    for (what, phase, step, about) in table {
        let (steps, fault) = steps_until_the_end(*phase, limits, *step);
        assert_eq!(fault, Fault::Limit(Limit::ImportBytes(10_000)), "{what}");
        assert!(
            steps.abs_diff(*about) <= 1 + about / 5,
            "{what}: {steps} steps"
        );
    }
}

#[test]
fn lookups_are_charged_by_their_key() {
    let mut call = call_under(Phase::Build, Limits::default());
    let lookups = handle::Lookups(0);
    call.lookups_served(lookups, "v1", "ConfigMap").unwrap();
    let served = usize::try_from(call.meter().bytes()).unwrap();
    assert_eq!(served, "v1/ConfigMap/#".len());
    call.lookups_find(lookups, "v1", "ConfigMap", "optional")
        .unwrap();
    let found = usize::try_from(call.meter().bytes()).unwrap() - served;
    assert_eq!(found, "v1/ConfigMap/optional".len());
}

/// A list of lists takes a hundred times its text.
#[test]
fn json_is_charged_equally_by_every_method() {
    let lists = format!(r#"{{"a": [{}0]}}"#, "[0],".repeat(50_000));
    type Give = fn(&mut Call, &str) -> Result<(), Fault>;
    let claims = [
        ("writes", "pod-sets[*].containers[*].env[*]"),
        ("writes", "pod-sets[*].containers[*].raw[*]"),
        ("writes", "pod-sets[*].raw[*]"),
        ("writes", "pod-sets[*].volumes[*]"),
        ("writes", "objects[example.com/v1/Thing/-*]"),
    ];
    let table: &[(&str, Phase, Give)] = &[
        ("put-env-raw", Phase::Transform, |c, json| {
            let node = container(c, "node", "node");
            c.container_put_env_raw(node, "A", json)
        }),
        ("put-raw-volume", Phase::Transform, |c, json| {
            let set = pod_set(c, "node");
            c.pod_set_put_raw_volume(set, "a", json)
        }),
        ("set-raw of a container", Phase::Transform, |c, json| {
            let node = container(c, "node", "node");
            c.container_set_raw(node, "lifecycle", json)
        }),
        ("set-raw of pods", Phase::Transform, |c, json| {
            let set = pod_set(c, "node");
            c.pod_set_set_raw(set, "readinessGates", json)
        }),
        ("set-body", Phase::Build, |c, json| {
            let objects = handle::Objects(0);
            let object = c.objects_emit(objects, "example.com/v1", "Thing", "-a", None)?;
            c.object_set_body(object, json)
        }),
        ("parse-json", Phase::Check, |c, json| {
            c.context_parse_json(handle::Context(0), json).map(drop)
        }),
    ];
    for (what, phase, give) in table {
        let plugin = plugin_under(&manifest("p", &claims), limited(Limits::default()));
        let fault = give(&mut common::call(*phase, &plugin), &lists).unwrap_err();
        assert_eq!(fault, Fault::Limit(Limit::ImportBytes(8 << 20)), "{what}");
        // A string costs only its bytes.
        let text = format!(r#"{{"a": "{}\"[[["}}"#, "[{,".repeat(50_000));
        give(&mut common::call(*phase, &plugin), &text).unwrap();
    }
}

/// A cluster takes no larger ConfigMap or Secret: the call ends, and what was written is not kept for a request that is refused.
#[test]
fn objects_are_limited_to_one_mebibyte() {
    type Write = fn(&mut Call, handle::Object, usize) -> Result<(), Fault>;
    let append: Write = |c, object, bytes| c.object_append(object, "k", &"x".repeat(bytes - 1));
    let bytes: Write = |c, object, bytes| c.object_set_binary(object, "b", &vec![0; bytes - 1]);
    let body: Write = |c, object, bytes| {
        let json = format!(r#"{{"a": "{}"}}"#, "x".repeat(bytes - 9));
        c.object_set_body(object, &json)
    };
    let label: Write = |c, object, bytes| c.object_set_label(object, "l", &"x".repeat(bytes - 1));
    let plugin = plugin_under(
        &manifest(
            "p",
            &[
                ("writes", "objects[v1/ConfigMap/-a]"),
                ("writes", "objects[v1/Secret/-a]"),
                ("writes", "objects[example.com/v1/Thing/-a]"),
            ],
        ),
        limited(Limits::default()),
    );
    for (version, kind, write) in [
        ("v1", "ConfigMap", append),
        ("v1", "Secret", append),
        ("v1", "Secret", bytes),
        ("example.com/v1", "Thing", body),
        ("example.com/v1", "Thing", label),
    ] {
        let mut call = common::call(Phase::Build, &plugin);
        let objects = handle::Objects(0);
        let object = call
            .objects_emit(objects, version, kind, "-a", None)
            .unwrap();
        write(&mut call, object, 1 << 20).unwrap();
        let fault = label(&mut call, object, 2).unwrap_err();
        let path = format!("objects[{version}/{kind}/-a]");
        let written = (1 << 20) + 2;
        assert_eq!(fault, Fault::TooLarge { path, written });
    }
    // Key material counts by the most that it becomes.
    let mut call = common::call(Phase::Build, &plugin);
    let objects = handle::Objects(0);
    let secret = call
        .objects_emit(objects, "v1", "Secret", "-a", None)
        .unwrap();
    let pair = call.objects_key_pair(objects, "ssh", "ecdsa-p521").unwrap();
    let text = call.key_pair_public(pair, "openssh").unwrap();
    let appended = (0..).map_while(|_| call.object_append_secret(secret, "k", text).ok());
    assert_eq!(appended.count(), (1 << 20) / 513);
}

/// What no claim or grant allows is not even read.
#[test]
fn claims_are_checked_before_json_is_parsed() {
    let mut bare = call(Phase::Transform, &common::plugin(&manifest("p", &[])));
    let (set, node) = (
        pod_set(&mut bare, "node"),
        container(&mut bare, "node", "node"),
    );
    let before = bare.meter().bytes();
    for fault in [
        bare.container_put_env_raw(node, "A", "[,"),
        bare.pod_set_put_raw_volume(set, "a", "[,"),
        bare.container_set_raw(node, "tty", "[,"),
        bare.pod_set_set_raw(set, "hostNetwork", "[,"),
    ] {
        common::missing_claim(&fault.unwrap_err());
    }
    assert!(bare.meter().bytes() - before < 100);
}

#[test]
fn long_address_list_is_refused_before_it_is_built() {
    let mut record = common::record();
    record.pod_sets.get_mut(0).unwrap().count = u32::MAX;
    let plugin = plugin_under(&manifest("p", &[]), limited(Limits::default()));
    let mut call = common::call_over(Phase::Check, &plugin, record, 0, serde_json::json!({}));
    let set = pod_set(&mut call, "node");
    for fault in [
        call.pod_set_addresses(set, 0, u32::MAX).map(drop),
        call.pod_set_joined_addresses(set, 0, u32::MAX, ",")
            .map(drop),
    ] {
        assert_eq!(fault, Err(Fault::Limit(Limit::ImportBytes(8 << 20))));
    }
    assert_eq!(
        call.pod_set_addresses(set, u32::MAX - 1, u32::MAX)
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn handles_are_limited() {
    let limits = Limits {
        handles: 100,
        containers: 1000,
        objects: 1000,
        ..Limits::default()
    };
    let table: &[(&str, Phase, MethodCall, u32)] = &[
        (
            "roots",
            Phase::Check,
            |c, _| c.context_job(handle::Context(0)).map(drop),
            100,
        ),
        (
            "lists",
            Phase::Check,
            |c, _| c.info_pod_sets(handle::Info(0)).map(drop),
            50,
        ),
        (
            "documents",
            Phase::Check,
            |c, _| c.job_config(handle::Job(0)).map(drop),
            100,
        ),
        (
            "answers",
            Phase::Check,
            |c, _| {
                c.lookups_all(handle::Lookups(0), "v1", "ConfigMap")
                    .map(drop)
            },
            100,
        ),
        ("objects", Phase::Build, |c, n| emitted(c, n).map(drop), 100),
        (
            "containers",
            Phase::Transform,
            |c, n| {
                c.pod_set_add_init_container(handle::PodSet(0), &format!("c{n}"), "x")
                    .map(drop)
            },
            100,
        ),
    ];
    for (what, phase, step, expected) in table {
        let (steps, fault) = steps_until_the_end(*phase, limits, *step);
        assert_eq!(
            (steps, fault),
            (*expected, Fault::Limit(Limit::Handles(100))),
            "{what}"
        );
    }
}

#[test]
fn writes_are_limited_and_reads_are_not() {
    let limits = Limits {
        writes: 100,
        objects: 1000,
        ..Limits::default()
    };
    let table: &[(&str, Phase, MethodCall)] = &[
        ("env", Phase::Transform, |c, _| {
            let n = container(c, "node", "node");
            c.container_put_env(n, "A", "")
        }),
        ("removal of nothing", Phase::Transform, |c, _| {
            let n = container(c, "node", "node");
            c.container_remove_env(n, "A")
        }),
        ("labels", Phase::Transform, |c, _| {
            c.info_set_label(handle::Info(0), "a", "b")
        }),
        ("objects", Phase::Build, |c, n| emitted(c, n).map(drop)),
    ];
    for (what, phase, step) in table {
        let (steps, fault) = steps_until_the_end(*phase, limits, *step);
        assert_eq!(
            (steps, fault),
            (100, Fault::Limit(Limit::Writes(100))),
            "{what}"
        );
    }
    let mut call = call_under(Phase::Build, limits);
    let object = call
        .objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)
        .unwrap();
    for _ in 0..500 {
        call.object_name(object).unwrap();
        call.info_label(handle::Info(0), "team").unwrap();
    }
    assert_eq!(call.meter().writes(), 1);
    for _ in 0..99 {
        call.object_append(object, "k", "x").unwrap();
    }
    assert_eq!(
        call.object_append(object, "k", "x"),
        Err(Fault::Limit(Limit::Writes(100)))
    );
}

#[test]
fn log_lines_warnings_and_errors_share_a_limit() {
    let limits = Limits {
        log_lines: 9,
        ..Limits::default()
    };
    let (steps, fault) = steps_until_the_end(Phase::Check, limits, |c, n| match n % 3 {
        0 => c.context_log(handle::Context(0), "debug", "x"),
        1 => c.context_warn(handle::Context(0), "x", None),
        _ => c.context_error(handle::Context(0), "x", Some("spec")),
    });
    assert_eq!((steps, &fault), (9, &Fault::Limit(Limit::LogLines(9))));
    assert_eq!(
        fault.to_string(),
        "exceeded its limit of 9 log lines; raise `limits.logLines` in its PolicyPlugin"
    );
}

/// What one call adds to a TrainJob costs after the call, and in the cluster: 8,000 ConfigMaps are 8,000 objects that every
/// reconcile looks at.
#[test]
fn additions_to_a_train_job_are_limited() {
    let table: &[(&str, Phase, MethodCall, Limit)] = &[
        (
            "containers",
            Phase::Transform,
            |c, n| {
                let set = handle::PodSet(n % 2);
                c.pod_set_add_init_container(set, &format!("c{n}"), "x")
                    .map(drop)
            },
            Limit::Containers(16),
        ),
        (
            "objects",
            Phase::Build,
            |c, n| emitted(c, n).map(drop),
            Limit::Objects(16),
        ),
        (
            "random texts",
            Phase::Build,
            |c, n| {
                // The same one again costs nothing.
                c.objects_random(handle::Objects(0), "a0", 16, "hex")?;
                c.objects_random(handle::Objects(0), &format!("a{n}"), 16, "hex")
                    .map(drop)
            },
            Limit::KeyMaterial(16),
        ),
        (
            "key pairs",
            Phase::Build,
            |c, n| {
                c.objects_key_pair(handle::Objects(0), &format!("a{n}"), "ecdsa-p521")
                    .map(drop)
            },
            Limit::KeyMaterial(16),
        ),
    ];
    for (what, phase, step, limit) in table {
        let (steps, fault) = steps_until_the_end(*phase, Limits::default(), *step);
        assert_eq!((steps, &fault), (16, &Fault::Limit(*limit)), "{what}");
    }
    let none = Limits {
        containers: 0,
        objects: 20,
        key_material: 3,
        ..Limits::default()
    };
    for (what, phase, step, _) in table {
        let (steps, fault) = steps_until_the_end(*phase, none, *step);
        let wanted = match *what {
            "containers" => (
                0,
                "exceeded its limit of 0 added containers; raise `limits.containers` in its PolicyPlugin",
            ),
            "random texts" | "key pairs" => (
                3,
                "exceeded its limit of 3 key pairs and random texts; raise `limits.keyMaterial` in its PolicyPlugin",
            ),
            _ => (
                20,
                "exceeded its limit of 20 emitted objects; raise `limits.objects` in its PolicyPlugin",
            ),
        };
        assert_eq!((steps, &*fault.to_string()), wanted);
    }
}

#[test]
fn kept_texts_are_limited_and_replacing_one_frees_its_space() {
    let limits = Limits {
        kept_bytes: 10 * (5 + 100 + 32),
        ..Limits::default()
    };
    let text = "x".repeat(100);
    let (steps, fault) = steps_until_the_end(Phase::Transform, limits, |c, n| {
        c.context_keep(handle::Context(0), &format!("key-{n}"), &"x".repeat(100))
    });
    assert_eq!((steps, &fault), (10, &Fault::Limit(Limit::KeptBytes(1370))));
    assert_eq!(
        fault.to_string(),
        "exceeded its limit of 1370 bytes of kept texts; raise `limits.keptBytes` in its PolicyPlugin"
    );
    let mut call = call_under(Phase::Transform, limits);
    for n in 0..100 {
        let key = format!("key-{}", n % 10);
        call.context_keep(handle::Context(0), &key, &text).unwrap();
    }
    let longer = text + "x";
    let fault = call.context_keep(handle::Context(0), "key-0", &longer);
    assert_eq!(fault, Err(Fault::Limit(Limit::KeptBytes(1370))));
    for phase in [Phase::Build, Phase::Check] {
        let fault = call_under(phase, limits).context_keep(handle::Context(0), "a", "b");
        assert_eq!(
            fault.unwrap_err().to_string(),
            format!("cannot keep a text in {phase}")
        );
    }
}

#[test]
fn every_limit_has_a_default_and_a_strict_setting() {
    let empty: Limits = serde_json::from_str("{}").unwrap();
    assert_eq!(empty, Limits::default());
    assert!(serde_json::from_str::<Limits>(r#"{"writez": 1}"#).is_err());
    let some: Limits = serde_json::from_str(r#"{"writes": 7}"#).unwrap();
    assert_eq!((some.writes, some.handles), (7, Limits::default().handles));
}
