//! The metadata of an object, which is Kubernetes' ObjectMeta whatever the schema declares.

use serde_json::{Map, Value, json};

use trainyard_text::StackPath;

use crate::{
    compile,
    error::CompileError,
    go, names,
    node::Node,
    options::Scope,
    prune::{prune_nulls, prune_part, set_defaults},
    unknown::UnknownField,
    validate,
    violation::{Violation, ViolationKind},
};

/// The maximum size of all annotations together, in bytes of keys and values.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Returns the schema of ObjectMeta. Null in a map or list of strings is decoded as an empty string, as in Go.
pub(crate) fn object_meta() -> Result<Node, CompileError> {
    let text = json!({"type": "string"});
    let texts =
        json!({"type": "object", "additionalProperties": {"type": "string", "default": ""}});
    let time = json!({"type": "string", "format": "date-time"});
    let integer = json!({"type": "integer", "format": "int64"});
    let always = json!({"type": "string", "default": ""});
    let owner = json!({"type": "object", "properties": {
        "apiVersion": always, "kind": always, "name": always, "uid": always,
        "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
    }});
    let manager = json!({"type": "object", "properties": {
        "manager": text, "operation": text, "apiVersion": text, "time": time, "fieldsType": text,
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "subresource": text,
    }});
    compile::part(&json!({"type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text,
        "resourceVersion": text, "generation": integer, "creationTimestamp": time,
        "deletionTimestamp": time, "deletionGracePeriodSeconds": integer,
        "labels": texts, "annotations": texts,
        "ownerReferences": {"type": "array", "items": owner},
        "finalizers": {"type": "array", "items": {"type": "string", "default": ""}},
        "managedFields": {"type": "array", "items": manager},
    }}))
}

/// Prunes fields that ObjectMeta does not have, decodes nulls as Go does, and removes empty fields.
pub(crate) fn coerce(
    object: &mut Map<String, Value>,
    schema: &Node,
    at: &StackPath<'_>,
    out: &mut Vec<UnknownField>,
) {
    let Some(metadata) = object.get_mut("metadata") else {
        return;
    };
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let at = at.field("metadata");
    prune_part(metadata, schema, &at, out);
    prune_nulls(metadata, schema);
    // These defaults imitate how Go decodes nulls. They are not defaults of the object's schema, so they are not reported.
    set_defaults(metadata, schema, &at, &mut Vec::new());
    if let Value::Object(fields) = metadata {
        fields.retain(|_, value| !is_empty(value));
    }
}

/// Sets the name of an object with a `generateName` and without a name, because rules can read the name. Returns whether it did.
///
/// The random suffix of a server is `xxxxx` here.
pub(crate) fn generate_name(object: &mut Value) -> bool {
    /// The maximum length of the prefix, so that the name fits into a DNS label.
    const MAX_PREFIX: usize = 58;
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return false;
    };
    let prefix =
        text(metadata, "generateName").map(|prefix| prefix.chars().take(MAX_PREFIX).collect());
    match (text(metadata, "name"), prefix) {
        (None, Some(prefix)) => {
            let prefix: String = prefix;
            metadata.insert("name".to_owned(), format!("{prefix}xxxxx").into());
            true
        }
        _ => false,
    }
}

/// Removes the name that [`generate_name`] has set.
pub(crate) fn remove_generated_name(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.shift_remove("name");
    }
}

/// Returns whether Go omits the field when it encodes the metadata.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        _ => false,
    }
}

/// Checks the metadata of an object: types, names, labels, annotations, owners and finalizers.
pub(crate) fn check(object: &Map<String, Value>, schema: &Node, out: &mut Vec<Violation>) {
    let at = StackPath::ROOT.field("metadata");
    let none = Map::new();
    let metadata = match object.get("metadata") {
        Some(metadata) => {
            let before = out.len();
            validate::validate(schema, metadata, &at, out);
            if out.len() > before {
                return;
            }
            metadata.as_object().unwrap_or(&none)
        }
        None => &none,
    };
    check_name(metadata, &at, out);
    check_namespace(metadata, &at, out);
    check_common(metadata, &at, out);
}

/// Checks the metadata of an embedded object. It needs no name, and the name can be any path segment.
pub(crate) fn check_embedded(
    metadata: &Value,
    schema: &Node,
    at: &StackPath<'_>,
    out: &mut Vec<Violation>,
) {
    let before = out.len();
    validate::validate(schema, metadata, at, out);
    let Some(metadata) = metadata.as_object().filter(|_| out.len() == before) else {
        return;
    };
    for (field, whole) in [("generateName", false), ("name", true)] {
        if let Some(name) = text(metadata, field) {
            refuse(
                &at.field(field),
                name,
                names::path_segment(name, whole),
                out,
            );
        }
    }
    if let Some(namespace) = text(metadata, "namespace") {
        refuse(
            &at.field("namespace"),
            namespace,
            names::label(namespace),
            out,
        );
    }
    check_common(metadata, at, out);
}

fn check_name(metadata: &Map<String, Value>, at: &StackPath<'_>, out: &mut Vec<Violation>) {
    if let Some(prefix) = text(metadata, "generateName") {
        // The random suffix follows, so a trailing dash is valid.
        let problems = names::subdomain(&names::without_trailing_dash(prefix));
        refuse(&at.field("generateName"), prefix, problems, out);
    }
    match text(metadata, "name") {
        Some(name) => refuse(&at.field("name"), name, names::subdomain(name), out),
        None => out.push(Violation::required(
            &at.field("name"),
            "name or generateName is required",
        )),
    }
}

/// Removes the namespace of a cluster-scoped object, as the request for it does before anything is checked.
pub(crate) fn remove_namespace(object: &mut Value, scope: Scope) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Scope::Cluster, Some(metadata)) = (scope, metadata) {
        metadata.shift_remove("namespace");
    }
}

fn check_namespace(metadata: &Map<String, Value>, at: &StackPath<'_>, out: &mut Vec<Violation>) {
    if let Some(namespace) = text(metadata, "namespace") {
        let at = at.field("namespace");
        refuse(&at, namespace, names::label(namespace), out);
    }
}

fn check_common(metadata: &Map<String, Value>, at: &StackPath<'_>, out: &mut Vec<Violation>) {
    let generation = metadata.get("generation").and_then(Value::as_i64);
    if let Some(generation) = generation.filter(|generation| *generation < 0) {
        let at = at.field("generation");
        out.push(Violation::invalid(
            &at,
            &generation.into(),
            "must be greater than or equal to 0",
        ));
    }
    let labels_at = at.field("labels");
    for (key, value) in texts(metadata, "labels") {
        refuse(&labels_at, key, names::qualified(key), out);
        refuse(&labels_at, value, names::label_value(value), out);
    }
    let annotations_at = at.field("annotations");
    let mut size = 0;
    for (key, value) in texts(metadata, "annotations") {
        refuse(
            &annotations_at,
            key,
            names::qualified(&key.to_lowercase()),
            out,
        );
        size += key.len() + value.len();
    }
    if size > ANNOTATIONS_LIMIT {
        let detail = format!("may not be more than {ANNOTATIONS_LIMIT} bytes");
        out.push(Violation::new(
            &annotations_at,
            ViolationKind::TooLong,
            detail,
        ));
    }
    check_owners(metadata, &at.field("ownerReferences"), out);
    check_finalizers(metadata, &at.field("finalizers"), out);
}

fn check_owners(metadata: &Map<String, Value>, at: &StackPath<'_>, out: &mut Vec<Violation>) {
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    let mut controller: Option<String> = None;
    for owner in owners.into_iter().flatten().filter_map(Value::as_object) {
        for (field, problem) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(owner, field).is_none() {
                out.push(Violation::invalid(&at.field(field), &"".into(), problem));
            }
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let of = |field| text(owner, field).unwrap_or_default();
            let name = format!("{}/{}", of("kind"), of("name"));
            match &controller {
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. \
                         Found \"true\" in references for {first} and {name}"
                    );
                    let violation = Violation::new(at, ViolationKind::Invalid, detail);
                    out.push(violation.showing(shown_owners(owners)));
                }
                None => controller = Some(name),
            }
        }
    }
}

/// Formats owners as Go encodes them: in the order of its type's fields.
fn shown_owners(owners: Option<&Vec<Value>>) -> String {
    const FIELDS: [&str; 6] = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let owner = |owner: &Value| {
        let fields: Vec<_> = FIELDS
            .into_iter()
            .filter_map(|field| Some(format!("{field:?}:{}", go::json(owner.get(field)?))))
            .collect();
        format!("{{{}}}", fields.join(","))
    };
    let owners: Vec<_> = owners.into_iter().flatten().map(owner).collect();
    format!("[{}]", owners.join(","))
}

fn check_finalizers(metadata: &Map<String, Value>, at: &StackPath<'_>, out: &mut Vec<Violation>) {
    let finalizers = metadata.get("finalizers").and_then(Value::as_array);
    let names: Vec<&str> = finalizers
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for name in &names {
        refuse(at, name, names::qualified(name), out);
    }
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        let shown = finalizers.cloned().unwrap_or_default();
        out.push(Violation::invalid(at, &shown.into(), detail));
    }
}

fn refuse(at: &StackPath<'_>, value: &str, problems: Vec<String>, out: &mut Vec<Violation>) {
    for problem in problems {
        out.push(Violation::invalid(at, &value.into(), problem));
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields
        .get(name)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

fn texts<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = fields.get(name).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}
