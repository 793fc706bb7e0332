//! What the controller has to be allowed in a cluster: what it calls by itself, and what its plugins claim. Pure.

mod claimed;
mod rules;

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use kube::api::ObjectMeta;
use trainyard_api::names::{JOB_SET_GROUP, TRAINER_GROUP};
use trainyard_model::claims::Claims;
use trainyard_model::record::Field;

pub(crate) use claimed::{Reach, Watched};
use rules::{Refusal, Rules};

use crate::lease::LEASE_NAME;

/// The name of both roles, and of the ServiceAccount that has them; it is the reference's.
pub const NAME: &str = "kubeflow-trainer-controller-manager";

/// The namespace of the controller unless told otherwise; it is the reference's.
pub const NAMESPACE: &str = "kubeflow-system";

/// What the controller does in every namespace, whichever plugins it has.
///
/// It never lists or watches ConfigMaps. `trainjobs/finalizers` is what the admission plugin OwnerReferencesPermissionEnforcement
/// asks for where an owner's deletion waits for what it owns.
const BASE: [(&str, &str, &[&str]); 8] = [
    ("", "configmaps", &["create", "delete", "get", "patch"]),
    ("", "events", &["create", "patch"]),
    (
        JOB_SET_GROUP,
        "jobsets",
        &["create", "delete", "get", "list", "patch", "watch"],
    ),
    (TRAINER_GROUP, "clustertrainingruntimes", &["list", "watch"]),
    (TRAINER_GROUP, "trainingruntimes", &["list", "watch"]),
    (TRAINER_GROUP, "trainjobs", &["get", "list", "watch"]),
    (TRAINER_GROUP, "trainjobs/finalizers", &["update"]),
    (TRAINER_GROUP, "trainjobs/status", &["patch"]),
];

/// The narrowest roles for a set of plugins.
#[derive(Debug)]
pub struct Roles {
    /// What the controller may do in all namespaces: TrainJobs are in any.
    pub cluster_role: ClusterRole,
    /// What it may do in its own namespace: leader election.
    pub role: Role,
    /// What the operator should know of them.
    pub notes: BTreeSet<Note>,
}

/// Something about the roles that the operator should look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// The name of a resource is a guess.
    Guessed {
        /// The name.
        resource: String,
        /// Its kind.
        kind: String,
        /// As `example.com/v1`.
        api_version: String,
    },
    /// A claim whose kinds are not known from its text.
    NoKind {
        /// The plugin.
        plugin: String,
        /// The claim.
        claim: String,
    },
    /// A claim on Secrets, which no plugin is ever given.
    Secret {
        /// The plugin.
        plugin: String,
        /// The claim.
        claim: String,
    },
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
                "`{resource}` is guessed from the kind {kind} ({api_version}), in lower case and plural; `kubectl api-resources` has its true name"
            ),
            Self::NoKind { plugin, claim } => write!(
                f,
                "nothing is allowed for the claim `{claim}` of the plugin {plugin}: it does not name one kind, as `lookups[v1/Node/*]` does"
            ),
            Self::Secret { plugin, claim } => write!(
                f,
                "nothing is allowed for the claim `{claim}` of the plugin {plugin}: no plugin reads Secrets"
            ),
        }
    }
}

/// The narrowest roles for plugins, given by name and claims, of a controller in that namespace.
pub fn roles<'p>(
    plugins: impl IntoIterator<Item = (&'p str, &'p Claims)>,
    namespace: &str,
) -> Roles {
    let mut rules = Rules::default();
    for (group, resource, verbs) in BASE {
        rules.allow(group, resource, verbs);
    }
    let mut notes = BTreeSet::new();
    for (plugin, claims) in plugins {
        for (_, path) in claims.iter() {
            let noted = match path.field {
                Field::Objects | Field::Lookups => rules.allow_claim(path),
                _ => continue,
            };
            let (plugin, claim) = (plugin.to_owned(), path.to_string());
            match noted {
                Ok(guessed) => notes.extend(guessed),
                Err(Refusal::NoKind) => _ = notes.insert(Note::NoKind { plugin, claim }),
                Err(Refusal::Secret) => _ = notes.insert(Note::Secret { plugin, claim }),
            }
        }
    }
    let mut own = Rules::default();
    // No name is known when an object is created: RBAC can't hold `create` to one.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use k8s_openapi::Resource;
    use k8s_openapi::api::rbac::v1::PolicyRule;
    use kube::api::ApiResource;
    use serde_json::json;

    use super::rules::BUILT_IN_GROUPS;
    use super::*;

    fn claims(reads: &[&str], writes: &[&str]) -> Claims {
        serde_json::from_value(json!({"reads": reads, "writes": writes})).unwrap()
    }

    /// The rules for a plugin beyond the base, a line each, and the notes.
    fn beyond(reads: &[&str], writes: &[&str]) -> (Vec<String>, Vec<String>) {
        let text = |roles: &Roles| -> Vec<String> {
            let rules = roles.cluster_role.rules.iter().flatten();
            let line = |rule: &PolicyRule| {
                let join = |list: &Option<Vec<String>>| list.clone().unwrap_or_default().join(",");
                format!(
                    "{}/{} [{}] {}",
                    join(&rule.api_groups),
                    join(&rule.resources),
                    join(&rule.resource_names),
                    rule.verbs.join(",")
                )
            };
            rules.map(line).collect()
        };
        let base = text(&roles([], NAMESPACE));
        let with = roles([("p", &claims(reads, writes))], NAMESPACE);
        let more = text(&with)
            .into_iter()
            .filter(|rule| !base.contains(rule))
            .collect();
        (more, with.notes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn without_plugins_there_is_what_the_controller_calls() {
        let roles = roles([], "ml");
        let rules = roles.cluster_role.rules.unwrap();
        assert_eq!(rules.len(), BASE.len());
        let resources = rules
            .iter()
            .flat_map(|rule| rule.resources.iter().flatten());
        let forbidden = ["*", "secrets", "pods"];
        assert!(
            !resources
                .into_iter()
                .any(|name| forbidden.contains(&name.as_str()))
        );
        assert!(
            !rules
                .iter()
                .any(|rule| rule.verbs.iter().any(|verb| verb == "*"))
        );
        let configmaps = rules.first().unwrap();
        assert_eq!(configmaps.verbs, ["create", "delete", "get", "patch"]);
        assert_eq!(
            serde_json::to_value(roles.role).unwrap(),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": NAME, "namespace": "ml"},
                "rules": [
                    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
                    {
                        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                        "resourceNames": ["trainer.kubeflow.org"], "verbs": ["get", "update"],
                    },
                ],
            })
        );
    }

    #[test]
    fn a_lookup_allows_no_more_than_it_asks_for() {
        for (claim, rule) in [
            ("lookups[v1/Node/*]", "/nodes [] get,list,watch"),
            ("lookups[\"v1/Node/*\"]", "/nodes [] list,watch"),
            ("lookups[v1/Node/gpu-1]", "/nodes [gpu-1] get,list,watch"),
            ("lookups[v1/Node/gpu-*]", "/nodes [] get,list,watch"),
            (
                "lookups[networking.k8s.io/v1/NetworkPolicy/*]",
                "networking.k8s.io/networkpolicies [] get,list,watch",
            ),
        ] {
            assert_eq!(
                beyond(&[claim], &[]),
                (vec![rule.to_owned()], vec![]),
                "{claim}"
            );
        }
        for nothing in [
            // Whether a kind is served is no secret.
            "lookups[v1/Node/#]",
            // ConfigMaps are read by name anyway.
            "lookups[v1/ConfigMap/tracing]",
            "job[/trainer/args]",
            "labels[team]",
        ] {
            assert_eq!(beyond(&[nothing], &[]), (vec![], vec![]), "{nothing}");
        }
    }

    #[test]
    fn names_are_joined_and_what_is_allowed_for_all_is_not_said_again() {
        let nodes = ["lookups[v1/Node/b]", "lookups[v1/Node/a]"];
        assert_eq!(beyond(&nodes, &[]).0, ["/nodes [a,b] get,list,watch"]);
        let all = ["lookups[v1/Node/a]", "lookups[v1/Node/*]"];
        assert_eq!(beyond(&all, &[]).0, ["/nodes [] get,list,watch"]);
        let list = ["lookups[v1/Node/a]", "lookups[\"v1/Node/*\"]"];
        assert_eq!(
            beyond(&list, &[]).0,
            ["/nodes [] list,watch", "/nodes [a] get"]
        );
    }

    #[test]
    fn what_a_plugin_emits_is_read_created_and_patched() {
        let (rules, notes) = beyond(
            &[],
            &[
                "objects[v1/ConfigMap/-scripts]",
                "objects[resource.k8s.io/v1/ResourceClaimTemplate/-gpu]",
                "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/*]",
            ],
        );
        assert_eq!(
            rules,
            [
                "resource.k8s.io/resourceclaimtemplates [] create,get,patch",
                "scheduling.x-k8s.io/podgroups [] create,get,patch",
            ]
        );
        let [guessed] = notes.as_slice() else {
            unreachable!("one of three is guessed: {notes:?}");
        };
        assert!(
            guessed.contains("`podgroups` is guessed from the kind PodGroup"),
            "{guessed}"
        );
    }

    #[test]
    fn secrets_are_never_read_however_they_are_spelled() {
        for claim in [
            "lookups[v1/Secret/a]",
            "lookups[v1/Secret/*]",
            "lookups[v1/SECRET/*]",
            "lookups[v2/Secret/x-*]",
        ] {
            let (rules, notes) = beyond(&[claim], &[]);
            assert!(rules.is_empty(), "{claim}: {rules:?}");
            let [note] = notes.as_slice() else {
                unreachable!("{claim}: {notes:?}");
            };
            assert!(
                note.contains(claim) && note.contains("no plugin reads Secrets"),
                "{note}"
            );
        }
    }

    #[test]
    fn a_claim_without_a_kind_allows_nothing_and_is_told() {
        for claim in [
            "lookups[*]",
            "lookups[v1/*]",
            "lookups[v1/No*]",
            "lookups[apps/v1/*]",
            "lookups[apps/v1/Dep*]",
            "lookups[$config./kind]",
            "lookups[a/b/c/Kind/name]",
        ] {
            let (rules, notes) = beyond(&[claim], &[]);
            assert!(rules.is_empty(), "{claim}: {rules:?}");
            let [note] = notes.as_slice() else {
                unreachable!("{claim}: {notes:?}");
            };
            assert!(
                note.contains(claim) && note.contains("does not name one kind"),
                "{note}"
            );
        }
    }

    #[test]
    fn kinds_of_kubernetes_itself_have_their_own_names() {
        fn check<K: Resource>() {
            let kind = kube::core::GroupVersionKind::gvk(K::GROUP, K::VERSION, K::KIND);
            assert_eq!(ApiResource::from_gvk(&kind).plural, K::URL_PATH_SEGMENT);
            assert!(
                !K::GROUP.contains('.') || BUILT_IN_GROUPS.contains(&K::GROUP),
                "{}",
                K::GROUP
            );
        }
        use k8s_openapi::api;
        check::<api::admissionregistration::v1::ValidatingAdmissionPolicyBinding>();
        check::<api::apps::v1::StatefulSet>();
        check::<api::autoscaling::v2::HorizontalPodAutoscaler>();
        check::<api::batch::v1::CronJob>();
        check::<api::certificates::v1::CertificateSigningRequest>();
        check::<api::coordination::v1::Lease>();
        check::<api::core::v1::Endpoints>();
        check::<api::core::v1::LimitRange>();
        check::<api::core::v1::PersistentVolumeClaim>();
        check::<api::core::v1::ResourceQuota>();
        check::<api::discovery::v1::EndpointSlice>();
        check::<api::events::v1::Event>();
        check::<api::flowcontrol::v1::PriorityLevelConfiguration>();
        check::<api::networking::v1::Ingress>();
        check::<api::networking::v1::NetworkPolicy>();
        check::<api::node::v1::RuntimeClass>();
        check::<api::policy::v1::PodDisruptionBudget>();
        check::<api::rbac::v1::ClusterRoleBinding>();
        check::<api::resource::v1::DeviceClass>();
        check::<api::resource::v1::ResourceClaimTemplate>();
        check::<api::scheduling::v1::PriorityClass>();
        check::<api::storage::v1::CSIStorageCapacity>();
        check::<api::storage::v1::StorageClass>();
        check::<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>();
        check::<k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService>();
    }
}
