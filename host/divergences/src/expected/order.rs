//! The order of containers, of replicated jobs and of env vars.

use std::collections::BTreeSet;

use serde_json::Value;

use super::input::{at, of_runtime};
use crate::{form::form, seen::Seen};

fn names(list: Option<&Value>) -> Vec<&str> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// Whether the containers are those of the reference without those that only patches name, the runtime's in its order before those that
/// patches add.
pub(crate) fn is_of_runtime(seen: &Seen<'_>) -> bool {
    let runtime = of_runtime(seen);
    let runtime = names(runtime.as_ref());
    let (ours, theirs) = (names(seen.ours()), names(seen.theirs()));
    let patched: Vec<_> = seen
        .patches()
        .map(|patch| form(&patch["trainingRuntimeSpec"]["template"]))
        .collect();
    let patched: BTreeSet<_> = patched
        .iter()
        .flat_map(|patch| names(at(patch, seen.path())))
        .collect();
    let is_unknown = |name: &&str| patched.contains(name) && !runtime.contains(name);
    let expected: BTreeSet<_> = theirs.iter().filter(|name| !is_unknown(name)).collect();
    let of_runtime = |list: &[&str]| -> Vec<String> {
        let kept = list.iter().filter(|name| runtime.contains(name));
        kept.map(|name| (*name).to_owned()).collect()
    };
    let further = |list: &[&str]| -> Vec<String> {
        let kept = list
            .iter()
            .filter(|name| !runtime.contains(name) && !is_unknown(name));
        kept.map(|name| (*name).to_owned()).collect()
    };
    ours.iter().collect::<BTreeSet<_>>() == expected
        && of_runtime(&ours) == runtime
        && further(&ours) == further(&theirs)
        && ours.len() == expected.len()
        && seen.ours().is_none_or(|_| !ours.is_empty())
}

/// Whether an env var comes after all those that it references, except those that reference it.
pub(crate) fn is_after_its_references(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let Some((list, name)) = path.rsplit_once(".env[") else {
        return false;
    };
    let Some(name) = name.strip_suffix("].expands") else {
        return false;
    };
    let made = form(seen.job_set());
    let Some(env) = at(&made, &format!("{list}.env")).and_then(Value::as_object) else {
        return false;
    };
    let references = |name: &str| -> BTreeSet<String> {
        let value = env.get(&format!("[{name}]"));
        let value = value
            .and_then(|var| var["value"].as_str())
            .unwrap_or_default();
        let value = value.replace("$$", "");
        let found = value.split("$(").skip(1);
        let found = found.filter_map(|rest| rest.split_once(')').map(|(name, _)| name.to_owned()));
        found
            .filter(|name| env.contains_key(&format!("[{name}]")))
            .collect()
    };
    // Without references, there is no list.
    if seen.ours().is_some_and(Value::is_array) == references(name).is_empty() {
        return false;
    }
    if !seen.ours().is_some_and(Value::is_array) {
        return seen.ours().is_none();
    }
    let reaches_it = |from: &str| {
        let (mut known, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(one) = next.pop() {
            let further = references(&one).into_iter();
            next.extend(further.filter(|one| known.insert(one.clone())));
        }
        known.contains(name)
    };
    let mut expected = references(name);
    expected.retain(|other| !reaches_it(other));
    let ours = names(seen.ours());
    let found: BTreeSet<_> = ours.iter().map(|name| (*name).to_owned()).collect();
    found.is_superset(&expected) && found.len() == ours.len() && found.is_subset(&references(name))
}
