//! The CustomResourceDefinitions of our kinds, generated from their types.

use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Value, json};
use thiserror::Error;
use trainyard_api::names::TRAINYARD_GROUP;
use trainyard_schema::documents::definition;
use trainyard_structural::{CompileError, Options, Schema as Structural, Scope};

use super::{
    PLUGIN_REVISION, POLICY_PLUGIN, PluginRevisionSpec, PluginRevisionStatus, PolicyPluginSpec,
    PolicyPluginStatus,
};

/// A kind of the group `trainyard.dev`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crd {
    /// PluginRevision.
    PluginRevision,
    /// PolicyPlugin.
    PolicyPlugin,
}

/// A generated schema that an API server would refuse.
#[derive(Debug, Error)]
#[error("the schema of {kind}: {problem}; this is a bug in Trainyard")]
pub struct CrdError {
    kind: &'static str,
    problem: CompileError,
}

impl Crd {
    /// All kinds, in the order in which their CRDs are printed.
    pub const ALL: [Self; 2] = [Self::PluginRevision, Self::PolicyPlugin];

    /// Returns the kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PluginRevision => PLUGIN_REVISION,
            Self::PolicyPlugin => POLICY_PLUGIN,
        }
    }

    /// Returns the kind's name in URLs.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::PluginRevision => "pluginrevisions",
            Self::PolicyPlugin => "policyplugins",
        }
    }

    /// Returns the properties that the CRD defines in addition to the schema.
    #[must_use]
    pub const fn options(self) -> Options {
        Options {
            scope: Scope::Cluster,
            status_subresource: true,
        }
    }

    /// Returns the kind's structural schema.
    #[must_use]
    pub fn schema(self) -> Value {
        let (description, spec, status) = match self {
            Self::PluginRevision => (
                "The plugins of a cluster, resolved to digests. The controller creates it, and every replica of the controller loads it.",
                revision_spec(),
                structural::<PluginRevisionStatus>(),
            ),
            Self::PolicyPlugin => (
                "What the operator wants for one plugin, whose name is that of the object.",
                policy_plugin_spec(),
                structural::<PolicyPluginStatus>(),
            ),
        };
        let mut schema = json!({
            "description": description,
            "type": "object",
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string", "description": "The API version of the object."},
                "kind": {"type": "string", "description": format!("{}.", self.name())},
                "metadata": {"type": "object"},
                "spec": spec,
                "status": status,
            },
        });
        if self == Self::PolicyPlugin {
            set(
                &mut schema,
                "x-kubernetes-validations",
                json!([rule(
                    "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",
                    "the name must be that of a plugin: at most 63 of a-z, 0-9 and -",
                )]),
            );
        }
        schema
    }

    /// Returns the kind's CustomResourceDefinition.
    ///
    /// # Errors
    /// The schema does not compile.
    pub fn definition(self) -> Result<Value, CrdError> {
        let schema = self.schema();
        Structural::compile(&schema).map_err(|problem| CrdError {
            kind: self.name(),
            problem,
        })?;
        let version = json!({
            "name": "v1alpha1", "served": true, "storage": true,
            "additionalPrinterColumns": self.columns(),
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema},
        });
        Ok(definition(
            TRAINYARD_GROUP,
            self.name(),
            self.plural(),
            self.options().scope,
            version,
        ))
    }

    /// Returns the columns of `kubectl get`.
    fn columns(self) -> Value {
        let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
        match self {
            Self::PluginRevision => json!([
                {"name": "Number", "type": "integer", "jsonPath": ".spec.number"},
                {"name": "Stage", "type": "string", "jsonPath": ".status.stage"},
                {"name": "Percent", "type": "integer", "jsonPath": ".status.percent"},
                {"name": "Reason", "type": "string", "jsonPath": ".status.reason"},
                {"name": "Plan", "type": "string", "jsonPath": ".status.plan", "priority": 1},
                age,
            ]),
            Self::PolicyPlugin => json!([
                {"name": "Version", "type": "string", "jsonPath": ".status.version"},
                {"name": "Active", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Active\")].status"},
                {"name": "Replicas", "type": "string", "jsonPath": ".status.replicas.summary"},
                {"name": "TrainJobs", "type": "integer", "jsonPath": ".status.trainJobs.total"},
                {"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Active\")].reason"},
                {"name": "Digest", "type": "string", "jsonPath": ".status.digest", "priority": 1},
                age,
            ]),
        }
    }
}

fn policy_plugin_spec() -> Value {
    let mut spec = structural::<PolicyPluginSpec>();
    complete_settings(&mut spec);
    if let Some(source) = spec.pointer_mut("/properties/source") {
        let one = "has(self.oci) != has(self.file)";
        let message = "exactly one of oci and file must be set";
        set(
            source,
            "x-kubernetes-validations",
            json!([rule(one, message)]),
        );
    }
    spec
}

fn revision_spec() -> Value {
    let mut spec = structural::<PluginRevisionSpec>();
    let immutable = rule("self == oldSelf", "is immutable");
    set(&mut spec, "x-kubernetes-validations", json!([immutable]));
    if let Some(settings) = spec.pointer_mut("/properties/plugins/items/properties/settings") {
        if let Some(Value::Object(properties)) = settings.get_mut("properties") {
            properties.shift_remove("source");
        }
        complete_settings(settings);
    }
    spec
}

/// Adds to the schema of a PolicyPlugin's settings what a type cannot express.
fn complete_settings(settings: &mut Value) {
    if let Some(config) = settings.pointer_mut("/properties/config") {
        set(config, "x-kubernetes-preserve-unknown-fields", json!(true));
    }
    let either = "!(has(self.disabledFor) && has(self.enabledFor))";
    let message = "disabledFor and enabledFor cannot be combined";
    set(
        settings,
        "x-kubernetes-validations",
        json!([rule(either, message)]),
    );
}

fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

fn set(schema: &mut Value, keyword: &str, value: Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(keyword.to_owned(), value);
    }
}

/// Returns the schema of a type, in the form that Kubernetes allows.
///
/// The rewriter of `kube-core` does most of this for any type. Ours need less, and defaults must go: an API server would store them, and
/// no later release could change one.
fn structural<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(restructure).transform(&mut schema);
    let mut schema = schema.to_value();
    if let Some(members) = schema.as_object_mut() {
        members.shift_remove("title");
    }
    schema
}

/// Removes the keywords of a schema that Kubernetes does not allow.
fn restructure(schema: &mut Schema) {
    for keyword in ["default", "nullable", "title", "uniqueItems"] {
        schema.remove(keyword);
    }
    if schema.get("additionalProperties") == Some(&json!(false)) {
        schema.remove("additionalProperties");
    }
    // Kubernetes has no unsigned numbers. The minimum stays.
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| format.starts_with("uint")) {
        schema.insert("format".to_owned(), json!("int64"));
    }
    // An enum whose members have descriptions.
    if let Some(Value::Array(members)) = schema.remove("oneOf") {
        let names: Vec<_> = members
            .iter()
            .filter_map(|member| member.pointer("/enum/0"))
            .collect();
        let names = json!(names);
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), names);
    }
}
