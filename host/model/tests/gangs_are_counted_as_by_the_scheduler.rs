//! The size and requests of a gang are those that the scheduler computes, including what plugins add, and reading them needs the claims of
//! every source.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::{
    call::{Call, CallInputs, Fault},
    claims::ObjectPattern,
    contract::handle,
    lookup::{LookupAnswer, LookupKey, Lookups},
    plugin::Phase,
    plugin_info::PluginInfo,
    record::{Datum, Field, Fields, PodSet, Record},
    session::Session,
    value::Quantity,
};

use crate::common::{
    ASKER, FunctionPlugin, call, call_over, job, lookups, manifest, missing_claim, plugin, pod_set,
    record,
};

const LOOKUPS: [(&str, &str); 2] = [
    ("reads", "lookups[v1/LimitRange/*]"),
    ("reads", "lookups[node.k8s.io/v1/RuntimeClass/*]"),
];

/// Every source of the sum.
fn reader() -> Arc<PluginInfo> {
    let record = [
        ("reads", "pod-sets[*].containers[*].requests[*]"),
        ("reads", "pod-sets[*].containers[*].limits[*]"),
        ("reads", "pod-sets[*].init-containers[*].requests[*]"),
        ("reads", "pod-sets[*].init-containers[*].limits[*]"),
        ("reads", "pod-sets[*].init-containers[*].restart-policy"),
        ("reads", "pod-sets[*].raw[*]"),
    ];
    plugin(&manifest("reader", &[&record[..], &LOOKUPS].concat()))
}

fn limit_ranges(limits: &[Value]) -> (LookupKey, LookupAnswer) {
    let key = LookupKey::All {
        api_version: "v1".to_owned(),
        kind: "LimitRange".to_owned(),
    };
    let ranges = limits.iter().enumerate().map(|(at, limits)| {
        Arc::new(json!({"metadata": {"name": format!("range-{at}")}, "spec": {"limits": limits}}))
    });
    (key, LookupAnswer::all(ranges.collect(), ASKER))
}

/// A call over a record, with LimitRanges of the namespace.
fn call_with(phase: Phase, plugin: &Arc<PluginInfo>, record: Record, limits: &[Value]) -> Call {
    let mut known = (*lookups()).clone();
    let (key, answer) = limit_ranges(limits);
    known.insert(key, answer);
    call_knowing(phase, plugin, record, known)
}

fn call_knowing(phase: Phase, plugin: &Arc<PluginInfo>, record: Record, known: Lookups) -> Call {
    let inputs = CallInputs {
        plugin: plugin.clone(),
        rank: 1,
        config: Arc::default(),
        job: job(),
        base: Arc::new(record.clone()),
        lookups: Arc::new(known),
        kept: Arc::default(),
    };
    Call::new(phase, record, inputs)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn shown(amounts: Result<Vec<Quantity>, Fault>) -> Vec<(String, String)> {
    let amounts = amounts.unwrap().into_iter();
    amounts.map(|q| (q.resource, q.amount)).collect()
}

fn amounts(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let list = list.iter();
    list.map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
        .collect()
}

/// In the pod set `node`: two containers of 4 CPUs and 8 GPUs each, the GPUs as limits, and the overhead of its RuntimeClass. In
/// `launcher`: one such container.
#[test]
fn gang_sums_the_requests_of_its_pod_sets() {
    let mut call = call(Phase::Transform, &reader());
    let one = [
        ("cpu", "8250m"),
        ("memory", "160Mi"),
        ("nvidia.com/gpu", "16"),
    ];
    let node = pod_set(&mut call, "node");
    assert_eq!(shown(call.pod_set_pod_requests(node)), amounts(&one));
    let info = handle::Info(0);
    for (gang, members, sum) in [
        (names(&[]), 0, amounts(&[])),
        (
            names(&["launcher"]),
            1,
            amounts(&[("cpu", "4"), ("nvidia.com/gpu", "8")]),
        ),
        (
            names(&["launcher", "node"]),
            5,
            amounts(&[("cpu", "37"), ("memory", "640Mi"), ("nvidia.com/gpu", "72")]),
        ),
    ] {
        assert_eq!(call.info_gang_members(info, &gang), Ok(members));
        assert_eq!(shown(call.info_gang_requests(info, &gang)), sum);
    }
}

#[test]
fn limit_ranges_supply_missing_requests() {
    let limits = [
        json!([{"type": "Container", "default": {"memory": "2Gi", "cpu": "1"}}]),
        json!([{"type": "Container", "defaultRequest": {"memory": "9Gi", "ephemeral-storage": "1G"}}]),
    ];
    let mut call = call_with(
        Phase::Check,
        &plugin(&manifest("p", &LOOKUPS)),
        record(),
        &limits,
    );
    let gang = names(&["launcher"]);
    let sum = amounts(&[
        ("cpu", "4"),
        ("ephemeral-storage", "1G"),
        ("memory", "2Gi"),
        ("nvidia.com/gpu", "8"),
    ]);
    assert_eq!(shown(call.info_gang_requests(handle::Info(0), &gang)), sum);
}

/// Whatever the order of the two: a claim on some of the containers is none on the sum.
#[test]
fn containers_added_by_other_plugins_are_counted() {
    let creator = plugin(&manifest(
        "creator",
        &[("creates", "pod-sets[*].containers[helper]")],
    ));
    let mut created = call(Phase::Transform, &creator);
    let launcher = pod_set(&mut created, "launcher");
    let helper = created
        .pod_set_add_container(launcher, "helper", "image")
        .unwrap();
    created
        .container_set_request(helper, "cpu", "500m")
        .unwrap();
    let record = created.finish().record;
    let mut call = call_over(Phase::Transform, &reader(), record, 2, json!({}));
    let launcher = pod_set(&mut call, "launcher");
    let sum = amounts(&[("cpu", "4500m"), ("nvidia.com/gpu", "8")]);
    assert_eq!(shown(call.pod_set_pod_requests(launcher)), sum);

    let narrow = [
        ("reads", "pod-sets[*].containers[node].requests[*]"),
        ("reads", "pod-sets[*].containers[helper].requests[*]"),
    ];
    let narrow = plugin(&manifest("narrow", &[&narrow[..], &LOOKUPS].concat()));
    let mut call = call_over(
        Phase::Transform,
        &narrow,
        crate::common::record(),
        2,
        json!({}),
    );
    let launcher = pod_set(&mut call, "launcher");
    let fault = call.pod_set_pod_requests(launcher).unwrap_err();
    assert_eq!(
        missing_claim(&fault).1,
        "pod-sets[launcher].containers[*].requests[*]"
    );
}

#[test]
fn after_transform_only_lookups_need_claims() {
    for phase in [Phase::Build, Phase::Check] {
        let mut call = call(phase, &plugin(&manifest("p", &LOOKUPS)));
        let node = pod_set(&mut call, "node");
        assert_eq!(call.pod_set_pod_requests(node).unwrap().len(), 3);
        for (missing, rest) in [(LOOKUPS[0], LOOKUPS[1]), (LOOKUPS[1], LOOKUPS[0])] {
            let mut call = crate::common::call(phase, &plugin(&manifest("p", &[rest])));
            let node = pod_set(&mut call, "node");
            let fault = call.pod_set_pod_requests(node).unwrap_err();
            let path = missing_claim(&fault).1;
            assert_eq!(
                path,
                missing.1.replace("RuntimeClass/*", "RuntimeClass/kata")
            );
        }
    }
}

#[test]
fn only_required_lookups_are_requested() {
    let asked = |record: Record, known: Lookups| {
        let mut call = call_knowing(Phase::Build, &reader(), record, known);
        let node = pod_set(&mut call, "node");
        match call.pod_set_pod_requests(node) {
            Err(Fault::Missing(key)) => ObjectPattern::from(&key)
                .to_string()
                .trim_matches('"')
                .to_owned(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(asked(record(), Lookups::default()), "v1/LimitRange/*");
    let mut known = Lookups::default();
    let (key, answer) = limit_ranges(&[]);
    known.insert(key, answer);
    assert_eq!(
        asked(record(), known.clone()),
        "node.k8s.io/v1/RuntimeClass/kata"
    );
    // A pod with an overhead has that of its RuntimeClass.
    let mut record = record();
    let overhead: Datum = json!({"cpu": "1"}).into();
    record.pod_sets[0]
        .fields
        .load(Field::PodRaw, "overhead", overhead);
    let sum = asked(record.clone(), known.clone());
    assert!(sum.contains("amount: \"9\""), "{sum}");
    // An empty one is none.
    let fields = &mut record.pod_sets[0].fields;
    fields.load(Field::PodRaw, "overhead", Datum::from(json!({})));
    assert_eq!(asked(record, known), "node.k8s.io/v1/RuntimeClass/kata");
}

/// What was read of the lookups is enough for the same call.
#[test]
fn pruned_lookups_give_the_same_sum() {
    let plugin = reader();
    let plugin = || {
        FunctionPlugin::new(plugin.clone(), |_, call: &mut Call| {
            let gang = names(&["node"]);
            let sum = call.info_gang_requests(handle::Info(0), &gang)?;
            call.context_log(Call::CONTEXT, "info", &format!("{sum:?}"))?;
            Ok(())
        })
    };
    let printed = |known: Arc<Lookups>| {
        let mut session = Session::new(job(), record()).with_lookups(known);
        session
            .call(&plugin(), Phase::Build, 0, Arc::default())
            .unwrap();
        (session.log()[0].line.line.clone(), session.read_lookups())
    };
    let mut known = (*lookups()).clone();
    let (key, answer) = limit_ranges(&[json!([{"type": "Container", "min": {"memory": "3Gi"}}])]);
    known.insert(key, answer);
    let (sum, kept) = printed(Arc::new(known));
    assert!(sum.contains("24Gi") || sum.contains("25216Mi"), "{sum}");
    assert_eq!(printed(Arc::new(kept.clone())), (sum, kept));
}

/// A sidecar before an init container runs beside it; the requested placement decides which one does.
#[test]
fn init_containers_are_counted_in_pod_order() {
    let mut record = Record::new("llama", "llama", "cluster.local");
    record.pod_sets.push(PodSet::new("node"));
    let mut add = |name: &str, policy: Option<&str>, cpus: &str| {
        let mut fields = Fields::default();
        fields.load(Field::Requests, "cpu", cpus.into());
        if let Some(policy) = policy {
            fields.load(Field::RestartPolicy, "", policy.into());
        }
        record.load_container(0, Field::InitContainers, name, fields)
    };
    let (fetch, sidecar) = (add("fetch", None, "4"), add("sidecar", Some("Always"), "3"));
    let sum = |session: &mut Session| {
        let plugin = FunctionPlugin::new(reader(), |_, call: &mut Call| {
            let node = pod_set(call, "node");
            let listed = call.pod_set_init_containers(node)?;
            let first = call.container_name(listed[0])?;
            let cpus = call.pod_set_pod_requests(node)?.remove(0).amount;
            call.context_log(Call::CONTEXT, "info", &format!("{first} {cpus}"))?;
            Ok(())
        });
        session
            .call(&plugin, Phase::Build, 0, Arc::default())
            .unwrap();
        session.log().last().unwrap().line.line.clone()
    };
    let mut session = Session::new(job(), record).with_lookups(lookups());
    assert_eq!(sum(&mut session), "fetch 4");
    session.place_init_containers(0, &[sidecar, fetch]);
    assert_eq!(sum(&mut session), "sidecar 7");
}

#[test]
fn invalid_gang_ends_the_call() {
    let mut call = call(Phase::Check, &reader());
    let info = handle::Info(0);
    for (gang, problem) in [
        (names(&["node", "none"]), "there is no pod set `none`"),
        (names(&["node", "node"]), "duplicate pod set `node`"),
    ] {
        let wrong = Err(Fault::Argument(problem.to_owned()));
        assert_eq!(call.info_gang_members(info, &gang), wrong);
        assert_eq!(
            call.info_gang_requests(info, &gang).map(|_| 0),
            wrong,
            "{gang:?}"
        );
    }
}

#[test]
fn too_large_gangs_name_the_field_of_their_largest_pods() {
    let with = |change: fn(&mut [PodSet])| {
        let mut record = record();
        change(&mut record.pod_sets);
        let mut call = call_over(Phase::Check, &reader(), record, 1, json!({}));
        let (info, gang) = (handle::Info(0), names(&["node", "launcher"]));
        let members = call.info_gang_members(info, &gang);
        let requests = call.info_gang_requests(info, &gang).map(drop);
        assert_eq!(members.clone().map(drop), requests);
        members.map_err(|fault| fault.to_string())
    };
    let most = u32::try_from(i32::MAX).unwrap();
    let fits = with(|sets| (sets[0].count, sets[1].count) = (2_147_483_646, 1));
    assert_eq!(fits, Ok(most));
    for (change, field) in [
        (
            (|sets| (sets[0].count, sets[0].counts_nodes) = (2_147_483_647, false))
                as fn(&mut [PodSet]),
            "pod-sets[node].count: is 2147483647, so at least 2147483648 pods",
        ),
        (
            |sets| (sets[1].count, sets[1].replicas) = (3, 2_147_483_647),
            "pod-sets[launcher].replicas: is 2147483647, so at least 4294967299 pods",
        ),
        (
            |sets| (sets[1].count, sets[1].replicas) = (65_536, 65_536),
            "pod-sets[launcher].count: is 65536, so at least 4294967299 pods",
        ),
        (
            |sets| sets[0].count = 2_147_483_647,
            "spec.trainer.numNodes: is 2147483647, so at least 2147483648 pods",
        ),
    ] {
        let error = with(change).unwrap_err();
        assert!(error.starts_with(field), "{error}");
        assert!(error.contains("at most 2147483647 members"), "{error}");
    }
}

#[test]
fn invalid_quantity_is_reported_with_its_path() {
    let with = |change: fn(&mut Record)| {
        let mut record = record();
        change(&mut record);
        let mut call = call_over(Phase::Check, &reader(), record, 1, json!({}));
        let node = pod_set(&mut call, "node");
        call.pod_set_pod_requests(node).unwrap_err().to_string()
    };
    let of_container = with(|record| {
        let mut fields = Fields::default();
        fields.load(Field::Limits, "cpu", "many".into());
        record.load_container(0, Field::Containers, "odd", fields);
    });
    assert_eq!(
        of_container,
        "pod-sets[node].containers[odd].limits[cpu]: must be a quantity of 0 or more, such as `4` or `500m`; found `many`"
    );
    let below = with(|record| {
        let mut fields = Fields::default();
        fields.load(Field::Requests, "cpu", "-2".into());
        record.load_container(0, Field::InitContainers, "odd", fields);
    });
    assert_eq!(
        below,
        "pod-sets[node].init-containers[odd].requests[cpu]: must be a quantity of 0 or more, such as `4` or `500m`; found `-2`"
    );
    let of_pod = with(|record| {
        let resources: Datum = json!({"requests": {"memory": true}}).into();
        let fields = &mut record.pod_sets[0].fields;
        fields.load(Field::PodRaw, "resources", resources);
    });
    assert_eq!(
        of_pod,
        "pod-sets[node].raw[resources].requests[memory]: must be a quantity of 0 or more, such as `4` or `500m`; found `true`"
    );
}
