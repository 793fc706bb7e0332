//! Whether the controller has the permissions that plugins need.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    rbac::v1::PolicyRule,
};
use kube::{Api, api::PostParams};
use serde_json::json;
use trainyard_config::policy_plugin::{Origin, PluginRevisionSpec};

use super::{PluginCondition, Plugins, Problem, loading::LoadedRevision};
use crate::{
    client::message_of,
    kubernetes::kind_of,
    rbac::{Note, PluginRole, plugin_role, plugin_role_name},
    watch::discover,
};

/// How many questions are asked at the same time.
const AT_ONCE: usize = 8;

/// A permission in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Permission {
    group: String,
    resource: String,
    verb: String,
    /// The name of the object, or all of them.
    name: Option<String>,
}

impl Plugins {
    /// Returns what is wrong with the plugins of a loaded revision for which the controller lacks permissions. Built-in plugins are not among
    /// them, because the role of the controller has their permissions.
    pub(super) async fn missing_permissions(
        &self,
        spec: &PluginRevisionSpec,
        loaded: &LoadedRevision,
    ) -> BTreeMap<String, Problem> {
        let generation = loaded.generation.renderer().generation();
        let added = spec
            .plugins
            .iter()
            .filter(|it| !matches!(it.origin, Origin::BuiltIn(_)))
            .filter(|it| self.built_in_instead(it).is_none());
        let roles: BTreeMap<_, _> = added
            .filter_map(|it| {
                let claims = &generation.plugin(&it.name)?.manifest.claims;
                Some((it.name.as_str(), plugin_role(&it.name, claims)?))
            })
            .collect();
        let (needed, missing) = match self.needed_and_denied(&roles).await {
            Ok(both) => both,
            Err(error) => {
                let message = format!(
                    "the API server does not say what the controller may do: {}; it is asked again",
                    message_of(&error)
                );
                let names = roles.keys().map(|name| (*name).to_owned());
                return names
                    .map(|name| (name, problem("Unknown", message.clone())))
                    .collect();
            }
        };
        let lacking = needed.into_iter().filter_map(|(name, needed)| {
            let missing: Vec<_> = needed
                .into_iter()
                .filter(|it| missing.contains(it))
                .collect();
            let message = missing_words(name, &missing);
            (!missing.is_empty()).then(|| (name.to_owned(), problem("MissingPermissions", message)))
        });
        lacking.collect()
    }

    /// Returns the permissions that each plugin needs, and those that the controller does not have.
    async fn needed_and_denied<'p>(
        &self,
        roles: &BTreeMap<&'p str, PluginRole>,
    ) -> Result<
        (
            BTreeMap<&'p str, BTreeSet<Permission>>,
            BTreeSet<Permission>,
        ),
        kube::Error,
    > {
        let mut needed = BTreeMap::new();
        for (plugin, role) in roles {
            needed.insert(*plugin, self.needed(role).await?);
        }
        let all = needed.values().flatten().cloned().collect();
        let denied = self.denied(all).await?;
        Ok((needed, denied))
    }

    /// Returns the permissions of a role. Resources whose names are guessed there have those that the API server serves, as lookups do.
    async fn needed(&self, role: &PluginRole) -> Result<BTreeSet<Permission>, kube::Error> {
        let mut needed = permissions(role.cluster_role.rules.as_deref().unwrap_or_default());
        for note in &role.notes {
            let Note::Guessed {
                resource,
                kind,
                api_version,
            } = note
            else {
                continue;
            };
            let kind = kind_of(api_version, kind);
            if let Some((served, _)) = discover(&self.parts.client, &kind).await? {
                let rename =
                    |it: Permission| match it.group == kind.group && it.resource == *resource {
                        true => Permission {
                            resource: served.plural.clone(),
                            ..it
                        },
                        false => it,
                    };
                needed = needed.into_iter().map(rename).collect();
            }
        }
        Ok(needed)
    }

    /// Returns the permissions that the controller does not have.
    async fn denied(&self, all: BTreeSet<Permission>) -> Result<BTreeSet<Permission>, kube::Error> {
        let reviews = Api::<SelfSubjectAccessReview>::all(self.parts.client.clone());
        let ask = |permission: Permission| {
            let reviews = reviews.clone();
            async move {
                let answer = reviews
                    .create(&PostParams::default(), &permission.review())
                    .await?;
                let is_allowed = answer.status.is_some_and(|status| status.allowed);
                Ok::<_, kube::Error>((!is_allowed).then_some(permission))
            }
        };
        let answers = stream::iter(all).map(ask).buffer_unordered(AT_ONCE);
        answers
            .try_filter_map(async |denied| Ok(denied))
            .try_collect()
            .await
    }
}

impl Permission {
    fn review(&self) -> SelfSubjectAccessReview {
        let attributes = ResourceAttributes {
            group: Some(self.group.clone()),
            resource: Some(self.resource.clone()),
            verb: Some(self.verb.clone()),
            name: self.name.clone(),
            ..ResourceAttributes::default()
        };
        SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        }
    }
}

/// Returns each permission of rules.
fn permissions(rules: &[PolicyRule]) -> BTreeSet<Permission> {
    let mut all = BTreeSet::new();
    for rule in rules {
        let names: Vec<_> = match &rule.resource_names {
            Some(names) => names.iter().cloned().map(Some).collect(),
            None => vec![None],
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    all.extend(names.iter().map(|name| Permission {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                        name: name.clone(),
                    }));
                }
            }
        }
    }
    all
}

/// Returns the message for a plugin, with the rules that it needs in addition.
fn missing_words(plugin: &str, missing: &[Permission]) -> String {
    let mut verbs = BTreeMap::<_, BTreeSet<&str>>::new();
    for Permission {
        group,
        resource,
        verb,
        name,
    } in missing
    {
        verbs
            .entry((group, resource, name))
            .or_default()
            .insert(verb);
    }
    let rules = verbs.into_iter().map(|((group, resource, name), verbs)| {
        let mut rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        if let (Some(name), Some(members)) = (name, rule.as_object_mut()) {
            members.insert("resourceNames".to_owned(), json!([name]));
        }
        rule
    });
    let rules: Vec<_> = rules.collect();
    format!(
        "the controller lacks permissions that the plugin needs; apply the ClusterRole {}, which `trainyard rbac -f FILE` prints for this object. It is checked again. Missing rules: {}",
        plugin_role_name(plugin),
        json!(rules)
    )
}

fn problem(reason: &str, message: String) -> Problem {
    Problem {
        condition: PluginCondition::Permitted,
        reason: reason.to_owned(),
        message,
    }
}
