//! A failed call leaves the record unchanged, including order and ownership; a successful one leaves what its journal says; and the journal
//! has each write with its place, value, writer and reason.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use proptest::prelude::*;
use serde_json::json;
use trainyard_model::{
    call::{self, Call, Fault},
    plugin::{CallFailure, Phase},
    record::{ContainerId, Entry, EntryRef, EntryScope, Field, Owner, Record},
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
            let mut call = common::call_with(Phase::Transform, &claims);
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

/// Everything that a record holds, entry by entry in order, with owners and the number of containers.
#[derive(Debug, PartialEq)]
struct Lists(BTreeMap<(EntryScope, Field), Vec<Entry>>, u32);

impl Lists {
    fn of(record: &Record) -> Self {
        let sets = record
            .pod_sets
            .iter()
            .zip(0..)
            .map(|(_, at)| EntryScope::PodSet(at));
        let ids = record.container_ids();
        let containers = (0..ids).map(|id| EntryScope::Container(ContainerId(id)));
        let scopes = [EntryScope::Job].into_iter().chain(sets).chain(containers);
        let lists = scopes.flat_map(|scope| {
            let fields = record
                .fields(scope)
                .expect("no container is left without a list");
            let list = |field: &Field| fields.all(*field).iter().cloned().collect();
            Field::ALL
                .iter()
                .map(move |field| ((scope, *field), list(field)))
        });
        Self(
            lists
                .filter(|(_, list): &(_, Vec<_>)| !list.is_empty())
                .collect(),
            ids,
        )
    }

    /// Replays a write of the journal. Its old value is what stood there. Plugins' entries come after all others, by the plugins' order.
    fn replay(&mut self, call::Write { change, reason }: &call::Write) {
        assert!(reason.as_deref().unwrap().starts_with("write "));
        let (key, owner) = (change.entry.key.clone(), change.owner);
        let list = self
            .0
            .entry((change.entry.scope, change.entry.field))
            .or_default();
        let at = list.iter().position(|entry| entry.key == key);
        assert_eq!(at.map(|at| &list[at]), change.old.as_ref());
        match (change.new.clone(), at) {
            (Some(datum), Some(at)) => (list[at].datum, list[at].owner) = (datum, owner),
            (Some(datum), None) => list.push(Entry {
                key,
                datum,
                owner,
                home: owner,
            }),
            (None, at) => drop(list.remove(at.unwrap())),
        }
        list.sort_by_key(|entry| match entry.home {
            Owner::Plugin(rank) => Some(rank),
            _ => None,
        });
        self.0.retain(|_, list| !list.is_empty());
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
        let (as_it_was, committed) = (Lists::of(session.record()), session.committed().len());
        prop_assert!(!run(&mut session, other, &failed, Err(ended(kind))));
        prop_assert_eq!(Lists::of(session.record()), as_it_was);
        prop_assert_eq!(session.committed().len(), committed);
        prop_assert_eq!(Lists::of(session.base()), Lists::of(&record()));
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
        lists.1 = session.record().container_ids();
        prop_assert_eq!(lists, Lists::of(session.record()));
    }
}

#[test]
fn fields_are_equal_if_their_entries_are() {
    let mut changed = record();
    let place = EntryRef {
        scope: EntryScope::Job,
        field: Field::Annotations,
        key: "x".into(),
    };
    assert!(changed.fields == record().fields);
    changed.write(place.clone(), Some("1".into()), Owner::Plugin(1));
    assert!(changed.fields != record().fields);
    changed.write(place, None, Owner::Plugin(1));
    assert!(changed.fields == record().fields);
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
