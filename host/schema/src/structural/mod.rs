//! A structural schema of Kubernetes, applied to an object as an API server (1.36) applies it.
//!
//! [`Structural::compile`] takes the JSON of a CRD's `openAPIV3Schema` once, and [`Structural::admit`] takes objects: unknown
//! fields are dropped and reported, nulls that may not be are dropped, defaults are set, and every violation is reported at once,
//! in the server's words and with its field paths. What is left of the object is what a cluster would store.
//!
//! Rules are evaluated by the `cel` crate. kube's own feature for them (kube-cel 0.8, on cel 0.13) is not used: it spells fields
//! with an underscore in another way than Kubernetes, finds the old item of a list by its place, compares sets in order, counts
//! the size of a text in bytes, and converts the whole value again at every level.
//!
//! What differs from a server:
//! - Ratcheting on update is left out: a server lets a violation of an unchanged value pass, as does it duplicates in lists that
//!   had some before. Here it is refused.
//! - There are no cost limits: a rule that a server takes is cheap by its own estimate.
//! - Rules call CEL's functions, its strings library and optional values; none of Kubernetes' own libraries.
//! - A metadata field of a wrong type makes a server refuse the whole request without a path; here it is one violation of many.
//! - A whole number that was written as a float (`3.0`) fails rules on a server, since no rule may touch it; here a rule that only
//!   compares it for equality says that it is not equal.
//! - What a server sets itself (UID, generation, managedFields) is not set. A name that it would generate is `PREFIXxxxxx` to rules.
//!
//! The cases of `tests/cases` were answered by the code of a real API server, by the program in `tests/oracle`.

mod at;
mod cel;
mod compile;
mod duration;
mod embedded;
mod error;
mod format;
mod go;
mod lists;
mod metadata;
mod names;
mod node;
mod options;
mod pattern;
mod prune;
mod unknown;
mod validate;
mod violation;

pub(crate) use compile::{Definitions, REFERENCE};
pub use error::CompileError;
pub use options::{Options, Scope};
pub use unknown::Unknown;
pub use violation::{Violation, ViolationKind};

use at::At;
use node::Node;
use serde_json::Value;
use trainyard_api::FieldPath;

/// The schema of a kind, compiled: it can be shared by threads, and is used for any number of objects.
#[derive(Debug)]
pub struct Structural {
    root: Node,
    object_meta: Node,
}

/// What became of an object on the way in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The fields that were dropped, in the order of the object.
    pub unknown: Vec<Unknown>,
    /// The fields that the schema's defaults set.
    pub defaulted: Vec<FieldPath>,
    /// What an API server refuses the object for: all of it. Empty for an object that it stores.
    pub errors: Vec<Violation>,
}

impl Structural {
    /// Compiles the JSON of a CRD's `openAPIV3Schema`.
    ///
    /// # Errors
    /// What an API server would refuse in the CRD: keywords that it does not know, patterns and rules that do not compile,
    /// defaults that break their own schema. See [`CompileError`].
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        Ok(Self {
            root: compile::root(schema)?,
            object_meta: metadata::object_meta()?,
        })
    }

    /// Compiles a schema of this program whose parts may refer to definitions (`{$ref: NAME}`), each of which is compiled once. Patterns and
    /// rules are compiled when a value is first held against them: a test has compiled the whole.
    ///
    /// # Errors
    /// See [`CompileError`].
    pub(crate) fn of_tested(
        schema: &Value,
        definitions: &Definitions,
    ) -> Result<Self, CompileError> {
        Ok(Self {
            root: compile::tested(schema, definitions)?,
            object_meta: metadata::object_meta()?,
        })
    }

    /// Does to an object what an API server does when it is created, or, with the stored object in `old`, when it is updated.
    ///
    /// The order is the server's: unknown fields, nulls, metadata, defaults, status; then metadata, values, embedded objects,
    /// lists and, if nothing before is of a wrong type, absent, too long or none of its choices, the CEL rules. `value` is then
    /// what would be stored, whether or not it is refused.
    pub fn admit(&self, value: &mut Value, old: Option<&Value>, options: &Options) -> Outcome {
        let mut outcome = Outcome::default();
        metadata::leave_namespace(value, options.scope);
        self.read(value, &mut outcome);
        if options.status_subresource {
            keep_status(value, old);
        }
        let generated = old.is_none() && metadata::generate_name(value);
        self.check(value, old, &mut outcome.errors);
        if generated {
            metadata::forget_name(value);
        }
        outcome
    }

    fn read(&self, value: &mut Value, outcome: &mut Outcome) {
        let unknown = &mut outcome.unknown;
        prune::prune(value, &self.root, &At::ROOT, unknown);
        prune::prune_nulls(value, &self.root);
        if let Value::Object(object) = value {
            metadata::coerce(object, &self.object_meta, &At::ROOT, unknown);
        }
        embedded::coerce(value, &self.root, &self.object_meta, &At::ROOT, unknown);
        prune::set_defaults(value, &self.root, &At::ROOT, &mut outcome.defaulted);
    }

    fn check(&self, value: &Value, old: Option<&Value>, errors: &mut Vec<Violation>) {
        if let Value::Object(object) = value {
            metadata::check(object, &self.object_meta, errors);
        }
        validate::validate(&self.root, value, &At::ROOT, errors);
        embedded::check(value, &self.root, &self.object_meta, &At::ROOT, errors);
        lists::check(value, &self.root, &At::ROOT, errors);
        if self.root.below.rules {
            if errors.iter().any(|error| error.kind.stops_rules()) {
                errors.push(Violation::rules_not_checked());
            } else {
                cel::check(&self.root, value, old, true, &At::ROOT, errors);
            }
        }
    }
}

/// A status that has a subresource of its own is not written with the object: it stays what it was.
fn keep_status(value: &mut Value, old: Option<&Value>) {
    let Value::Object(object) = value else {
        return;
    };
    match old.and_then(|old| old.get("status")) {
        Some(status) => {
            object.insert("status".to_owned(), status.clone());
        }
        None => {
            object.shift_remove("status");
        }
    }
}
