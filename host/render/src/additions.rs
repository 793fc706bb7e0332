//! Tolerations and affinity terms that plugins add. Those of the template have no key and stay unchanged; additions follow them, sorted by
//! id.

use serde_json::{Map, Value};
use trainyard_api::{FieldPath, size};
use trainyard_model::record::{Entries, Entry, Field, Owner};

use crate::{
    entries::{MAX_ENTRIES, MAX_IN_ALL, in_all},
    json::edit_list,
};

/// The two lists of requirements of a node selector's term.
const REQUIREMENTS: [&str; 2] = ["matchExpressions", "matchFields"];

/// The field with the alternatives of a required node affinity.
const ALTERNATIVES: &str = "nodeSelectorTerms";

/// Writes the additions to a field of a pod template.
pub(crate) fn write(pod: &mut Value, field: Field, entries: &Entries) {
    for addition in sorted(field, entries) {
        let keys: Vec<&str> = addition.list.iter().map(String::as_str).collect();
        if addition.narrows
            && let Some(Value::Array(terms)) = pod.pointer_mut(&format!("/{}", keys.join("/")))
        {
            terms
                .iter_mut()
                .for_each(|term| narrow(term, addition.item));
        } else {
            edit_list(pod, &keys, |items| items.push(addition.item.clone()));
        }
    }
}

/// An error of additions to a pod template.
pub(crate) enum AdditionError<'e> {
    /// The required node affinity of the template has no alternatives, so it matches no node and cannot be narrowed.
    NoAlternatives { id: &'e str, owner: Owner },
    /// Adding the terms to each alternative would exceed the maximum number of entries.
    TooMany {
        alternatives: usize,
        additions: usize,
        entries: usize,
        most: usize,
        owner: Owner,
    },
    /// The copies of the terms in the alternatives would be larger than an object may be.
    TooLarge {
        alternatives: usize,
        bytes: usize,
        owner: Owner,
    },
}

/// Checks the additions to a pod template. A required node affinity term is copied to every alternative of the template, so entries and
/// bytes are counted before anything is copied.
pub(crate) fn addition_error<'e>(
    pod: &Value,
    field: Field,
    entries: &'e Entries,
) -> Option<AdditionError<'e>> {
    let additions = sorted(field, entries);
    let narrowing: Vec<_> = additions.iter().filter(|a| a.narrows).collect();
    let (first, last) = (narrowing.first()?, narrowing.last()?);
    let (_, affinity) = first.list.split_last()?;
    let affinity = pod.pointer(&format!("/{}", affinity.join("/")))?;
    if affinity.is_null() {
        return None;
    }
    let terms = affinity.get(ALTERNATIVES).and_then(Value::as_array);
    let Some(terms) = terms.filter(|terms| !terms.is_empty()) else {
        let (id, owner) = (first.id, first.owner);
        return Some(AdditionError::NoAlternatives { id, owner });
    };
    let too_many = |entries, most| AdditionError::TooMany {
        alternatives: terms.len(),
        additions: narrowing.len(),
        entries,
        most,
        owner: last.owner,
    };
    for list in REQUIREMENTS {
        let added: usize = narrowing.iter().map(|a| count(a.item, list)).sum();
        let longest = terms.iter().map(|term| count(term, list)).max();
        let longest = longest.unwrap_or_default().saturating_add(added);
        if added > 0 && longest > MAX_ENTRIES {
            return Some(too_many(longest, MAX_ENTRIES));
        }
    }
    let added: usize = narrowing.iter().map(|a| in_all(a.item)).sum();
    let all = added.saturating_mul(terms.len());
    if all > MAX_IN_ALL {
        return Some(too_many(all, MAX_IN_ALL));
    }
    let added: usize = narrowing.iter().map(|a| size::bytes(a.item)).sum();
    let bytes = added.saturating_mul(terms.len());
    (bytes > size::STORED_LIMIT).then_some(AdditionError::TooLarge {
        alternatives: terms.len(),
        bytes,
        owner: last.owner,
    })
}

/// Adds requirements to one alternative. An alternative without requirements matches no node, and must stay so.
fn narrow(term: &mut Value, by: &Value) {
    if REQUIREMENTS.iter().all(|list| count(term, list) == 0) {
        return;
    }
    for list in REQUIREMENTS {
        let more = by.get(list).and_then(Value::as_array).into_iter().flatten();
        edit_list(term, &[list], |items| items.extend(more.cloned()));
    }
}

/// Returns the paths of an addition in a pod template that it was written into: one, or one in each alternative of a required node
/// affinity.
pub(crate) fn places(pod: &Value, field: Field, entries: &Entries, id: &str) -> Vec<FieldPath> {
    let additions = sorted(field, entries);
    let Some(at) = additions.iter().position(|addition| addition.id == id) else {
        return Vec::new();
    };
    let (Some(this), Some(later)) = (additions.get(at), additions.get(at + 1..)) else {
        return Vec::new();
    };
    let later = later.iter().filter(|other| other.list == this.list);
    let path = FieldPath::of(&this.list);
    let items = pod.pointer(&format!("/{}", this.list.join("/")));
    let items = items
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    if !this.narrows {
        let at = items.len().checked_sub(later.count() + 1);
        return at.map(|at| path.index(at)).into_iter().collect();
    }
    let later: Vec<_> = later.collect();
    let mut places = Vec::new();
    for (term, at) in items.iter().zip(0..) {
        for list in REQUIREMENTS {
            let behind: usize = later.iter().map(|other| count(other.item, list)).sum();
            let end = count(term, list).saturating_sub(behind);
            let own = end.saturating_sub(count(this.item, list))..end;
            places.extend(own.map(|requirement| path.index(at).field(list).index(requirement)));
        }
    }
    places
}

/// One addition.
struct Addition<'e> {
    id: &'e str,
    owner: Owner,
    /// The path of the list in the pod template.
    list: Vec<String>,
    item: &'e Value,
    /// Whether the list's items are alternatives, so the addition is copied to each of them.
    narrows: bool,
}

/// Returns the additions of a field, sorted by id.
fn sorted(field: Field, entries: &Entries) -> Vec<Addition<'_>> {
    let mut additions: Vec<_> = entries
        .iter()
        .filter_map(|entry| addition(field, entry))
        .collect();
    additions.sort_by(|a, b| a.id.cmp(b.id));
    additions
}

fn addition(field: Field, entry: &Entry) -> Option<Addition<'_>> {
    let json = &**entry.datum.as_json()?;
    let mut list: Vec<String> = field.keys().iter().map(|key| (*key).to_owned()).collect();
    let mut item = json;
    if field == Field::AffinityTerms {
        // An affinity with a single term, such as `{"podAntiAffinity": {"preferred...": [TERM]}}`.
        while let Some((name, below)) = item.as_object().and_then(only_member) {
            list.push(name.clone());
            item = below;
        }
        item = item.get(0)?;
    }
    let narrows = list.last().is_some_and(|last| last == ALTERNATIVES);
    Some(Addition {
        id: &entry.key,
        owner: entry.owner,
        list,
        item,
        narrows,
    })
}

fn only_member(object: &Map<String, Value>) -> Option<(&String, &Value)> {
    object.iter().next()
}

fn count(value: &Value, list: &str) -> usize {
    value
        .get(list)
        .and_then(Value::as_array)
        .map_or(0, Vec::len)
}
