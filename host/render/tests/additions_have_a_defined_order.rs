//! Existing entries keep their position, and additions are ordered by plugin name and then as each plugin wrote them. Entries whose
//! position has a meaning in Kubernetes are placed accordingly.

use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Phase,
    value::{Mount, Port},
};
use trainyard_render::Rendered;

use crate::common::{Scripted, container, names, pod_set, pod_spec, render};

/// A plugin with a function for transform.
fn plugin(
    name: &str,
    claims: &[(&'static str, &str)],
    transform: impl Fn(&mut Call) -> Result<(), Fault> + Send + Sync + 'static,
) -> Scripted {
    Scripted::new(name, claims, move |phase, call| {
        if phase == Phase::Transform {
            transform(call)
        } else {
            Ok(())
        }
    })
}

/// A plugin that sets env vars of the container `node`.
fn env(name: &str, vars: &'static [(&'static str, &'static str)]) -> Scripted {
    let claims: Vec<_> = vars
        .iter()
        .map(|(var, _)| format!("pod-sets[*].containers[node].env[{var}]"))
        .collect();
    let claims: Vec<_> = claims
        .iter()
        .map(|path| ("writes", path.as_str()))
        .collect();
    let mut plugin = plugin(name, &claims, move |call| {
        let node = container(call, "node")?;
        vars.iter()
            .try_for_each(|(var, value)| call.container_put_env(node, var, value))
    });
    plugin.reserved_env = vars.iter().map(|(var, _)| (*var).into()).collect();
    plugin
}

fn env_names(rendered: &Rendered) -> Vec<&str> {
    names(&pod_spec(rendered)["containers"][0]["env"])
}

/// A plugin that adds init containers, each with its requested placement.
fn init(name: &str, added: &'static [(&'static str, &'static [Wish])]) -> Scripted {
    let claims: Vec<_> = added
        .iter()
        .map(|(init, _)| format!("pod-sets[node].init-containers[{init}]"))
        .collect();
    let claims: Vec<_> = claims
        .iter()
        .map(|path| ("creates", path.as_str()))
        .collect();
    plugin(name, &claims, move |call| {
        let set = pod_set(call, "node")?;
        for (init, wishes) in added {
            let handle = call.pod_set_add_init_container(set, init, "image")?;
            for wish in *wishes {
                match wish {
                    Wish::First => call.container_place_first(handle)?,
                    Wish::Before(anchor) => call.container_place_before(handle, anchor)?,
                    Wish::After(anchor) => call.container_place_after(handle, anchor)?,
                }
            }
        }
        Ok(())
    })
}

enum Wish {
    First,
    Before(&'static str),
    After(&'static str),
}
use Wish::{After, Before, First};

fn init_names(plugins: &[Scripted]) -> Vec<String> {
    let rendered = render(plugins).unwrap_or_else(|problems| panic!("{}", problems[0]));
    names(&pod_spec(&rendered)["initContainers"])
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[test]
fn additions_are_ordered_by_plugin_name_and_write_order() {
    let rendered = render(&[
        env("z", &[("Z2", ""), ("Z1", "")]),
        env("b", &[("B2", ""), ("B1", "")]),
    ])
    .unwrap();
    assert_eq!(
        env_names(&rendered),
        ["A", "B", "C", "P0_OVER", "USERS", "B2", "B1", "Z2", "Z1"]
    );
}

#[test]
fn replaced_entries_keep_their_position() {
    let rendered = render(&[env("p", &[("C", "mine"), ("NEW", "")])]).unwrap();
    assert_eq!(
        env_names(&rendered),
        ["A", "B", "C", "P0_OVER", "USERS", "NEW"]
    );
    assert_eq!(
        pod_spec(&rendered)["containers"][0]["env"][2]["value"],
        "mine"
    );
}

#[test]
fn untouched_fields_stay_as_written() {
    let plain = render(&[]).unwrap();
    let touched = render(&[env("p", &[("NEW", "x")])]).unwrap();
    for pointer in [
        "/containers/1",
        "/volumes",
        "/initContainers",
        "/containers/0/ports",
    ] {
        assert_eq!(
            pod_spec(&plain).pointer(pointer),
            pod_spec(&touched).pointer(pointer),
            "{pointer}"
        );
    }
}

#[test]
fn added_env_vars_precede_their_references() {
    // The runtime's B names LATER, the TrainJob's USERS names ADDED.
    let rendered = render(&[env(
        "p",
        &[("ADDED", "x"), ("LATER", "$(DEEP)"), ("DEEP", "y")],
    )])
    .unwrap();
    assert_eq!(
        env_names(&rendered),
        ["A", "DEEP", "LATER", "B", "C", "P0_OVER", "ADDED", "USERS"]
    );
}

#[test]
fn runtime_order_is_kept_and_escapes_are_not_references() {
    // The runtime's `B` references `C`, which follows it: Kubernetes leaves the reference unexpanded, and so do we.
    let rendered = render(&[env("p", &[("X", "$$(Y)"), ("Y", "")])]).unwrap();
    assert_eq!(
        env_names(&rendered),
        ["A", "B", "C", "P0_OVER", "USERS", "X", "Y"]
    );
}

#[test]
fn env_vars_in_reference_cycles_are_kept() {
    let rendered = render(&[
        env("a", &[("X", "$(Y)"), ("SELF", "$(SELF)")]),
        env("b", &[("Y", "$(X)")]),
    ])
    .unwrap();
    let mut found = env_names(&rendered);
    found.sort_unstable();
    assert_eq!(found, ["A", "B", "C", "P0_OVER", "SELF", "USERS", "X", "Y"]);
}

/// The chain has the maximum length. A recursive search would overflow the stack.
#[test]
fn long_chain_of_references_is_ordered() {
    let chain = plugin(
        "p",
        &[("writes", "pod-sets[*].containers[node].env[N*]")],
        |call| {
            let node = container(call, "node")?;
            (0..1_000).try_for_each(|n| {
                call.container_put_env(node, &format!("N{n}"), &format!("$(N{})", n + 1))
            })
        },
    );
    let rendered = render(&[chain]).unwrap();
    let found = env_names(&rendered);
    assert_eq!((found[5], found[1_004]), ("N999", "N0"));
}

#[test]
fn init_containers_are_placed_as_requested() {
    assert_eq!(
        init_names(&[init("p", &[("x", &[])])]),
        ["first", "second", "x"]
    );
    assert_eq!(
        init_names(&[init("p", &[("x", &[First])])]),
        ["x", "first", "second"]
    );
    assert_eq!(
        init_names(&[init("p", &[("x", &[Before("second")])])]),
        ["first", "x", "second"]
    );
    assert_eq!(
        init_names(&[init("p", &[("x", &[After("first"), Before("second")])])]),
        ["first", "x", "second"]
    );
    assert_eq!(
        init_names(&[init("p", &[("x", &[After("second")])])]),
        ["first", "second", "x"]
    );
    assert_eq!(
        init_names(&[init("p", &[("x", &[Before("not-there")])])]),
        ["first", "second", "x"]
    );
}

#[test]
fn placements_of_several_plugins_are_solved_together() {
    let plugins = [
        init("a", &[("late", &[After("fetch")]), ("start", &[First])]),
        init("b", &[("fetch", &[Before("first")]), ("begin", &[First])]),
    ];
    // Both that ask to be first come first, by plugin name.
    assert_eq!(
        init_names(&plugins),
        ["start", "begin", "fetch", "first", "second", "late"]
    );
}

#[test]
fn unconstrained_init_containers_are_ordered_by_plugin_and_write_order() {
    let plugins = [
        init("b", &[("z", &[]), ("m", &[])]),
        init("c", &[("a", &[First]), ("b", &[])]),
    ];
    assert_eq!(
        init_names(&plugins),
        ["a", "first", "second", "z", "m", "b"]
    );
}

#[test]
fn contradicting_placements_refuse_the_train_job() {
    for plugins in [
        vec![init("p", &[("x", &[Before("first"), After("second")])])],
        vec![init("p", &[("x", &[First, After("first")])])],
        vec![
            init("a", &[("x", &[Before("y")])]),
            init("b", &[("y", &[Before("x")])]),
        ],
    ] {
        let problems = render(&plugins).unwrap_err();
        let message = problems[0].to_string();
        assert!(
            message.starts_with(
                "pod-sets[node].init-containers: the requested positions contradict each other"
            ),
            "{message}"
        );
        assert!(message.contains('x'), "{message}");
    }
}

/// The maximum number of init containers, each of which requests a position before the previous one.
#[test]
fn thousand_placements_are_solved() {
    let mut many = plugin(
        "p",
        &[("creates", "pod-sets[node].init-containers[*]")],
        |call| {
            let set = pod_set(call, "node")?;
            (0..1000).try_for_each(|n| {
                let init = call.pod_set_add_init_container(set, &format!("i{n}"), "image")?;
                match n {
                    0 => call.container_place_after(init, "second"),
                    n => call.container_place_before(init, &format!("i{}", n - 1)),
                }
            })
        },
    );
    let refused = render(std::slice::from_ref(&many)).unwrap_err();
    let limit =
        "exceeded its limit of 16 added containers; raise `limits.containers` in its PolicyPlugin";
    let refused = refused[0].to_string();
    assert!(
        refused.contains("plugin p 1.0.0") && refused.contains(limit),
        "{refused}"
    );
    many.limits.containers = 1000;
    let found = init_names(&[many]);
    assert_eq!(found[..3], ["first", "second", "i999"]);
    assert_eq!(found[1001], "i0");
}

#[test]
fn objects_are_ordered_by_plugin_name_and_emit_order() {
    let emitter = |name: &'static str, suffixes: &'static [&'static str]| {
        let claims: Vec<_> = suffixes
            .iter()
            .map(|suffix| format!("objects[v1/ConfigMap/{suffix}]"))
            .collect();
        let claims: Vec<_> = claims
            .iter()
            .map(|path| ("writes", path.as_str()))
            .collect();
        Scripted::new(name, &claims, move |phase, call| {
            if phase == Phase::Build {
                for suffix in suffixes {
                    call.objects_emit(handle::Objects(0), "v1", "ConfigMap", suffix, None)?;
                }
            }
            Ok(())
        })
    };
    let rendered = render(&[emitter("z", &["-1", "-0"]), emitter("b", &["-9", "-8"])]).unwrap();
    let found: Vec<_> = rendered
        .objects
        .iter()
        .map(|o| o.value["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["job-9", "job-8", "job-1", "job-0"]);
}

/// Writes that are inside their claims but incompatible; the error names both writers.
#[test]
fn invalid_pods_are_refused_with_both_plugin_names() {
    let port = |name: &'static str, number: u16| {
        let claim = format!("pod-sets[*].containers[node].ports[{number}/TCP]");
        plugin(name, &[("writes", &claim)], move |call| {
            let node = container(call, "node")?;
            let port = Port {
                name: Some("metrics".to_owned()),
                number,
                protocol: "TCP".to_owned(),
                ..Port::default()
            };
            call.container_put_port(node, &port)
        })
    };
    let both = refusal(&[port("aa", 9000), port("bb", 9001)]);
    assert!(
        both.contains("named `metrics`")
            && both.contains("plugin aa")
            && both.contains("plugin bb"),
        "{both}"
    );

    let host_port_at = |name: &'static str, in_: &'static str, host_port: u16, address: &str| {
        let address = (!address.is_empty()).then(|| address.to_owned());
        let claim = format!("pod-sets[*].containers[{in_}].ports[*]");
        plugin(name, &[("writes", &claim)], move |call| {
            let port = Port {
                number: 9000,
                protocol: "TCP".to_owned(),
                host_port: Some(host_port),
                host_ip: address.clone(),
                ..Port::default()
            };
            let container = container(call, in_)?;
            call.container_put_port(container, &port)
        })
    };
    let host_port = |name, in_, port| host_port_at(name, in_, port, "");
    let both = refusal(&[host_port("aa", "node", 9000), host_port("bb", "side", 9000)]);
    assert!(
        both.contains("host port 9000/TCP")
            && both.contains("plugin aa")
            && both.contains("plugin bb"),
        "{both}"
    );
    let apart = [host_port("aa", "node", 9000), host_port("bb", "side", 9001)];
    render(&apart).unwrap_or_else(|problems| panic!("{}", problems[0]));
    // An absent address means every address, as does the wildcard address.
    for (one, other, meet) in [
        ("0.0.0.0", "", true),
        ("", "10.0.0.1", true),
        ("10.0.0.1", "::", true),
        ("0.0.0.0", "fd00::1", true),
        ("fd00::1", "fd00:0::1", true),
        ("10.0.0.1", "10.0.0.2", false),
    ] {
        let plugins = [
            host_port_at("aa", "node", 80, one),
            host_port_at("bb", "side", 80, other),
        ];
        let problems = render(&plugins)
            .err()
            .map(|problems| problems[0].to_string());
        let clash = problems.as_deref().is_some_and(|problem| {
            problem.contains("host port 80/TCP")
                && problem.contains("plugin aa")
                && problem.contains("plugin bb")
        });
        assert_eq!(clash, meet, "{one:?} {other:?}: {problems:?}");
        assert_eq!(problems.is_some(), meet);
    }

    let create = |name: &'static str, claim: &'static str| {
        plugin(name, &[("creates", claim)], move |call| {
            let set = pod_set(call, "node")?;
            if claim.contains("init") {
                call.pod_set_add_init_container(set, "helper", "image")
                    .map(drop)
            } else {
                call.pod_set_add_container(set, "helper", "image").map(drop)
            }
        })
    };
    let two_lists = [
        create("aa", "pod-sets[*].containers[helper]"),
        create("bb", "pod-sets[*].init-containers[helper]"),
    ];
    let both = refusal(&two_lists);
    assert!(
        both.contains("both named `helper`")
            && both.contains("plugin aa")
            && both.contains("plugin bb"),
        "{both}"
    );

    let mounter = plugin(
        "aa",
        &[("writes", "pod-sets[*].containers[node].mounts[/x]")],
        |call| {
            let node = container(call, "node")?;
            let mount = Mount {
                volume: "data".to_owned(),
                path: "/x".to_owned(),
                ..Mount::default()
            };
            call.container_put_mount(node, &mount)
        },
    );
    let remover = plugin("bb", &[("writes", "pod-sets[*].volumes[data]")], |call| {
        let set = pod_set(call, "node")?;
        call.pod_set_remove_volume(set, "data")
    });
    let both = refusal(&[mounter, remover.clone()]);
    assert!(
        both.contains("plugin aa") && both.contains("volume `data`"),
        "{both}"
    );
    assert!(
        both.contains("plugin bb"),
        "who removed the volume is named too: {both}"
    );

    let runtimes = refusal(&[remover]);
    assert!(
        runtimes.contains("the runtime mounts the volume `data` at /data, which the plugin bb"),
        "{runtimes}"
    );
}

fn refusal(plugins: &[Scripted]) -> String {
    render(plugins).unwrap_err()[0].to_string()
}
