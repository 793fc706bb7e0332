//! Kubernetes' structural schemas: what an API server (1.36) does to an object on the way in.
//!
//! [`Schema::compile`] takes the JSON of a CRD's `openAPIV3Schema` once, and [`Schema::admit`] applies it to objects: unknown fields are
//! pruned and reported, nulls that are not allowed are dropped, defaults are set, and all violations are reported at once, in the
//! server's words and with its field paths. The resulting object is what a cluster would store. The crate knows nothing of
//! TrainJobs; the schemas of their kinds are in `trainyard-schema`.
//!
//! From JSON to a schema:
//! - `compile` turns JSON into `node`s and refuses, with an `error`, what an API server refuses in a CRD. A node has a `value_type`, and
//!   `sparse` parts.
//! - `pattern` and `format` check strings, and `duration` parses one of the formats. `rules` are the CEL rules of a node.
//!
//! From an object to its [`Outcome`], with the `options` of its kind:
//! - `prune` drops unknown fields, each of which is an `unknown`, and sets defaults.
//! - `metadata`, `names` and `embedded` are the rules for metadata, of the object itself and of objects in its fields.
//! - `validate` checks values, `lists` checks the keys of lists, and `cel` compiles and evaluates the `rules`.
//! - A `violation` is printed as the server prints it; `go` formats values as Go does.
//!
//! Differences from a server:
//! - Updates are not ratcheted. A server accepts a violation in a value that the update does not change, and duplicates in a list that
//!   had duplicates before. Here both are refused.
//! - There are no cost limits: a rule that a server has accepted is cheap by the server's own estimate.
//! - Rules can call the functions of CEL, of its strings library and of optional values, but none of Kubernetes' own libraries.
//! - A metadata field of a wrong type makes a server refuse the whole request without a path. Here it is one violation of many.
//! - A whole number that is written as a float (`3.0`) fails every rule that reads it on a server. Here a rule that compares it
//!   only for equality finds it unequal.
//! - Fields that a server sets itself (UID, generation, managedFields) are not set. Rules see a generated name as `PREFIXxxxxx`.
//!
//! `tests/cases` holds the answers of a real API server's code, recorded by the program in `tests/oracle`.

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
mod rules;
mod sparse;
mod unknown;
mod validate;
mod value_type;
mod violation;

pub use compile::{Definitions, REFERENCE};
pub use error::CompileError;
use node::Node;
pub use options::{Options, Scope};
use serde_json::Value;
use trainyard_text::{FieldPath, StackPath};
pub use unknown::UnknownField;
pub use violation::{Violation, ViolationKind};

/// The compiled schema of a kind. It can be shared by threads and applied to any number of objects.
#[derive(Debug)]
pub struct Schema {
    root: Node,
    object_meta: Node,
}

/// The result of applying a schema to an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The fields that were pruned, in the order of the object.
    pub unknown: Vec<UnknownField>,
    /// The fields that the schema's defaults set.
    pub defaulted: Vec<FieldPath>,
    /// All violations for which an API server refuses the object. Empty for an object that it stores.
    pub errors: Vec<Violation>,
}

impl Schema {
    /// Compiles the JSON of a CRD's `openAPIV3Schema`.
    ///
    /// # Errors
    /// An API server would refuse the CRD: because of unknown keywords, patterns or rules that do not compile, or defaults that
    /// violate their own schema. See [`CompileError`].
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        Ok(Self {
            root: compile::root(schema)?,
            object_meta: metadata::object_meta()?,
        })
    }

    /// Compiles a schema whose parts may refer to definitions (`{$ref: NAME}`), each of which is compiled once.
    ///
    /// Patterns and rules are compiled when a value is first checked against them, so an error in one of them is found late. It is
    /// for schemas that [`Schema::compile`] has accepted in a test.
    ///
    /// # Errors
    /// See [`CompileError`].
    pub fn compile_lazily(schema: &Value, definitions: &Definitions) -> Result<Self, CompileError> {
        Ok(Self {
            root: compile::lazily(schema, definitions)?,
            object_meta: metadata::object_meta()?,
        })
    }

    /// Does to an object what an API server does when the object is created, or updated if the stored object is given as `old`.
    ///
    /// The order is the server's: it prunes, drops nulls, decodes metadata, sets defaults and resets the status. Then it validates
    /// metadata, values, embedded objects and lists. CEL rules are only evaluated if no value has a wrong type, is missing, is too
    /// long or is not in its enum. Afterwards `value` is what would be stored, whether or not it is refused.
    pub fn admit(&self, value: &mut Value, old: Option<&Value>, options: &Options) -> Outcome {
        let mut outcome = Outcome::default();
        metadata::remove_namespace(value, options.scope);
        self.decode(value, &mut outcome);
        if options.status_subresource {
            keep_status(value, old);
        }
        let generated = old.is_none() && metadata::generate_name(value);
        self.validate(value, old, &mut outcome.errors);
        if generated {
            metadata::remove_generated_name(value);
        }
        outcome
    }

    fn decode(&self, value: &mut Value, outcome: &mut Outcome) {
        let unknown = &mut outcome.unknown;
        prune::prune(value, &self.root, &StackPath::ROOT, unknown);
        prune::prune_nulls(value, &self.root);
        if let Value::Object(object) = value {
            metadata::coerce(object, &self.object_meta, &StackPath::ROOT, unknown);
        }
        embedded::coerce(
            value,
            &self.root,
            &self.object_meta,
            &StackPath::ROOT,
            unknown,
        );
        prune::set_defaults(value, &self.root, &StackPath::ROOT, &mut outcome.defaulted);
    }

    fn validate(&self, value: &Value, old: Option<&Value>, errors: &mut Vec<Violation>) {
        if let Value::Object(object) = value {
            metadata::check(object, &self.object_meta, errors);
        }
        validate::validate(&self.root, value, &StackPath::ROOT, errors);
        embedded::check(
            value,
            &self.root,
            &self.object_meta,
            &StackPath::ROOT,
            errors,
        );
        lists::check(value, &self.root, &StackPath::ROOT, errors);
        if self.root.below.rules {
            if errors.iter().any(|error| error.kind.stops_rules()) {
                errors.push(Violation::rules_not_checked());
            } else {
                cel::check(&self.root, value, old, true, &StackPath::ROOT, errors);
            }
        }
    }
}

/// Resets the status to the stored one: it is only written through its subresource.
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
