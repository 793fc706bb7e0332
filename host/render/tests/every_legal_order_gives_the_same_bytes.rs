//! Plugins with disjoint claims give the same bytes in every legal order: additions are ordered by plugin name, and not by the order of
//! calls.

use proptest::prelude::*;
use serde_json::json;
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Phase,
    value::{Mount, Port},
};

use crate::common::{Scripted, container, permutations, pod_set, render, render_preferring, texts};

/// A plugin that adds to everything that plugins can add to, with its own keys, which are not sorted.
fn adder(n: usize) -> Scripted {
    let upper = format!("P{n}");
    let claims = [
        ("writes", "labels[pN]".to_owned()),
        ("writes", "annotations[pN]".to_owned()),
        ("writes", "pod-sets[*].pod-labels[pN*]".to_owned()),
        ("writes", "pod-sets[*].pod-annotations[pN]".to_owned()),
        ("writes", "pod-sets[*].node-selector[pN]".to_owned()),
        ("writes", "pod-sets[*].volumes[pN-*]".to_owned()),
        ("creates", "pod-sets[node].containers[pN-*]".to_owned()),
        ("creates", "pod-sets[node].init-containers[pN-*]".to_owned()),
        (
            "writes",
            "pod-sets[*].containers[node].env[PN_*]".to_owned(),
        ),
        (
            "writes",
            "pod-sets[*].init-containers[first].env[PN_*]".to_owned(),
        ),
        (
            "writes",
            "pod-sets[*].containers[node].ports[900N/TCP]".to_owned(),
        ),
        (
            "writes",
            "pod-sets[*].containers[node].mounts[/pN/*]".to_owned(),
        ),
        (
            "writes",
            "pod-sets[*].containers[side].limits[pN/*]".to_owned(),
        ),
        ("writes", "objects[v1/ConfigMap/-pN*]".to_owned()),
    ];
    let claims = claims.map(|(list, path)| {
        let path = path.replace("pN", &format!("p{n}")).replace("PN", &upper);
        (list, path.replace("900N", &format!("900{n}")))
    });
    let claims: Vec<_> = claims
        .iter()
        .map(|(list, path)| (*list, path.as_str()))
        .collect();
    // Every second plugin has a name that sorts the other way than its number.
    let name = if n.is_multiple_of(2) {
        format!("p{n}")
    } else {
        format!("a{}", 99 - n)
    };
    let mut plugin = Scripted::new(&name, &claims, move |phase, call| match phase {
        Phase::Transform => transform(n, call),
        Phase::Build => build(n, call),
        Phase::Check => call.context_warn(handle::Context(0), &format!("checked by {n}"), None),
    });
    plugin.reserved_env = vec![format!("{upper}_OVER").into()];
    // As many as all of them add together.
    (plugin.limits.containers, plugin.limits.objects) = (64, 64);
    plugin
}

fn transform(n: usize, call: &mut Call) -> Result<(), Fault> {
    let info = call.context_info(Call::CONTEXT)?;
    call.context_because(handle::Context(0), &format!("as {n} wants"))?;
    let (label, value) = (format!("p{n}"), n.to_string());
    call.info_set_label(info, &label, &value)?;
    call.info_set_annotation(info, &label, &value)?;
    let set = pod_set(call, "node")?;
    call.pod_set_set_pod_label(set, &label, &value)?;
    call.pod_set_set_pod_label(set, &format!("p{n}-z"), &value)?;
    call.pod_set_remove_pod_label(set, &format!("p{n}-z"))?;
    call.pod_set_set_pod_annotation(set, &label, &value)?;
    call.pod_set_put_node_selector(set, &label, &value)?;
    call.pod_set_put_own_config_map(set, &format!("p{n}-scripts"), &format!("-p{n}"), None, &[])?;
    call.pod_set_put_empty_dir(set, &format!("p{n}-cache"), None, None)?;

    let node = container(call, "node")?;
    // The next plugin's env var is referenced before or after it is added, and so is one that no plugin adds.
    call.container_put_env(
        node,
        &format!("P{n}_Z"),
        &format!("$(P{}_A) $(NOBODY) $(C)", n + 1),
    )?;
    call.container_put_env(node, &format!("P{n}_A"), &format!("$(P{n}_B)"))?;
    call.container_put_env_field(node, &format!("P{n}_B"), "metadata.name")?;
    call.container_put_env(node, &format!("P{n}_OVER"), "mine")?;
    let first = container(call, "first")?;
    call.container_default_env(first, &format!("P{n}_A"), &value)?;
    let port = Port {
        name: Some(format!("p{n}")),
        number: 9000 + u16::try_from(n).unwrap(),
        protocol: "TCP".to_owned(),
        ..Port::default()
    };
    call.container_put_port(node, &port)?;
    for path in ["z", "a"] {
        let mount = Mount {
            volume: format!("p{n}-cache"),
            path: format!("/p{n}/{path}"),
            read_only: n == 1,
            ..Mount::default()
        };
        call.container_put_mount(node, &mount)?;
    }
    let side = container(call, "side")?;
    call.container_set_limit(side, &format!("p{n}/device"), &value)?;

    for name in ["z", "a"] {
        let added = call.pod_set_add_container(set, &format!("p{n}-{name}"), "image")?;
        call.container_set_command(added, std::slice::from_ref(&value))?;
        call.container_put_env(added, "ANY", &value)?;
        let init = call.pod_set_add_init_container(set, &format!("p{n}-init-{name}"), "image")?;
        match (n % 4, name) {
            (0, "z") => call.container_place_first(init)?,
            (1, _) => call.container_place_before(init, "second")?,
            (2, "a") => call.container_place_after(init, "first")?,
            _ => {}
        }
    }
    Ok(())
}

fn build(n: usize, call: &mut Call) -> Result<(), Fault> {
    for suffix in [format!("-p{n}"), format!("-p{n}-a")] {
        let object = call.objects_emit(handle::Objects(0), "v1", "ConfigMap", &suffix, None)?;
        call.object_append(object, "key", &n.to_string())?;
    }
    Ok(())
}

/// Returns the whole output of the renderer for an order of the plugins.
fn bytes(order: &[usize]) -> String {
    let mut plugins: Vec<Scripted> = order.iter().map(|n| adder(*n)).collect();
    for at in 1..plugins.len() {
        plugins[at].after = vec![plugins[at - 1].name.clone()];
    }
    let wanted: Vec<_> = plugins.iter().map(|plugin| plugin.name.clone()).collect();
    // The runtime names them in one order, whatever order they run in.
    plugins.sort_by(|a, b| a.name.cmp(&b.name));
    let rendered = render(&plugins).unwrap_or_else(|problems| panic!("{order:?}: {}", problems[0]));
    let ran: Vec<_> = rendered
        .plan
        .iter()
        .map(|active| active.plugin.id.name.to_string())
        .collect();
    assert_eq!(ran, wanted, "the order that is tested is the one that ran");
    let objects: Vec<_> = rendered
        .objects
        .iter()
        .map(|object| &object.value)
        .collect();
    json!([objects, rendered.job_set, rendered.provenance()]).to_string()
}

#[test]
fn all_orders_of_up_to_six_plugins_agree() {
    for count in 1..=6 {
        let orders = permutations(count);
        let expected = bytes(&orders[0]);
        assert!(expected.contains(&format!("P{}_A", count - 1)));
        for order in &orders {
            assert_eq!(bytes(order), expected, "{order:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_orders_of_more_plugins_agree(order in (7usize..=10).prop_flat_map(|count| Just((0..count).collect::<Vec<_>>()).prop_shuffle())) {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        prop_assert_eq!(bytes(&order), bytes(&sorted));
    }
}

#[test]
fn errors_and_warnings_are_ordered_by_plugin() {
    let plugin = |name: &'static str, fails: bool| {
        Scripted::new(name, &[], move |phase, call| {
            call.context_warn(
                handle::Context(0),
                &format!("{name} warns in {phase}"),
                None,
            )?;
            match phase {
                Phase::Transform if fails => Err(Fault::Argument(format!("{name} fails"))),
                _ => Ok(()),
            }
        })
    };
    let all = |fails: bool| ["a", "b", "c"].map(|name| plugin(name, fails && name != "b"));
    for order in permutations(3) {
        let order: Vec<_> = order
            .iter()
            .map(|at| ["a", "b", "c"][*at].to_owned())
            .collect();
        let rendered = render_preferring(&all(false), &order).unwrap();
        let warned: Vec<_> = rendered
            .warnings
            .iter()
            .map(|w| w.message.clone())
            .collect();
        let wanted =
            Phase::ALL.map(|phase| ["a", "b", "c"].map(|name| format!("{name} warns in {phase}")));
        assert_eq!(warned, wanted.concat());
        let problems = texts(&render_preferring(&all(true), &order).unwrap_err());
        let fails = |name| {
            format!("plugin {name} 1.0.0 (native) in transform: invalid argument: {name} fails")
        };
        assert_eq!(problems, [fails("a"), fails("c")]);
    }
}

/// A plugin that depends on another's writes is not called without them; any other plugin is, so that its errors are reported too.
#[test]
fn plugins_that_depend_on_a_failed_plugin_are_not_called() {
    let failing = Scripted::new("z", &[("writes", "labels[x]")], |phase, _| match phase {
        Phase::Transform => Err(Fault::Argument("z fails".to_owned())),
        _ => Ok(()),
    });
    let reader = |name: &str, read: &str, write: &str| {
        let printed = format!("{name} was called");
        Scripted::new(
            name,
            &[("reads", read), ("writes", write)],
            move |_, call| call.context_error(handle::Context(0), &printed, None),
        )
    };
    let plugins = [
        failing,
        reader("a", "labels[x]", "labels[y]"),
        reader("b", "labels[y]", "labels[w]"),
        reader("c", "labels[v]", "labels[u]"),
    ];
    let problems = texts(&render(&plugins).unwrap_err());
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("c was called"), "{problems:?}");
    assert!(problems[1].contains("z fails"), "{problems:?}");
}

/// A plugin cannot depend on additions of others that it did not claim, because it does not see them.
#[test]
fn reads_of_another_plugins_additions_are_order_independent() {
    let asker = || {
        Scripted::new("asker", &[("writes", "labels[seen]")], |phase, call| {
            if phase == Phase::Transform {
                let set = pod_set(call, "node")?;
                let seen = call.pod_set_container(set, "p0-a")?.is_some();
                call.info_set_label(handle::Info(0), "seen", &seen.to_string())?;
            }
            Ok(())
        })
    };
    let run = |mut asker: Scripted, mut other: Scripted, asker_first: bool| {
        let (asker_name, other_name) = (asker.name.clone(), other.name.clone());
        if asker_first {
            other.after = vec![asker_name];
        } else {
            asker.after = vec![other_name];
        }
        render(&[asker, other]).unwrap().job_set.to_string()
    };
    assert_eq!(run(asker(), adder(0), true), run(asker(), adder(0), false));
}
