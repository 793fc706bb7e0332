//! Admission of one object: its size, old forms, and the schema of its kind.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use trainyard_api::{Admitted, FieldPath, Object, names, path::Segment};
use trainyard_structural::{Schema, UnknownField, Violation, ViolationKind};

use crate::documents::{DocumentError, Kind};

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
        // That message only repeats that there are other violations.
        let violations = outcome.errors.iter();
        for violation in violations.filter(|violation| !violation.is_rules_not_checked()) {
            let written = admitted.written(&violation.path);
            let mut message = message(violation, &written);
            message.push_str(
                quotes(violation, &admitted.object.value)
                    .as_deref()
                    .unwrap_or_default(),
            );
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
    let unknown = UnknownField {
        path: admitted.written(&unknown.path),
        suggestion: unknown.suggestion.clone(),
    };
    let mut message = unknown.to_string();
    if let Some(field) = belongs_to(&unknown.path) {
        message = format!("{message}; patches cannot set it, but for the trainer, `{field}` can");
    }
    admitted.refuse_naming(unknown.path, message);
}

/// Returns the TrainJob's field for a field that runtime patches do not have.
fn belongs_to(path: &FieldPath) -> Option<&'static str> {
    let text = path.to_string();
    let is_patch = [
        "spec.runtimePatches[",
        "spec.podTemplateOverrides[",
        "spec.podSpecOverrides[",
    ]
    .iter()
    .any(|list| text.starts_with(list));
    let last = path
        .segments()
        .iter()
        .rev()
        .find_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Index(_) | Segment::Key(_) => None,
        })?;
    let field = match last {
        "image" => "spec.trainer.image",
        "command" => "spec.trainer.command",
        "args" => "spec.trainer.args",
        "resources" => "spec.trainer.resourcesPerNode",
        "parallelism" | "completions" | "numNodes" => "spec.trainer.numNodes",
        "numProcPerNode" => "spec.trainer.numProcPerNode",
        _ => return None,
    };
    is_patch.then_some(field)
}

/// Returns the advice to quote a value that YAML reads as a number or a boolean where a string is needed.
fn quotes(violation: &Violation, object: &Value) -> Option<String> {
    if violation.kind != ViolationKind::WrongType || !violation.detail.contains("string") {
        return None;
    }
    let value =
        violation
            .path
            .segments()
            .iter()
            .try_fold(object, |value, segment| match segment {
                Segment::Index(at) => value.get(*at),
                Segment::Field(name) | Segment::Key(name) => value.get(name.as_str()),
            })?;
    (value.is_boolean() || value.is_number()).then(|| format!("; write it in quotes: \"{value}\""))
}
