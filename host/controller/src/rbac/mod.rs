//! The permissions that the controller needs: for its own calls, and for the claims of its plugins.

mod claimed;
mod rules;

use std::{collections::BTreeSet, fmt};

pub(crate) use claimed::{EmittedKinds, Reach, WatchScope};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use kube::api::ObjectMeta;
use rules::{Refusal, Rules};
use trainyard_api::names::{JOB_SET_GROUP, TRAINER_GROUP, TRAINYARD_GROUP};
use trainyard_model::{claims::Claims, record::Field};

use crate::{
    declared::PluginsSource,
    gates::{FeatureGate, FeatureGates},
    lease::LEASE_NAME,
};

/// The name of both roles and of their ServiceAccount, which is the reference's.
pub const NAME: &str = "kubeflow-trainer-controller-manager";

/// The default namespace of the controller, which is the reference's.
pub const NAMESPACE: &str = "kubeflow-system";

/// The permissions in every namespace, independent of plugins.
///
/// ConfigMaps are never listed or watched. Jobs are deleted only when a JobSet is unsuspended whose pods lose entries of their placement, and
/// listed then and while pods are missing; then Events are listed too. TrainJobs are patched only to annotate errors. The admission plugin
/// OwnerReferencesPermissionEnforcement requires `trainjobs/finalizers` for owner references with `blockOwnerDeletion`.
const BASE: [(&str, &str, &[&str]); 9] = [
    ("", "configmaps", &["create", "get", "patch"]),
    ("", "events", &["create", "list", "patch"]),
    ("batch", "jobs", &["delete", "list"]),
    (
        JOB_SET_GROUP,
        "jobsets",
        &["create", "delete", "get", "list", "patch", "watch"],
    ),
    (TRAINER_GROUP, "clustertrainingruntimes", &["list", "watch"]),
    (TRAINER_GROUP, "trainingruntimes", &["list", "watch"]),
    (
        TRAINER_GROUP,
        "trainjobs",
        &["get", "list", "patch", "watch"],
    ),
    (TRAINER_GROUP, "trainjobs/finalizers", &["update"]),
    (TRAINER_GROUP, "trainjobs/status", &["patch"]),
];

/// The permissions for the status server. It also reads JobSets and writes the status of TrainJobs, which every controller does.
const STATUS_SERVER: [(&str, &str, &[&str]); 2] = [
    ("", "pods", &["get"]),
    ("authentication.k8s.io", "tokenreviews", &["create"]),
];

/// The permissions for plugins that the cluster declares. Stages are written into the status of revisions, and a retry of a roll-back is another
/// revision, so their metadata is only patched by people.
const CLUSTER_PLUGINS: [(&str, &str, &[&str]); 4] = [
    (
        TRAINYARD_GROUP,
        "pluginrevisions",
        &["create", "delete", "list", "watch"],
    ),
    (TRAINYARD_GROUP, "pluginrevisions/status", &["patch"]),
    (TRAINYARD_GROUP, "policyplugins", &["list", "watch"]),
    (TRAINYARD_GROUP, "policyplugins/status", &["patch"]),
];

/// The minimal roles for a set of plugins.
#[derive(Debug)]
pub struct Roles {
    /// The permissions in all namespaces.
    pub cluster_role: ClusterRole,
    /// The permissions in the controller's own namespace, for leader election.
    pub role: Role,
    /// Notes for the operator.
    pub notes: BTreeSet<Note>,
}

/// A note about the roles for the operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// The name of a resource is guessed.
    Guessed {
        /// The name.
        resource: String,
        kind: String,
        /// Such as `example.com/v1`.
        api_version: String,
    },
    /// A claim that does not name one kind.
    NoKind { plugin: String, claim: String },
    /// A claim on Secrets, which plugins cannot read.
    Secret { plugin: String, claim: String },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guessed {
                resource,
                kind,
                api_version,
            } => write!(
                f,
                "`{resource}` is guessed from the kind {kind} ({api_version}), as its plural in lower case; compare it with `kubectl api-resources`"
            ),
            Self::NoKind { plugin, claim } => write!(
                f,
                "the claim `{claim}` of the plugin {plugin} gets no permissions, because it does not name one kind, such as `lookups[v1/Node/*]`"
            ),
            Self::Secret { plugin, claim } => write!(
                f,
                "the claim `{claim}` of the plugin {plugin} gets no permissions, because plugins cannot read Secrets"
            ),
        }
    }
}

/// Returns the minimal roles for plugins with these names and claims, and a controller in that namespace with these feature gates and plugins
/// from that source.
pub fn roles<'p>(
    plugins: impl IntoIterator<Item = (&'p str, &'p Claims)>,
    namespace: &str,
    gates: &FeatureGates,
    source: PluginsSource,
) -> Roles {
    let mut rules = Rules::default();
    for (group, resource, verbs) in BASE {
        rules.allow(group, resource, verbs);
    }
    if gates.is_on(FeatureGate::TrainJobStatus) {
        for (group, resource, verbs) in STATUS_SERVER {
            rules.allow(group, resource, verbs);
        }
    }
    if source == PluginsSource::Cluster {
        for (group, resource, verbs) in CLUSTER_PLUGINS {
            rules.allow(group, resource, verbs);
        }
    }
    let mut notes = BTreeSet::new();
    for (plugin, claims) in plugins {
        notes.extend(rules.allow_plugin(plugin, claims));
    }
    let mut own = Rules::default();
    // RBAC cannot restrict `create` to a name.
    own.allow("coordination.k8s.io", "leases", &["create"]);
    own.allow_named(
        "coordination.k8s.io",
        "leases",
        LEASE_NAME,
        &["get", "update"],
    );
    let metadata = |namespace: Option<&str>| ObjectMeta {
        name: Some(NAME.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ObjectMeta::default()
    };
    Roles {
        cluster_role: ClusterRole {
            metadata: metadata(None),
            rules: Some(rules.list()),
            ..ClusterRole::default()
        },
        role: Role {
            metadata: metadata(Some(namespace)),
            rules: Some(own.list()),
        },
        notes,
    }
}

/// The label of roles that are aggregated to the controller's.
pub const AGGREGATE_LABEL: &str = "rbac.trainyard.dev/aggregate-to-controller";

/// The permissions that a plugin needs.
#[derive(Debug)]
pub struct PluginRole {
    /// The permissions in all namespaces, which are aggregated to the controller's.
    pub cluster_role: ClusterRole,
    /// Notes for the operator.
    pub notes: BTreeSet<Note>,
}

/// Returns the permissions that a plugin with these claims needs. `None` if it looks up and emits nothing.
#[must_use]
pub fn plugin_role(plugin: &str, claims: &Claims) -> Option<PluginRole> {
    let mut rules = Rules::default();
    let notes = rules.allow_plugin(plugin, claims);
    let rules = rules.list();
    if rules.is_empty() && notes.is_empty() {
        return None;
    }
    let label = (AGGREGATE_LABEL.to_owned(), "true".to_owned());
    Some(PluginRole {
        cluster_role: ClusterRole {
            metadata: ObjectMeta {
                name: Some(plugin_role_name(plugin)),
                labels: Some([label].into()),
                ..ObjectMeta::default()
            },
            rules: Some(rules),
            ..ClusterRole::default()
        },
        notes,
    })
}

/// Returns the name of the role of a plugin.
#[must_use]
pub fn plugin_role_name(plugin: &str) -> String {
    format!("trainyard:plugin:{plugin}")
}

impl Rules {
    /// Allows what the claims of a plugin need.
    fn allow_plugin(&mut self, plugin: &str, claims: &Claims) -> BTreeSet<Note> {
        let mut notes = BTreeSet::new();
        for (_, path) in claims.iter() {
            if path.field != Field::Objects && !claimed::is_lookup(path.field) {
                continue;
            }
            let allowed = self.allow_claim(path);
            let (plugin, claim) = (plugin.to_owned(), path.to_string());
            match allowed {
                Ok(guessed) => notes.extend(guessed),
                Err(Refusal::NoKind) => _ = notes.insert(Note::NoKind { plugin, claim }),
                Err(Refusal::Secret) => _ = notes.insert(Note::Secret { plugin, claim }),
            }
        }
        notes
    }
}

/// The name of the role of the shadow mode. It differs from the reference's, beside which it works.
pub const SHADOW_NAME: &str = "trainyard-shadow";

/// The verbs that read.
const READ: [&str; 3] = ["get", "list", "watch"];

/// What a reconcile reads and the shadow mode does not: the reasons why Jobs or pods are missing, and Secrets.
const NOT_SHADOWED: [&str; 3] = ["events", "jobs", "secrets"];

/// Returns the role of the shadow mode with these plugins: what it reads, and no verb that writes.
#[must_use]
pub fn shadow_role(roles: Roles) -> ClusterRole {
    let rules = roles.cluster_role.rules.into_iter().flatten();
    let read = rules.filter_map(|mut rule| {
        rule.verbs.retain(|verb| READ.contains(&verb.as_str()));
        let is_shadowed = |resource: &String| !NOT_SHADOWED.contains(&resource.as_str());
        let resources = rule.resources.iter().flatten();
        let is_read = !rule.verbs.is_empty() && resources.into_iter().all(is_shadowed);
        is_read.then_some(rule)
    });
    ClusterRole {
        metadata: ObjectMeta {
            name: Some(SHADOW_NAME.to_owned()),
            ..ObjectMeta::default()
        },
        rules: Some(read.collect()),
        ..ClusterRole::default()
    }
}

#[cfg(test)]
mod tests;
