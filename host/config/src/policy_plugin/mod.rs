//! PolicyPlugins: what the operator wants for each plugin, and the revisions that are made from them.
//!
//! - `spec` and `status` are the parts of a PolicyPlugin, and `revision` has those of a PluginRevision.
//! - `object` decodes a PolicyPlugin, with the checks of `check`, and `settings` turns one into the settings of a plugin.
//! - `crd` generates the CustomResourceDefinitions of both kinds.

pub(crate) mod check;
mod condition;
mod crd;
mod object;
mod revision;
mod settings;
mod spec;
mod status;

pub use condition::{Condition, ConditionStatus};
pub use crd::{Crd, CrdError};
pub use object::{PolicyPlugin, schema};
pub use revision::{
    BuiltInOrigin, FORMAT, FileOrigin, OciOrigin, Origin, PluginRevisionSpec, PluginRevisionStatus,
    Replica, ResolvedPlugin, RevisionError, ShadowDifference, ShadowSummary, Stage, revision_name,
};
pub use spec::{FileSource, OciSource, PolicyPluginSpec, SetLimits, Source};
pub use status::{
    DigestCount, MAX_DIGESTS, MAX_LINES, PolicyPluginStatus, ReplicaCount, TrainJobCount,
};

use crate::TypeMeta;

/// The `apiVersion` of PolicyPlugins and PluginRevisions.
pub const API_VERSION: &str = "trainyard.dev/v1alpha1";

/// The kind of PolicyPlugins.
pub const POLICY_PLUGIN: &str = "PolicyPlugin";

/// The kind of PluginRevisions.
pub const PLUGIN_REVISION: &str = "PluginRevision";

/// The first lines of a PolicyPlugin.
pub const TYPE_META: TypeMeta = TypeMeta {
    api_version: API_VERSION,
    kind: POLICY_PLUGIN,
};

/// The digest of a file.
pub(crate) const DIGEST: &str = "^sha256:[0-9a-f]{64}$";

/// What matches [`DIGEST`].
pub(crate) const DIGEST_WORDS: &str = "`sha256:` and 64 lowercase hexadecimal digits";

/// Whether a value is the default of its type, and so is not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
