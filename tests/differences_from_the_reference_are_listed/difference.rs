//! The differences between Trainyard and the reference for one input.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::normal::normal;

/// Why an object is refused.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Refusal {
    /// Its kind and name.
    pub(super) object: String,
    /// Which part of the reference refuses it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) by: String,
    /// The path of the field; empty if it is the object as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) field: String,
    /// What is wrong with it.
    pub(super) error: String,
}

/// What becomes of an input.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Answer {
    /// The fields that the reference's CRDs do not have, each behind its object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) dropped: Vec<String>,
    /// Why the input is refused, in which case there are no objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) refused: Vec<Refusal>,
    /// Warnings to the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    /// What is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) objects: Vec<Value>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Difference {
    /// Trainyard refuses the input for this, and the reference does not.
    RefusedByTrainyard(Refusal),
    /// The reference refuses the input for this, and Trainyard does not.
    RefusedByReference(Refusal),
    /// The reference's CRDs do not have a field that Trainyard reads.
    Dropped(String),
    /// The reference warns the user of an object, and Trainyard does not.
    Unwarned(String),
    /// A field of what the TrainJobs become.
    Field {
        /// The kind and name of the object.
        object: String,
        /// The path in its normal form.
        path: String,
        reference: Option<Value>,
        trainyard: Option<Value>,
    },
}

/// Who refuses an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Side {
    Trainyard,
    Reference,
}

impl Difference {
    /// The side that refuses the input, if the other one does not.
    pub(super) fn refused_by(&self) -> Option<Side> {
        match self {
            Self::RefusedByTrainyard(_) => Some(Side::Trainyard),
            Self::RefusedByReference(_) => Some(Side::Reference),
            _ => None,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<Value>| match value {
            Some(value) => value.to_string(),
            None => "nothing".to_owned(),
        };
        match self {
            Self::RefusedByTrainyard(Refusal {
                object,
                field,
                error,
                ..
            }) => {
                write!(f, "Trainyard alone refuses {object}: {field}: {error}")
            }
            Self::RefusedByReference(Refusal {
                object,
                by,
                field,
                error,
            }) => {
                write!(
                    f,
                    "the reference's {by} alone refuses {object}: {field}: {error}"
                )
            }
            Self::Dropped(field) => write!(f, "the reference drops {field}"),
            Self::Unwarned(warning) => write!(f, "the reference alone warns of {warning}"),
            Self::Field {
                object,
                path,
                reference,
                trainyard,
            } => write!(
                f,
                "{object}: {path}: the reference has {}, Trainyard {}",
                text(reference),
                text(trainyard)
            ),
        }
    }
}

/// The differences from that of the reference's answers that is nearest to Trainyard's.
pub(super) fn differences(trainyard: &Answer, reference: &[Answer]) -> Vec<Difference> {
    let each = reference.iter().map(|reference| from(trainyard, reference));
    each.min_by_key(Vec::len).unwrap_or_default()
}

fn from(trainyard: &Answer, reference: &Answer) -> Vec<Difference> {
    let unread = |dropped: &&String| {
        !trainyard
            .refused
            .iter()
            .any(|refusal| names_unknown(refusal, dropped))
    };
    let mut found: Vec<_> = reference
        .dropped
        .iter()
        .filter(unread)
        .cloned()
        .map(Difference::Dropped)
        .collect();
    found.extend(refusals(trainyard, reference));
    if trainyard.refused.is_empty() && reference.refused.is_empty() {
        found.extend(objects(&trainyard.objects, &reference.objects));
        found.extend(unwarned(trainyard, reference));
    }
    found
}

/// The warnings on a TrainJob of which Trainyard has none. Its runtime may have been there for long.
fn unwarned(trainyard: &Answer, reference: &Answer) -> impl Iterator<Item = Difference> {
    let missed = |warning: &&String| {
        let object = warning.split(": ").next().unwrap_or_default();
        let of_it = |ours: &String| ours.contains(&format!(": {object}: "));
        object.starts_with("TrainJob ") && !trainyard.warnings.iter().any(of_it)
    };
    reference
        .warnings
        .iter()
        .filter(missed)
        .cloned()
        .map(Difference::Unwarned)
}

/// Whether this refusal is of that unknown field: a server drops it, or refuses it where the client asks for that.
fn names_unknown(refusal: &Refusal, dropped: &str) -> bool {
    let field = dropped.split_once(": ").map_or(dropped, |(_, field)| field);
    refusal
        .error
        .starts_with(&format!("unknown field \"{field}\""))
}

/// Where both refuse the input for one field, both are right. Otherwise each refusal is a difference.
fn refusals(trainyard: &Answer, reference: &Answer) -> Vec<Difference> {
    let unknown = |refusal: &&Refusal| {
        reference
            .dropped
            .iter()
            .any(|dropped| names_unknown(refusal, dropped))
    };
    let mut ours = trainyard
        .refused
        .iter()
        .filter(|refusal| !unknown(refusal))
        .peekable();
    if ours.peek().is_none() && !trainyard.refused.is_empty() {
        return Vec::new();
    }
    let ours: Vec<_> = ours.collect();
    if ours
        .iter()
        .any(|ours| reference.refused.iter().any(|theirs| meet(ours, theirs)))
    {
        return Vec::new();
    }
    let theirs = reference
        .refused
        .iter()
        .cloned()
        .map(Difference::RefusedByReference);
    ours.into_iter()
        .cloned()
        .map(Difference::RefusedByTrainyard)
        .chain(theirs)
        .collect()
}

/// Whether two refusals are about one field, or one about a field of the other's.
fn meet(ours: &Refusal, theirs: &Refusal) -> bool {
    let (mut a, b) = (ours.field.to_lowercase(), theirs.field.to_lowercase());
    if !b.contains('[') {
        // The reference does not always say which item of a list it is.
        a = without_indices(&a);
    }
    match theirs.by.as_str() {
        "panic" => false,
        // No field is named there.
        "yaml" | "types" | "build" => true,
        // Errors in the runtime, or about a missing one, are reported at the reference to it.
        "webhook" if b == "spec.runtimeref" && is_of_runtime(ours) => true,
        _ if a.is_empty() || b.is_empty() => a == b,
        _ => a.starts_with(&b) || b.starts_with(&a),
    }
}

/// The path without its brackets.
fn without_indices(path: &str) -> String {
    let mut depth = 0;
    let outside = |c: &char| {
        let before = depth;
        depth += i32::from(*c == '[') - i32::from(*c == ']');
        before == 0 && depth == 0
    };
    path.chars().filter(outside).collect()
}

/// Whether it is about the runtime, or about what the runtime does not have.
fn is_of_runtime(refusal: &Refusal) -> bool {
    refusal.object.contains("Runtime ") || refusal.error.contains("the runtime")
}

fn objects(trainyard: &[Value], reference: &[Value]) -> Vec<Difference> {
    let mut ours = by_name(trainyard);
    let mut found = Vec::new();
    for (name, theirs) in by_name(reference) {
        let ours = ours.remove(&name);
        fields(&name.0, "", ours.as_ref(), Some(&theirs), &mut found);
    }
    for (name, ours) in ours {
        fields(&name.0, "", Some(&ours), None, &mut found);
    }
    found
}

/// The objects by their kind and name. Some kinds have one name in two groups.
fn by_name(objects: &[Value]) -> BTreeMap<(String, String), Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = |object: &Value| {
        let metadata = &object["metadata"];
        let name = format!(
            "{} {}/{}",
            text(&object["kind"]),
            text(&metadata["namespace"]),
            text(&metadata["name"])
        );
        ((name, text(&object["apiVersion"])), normal(object))
    };
    objects.iter().map(named).collect()
}

/// Adds each field that differs; of a list by key that one side does not have, each item.
fn fields(
    object: &str,
    path: &str,
    ours: Option<&Value>,
    theirs: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    if ours == theirs {
        return;
    }
    let empty = Map::new();
    let members = match (ours, theirs) {
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => Some((ours, theirs)),
        (Some(Value::Object(ours)), None) if is_by_key(ours) => Some((ours, &empty)),
        (None, Some(Value::Object(theirs))) if is_by_key(theirs) => Some((&empty, theirs)),
        _ => None,
    };
    if let Some((ours, theirs)) = members {
        for key in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
            let dot = if path.is_empty() || key.starts_with('[') {
                ""
            } else {
                "."
            };
            fields(
                object,
                &format!("{path}{dot}{key}"),
                ours.get(key),
                theirs.get(key),
                found,
            );
        }
        return;
    }
    found.push(Difference::Field {
        object: object.to_owned(),
        path: path.to_owned(),
        reference: theirs.cloned(),
        trainyard: ours.cloned(),
    });
}

fn is_by_key(map: &Map<String, Value>) -> bool {
    map.keys().any(|key| key.starts_with('['))
}
