//! If two plugins change, emit or mount the same thing, the TrainJob is refused with both names, whatever their claims and order.

use serde_json::{Value, json};
use trainyard_api::FieldPath;
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    object::object_name,
    plugin::Phase,
    value::Mount,
};
use trainyard_render::Setter;

use crate::common::{
    Scripted, container, pod_set, pod_spec, render, render_edited, render_preferring, renderer,
    texts,
};

/// A plugin with a function for one phase.
fn scripted(
    name: &str,
    claims: &[(&'static str, &str)],
    phase: Phase,
    script: impl Fn(&mut Call) -> Result<(), Fault> + Send + Sync + 'static,
) -> Scripted {
    Scripted::new(name, claims, move |at, call| {
        if at == phase { script(call) } else { Ok(()) }
    })
}

/// Adds a container with env vars, for which a plugin needs no claim.
fn helper(name: &str) -> Scripted {
    let claims = [("creates", "pod-sets[node].containers[helper]")];
    scripted(name, &claims, Phase::Transform, |call| {
        let set = pod_set(call, "node")?;
        let helper = call.pod_set_add_container(set, "helper", "helper:1")?;
        call.container_put_env(helper, "X_MODE", "helper")?;
        call.container_put_env(helper, "X_LEVEL", "helper")
    })
}

/// Sets an env var in all containers.
fn everywhere(name: &str, key: &'static str) -> Scripted {
    let claims = [
        ("reads", "pod-sets[*].containers[#]"),
        ("writes", "pod-sets[*].containers[*].env[X_*]"),
    ];
    scripted(name, &claims, Phase::Transform, move |call| {
        let set = pod_set(call, "node")?;
        for container in call.pod_set_containers(set)? {
            call.container_put_env(container, key, "everywhere")?;
            call.container_put_env(container, "X_MODE", "everywhere")?;
        }
        Ok(())
    })
}

#[test]
fn two_changes_without_a_declared_order_refuse_the_train_job() {
    for (helper_name, other) in [("a", "b"), ("b", "a")] {
        let plugins = [helper(helper_name), everywhere(other, "X_LEVEL")];
        let problems = texts(&render(&plugins).unwrap_err());
        // The creator of a container runs first, so only one order is possible.
        let order = format!("`after: [{helper_name}]` for `{other}`");
        let author = format!(
            "`after: [{helper_name}]` in the manifest of `{other}` or `before: [{other}]` in that of `{helper_name}`"
        );
        assert_eq!(
            problems,
            [format!(
                "pod-sets[node].containers[helper].env[X_LEVEL]: the plugins a 1.0.0 (native) and b 1.0.0 (native) both change it, and one more place, but have no declared order; declare {author}, or set one of these in a PolicyPlugin: {order} to order them, `excludes: [b]` for `a` to refuse TrainJobs that use both, `disabled: true` for `a` or `disabled: true` for `b` to disable one"
            )]
        );
    }
    // A declared order says whose value is left.
    let mut last = everywhere("b", "X_OTHER");
    last.after = vec!["a".to_owned()];
    let rendered = render(&[helper("a"), last]).unwrap();
    let spec = pod_spec(&rendered).to_string();
    assert!(
        spec.contains(r#"{"name":"X_MODE","value":"everywhere"}"#),
        "{spec}"
    );
    assert!(
        !spec.contains(r#"{"name":"X_MODE","value":"helper"}"#),
        "{spec}"
    );
    // The creator of a container runs first without a declaration, which does not permit overwriting.
    let apart = scripted(
        "b",
        &[("writes", "pod-sets[*].containers[*].env[Y]")],
        Phase::Transform,
        |call| {
            let helper = container(call, "helper")?;
            call.container_put_env(helper, "Y", "1")
        },
    );
    render(&[helper("a"), apart]).unwrap();
}

#[test]
fn objects_of_one_kind_and_name_are_emitted_once() {
    let emitter = |name: &str, suffix: &str, content: Option<&'static str>| {
        let claim = format!("objects[v1/ConfigMap/{suffix}]");
        let suffix = suffix.to_owned();
        scripted(name, &[("writes", &claim)], Phase::Build, move |call| {
            let object =
                call.objects_emit(handle::Objects(0), "v1", "ConfigMap", &suffix, content)?;
            call.object_append(object, "key", "value")
        })
    };
    // The hash of a name is not secret: another plugin can use it as its suffix.
    let hashed = render(&[emitter("a", "-x", Some("content"))]).unwrap();
    let uid = hashed_uid();
    let name = object_name("job", &uid, "-x", Some("content"));
    assert_eq!(hashed.objects[0].value["metadata"]["name"], *name);
    let spelled = name.strip_prefix("job").unwrap();
    for (first, second) in [("a", "b"), ("b", "a")] {
        let plugins = [
            emitter(first, "-x", Some("content")),
            emitter(second, spelled, None),
        ];
        let wanted = format!(
            "ConfigMap {name}: the plugins a 1.0.0 (native) and b 1.0.0 (native) both emit it; use another suffix in one of them, or exclude one"
        );
        let orders = [["a", "b"], ["b", "a"]].map(|order| order.map(str::to_owned));
        for order in orders {
            let problems = render_preferring(&plugins, &order).unwrap_err();
            assert_eq!(texts(&problems), [wanted.as_str()]);
        }
    }
    render(&[emitter("a", "-x", None), emitter("b", "-x-1", None)]).unwrap();
}

/// Adds a volume and an env var that refer to its own ConfigMaps or Secrets, and emits the requested ones.
fn owner_of_data(
    name: &str,
    kind: &'static str,
    emits: &[(&'static str, Option<&'static str>)],
) -> Scripted {
    let objects = format!("objects[v1/{kind}/-*]");
    let claims = [
        ("writes", "pod-sets[node].volumes[*]"),
        ("writes", "pod-sets[node].containers[side].env[X_*]"),
        ("writes", objects.as_str()),
    ];
    let emits = emits.to_vec();
    Scripted::new(name, &claims, move |phase, call| match phase {
        Phase::Transform => {
            let (set, side) = (pod_set(call, "node")?, container(call, "side")?);
            if kind == "Secret" {
                call.pod_set_put_own_secret(set, "files", "-b-files", None, &[])?;
                call.container_put_env_own_secret(side, "X_KEY", "-b-key", "key")
            } else {
                call.pod_set_put_own_config_map(set, "files", "-b-files", None, &[])?;
                call.container_put_env_own_config_map(side, "X_KEY", "-b-key", "key")
            }
        }
        Phase::Build => emits.iter().try_for_each(|(suffix, content)| {
            call.objects_emit(handle::Objects(0), "v1", kind, suffix, *content)
                .map(drop)
        }),
        Phase::Check => Ok(()),
    })
}

/// The TrainJob `job-b` of the same namespace may have objects with the same names.
#[test]
fn volumes_of_own_objects_refer_only_to_emitted_objects() {
    let (volume, variable) = (
        "pod-sets[node].volumes[files]",
        "pod-sets[node].containers[side].env[X_KEY]",
    );
    let both = [(volume, "job-b-files"), (variable, "job-b-key")];
    for kind in ["ConfigMap", "Secret"] {
        let other = if kind == "Secret" {
            "ConfigMap"
        } else {
            "Secret"
        };
        let wanted = |missing: &[(&str, &str)]| -> Vec<String> {
            let problem = |(place, object): &(&str, &str)| {
                format!(
                    "{place}: the plugin a 1.0.0 (native) refers to its own {kind} `{object}`, but does not emit it; emit it in build under the same suffix, without content, or remove the reference"
                )
            };
            missing.iter().map(problem).collect()
        };
        let emits = [("-b-files", None), ("-b-key", None)];
        let rendered = render(&[owner_of_data("a", kind, &emits)]).unwrap();
        assert!(pod_spec(&rendered).to_string().contains("job-b-key"));
        let refused = |plugins: &[Scripted]| texts(&render(plugins).unwrap_err());
        assert_eq!(refused(&[owner_of_data("a", kind, &[])]), wanted(&both));
        // By another name: with a hash over the content.
        let hashed = [("-b-files", Some("content")), ("-b-key", None)];
        assert_eq!(
            refused(&[owner_of_data("a", kind, &hashed)]),
            wanted(&both[..1])
        );
        // Of another kind.
        let claim = format!("objects[v1/{other}/-*]");
        let emitter = scripted("b", &[("writes", &claim)], Phase::Build, move |call| {
            for suffix in ["-b-files", "-b-key"] {
                call.objects_emit(handle::Objects(0), "v1", other, suffix, None)?;
            }
            Ok(())
        });
        assert_eq!(
            refused(&[owner_of_data("a", kind, &[]), emitter]),
            wanted(&both)
        );
    }
    // Of another plugin, whose claim is on another suffix.
    let name = object_name("job", &hashed_uid(), "-x", Some("content"));
    let spelled = name.strip_prefix("job").unwrap().to_owned();
    let objects = format!("objects[v1/ConfigMap/{spelled}]");
    let claims = [
        ("writes", "pod-sets[node].volumes[*]"),
        ("writes", objects.as_str()),
    ];
    let user = scripted("a", &claims, Phase::Transform, move |call| {
        let set = pod_set(call, "node")?;
        call.pod_set_put_own_config_map(set, "files", &spelled, None, &[])
    });
    let claims = [("writes", "objects[v1/ConfigMap/-x]")];
    let emitter = scripted("b", &claims, Phase::Build, |call| {
        let objects = handle::Objects(0);
        call.objects_emit(objects, "v1", "ConfigMap", "-x", Some("content"))
            .map(drop)
    });
    let problems = texts(&render(&[user, emitter]).unwrap_err());
    assert!(
        matches!(&problems[..], [one] if one.starts_with(volume) && one.contains(&*name)),
        "{problems:?}"
    );
    // What is not there any more asks for nothing.
    let claims = [
        ("writes", "pod-sets[node].volumes[*]"),
        ("writes", "pod-sets[node].containers[side].env[X_*]"),
    ];
    let mut after = scripted("c", &claims, Phase::Transform, |call| {
        let (set, side) = (pod_set(call, "node")?, container(call, "side")?);
        call.pod_set_put_empty_dir(set, "files", None, None)?;
        call.container_remove_env(side, "X_KEY")
    });
    after.after = vec!["a".to_owned()];
    render(&[owner_of_data("a", "Secret", &[]), after]).unwrap();
}

/// The placeholder for the TrainJob's UID in offline renderings.
fn hashed_uid() -> String {
    let asker = scripted(
        "asker",
        &[("writes", "labels[uid]")],
        Phase::Transform,
        |call| {
            let uid = call.job_uid(handle::Job(0))?;
            call.info_set_label(handle::Info(0), "uid", &uid)
        },
    );
    let rendered = render(&[asker]).unwrap();
    rendered.job_set["metadata"]["labels"]["uid"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Mounts its own volume in the container with `/data`, as claimed.
fn mounter(name: &str, claim: &str, path: &'static str) -> Scripted {
    let volume = format!("{name}-volume");
    let claims = [
        ("writes", format!("pod-sets[*].volumes[{volume}]")),
        (
            "writes",
            format!("pod-sets[*].containers[side].mounts[{claim}]"),
        ),
    ];
    let claims: Vec<_> = claims
        .iter()
        .map(|(list, path)| (*list, path.as_str()))
        .collect();
    scripted(name, &claims, Phase::Transform, move |call| {
        let set = pod_set(call, "node")?;
        call.pod_set_put_empty_dir(set, &volume, None, None)?;
        let side = container(call, "side")?;
        let mount = Mount {
            volume: volume.clone(),
            path: path.to_owned(),
            ..Mount::default()
        };
        call.container_put_mount(side, &mount)
    })
}

#[test]
fn two_mounts_of_one_path_are_refused() {
    // A patch and the runtime.
    let patched = |path: &str| {
        let patch = format!(
            "spec: {{runtimePatches: [{{manager: me/me, trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{{name: node, template: {{spec: {{template: {{spec: {{containers: [{{name: side, volumeMounts: [{{name: data, mountPath: {path}}}]}}]}}}}}}}}}}]}}}}}}}}], runtimeRef: {{name: runtime}}, "
        );
        render_edited(&[], |input| {
            input.replace("spec: {runtimeRef: {name: runtime}, ", &patch)
        })
    };
    for path in ["/data/", "//data", "/x/../data"] {
        let problems = texts(&patched(path).unwrap_err());
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with("spec.runtimePatches[0].")
                && problems[0].contains(&format!(
                    "two mounts of one container are at `/data` (`/data` and `{path}`): one is from the runtime, the other from a runtime patch"
                )),
            "{problems:?}"
        );
    }
    patched("/data/below").unwrap();
    // A plugin replaces what a patch mounted, in its place, where it may.
    let rendered = render(&[mounter("a", "/data", "/data//")]).unwrap();
    let mounts = &pod_spec(&rendered)["containers"][1]["volumeMounts"];
    assert_eq!(*mounts, json!([{"name": "a-volume", "mountPath": "/data"}]));
    // Values of the runtime's author are left to the API server, which compares strings.
    let twice = "volumeMounts: [{name: data, mountPath: /data}, {name: data, mountPath: /data/}]";
    let own =
        |input: String| input.replace("volumeMounts: [{name: data, mountPath: /data}]", twice);
    render_edited(&[], own).unwrap();
    let problems = render_edited(&[mounter("a", "/data", "/data")], own).unwrap_err();
    assert!(
        texts(&problems)[0]
            .contains("one is from the plugin a 1.0.0 (native), the other from the runtime"),
        "{problems:?}"
    );
}

/// A plugin whose `nodeSets` name a pod set.
fn counter(name: &str, node_sets: Value) -> Scripted {
    let mut plugin = Scripted::new(name, &[], |_, _| Ok(()));
    plugin.node_sets = node_sets;
    plugin
}

#[test]
fn one_plugin_sets_num_nodes_and_explain_names_it() {
    let two = [
        counter("a", json!([{"podSet": "node"}])),
        counter("b", json!([{"podSet": "other"}])),
    ];
    let errors = renderer(&two)
        .err()
        .expect("both define which pods are the nodes");
    assert!(
        errors[0].to_string().contains("both have `nodeSets`"),
        "{errors:?}"
    );

    let asks = |input: String| input.replace("trainer: {", "trainer: {numNodes: 3, ");
    let path: FieldPath = "spec.replicatedJobs[0].template.spec.parallelism"
        .parse()
        .unwrap();
    let who = |plugins: &[Scripted]| {
        let rendered = render_edited(plugins, asks).unwrap();
        let rows = rendered.explain(&path).unwrap();
        assert_eq!(rows[0].steps[0].to, Some(json!(3)));
        rows[0].steps[0].by.clone()
    };
    let field = "spec.trainer.numNodes".to_owned();
    assert_eq!(who(&[]), Setter::TrainJob { field });
    let Setter::Plugin { name, reason, .. } = who(&two[..1]) else {
        panic!("the plugin makes the pods of this pod set the nodes")
    };
    assert_eq!(name, "a");
    assert_eq!(
        reason.as_deref(),
        Some("its `nodeSets` assign the nodes of spec.trainer.numNodes to this pod set")
    );
}

/// A limit per call does not limit a TrainJob, because 16 plugins can add 16 each.
#[test]
fn plugins_share_the_largest_limit_of_additions() {
    let adds = |name: &str, count: usize, limit: u64| {
        let creates = format!("pod-sets[*].init-containers[{name}-*]");
        let writes = format!("objects[v1/ConfigMap/-{name}-*]");
        let own = name.to_owned();
        let claims = [("creates", &*creates), ("writes", &*writes)];
        let mut plugin = Scripted::new(name, &claims, move |phase, call| {
            for at in 0..count {
                let name = format!("{own}-{at}");
                match phase {
                    Phase::Transform => {
                        let set = pod_set(call, "node")?;
                        call.pod_set_add_init_container(set, &name, "image:1")?;
                    }
                    Phase::Build => {
                        let object = call.objects_emit(
                            handle::Objects(0),
                            "v1",
                            "ConfigMap",
                            &format!("-{name}"),
                            None,
                        )?;
                        call.object_append(object, "a", "b")?;
                    }
                    Phase::Check => {}
                }
            }
            Ok(())
        });
        plugin.limits.containers = limit;
        plugin
    };
    let ten = || [adds("a", 10, 16), adds("b", 10, 16)];
    let problems = texts(&render(&ten()).unwrap_err());
    assert_eq!(
        problems,
        [
            "containers: the plugins of this TrainJob add 20 in total (a 1.0.0 (native): 10, b 1.0.0 (native): 10), but at most 16 are allowed; exclude one of them, or raise `limits.containers` of one in its PolicyPlugin"
        ]
    );
    // The operator raised one of them: the containers fit, and the objects do not.
    let raised = [adds("a", 10, 16), adds("b", 10, 20)];
    let problems = texts(&render(&raised).unwrap_err());
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("objects: the plugins of this TrainJob add 20 in total ("),
        "{problems:?}"
    );
    let few = [adds("a", 8, 16), adds("b", 8, 16)];
    assert_eq!(render(&few).unwrap().objects.len(), 16);
}
