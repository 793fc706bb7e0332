//! Calls of the contract's methods with any arguments.
//!
//! An input is a few calls of plugins, each of which calls methods with arguments from the input until one of them ends the call.
//! - Only what the claims of the plugin name changes, or what is in a container that the plugin added. The claims are compared by code of
//!   this module, and the record with its copy from before the call. The same holds of the objects that it emits.
//! - The journal has all changes: replayed over the base record, it gives the record.
//! - A failed call leaves no trace but its log.
//! - The texts of errors are short, and have no characters that a terminal obeys.

mod arguments;
mod claims;
mod fixture;
mod methods;
mod words;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use arbitrary::Unstructured;
use serde_json::Value;
use trainyard_model::{
    call::{self, Call, Fault},
    plugin::{CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::PluginInfo,
    record::{ContainerId, Datum, EntryScope, Field, Owner, PodSet, Record},
    session::{Emitted, Session},
};

use self::{
    arguments::Arguments,
    claims::Place,
    fixture::{CONFIG, JOB, LOOKUPS, PLUGINS, RECORD},
    methods::METHODS,
};

/// The most calls of one input, and the most methods that one of them calls.
const MOST_CALLS: usize = 6;
const MOST_METHODS: usize = 64;

/// The longest text of an error, in characters.
const LONGEST_ERROR: usize = 4000;

/// The entries of a record, with their values and owners.
type Entries = BTreeMap<(EntryScope, Field, String), (Datum, Owner)>;

/// A plugin that does what the input says.
struct Fuzzed<'i, 'b> {
    plugin: Arc<PluginInfo>,
    args: &'i Mutex<Arguments<'b>>,
}

impl Plugin for Fuzzed<'_, '_> {
    fn info(&self) -> &Arc<PluginInfo> {
        &self.plugin
    }

    fn run(&self, _: Phase, mut call: Box<Call>) -> CallOutcome {
        let end = run(&mut call, &mut self.args.lock().unwrap());
        CallOutcome {
            call,
            end,
            fuel: None,
        }
    }
}

/// Calls methods until one of them ends the call, or the input ends it.
fn run(call: &mut Call, args: &mut Arguments<'_>) -> Result<(), CallFailure> {
    args.next_call();
    for _ in 0..MOST_METHODS {
        let number = usize::from(args.byte());
        match (number, METHODS.get(number)) {
            _ if args.is_empty() => break,
            (_, Some(method)) => {
                let done = (method.call)(call, args);
                done.map_err(|fault| CallFailure::from(fault.in_method(method.name)))?;
            }
            (0xff, _) => {
                return Err(CallFailure::Trap {
                    kind: "unreachable".to_owned(),
                    message: None,
                });
            }
            (0xfe, _) => break,
            // What most calls begin with.
            (number, _) => begin(call, args, number)?,
        }
    }
    Ok(())
}

/// Gets the handles of a container, so that few bytes reach the methods of it.
fn begin(call: &mut Call, args: &mut Arguments<'_>, number: usize) -> Result<(), Fault> {
    let info = match number % 4 {
        0 => call.context_base(Call::CONTEXT)?,
        _ => call.context_info(Call::CONTEXT)?,
    };
    args.keep_handle("info", info.0);
    let pod_set = if number.is_multiple_of(3) {
        "launcher"
    } else {
        "node"
    };
    if let Some(set) = call.info_pod_set(info, pod_set)? {
        args.keep_handle("pod-set", set.0);
        for name in ["node", "side"] {
            if let Some(container) = call.pod_set_container(set, name)? {
                args.keep_handle("container", container.0);
            }
        }
    }
    Ok(())
}

/// Checks an input.
pub fn check(bytes: &[u8]) -> bool {
    let args = Mutex::new(Arguments::new(Unstructured::new(bytes)));
    let mut session = session();
    for _ in 0..MOST_CALLS {
        let (which, phase) = {
            let mut args = args.lock().unwrap();
            if args.is_empty() {
                break;
            }
            let byte = usize::from(args.byte());
            (byte % PLUGINS.len(), phase(byte / PLUGINS.len()))
        };
        let fuzzed = Fuzzed {
            plugin: PLUGINS[which].clone(),
            args: &args,
        };
        check_call(
            &mut session,
            &fuzzed,
            phase,
            u16::try_from(which).unwrap(),
            &CONFIG,
        );
    }
    check_end(&session);
    !session.committed().is_empty()
}

/// A session with the record of the fuzzers.
#[must_use]
pub fn session() -> Session {
    Session::new(JOB.clone(), RECORD.clone()).with_lookups(LOOKUPS.clone())
}

/// Checks what all calls left.
pub(crate) fn check_end(session: &Session) {
    assert!(same(session.base(), &RECORD), "the base record changed");
    check_journal(session);
    drop(session.find_write_conflicts(|_, _| false));
    drop(session.find_duplicate_objects());
    drop(session.find_missing_objects());
}

/// Mostly transform, in which most methods work.
fn phase(number: usize) -> Phase {
    match number % 8 {
        0 | 1 => Phase::Build,
        2 => Phase::Check,
        _ => Phase::Transform,
    }
}

/// Calls a phase of a plugin, and checks what it leaves.
pub fn check_call(
    session: &mut Session,
    plugin: &dyn Plugin,
    phase: Phase,
    rank: u16,
    config: &Arc<Value>,
) {
    let before = session.record().clone();
    let counts = counts(session);
    match session.call(plugin, phase, rank, config.clone()) {
        Err(error) => {
            let text = error.to_string();
            let is_obeyed = |c: char| c.is_control() || trainyard_text::is_hidden(c);
            assert!(!text.chars().any(is_obeyed), "{text:?}");
            assert!(text.chars().count() < LONGEST_ERROR, "{text}");
            assert!(
                same(session.record(), &before),
                "a failed call changed the record: {text}"
            );
            assert_eq!(
                self::counts(session),
                counts,
                "a failed call left something: {text}"
            );
        }
        Ok(()) => {
            let (old, new) = (entries(&before), entries(session.record()));
            let changed = new
                .iter()
                .filter(|(place, value)| old.get(place) != Some(value));
            let removed = old.iter().filter(|(place, _)| !new.contains_key(place));
            let mut changes = 0;
            for (entry, value) in changed
                .map(|(place, value)| (place, Some(value)))
                .chain(removed.map(|(place, _)| (place, None)))
            {
                changes += 1;
                assert!(phase == Phase::Transform, "{entry:?} changed in {phase}");
                let place = Place::of(session.record(), entry);
                let is_allowed = claims::allow(plugin.info(), config, rank, &place);
                assert!(
                    is_allowed,
                    "{} changed {entry:?} to {value:?} without a claim",
                    plugin.info().id.name
                );
                if fixture::has_default_grants(plugin.info()) {
                    claims::check_default(&place, value.map(|(datum, _)| datum));
                }
            }
            check_emitted(plugin.info(), phase, &session.emitted()[counts.1..]);
            let (new, old) = (session.record().pod_sets.iter(), before.pod_sets.iter());
            assert!(
                new.map(size).eq(old.map(size)),
                "{} changed a pod set itself",
                plugin.info().id.name
            );
            let journal = session.committed().len() > counts.0;
            assert!(
                changes == 0 || journal,
                "{changes} changes are not in the journal"
            );
        }
    }
}

/// Checks the objects that a call emitted.
fn check_emitted(plugin: &PluginInfo, phase: Phase, emitted: &[Emitted]) {
    for Emitted { object, .. } in emitted {
        assert!(
            phase == Phase::Build,
            "{} was emitted in {phase}",
            object.name
        );
        assert!(
            claims::allow_object(plugin, object),
            "{} emitted the {} {} without a claim",
            plugin.id.name,
            object.kind,
            object.name
        );
    }
}

/// What no plugin changes of a pod set.
fn size(set: &PodSet) -> (&str, Option<&str>, [u32; 2], [bool; 2]) {
    let ancestor = set.ancestor.as_deref();
    let (counts, flags) = (
        [set.count, set.replicas],
        [set.counts_nodes, set.is_indexed],
    );
    (&set.name, ancestor, counts, flags)
}

/// How much of each result there is, apart from the log.
fn counts(session: &Session) -> (usize, usize, usize, usize) {
    let (warnings, errors) = (session.warnings().len(), session.errors().len());
    (
        session.committed().len(),
        session.emitted().len(),
        warnings,
        errors,
    )
}

/// Whether two records have the same entries in the same order, of the same owners.
fn same(one: &Record, other: &Record) -> bool {
    let sets = one.pod_sets.iter().zip(other.pod_sets.iter());
    let is_same_set = |(a, b): (&PodSet, &PodSet)| {
        size(a) == size(b) && a.fields == b.fields && a.init_order == b.init_order
    };
    let container = |record: &Record, id: u32| {
        let found = record
            .container(ContainerId(id))
            .map(|c| (c.name.clone(), c.pod_set, c.list, c.home, c.fields.clone()));
        found.expect("every container is in a list")
    };
    one.fields == other.fields
        && one.pod_sets.len() == other.pod_sets.len()
        && sets.into_iter().all(is_same_set)
        && one.container_ids() == other.container_ids()
        && (0..one.container_ids()).all(|id| container(one, id) == container(other, id))
}

fn entries(record: &Record) -> Entries {
    let mut all = Entries::new();
    let ids = (0..record.container_ids()).map(|id| EntryScope::Container(ContainerId(id)));
    let sets = (0..record.pod_sets.len()).map(|at| EntryScope::PodSet(u32::try_from(at).unwrap()));
    for scope in [EntryScope::Job].into_iter().chain(sets).chain(ids) {
        let fields = record.fields(scope).unwrap();
        for field in Field::ALL {
            for entry in fields.all(*field).iter() {
                let place = (scope, *field, entry.key.to_string());
                let twice = all.insert(place, (entry.datum.clone(), entry.owner));
                assert!(
                    twice.is_none(),
                    "{scope:?} has {field}[{}] twice",
                    entry.key
                );
            }
        }
    }
    all
}

/// Replays the journal over the base record: each old value is what was there, and the result is the record.
fn check_journal(session: &Session) {
    let mut now = entries(session.base());
    // The containers that plugins added, which the base record does not have, have no entries until they are written.
    for call::Write { change, .. } in session
        .committed()
        .iter()
        .flat_map(|committed| &committed.writes)
    {
        let place = (
            change.entry.scope,
            change.entry.field,
            change.entry.key.to_string(),
        );
        let old = match change.new.clone() {
            Some(new) => now.insert(place, (new, change.owner)),
            None => now.remove(&place),
        };
        assert_eq!(
            old,
            change.old.clone().map(|old| (old.datum, old.owner)),
            "{:?}",
            change.entry
        );
    }
    assert_eq!(
        now,
        entries(session.record()),
        "the journal does not lead to the record"
    );
}
