//! Admission of one object: its size, old forms, and the schema of its kind.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use serde_json::Value;
use trainyard_api::{Admitted, FieldPath, Object, fields::value_at, names, path::Segment};
use trainyard_structural::{Schema, UnknownField, Violation};

use crate::{
    advice,
    documents::{DocumentError, Kind},
};

/// Admits objects as an API server with our CRDs does, with strict validation of fields as kubectl requests it.
///
/// The schema of a kind is compiled for its first object. An `Admission` can be shared by threads.
#[derive(Debug, Default)]
pub struct Admission {
    schemas: [OnceLock<Result<Schema, Arc<DocumentError>>>; Kind::ALL.len()],
}

impl Admission {
    /// Returns the object as a cluster stores it, with all errors for which it is refused. `old` is the stored object if this one
    /// updates it. `namespace` is the namespace of objects without one. An object of another group's kind is returned unchanged.
    ///
    /// # Errors
    /// The schema of its kind does not compile, which is a bug of this program and not an error of the object.
    pub fn admit(
        &self,
        object: Object,
        old: Option<&Value>,
        namespace: &str,
    ) -> Result<Admitted, Arc<DocumentError>> {
        let mut admitted = Admitted::new(object, namespace);
        if admitted.too_large {
            return Ok(admitted);
        }
        let Some((kind, schema)) = self.schema(&admitted.object)? else {
            return Ok(admitted);
        };
        let outcome = schema.admit(&mut admitted.object.value, old, &kind.options());
        for unknown in &outcome.unknown {
            refuse_unknown(&mut admitted, unknown);
        }
        let violations = outcome.errors.iter();
        let mut advised: BTreeSet<&FieldPath> = BTreeSet::new();
        // That message only repeats that there are other violations.
        for violation in violations.filter(|violation| !violation.is_rules_not_checked()) {
            // A schema with alternatives reports a value of the wrong type once for each of them.
            if advised.contains(&violation.path) {
                continue;
            }
            let written = admitted.written(&violation.path);
            let mut message = message(violation, &written);
            let location = admitted.location().at(written);
            let scalar = location.plain_scalar();
            if let Some(advice) = advice::of(violation, &admitted.object.value, scalar) {
                message.push_str(&format!("; {advice}"));
                advised.insert(&violation.path);
            }
            admitted.refuse_field(&violation.path, message);
        }
        admitted.defaulted = outcome.defaulted.into();
        Ok(admitted)
    }

    fn schema(&self, object: &Object) -> Result<Option<(Kind, &Schema)>, Arc<DocumentError>> {
        let mut slots = self.schemas.iter().zip(Kind::ALL);
        let Some((slot, kind)) =
            kind_of(object).and_then(|wanted| slots.find(|(_, kind)| *kind == wanted))
        else {
            return Ok(None);
        };
        match slot.get_or_init(|| kind.compiled_schema().map_err(Arc::new)) {
            Ok(schema) => Ok(Some((kind, schema))),
            Err(error) => Err(error.clone()),
        }
    }
}

fn kind_of(object: &Object) -> Option<Kind> {
    Kind::ALL
        .into_iter()
        .find(|kind| object.is(names::TRAINER_API_VERSION, kind.name()))
}

/// Returns the message of a violation. If an API server repeats the field in it, it is replaced by the field that the author wrote.
fn message(violation: &Violation, written: &FieldPath) -> String {
    let body = violation.body();
    if violation.path == *written {
        return body;
    }
    body.replacen(&violation.path.to_string(), &written.to_string(), 1)
}

/// Adds the error of an unknown field. Like an API server's, it has the field only in its message.
fn refuse_unknown(admitted: &mut Admitted, unknown: &UnknownField) {
    let advice = beside_patches(unknown, &admitted.object.value);
    let unknown = UnknownField {
        path: admitted.written(&unknown.path),
        suggestion: unknown.suggestion.clone(),
    };
    let mut message = unknown.to_string();
    if let Some(advice) = advice {
        message = format!("{message}; patches cannot set it, {advice}");
    }
    admitted.refuse_naming(unknown.path, message);
}

/// Returns where to set a field that runtime patches do not have: in a field of the TrainJob, or else in the runtime.
fn beside_patches(unknown: &UnknownField, object: &Value) -> Option<String> {
    let path = &unknown.path;
    let mut segments = path.segments().iter();
    let start = [segments.next(), segments.next()].map(|segment| segment.and_then(field_name));
    if start != [Some("spec"), Some("runtimePatches")] {
        return None;
    }
    if field_name(path.segments().last()?) == Some("mlPolicy") {
        let advice = "but `spec.trainer.numNodes` and `spec.trainer.numProcPerNode` set the numbers of nodes and processes";
        return Some(format!("{advice}; set anything else in the runtime"));
    }
    let is_in_spec = segments.any(|segment| field_name(segment) == Some("trainingRuntimeSpec"));
    let (last, around) = path.segments().split_last()?;
    let last = field_name(last)?;
    let in_container = match around {
        [.., Segment::Field(list), Segment::Index(_)] => {
            matches!(list.as_str(), "containers" | "initContainers").then_some(list)
        }
        _ => None,
    };
    let of_trainer = match (last, in_container) {
        ("image", Some(_)) => Some("image"),
        ("command", Some(_)) => Some("command"),
        ("args", Some(_)) => Some("args"),
        ("resources", Some(_)) => Some("resourcesPerNode"),
        ("parallelism" | "completions" | "numNodes", None) => Some("numNodes"),
        ("numProcPerNode", None) => Some("numProcPerNode"),
        _ => None,
    };
    let is_of_another_container = in_container.is_some_and(|list| {
        let container = value_at(object, around).and_then(|container| container.get("name"));
        list != "containers" || container.and_then(Value::as_str) != Some(names::NODE)
    });
    let of_initializer = match last {
        "storageUri" => Some("storageUri"),
        // A Secret whose keys become env vars.
        "secretRef" | "envFrom" => Some("secretRef"),
        _ => None,
    };
    match (initializer(path, object), of_trainer, of_initializer) {
        (Some(step), _, Some(field)) => Some(format!("but `spec.initializer.{step}.{field}` can")),
        (Some(_), Some(_), None) => Some(
            "and a TrainJob cannot set it for an initializer; set it in the runtime".to_owned(),
        ),
        (None, Some(_), _) if is_of_another_container => {
            Some("and a TrainJob sets it only for the container `node` of the trainer; set it in the runtime".to_owned())
        }
        (None, Some(field), _) => Some(format!("but for the trainer, `spec.trainer.{field}` can")),
        // A field with a suggestion is misspelled.
        (_, None, _) => (is_in_spec && unknown.suggestion.is_none()).then(|| {
            "and a TrainJob has no other field for it; set it in the runtime".to_owned()
        }),
    }
}

/// Returns the member of `spec.initializer` for the pods that a path is in. The container of an initializer always has the name of its step,
/// and its replicated job usually does.
fn initializer(path: &FieldPath, object: &Value) -> Option<&'static str> {
    let mut value = object;
    for segment in path.segments() {
        value = match segment {
            Segment::Field(name) | Segment::Key(name) => value.get(name)?,
            Segment::Index(at) => value.get(*at)?,
        };
        let step = match value.get("name").and_then(Value::as_str) {
            Some(names::ANCESTOR_DATASET_INITIALIZER) => Some("dataset"),
            Some(names::ANCESTOR_MODEL_INITIALIZER) => Some("model"),
            _ => None,
        };
        if step.is_some() {
            return step;
        }
    }
    None
}

fn field_name(segment: &Segment) -> Option<&str> {
    match segment {
        Segment::Field(name) => Some(name),
        Segment::Index(_) | Segment::Key(_) => None,
    }
}
