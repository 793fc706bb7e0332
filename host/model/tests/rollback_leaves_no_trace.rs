//! A failed call leaves the record unchanged, including order and ownership; a successful one leaves what its journal says; and the journal
//! has each write with its place, value, writer and reason.

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
    plugin::{CallFailure, Phase},
    record::{ContainerId, Datum, EntryScope, Field, Owner, Record},
    session::{Committed, Session},
    value::Failure,
};

use crate::common::{
    self, FunctionPlugin, everything, job, manifest,
    methods::{METHODS, Method, On},
    plugin, record,
};

/// The methods that change the record.
fn writes() -> impl Iterator<Item = &'static Method> {
    METHODS.iter().filter(|method| {
        method.phase == Phase::Transform && (method.is_write() || method.value.is_some())
    })
}

#[test]
fn journal_records_the_place_value_writer_and_reason() {
    for method in writes() {
        let claims = method.all_claims();
        for (texts, reason) in [
            (&["since\u{7}"][..], Some(r"since\u{7}")),
            (&["since", ""], None),
        ] {
            let mut call = common::call(Phase::Transform, &plugin(&manifest("p", &claims)));
            for text in texts {
                call.context_because(Call::CONTEXT, text).unwrap();
            }
            (method.run)(&mut call, On::Record).unwrap();
            let effects = call.finish();
            for write in &effects.writes {
                assert_eq!(write.reason.as_deref(), reason);
                assert_eq!(write.change.owner, Owner::Plugin(1));
            }
            let last = effects.writes.last().map(|write| {
                let path = effects.record.path(&write.change.entry).to_string();
                (
                    path,
                    write
                        .change
                        .new
                        .as_ref()
                        .map_or(json!(null), |new| new.to_json().unwrap()),
                )
            });
            let expected = method
                .value
                .map(|value| (claims[0].1.to_owned() + method.below, value()));
            let leaves_nothing =
                last.as_ref().is_some_and(|(_, value)| value.is_null()) && expected.is_none();
            assert!(
                last == expected || leaves_nothing,
                "{}: {last:?}",
                method.name
            );
        }
    }
}

/// A write of the table, to one of the containers that there are.
type Write = (usize, u8);

fn write() -> impl Strategy<Value = Write> {
    (0..writes().count(), any::<u8>())
}

/// Performs the writes through a call. Some are refused, such as the second container of a name.
fn perform(call: &mut Call, made: &[Write]) -> Result<(), Fault> {
    let writes: Vec<_> = writes().collect();
    for (number, (at, container)) in made.iter().enumerate() {
        call.context_because(Call::CONTEXT, &format!("write {number}"))?;
        match (writes[*at].run)(call, On::Any(*container)) {
            Err(Fault::Argument(_)) => {}
            ended => ended?,
        }
    }
    Ok(())
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
fn run(session: &mut Session, rank: u16, writes: &[Write], end: Result<(), CallFailure>) -> bool {
    let (writes, end) = (writes.to_vec(), Mutex::new(Some(end)));
    let plugin = FunctionPlugin::new(everything(), move |_, call| {
        perform(call, &writes)?;
        end.lock().unwrap().take().unwrap()
    });
    let result = session.call(&plugin, Phase::Transform, rank, Arc::new(json!({})));
    result.is_ok()
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

type Entries = Vec<(Arc<str>, Datum, Owner, i32)>;

/// The record as lists of entries, each with its owner and the rank of who added it.
#[derive(Debug, PartialEq)]
struct Lists(BTreeMap<(EntryScope, Field), Entries>);

impl Lists {
    fn of(record: &Record) -> Self {
        let sets = record
            .pod_sets
            .iter()
            .zip(0u32..)
            .map(|(_, at)| EntryScope::PodSet(at));
        let containers =
            (0..record.container_ids()).map(|id| EntryScope::Container(ContainerId(id)));
        let mut lists = BTreeMap::new();
        for scope in [EntryScope::Job].into_iter().chain(sets).chain(containers) {
            for field in Field::ALL {
                let entries = record.fields(scope).unwrap().all(*field).iter();
                let entries: Entries = entries
                    .map(|e| (e.key.clone(), e.datum.clone(), e.owner, rank(e.home)))
                    .collect();
                if !entries.is_empty() {
                    lists.insert((scope, *field), entries);
                }
            }
        }
        Self(lists)
    }

    /// Replays a write of the journal. Its old value is what stood there.
    fn replay(&mut self, call::Write { change, reason }: &call::Write) {
        assert!(
            reason
                .as_deref()
                .is_some_and(|reason| reason.starts_with("write "))
        );
        let place = (change.entry.scope, change.entry.field);
        let list = self.0.entry(place).or_default();
        let at = list.iter().position(|(key, ..)| *key == change.entry.key);
        let old = at.map(|at| (list[at].1.clone(), list[at].2));
        assert_eq!(old, change.old.clone().map(|old| (old.datum, old.owner)));
        match (change.new.clone(), at) {
            (Some(new), Some(at)) => (list[at].1, list[at].2) = (new, change.owner),
            (Some(new), None) => list.push((
                change.entry.key.clone(),
                new,
                change.owner,
                rank(change.owner),
            )),
            (None, Some(at)) => drop(list.remove(at)),
            (None, None) => {}
        }
        list.sort_by_key(|(_, _, _, rank)| *rank);
        self.0.retain(|_, list| !list.is_empty());
    }
}

/// Plugins' entries come after all others, by the plugins' order.
fn rank(owner: Owner) -> i32 {
    match owner {
        Owner::Plugin(rank) => rank.into(),
        _ => -1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn failed_call_leaves_the_record_unchanged(
        before in prop::collection::vec(write(), 0..20),
        failed in prop::collection::vec(write(), 1..40),
        kind in 0u8..3,
        (rank, other) in (0u16..3, 0u16..3),
    ) {
        let mut session = Session::new(job(), record());
        prop_assert!(run(&mut session, rank, &before, Ok(())));
        let (as_it_was, committed) = (image(session.record()), session.committed().len());
        prop_assert!(!run(&mut session, other, &failed, Err(ended(kind))));
        prop_assert_eq!(image(session.record()), as_it_was);
        prop_assert_eq!(session.committed().len(), committed);
        prop_assert_eq!(image(session.base()), image(&record()));
    }

    #[test]
    fn committed_calls_leave_what_their_journal_says(
        calls in prop::collection::vec((0u16..4, prop::collection::vec(write(), 0..25), prop::option::of(0u8..3)), 1..5),
    ) {
        let mut session = Session::new(job(), record());
        for (rank, writes, failure) in calls {
            let end = failure.map_or(Ok(()), |kind| Err(ended(kind)));
            let committed = end.is_ok();
            prop_assert_eq!(run(&mut session, rank, &writes, end), committed);
        }
        let mut lists = Lists::of(session.base());
        for write in session.committed().iter().flat_map(|committed: &Committed| &committed.writes) {
            lists.replay(write);
        }
        prop_assert_eq!(lists, Lists::of(session.record()));
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
