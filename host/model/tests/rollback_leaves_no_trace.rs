//! A failed call leaves the record unchanged, including order and ownership; a successful one leaves what a simple model of the same writes
//! predicts; and the old and new values of the journal chain from the base to the record.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::type_complexity,
    clippy::unwrap_used
)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use proptest::prelude::*;
use serde_json::{Value, json};
use trainyard_model::{
    call::{self, Call, Fault},
    contract::handle,
    plugin::{CallFailure, Phase},
    plugin_info::PluginInfo,
    record::{ContainerId, Datum, EntryScope, Field, Owner, Record},
    session::{Committed, Session},
    value::{Failure, Mount, Port},
};

use crate::common::{FunctionPlugin, job, manifest, plugin, record, with};

/// One write. Names and keys come from small sets, so that writes meet.
#[derive(Clone, Debug)]
enum Write {
    Label(u8, u8),
    PodLabel(u8, u8),
    RemovePodLabel(u8),
    NodeSelector(u8, u8),
    PriorityClass(u8),
    EmptyDir(u8, u8),
    RemoveVolume(u8),
    AddContainer(Field, u8),
    Inside(u8, Inside),
}

/// One write to a container; the number picks one of those that there are.
#[derive(Clone, Debug)]
enum Inside {
    Env(u8, u8),
    RemoveEnv(u8),
    Port(u8, u8),
    Mount(u8),
    RemoveMount(u8),
    Command(u8),
    ClearArgs,
    Args(u8),
    Limit(u8, u8),
    Image(u8),
}

fn inside() -> impl Strategy<Value = Inside> {
    let n = || 0u8..3;
    prop_oneof![
        3 => (0u8..5, n()).prop_map(|(a, b)| Inside::Env(a, b)),
        2 => (0u8..5).prop_map(Inside::RemoveEnv),
        1 => (n(), n()).prop_map(|(a, b)| Inside::Port(a, b)),
        1 => n().prop_map(Inside::Mount),
        1 => n().prop_map(Inside::RemoveMount),
        1 => n().prop_map(Inside::Command),
        1 => Just(Inside::ClearArgs),
        1 => n().prop_map(Inside::Args),
        1 => (n(), n()).prop_map(|(a, b)| Inside::Limit(a, b)),
        1 => n().prop_map(Inside::Image),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    let n = || 0u8..3;
    let list = prop::sample::select(vec![Field::Containers, Field::InitContainers]);
    prop_oneof![
        1 => (n(), n()).prop_map(|(a, b)| Write::Label(a, b)),
        1 => (n(), n()).prop_map(|(a, b)| Write::PodLabel(a, b)),
        1 => n().prop_map(Write::RemovePodLabel),
        1 => (n(), n()).prop_map(|(a, b)| Write::NodeSelector(a, b)),
        1 => n().prop_map(Write::PriorityClass),
        1 => (n(), n()).prop_map(|(a, b)| Write::EmptyDir(a, b)),
        1 => n().prop_map(Write::RemoveVolume),
        2 => (list, n()).prop_map(|(list, n)| Write::AddContainer(list, n)),
        8 => (any::<u8>(), inside()).prop_map(|(at, write)| Write::Inside(at, write)),
    ]
}

/// The keys that are written: some of the runtime's, some new.
fn env_name(n: u8) -> String {
    ["MODE", "NODE_NAME", "A", "B", "C"][usize::from(n)].to_owned()
}
fn label_key(n: u8) -> String {
    ["team", "app", "new"][usize::from(n)].to_owned()
}
fn volume(n: u8) -> String {
    ["data", "cache", "shm"][usize::from(n)].to_owned()
}
fn mount_path(n: u8) -> String {
    ["/data", "/cache", "/dev/shm"][usize::from(n)].to_owned()
}

/// Performs the writes through a call: in the pod set `node`, on the containers that the plugin finds.
fn perform(call: &mut Call, writes: &[Write]) -> Result<(), Fault> {
    let info = call.context_info(Call::CONTEXT)?;
    let set = call.info_pod_set(info, "node")?.unwrap();
    for (at, write) in writes.iter().enumerate() {
        call.context_because(Call::CONTEXT, &format!("write {at}"))?;
        match write {
            Write::Label(k, v) => call.info_set_label(info, &label_key(*k), &v.to_string())?,
            Write::PodLabel(k, v) => {
                call.pod_set_set_pod_label(set, &label_key(*k), &v.to_string())?
            }
            Write::RemovePodLabel(k) => call.pod_set_remove_pod_label(set, &label_key(*k))?,
            Write::NodeSelector(k, v) => {
                call.pod_set_put_node_selector(set, &label_key(*k), &v.to_string())?
            }
            Write::PriorityClass(v) => call.pod_set_set_priority_class(set, &v.to_string())?,
            Write::EmptyDir(k, v) => {
                call.pod_set_put_empty_dir(set, &volume(*k), None, Some(&v.to_string()))?
            }
            Write::RemoveVolume(k) => call.pod_set_remove_volume(set, &volume(*k))?,
            Write::AddContainer(list, n) => {
                let name = format!("added-{n}");
                if call.pod_set_container(set, &name)?.is_some() {
                    continue;
                }
                if *list == Field::Containers {
                    call.pod_set_add_container(set, &name, "image")?;
                } else {
                    let added = call.pod_set_add_init_container(set, &name, "image")?;
                    call.container_place_after(added, "setup")?;
                }
            }
            Write::Inside(at, write) => {
                let mut all = call.pod_set_containers(set)?;
                all.extend(call.pod_set_init_containers(set)?);
                perform_inside(call, all[usize::from(*at) % all.len()], write)?;
            }
        }
    }
    Ok(())
}

fn perform_inside(
    call: &mut Call,
    container: handle::Container,
    write: &Inside,
) -> Result<(), Fault> {
    match write {
        Inside::Env(k, v) => call.container_put_env(container, &env_name(*k), &v.to_string()),
        Inside::RemoveEnv(k) => call.container_remove_env(container, &env_name(*k)),
        Inside::Port(n, name) => {
            let port = Port {
                name: Some(format!("p{name}")),
                number: 80 + u16::from(*n),
                protocol: "TCP".to_owned(),
                ..Port::default()
            };
            call.container_put_port(container, &port)
        }
        Inside::Mount(k) => {
            let mount = Mount {
                volume: volume(*k),
                path: mount_path(*k),
                read_only: true,
                ..Mount::default()
            };
            call.container_put_mount(container, &mount)
        }
        Inside::RemoveMount(k) => call.container_remove_mount(container, &mount_path(*k)),
        Inside::Command(v) => call.container_set_command(container, &[v.to_string()]),
        Inside::Args(v) => call.container_set_args(container, &[v.to_string()]),
        Inside::ClearArgs => call.container_clear_args(container),
        Inside::Limit(k, v) => call.container_set_limit(container, &label_key(*k), &v.to_string()),
        Inside::Image(v) => call.container_set_image(container, &v.to_string()),
    }
}

/// A plugin that may write everything that [`perform`] writes.
fn writer(name: &str) -> Arc<PluginInfo> {
    let mut claims = vec![
        ("writes", "labels[*]".to_owned()),
        ("writes", "pod-sets[*].pod-labels[*]".to_owned()),
        ("writes", "pod-sets[*].node-selector[*]".to_owned()),
        ("writes", "pod-sets[*].priority-class".to_owned()),
        ("writes", "pod-sets[*].volumes[*]".to_owned()),
    ];
    for list in ["containers", "init-containers"] {
        claims.push(("reads", format!("pod-sets[*].{list}[#]")));
        claims.push(("creates", format!("pod-sets[*].{list}[*]")));
        for field in [
            "env[*]",
            "ports[*]",
            "mounts[*]",
            "command",
            "args",
            "limits[*]",
            "image",
        ] {
            claims.push(("writes", format!("pod-sets[*].{list}[*].{field}")));
        }
    }
    let claims: Vec<_> = claims
        .iter()
        .map(|(list, path)| (*list, path.as_str()))
        .collect();
    let reserved: Vec<_> = (0..5).map(env_name).collect();
    plugin(&with(
        manifest(name, &claims),
        json!({"reservedEnv": reserved}),
    ))
}

/// Everything that a record holds, entry by entry in order, owners and the arena of containers included.
fn image(record: &Record) -> Value {
    let fields = |fields: &trainyard_model::record::Fields| -> Vec<String> {
        let fields = Field::ALL
            .iter()
            .map(|f| format!("{f}: {:?}", fields.all(*f)));
        fields.collect()
    };
    let containers: Vec<_> = (0..record.container_ids())
        .map(|id| {
            let container = record
                .container(ContainerId(id))
                .expect("no container is left without a list");
            json!([
                *container.name,
                container.list.name(),
                format!("{:?}", container.home),
                fields(&container.fields)
            ])
        })
        .collect();
    let sets: Vec<_> = record
        .pod_sets
        .iter()
        .map(|set| json!([*set.name, set.count, fields(&set.fields)]))
        .collect();
    json!([fields(&record.fields), sets, containers])
}

/// Runs writes as one call, and ends it as requested.
fn run(
    session: &mut Session,
    name: &str,
    rank: u16,
    writes: &[Write],
    end: Result<(), CallFailure>,
) -> bool {
    let (writes, end) = (writes.to_vec(), Mutex::new(Some(end)));
    let plugin = FunctionPlugin::new(writer(name), move |_, call| {
        perform(call, &writes)?;
        end.lock().unwrap().take().unwrap()
    });
    let result = session.call(&plugin, Phase::Transform, rank, Arc::new(json!({})));
    result.is_ok()
}

fn failure() -> impl Strategy<Value = u8> {
    0u8..3
}

fn ended(kind: u8) -> CallFailure {
    match kind {
        0 => CallFailure::Refused(Failure {
            message: "no".to_owned(),
            field: None,
        }),
        1 => CallFailure::Trap {
            kind: "unreachable".to_owned(),
            message: None,
        },
        _ => Fault::BaseWritten.into(),
    }
}

/// The record as lists of key and value with the rank of who added it: what the writes mean, without any journal.
#[derive(Default)]
struct Model {
    lists: BTreeMap<(String, Field), Vec<(String, Value, i32)>>,
    containers: Vec<String>,
}

impl Model {
    fn of(record: &Record) -> Self {
        let mut model = Self::default();
        let mut load = |scope: &str, fields: &trainyard_model::record::Fields| {
            for field in Field::ALL.iter().filter(|f| !f.holds_containers()) {
                let entries = fields.all(*field).iter();
                let entries = entries.map(|e| (e.key.to_string(), e.datum.to_json().unwrap(), -1));
                model
                    .lists
                    .insert((scope.to_owned(), *field), entries.collect());
            }
        };
        load("", &record.fields);
        load("node", &record.pod_sets[0].fields);
        for list in [Field::Containers, Field::InitContainers] {
            for id in record.containers(0, list) {
                let container = record.container(id).unwrap();
                load(&format!("{list}/{}", container.name), &container.fields);
            }
        }
        for list in [Field::Containers, Field::InitContainers] {
            let ids = record.containers(0, list);
            model
                .containers
                .extend(ids.map(|id| format!("{list}/{}", record.container(id).unwrap().name)));
        }
        model
    }

    fn put(&mut self, scope: &str, field: Field, key: &str, value: Value, rank: i32) {
        let list = self.lists.entry((scope.to_owned(), field)).or_default();
        match list.iter_mut().find(|(k, _, _)| k == key) {
            Some(entry) => entry.1 = value,
            None => {
                list.push((key.to_owned(), value, rank));
                list.sort_by_key(|(_, _, rank)| *rank);
            }
        }
    }

    fn remove(&mut self, scope: &str, field: Field, key: &str) {
        let list = self.lists.entry((scope.to_owned(), field)).or_default();
        list.retain(|(k, _, _)| k != key);
    }

    /// The containers as a plugin is given them: containers, then init containers, additions by rank.
    fn in_order(&self, ranks: &BTreeMap<String, i32>) -> Vec<String> {
        let mut out = self.containers.clone();
        out.sort_by_key(|name| {
            (
                name.starts_with("init-"),
                ranks.get(name).copied().unwrap_or(-1),
            )
        });
        out
    }

    fn perform(&mut self, writes: &[Write], rank: i32, ranks: &mut BTreeMap<String, i32>) {
        for write in writes {
            match write {
                Write::Label(k, v) => self.put(
                    "",
                    Field::Labels,
                    &label_key(*k),
                    v.to_string().into(),
                    rank,
                ),
                Write::PodLabel(k, v) => self.put(
                    "node",
                    Field::PodLabels,
                    &label_key(*k),
                    v.to_string().into(),
                    rank,
                ),
                Write::RemovePodLabel(k) => self.remove("node", Field::PodLabels, &label_key(*k)),
                Write::NodeSelector(k, v) => {
                    self.put(
                        "node",
                        Field::NodeSelector,
                        &label_key(*k),
                        v.to_string().into(),
                        rank,
                    );
                }
                Write::PriorityClass(v) => {
                    self.put("node", Field::PriorityClass, "", v.to_string().into(), rank)
                }
                Write::EmptyDir(k, v) => {
                    let value =
                        json!({"name": volume(*k), "emptyDir": {"sizeLimit": v.to_string()}});
                    self.put("node", Field::Volumes, &volume(*k), value, rank);
                }
                Write::RemoveVolume(k) => self.remove("node", Field::Volumes, &volume(*k)),
                Write::AddContainer(list, n) => {
                    let name = format!("{list}/added-{n}");
                    let suffix = format!("/added-{n}");
                    if self.containers.iter().any(|other| other.ends_with(&suffix)) {
                        continue;
                    }
                    self.put(&name, Field::Image, "", "image".into(), rank);
                    if *list == Field::InitContainers {
                        self.put(&name, Field::Placement, "after/setup", "".into(), rank);
                    }
                    ranks.insert(name.clone(), rank);
                    self.containers.push(name);
                }
                Write::Inside(at, write) => {
                    let all = self.in_order(ranks);
                    self.perform_inside(&all[usize::from(*at) % all.len()].clone(), write, rank);
                }
            }
        }
    }

    fn perform_inside(&mut self, name: &str, write: &Inside, rank: i32) {
        match write {
            Inside::Env(k, v) => {
                self.put(name, Field::Env, &env_name(*k), v.to_string().into(), rank)
            }
            Inside::RemoveEnv(k) => self.remove(name, Field::Env, &env_name(*k)),
            Inside::Port(n, port) => {
                let number = 80 + u16::from(*n);
                let value = json!({"name": format!("p{port}"), "containerPort": number});
                self.put(name, Field::Ports, &format!("{number}/TCP"), value, rank);
            }
            Inside::Mount(k) => {
                let value =
                    json!({"name": volume(*k), "mountPath": mount_path(*k), "readOnly": true});
                self.put(name, Field::Mounts, &mount_path(*k), value, rank);
            }
            Inside::RemoveMount(k) => self.remove(name, Field::Mounts, &mount_path(*k)),
            Inside::Command(v) => self.put(name, Field::Command, "", json!([v.to_string()]), rank),
            Inside::Args(v) => self.put(name, Field::Args, "", json!([v.to_string()]), rank),
            Inside::ClearArgs => self.remove(name, Field::Args, ""),
            Inside::Limit(k, v) => self.put(
                name,
                Field::Limits,
                &label_key(*k),
                v.to_string().into(),
                rank,
            ),
            Inside::Image(v) => self.put(name, Field::Image, "", v.to_string().into(), rank),
        }
    }

    fn check(&self, record: &Record, ranks: &BTreeMap<String, i32>) {
        let real = Self::of(record);
        assert_eq!(real.containers, self.in_order(ranks));
        for (place, list) in &real.lists {
            let keys = |list: &[(String, Value, i32)]| -> Vec<(String, Value)> {
                list.iter()
                    .map(|(key, value, _)| (key.clone(), value.clone()))
                    .collect()
            };
            let expected = self.lists.get(place).map_or(&[][..], Vec::as_slice);
            assert_eq!(keys(list), keys(expected), "{place:?}");
        }
    }
}

/// Replays a journal over the base: each old value is what stood there, and the last new values are the record's.
fn check_chain(base: &Record, committed: &[Committed], record: &Record) {
    type Values = BTreeMap<(EntryScope, Field, String), (Datum, Owner)>;
    let values = |record: &Record| {
        let mut out = Values::new();
        let mut add = |scope, fields: &trainyard_model::record::Fields| {
            for field in Field::ALL {
                for e in fields.all(*field).iter() {
                    out.insert(
                        (scope, *field, e.key.to_string()),
                        (e.datum.clone(), e.owner),
                    );
                }
            }
        };
        add(EntryScope::Job, &record.fields);
        for (set, at) in record.pod_sets.iter().zip(0u32..) {
            add(EntryScope::PodSet(at), &set.fields);
        }
        for id in (0..record.container_ids()).map(ContainerId) {
            add(
                EntryScope::Container(id),
                record.fields(EntryScope::Container(id)).unwrap(),
            );
        }
        out
    };
    let mut now = values(base);
    for call::Write { change, reason } in committed.iter().flat_map(|committed| &committed.writes) {
        assert!(
            reason
                .as_deref()
                .is_some_and(|reason| reason.starts_with("write "))
        );
        let place = (
            change.entry.scope,
            change.entry.field,
            change.entry.key.to_string(),
        );
        let old = match change.new.clone() {
            Some(new) => now.insert(place, (new, change.owner)),
            None => now.remove(&place),
        };
        assert_eq!(old, change.old.clone().map(|old| (old.datum, old.owner)));
    }
    assert_eq!(now, values(record));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn failed_call_leaves_the_record_unchanged(
        before in prop::collection::vec(write(), 0..20),
        failed in prop::collection::vec(write(), 1..40),
        kind in failure(),
        (rank, other) in (0u16..3, 0u16..3),
    ) {
        let mut session = Session::new(job(), record());
        prop_assert!(run(&mut session, "before", rank, &before, Ok(())));
        let (as_it_was, committed) = (image(session.record()), session.committed().len());
        prop_assert!(!run(&mut session, "failed", other, &failed, Err(ended(kind))));
        prop_assert_eq!(image(session.record()), as_it_was);
        prop_assert_eq!(session.committed().len(), committed);
        prop_assert_eq!(image(session.base()), image(&record()));
    }

    #[test]
    fn committed_calls_apply_their_writes(
        calls in prop::collection::vec((0u16..4, prop::collection::vec(write(), 0..25), prop::option::of(failure())), 1..5),
    ) {
        let mut session = Session::new(job(), record());
        let mut model = Model::of(&record());
        let mut ranks = BTreeMap::new();
        for (rank, writes, failure) in calls {
            let end = failure.map_or(Ok(()), |kind| Err(ended(kind)));
            let committed = end.is_ok();
            prop_assert_eq!(run(&mut session, "writer", rank, &writes, end), committed);
            if committed {
                model.perform(&writes, i32::from(rank), &mut ranks);
            }
        }
        model.check(session.record(), &ranks);
        check_chain(session.base(), session.committed(), session.record());
    }
}

/// A plugin that keeps a text in transform, over what it has kept, and reads it in the other phases.
fn keeper(name: &str, text: &'static str, end: fn() -> Result<(), CallFailure>) -> FunctionPlugin {
    let plugin = plugin(&manifest(name, &[]));
    FunctionPlugin::new(plugin, move |phase, call| {
        if phase == Phase::Transform {
            assert_eq!(call.context_kept(Call::CONTEXT, "plan")?, None);
            call.context_keep(Call::CONTEXT, "plan", "a first text")?;
            call.context_keep(Call::CONTEXT, "plan", text)?;
        }
        let kept = call.context_kept(Call::CONTEXT, "plan")?;
        call.context_log(Call::CONTEXT, "info", kept.as_deref().unwrap_or("nothing"))?;
        end()
    })
}

#[test]
fn kept_texts_are_private_and_dropped_on_failure() {
    let mut session = Session::new(job(), record());
    let mut call = |plugin: &FunctionPlugin, phase| {
        let ended = session.call(plugin, phase, 0, Arc::new(json!({})));
        let logged = session.log().last().unwrap().line.line.clone();
        (logged, ended.is_ok())
    };
    let (ok, trap): (fn() -> _, fn() -> _) = (|| Ok(()), || Err(ended(1)));
    let failing = keeper("keeper", "of a failed call", trap);
    assert_eq!(
        call(&failing, Phase::Transform),
        ("of a failed call".to_owned(), false)
    );
    let (keeper, other) = (keeper("keeper", "mine", ok), keeper("other", "other's", ok));
    assert_eq!(call(&keeper, Phase::Build), ("nothing".to_owned(), true));
    for plugin in [&keeper, &other] {
        assert!(call(plugin, Phase::Transform).1);
    }
    for phase in [Phase::Build, Phase::Check] {
        assert_eq!(call(&keeper, phase), ("mine".to_owned(), true));
        assert_eq!(call(&other, phase), ("other's".to_owned(), true));
    }
}

#[test]
fn failed_call_leaves_no_warnings_or_objects() {
    let plugin = plugin(&manifest(
        "sayer",
        &[("writes", "objects[v1/ConfigMap/-a]")],
    ));
    let say = |end: fn() -> Result<(), CallFailure>| {
        FunctionPlugin::new(plugin.clone(), move |_, call| {
            call.context_warn(Call::CONTEXT, "careful", None)?;
            call.context_error(Call::CONTEXT, "no", None)?;
            call.context_log(Call::CONTEXT, "info", "here")?;
            let objects = call.context_objects(Call::CONTEXT)?;
            call.objects_emit(objects, "v1", "ConfigMap", "-a", None)?;
            end()
        })
    };
    let mut session = Session::new(job(), record());
    let config = Arc::new(json!({}));
    let trap = || Err(ended(1));
    assert!(
        session
            .call(&say(trap), Phase::Build, 0, config.clone())
            .is_err()
    );
    assert!(
        session.warnings().is_empty()
            && session.errors().is_empty()
            && session.emitted().is_empty()
    );
    assert_eq!(session.log().len(), 1, "the log tells of failed calls too");
    session
        .call(&say(|| Ok(())), Phase::Build, 0, config)
        .unwrap();
    let left = (
        session.warnings().len(),
        session.errors().len(),
        session.emitted().len(),
    );
    assert_eq!((left, session.log().len()), ((1, 1, 1), 2));
}
