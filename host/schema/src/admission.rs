//! The way in for one object: old forms, the schema of its kind, its size.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use trainyard_api::{Admitted, FieldPath, Object, names};

use crate::documents::{DocumentError, Kind};
use trainyard_structural::{Schema, Unknown, Violation};

/// Lets objects in as an API server with our CRDs does that was asked to be strict about unknown fields, as kubectl asks it.
///
/// Schemas are compiled when the first object of their kind comes. It can be shared by threads.
#[derive(Debug, Default)]
pub struct Admission {
    schemas: [OnceLock<Result<Schema, Arc<DocumentError>>>; Kind::ALL.len()],
}

impl Admission {
    /// Brings an object into the form in which a cluster stores it, with everything that it is refused for. `old` is the stored
    /// object where this one updates it; `namespace` is that of objects which name none. An object of a kind that is not ours
    /// comes back as it is.
    ///
    /// # Errors
    /// The schema of its kind does not compile: a fault of this program, not of the object.
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
        // It never stands alone: whoever reads the others learns nothing from it.
        let violations = outcome.errors.iter();
        for violation in violations.filter(|violation| !violation.is_of_unchecked_rules()) {
            let written = admitted.object.dialect.written(&violation.path);
            admitted.refuse_field(&violation.path, sentence(violation, &written));
        }
        admitted.object.defaulted = outcome.defaulted.into();
        Ok(admitted)
    }

    fn schema(&self, object: &Object) -> Result<Option<(Kind, &Schema)>, Arc<DocumentError>> {
        let mut slots = self.schemas.iter().zip(Kind::ALL);
        let Some((slot, kind)) =
            kind_of(object).and_then(|wanted| slots.find(|(_, kind)| *kind == wanted))
        else {
            return Ok(None);
        };
        match slot.get_or_init(|| kind.structural().map_err(Arc::new)) {
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

/// Some of an API server's sentences name the field once more: there too it is the one that the author wrote.
fn sentence(violation: &Violation, written: &FieldPath) -> String {
    let body = violation.body();
    if violation.path == *written {
        return body;
    }
    body.replacen(&violation.path.to_string(), &written.to_string(), 1)
}

/// An API server names an unknown field in words alone, with no path in front.
fn refuse_unknown(admitted: &mut Admitted, unknown: &Unknown) {
    let unknown = Unknown {
        path: admitted.object.dialect.written(&unknown.path),
        suggestion: unknown.suggestion.clone(),
    };
    let message = unknown.to_string();
    admitted.refuse_naming(unknown.path, message);
}
