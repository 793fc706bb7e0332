//! The structure of a JobSet for merges, in one table: lists with merge keys, maps with keys of the user, and unions. The merge keys are
//! those of Kubernetes' API (`patchMergeKey`). Lists that are not in the table are replaced as a whole.

use serde_json::{Map, Value};

/// The structure of an object.
#[derive(Debug)]
pub struct Node {
    fields: &'static [(&'static str, Child)],
    is_alternative: fn(&str) -> bool,
}

/// The structure of a field of a [`Node`].
#[derive(Clone, Copy, Debug)]
pub enum Child {
    Object(&'static Node),
    /// A map with keys of the user.
    Map,
    /// A list whose items have a merge key.
    List(&'static str, &'static Node),
}

impl Node {
    const fn new(fields: &'static [(&'static str, Child)]) -> Self {
        Self::one_of(fields, |_| false)
    }

    /// An object with a union of the fields for which `is_alternative` returns true.
    const fn one_of(
        fields: &'static [(&'static str, Child)],
        is_alternative: fn(&str) -> bool,
    ) -> Self {
        Self {
            fields,
            is_alternative,
        }
    }

    /// Returns the fields that are in the table.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Child)> + '_ {
        self.fields.iter().copied()
    }

    /// Returns the structure of a field; an object without keyed lists if it is not in the table.
    #[must_use]
    pub fn child(&self, field: &str) -> Child {
        self.fields()
            .find(|(name, _)| *name == field)
            .map_or(Child::Object(&PLAIN), |(_, child)| child)
    }

    /// Returns whether the field is a member of the union, such as a source of a volume.
    #[must_use]
    pub fn is_alternative(&self, field: &str) -> bool {
        (self.is_alternative)(field)
    }

    /// Returns the members of the union that an object has.
    pub fn alternatives<'v>(&self, object: &'v Map<String, Value>) -> Vec<&'v str> {
        let given = object
            .iter()
            .filter(|(field, value)| !value.is_null() && self.is_alternative(field));
        given.map(|(field, _)| field.as_str()).collect()
    }
}

/// An object without keyed lists.
pub static PLAIN: Node = Node::new(&[]);

/// `trainingRuntimeSpec` of a runtime patch.
pub(super) static RUNTIME_PATCH: Node =
    Node::new(&[("template", Child::Object(&JOB_SET_TEMPLATE))]);

static JOB_SET_TEMPLATE: Node = Node::new(&[
    ("metadata", Child::Object(&METADATA)),
    ("spec", Child::Object(&JOB_SET_SPEC)),
]);

/// A JobSet.
pub static JOB_SET: Node = Node::new(&[
    ("metadata", Child::Object(&METADATA)),
    ("spec", Child::Object(&JOB_SET_SPEC)),
]);

/// `spec` of a JobSet.
pub static JOB_SET_SPEC: Node =
    Node::new(&[("replicatedJobs", Child::List("name", &REPLICATED_JOB))]);

static REPLICATED_JOB: Node = Node::new(&[
    ("template", Child::Object(&JOB_TEMPLATE)),
    ("dependsOn", Child::List("name", &PLAIN)),
]);

/// A Job template: `template` of a replicated job.
pub static JOB_TEMPLATE: Node = Node::new(&[
    ("metadata", Child::Object(&METADATA)),
    ("spec", Child::Object(&JOB_SPEC)),
]);

static METADATA: Node = Node::new(&[
    ("labels", Child::Map),
    ("annotations", Child::Map),
    ("ownerReferences", Child::List("uid", &PLAIN)),
]);

static JOB_SPEC: Node = Node::new(&[("template", Child::Object(&POD_TEMPLATE))]);

static POD_TEMPLATE: Node = Node::new(&[
    ("metadata", Child::Object(&METADATA)),
    ("spec", Child::Object(&POD_SPEC)),
]);

static POD_SPEC: Node = Node::new(&[
    ("volumes", Child::List("name", &VOLUME)),
    ("initContainers", Child::List("name", &CONTAINER)),
    ("containers", Child::List("name", &CONTAINER)),
    ("ephemeralContainers", Child::List("name", &CONTAINER)),
    ("imagePullSecrets", Child::List("name", &PLAIN)),
    ("hostAliases", Child::List("ip", &PLAIN)),
    (
        "topologySpreadConstraints",
        Child::List("topologyKey", &PLAIN),
    ),
    ("schedulingGates", Child::List("name", &PLAIN)),
    ("resourceClaims", Child::List("name", &RESOURCE_CLAIM)),
    ("nodeSelector", Child::Map),
]);

/// A volume has one source.
static VOLUME: Node = Node::one_of(
    &[("ephemeral", Child::Object(&EPHEMERAL_VOLUME))],
    |field| field != "name",
);

static EPHEMERAL_VOLUME: Node =
    Node::new(&[("volumeClaimTemplate", Child::Object(&VOLUME_CLAIM_TEMPLATE))]);

static VOLUME_CLAIM_TEMPLATE: Node = Node::new(&[("metadata", Child::Object(&METADATA))]);

/// A resource claim of a pod is a claim or a template of one.
static RESOURCE_CLAIM: Node = Node::one_of(&[], |field| field != "name");

static CONTAINER: Node = Node::new(&[
    ("env", Child::List("name", &ENV_VAR)),
    ("volumeMounts", Child::List("mountPath", &PLAIN)),
    ("volumeDevices", Child::List("devicePath", &PLAIN)),
    ("ports", Child::List("containerPort", &PLAIN)),
    ("resources", Child::Object(&RESOURCES)),
]);

/// An env var has a value or a source of it.
static ENV_VAR: Node = Node::one_of(&[("valueFrom", Child::Object(&ENV_SOURCE))], |field| {
    matches!(field, "value" | "valueFrom")
});

static ENV_SOURCE: Node = Node::one_of(&[], |_| true);

static RESOURCES: Node = Node::new(&[("requests", Child::Map), ("limits", Child::Map)]);
