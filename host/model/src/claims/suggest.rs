//! The claim that a plugin lacks, as its author can add it to the manifest.

use serde_json::Value;

use super::{
    Access, ClaimPath, ClaimScope, KeyPattern, PodSetPattern, Variable, Verb, possible::ANCESTORS,
};
use crate::record::{Container, EntryScope, Field, PodSet, Record};

impl Access {
    /// Returns the claim to add for a place that no claim allows. It names the pod set and the container as the plugin's other
    /// claims do, so that it holds for each TrainJob for which those hold. Without another claim there, a pod set is named by its
    /// ancestor if it has one.
    #[must_use]
    pub fn missing_claim(
        &self,
        record: &Record,
        verb: Verb,
        scope: EntryScope,
        field: Field,
        key: Option<KeyPattern>,
    ) -> ClaimPath {
        let scope = match scope {
            EntryScope::Job => ClaimScope::Job,
            EntryScope::PodSet(at) => record.pod_set(at).map_or(ClaimScope::Job, |set| {
                ClaimScope::PodSet(self.pod_sets_as_claimed(set))
            }),
            EntryScope::Container(id) => record
                .container(id)
                .and_then(|container| self.container_as_claimed(record, container))
                .unwrap_or(ClaimScope::Job),
        };
        let is_by_name = |key: &str| verb == Verb::Write && self.claims.obeyed.contain(field, key);
        let key = key.map(|key| match key {
            KeyPattern::Literal(text) if !is_by_name(&text) => self.key_as_claimed(field, text),
            key => key,
        });
        ClaimPath { scope, field, key }
    }

    /// Like `missing_claim`, for a field of every container in one list of a pod set.
    #[must_use]
    pub fn missing_claim_on_all(
        &self,
        record: &Record,
        pod_set: u32,
        list: Field,
        field: Field,
    ) -> ClaimPath {
        let set = record.pod_set(pod_set);
        let scope = set.map_or(ClaimScope::Job, |set| ClaimScope::Container {
            pod_sets: self.pod_sets_as_claimed(set),
            list,
            name: KeyPattern::Any,
        });
        let key = field.is_keyed().then_some(KeyPattern::Any);
        ClaimPath { scope, field, key }
    }

    fn scopes(&self) -> impl Iterator<Item = &ClaimScope> {
        self.claims.patterns.iter().map(|(path, _)| &path.scope)
    }

    fn pod_sets_as_claimed(&self, set: &PodSet) -> PodSetPattern {
        let claimed = self.scopes().find_map(|scope| match scope {
            ClaimScope::PodSet(pod_sets) | ClaimScope::Container { pod_sets, .. } => self
                .variables
                .mean_pod_set(pod_sets, set)
                .then_some(pod_sets),
            ClaimScope::Job => None,
        });
        let ancestor = set.ancestor.as_deref();
        let ancestor = ancestor.filter(|label| ANCESTORS.contains(label));
        match (claimed, ancestor) {
            (Some(claimed), _) => claimed.clone(),
            (None, _) if set.counts_nodes => PodSetPattern::Nodes,
            (None, Some(ancestor)) => PodSetPattern::Ancestor(ancestor.into()),
            (None, None) => PodSetPattern::Named(KeyPattern::Literal((*set.name).into())),
        }
    }

    fn container_as_claimed(&self, record: &Record, container: &Container) -> Option<ClaimScope> {
        let set = record.pod_set(container.pod_set)?;
        let claimed = self.scopes().find(|scope| match scope {
            ClaimScope::Container {
                pod_sets,
                list,
                name,
            } => {
                self.variables.mean_pod_set(pod_sets, set)
                    && self.variables.mean_container(*list, name, container)
            }
            _ => false,
        });
        Some(claimed.cloned().unwrap_or_else(|| ClaimScope::Container {
            pod_sets: self.pod_sets_as_claimed(set),
            list: container.list,
            name: KeyPattern::Literal((*container.name).into()),
        }))
    }

    /// The key by the variable that has its value: of another claim, or of the plugin's configuration, since another runtime may set
    /// another value there.
    fn key_as_claimed(&self, field: Field, key: Box<str>) -> KeyPattern {
        if field == Field::JobSpec || key.is_empty() {
            return KeyPattern::Literal(key);
        }
        let is_value = |value: &str| field.compared(value) == field.compared(&key);
        let mut claimed = self
            .claims
            .patterns
            .iter()
            .filter_map(|(path, _)| match &path.key {
                Some(KeyPattern::Variable(variable)) => Some(variable),
                _ => None,
            });
        let claimed = claimed.find(|of| {
            let value = self.variables.value(of);
            value.is_some_and(|value| is_value(&value))
        });
        let claimed = claimed.cloned().map(KeyPattern::Variable);
        let pattern = claimed.or_else(|| {
            let variable = Variable::Config(self.pointer_to_key(field, &key)?.into());
            is_writable(&variable).then(|| KeyPattern::Variable(variable).in_field(field))
        });
        pattern.unwrap_or(KeyPattern::Literal(key))
    }

    /// The pointer to a key in the plugin's configuration. A port that is a number there is followed by its protocol.
    fn pointer_to_key(&self, field: Field, key: &str) -> Option<String> {
        let config = &self.variables.config;
        let is_text = |value: &Value| {
            let text = value.as_str();
            text.is_some_and(|text| field.compared(text) == field.compared(key))
        };
        if let Some(pointer) = pointer_to(config, &is_text) {
            return Some(pointer);
        }
        let (number, protocol) = key.rsplit_once('/').filter(|_| field == Field::Ports)?;
        let number: u16 = number.parse().ok()?;
        let pointer = pointer_to(config, &|value: &Value| *value == number)?;
        Some(format!("{pointer}/{protocol}"))
    }
}

/// The pointer to the first value in a configuration that is wanted. Lists are not searched, because a pointer into a list
/// does not apply to every configuration.
fn pointer_to(config: &Value, is_it: &impl Fn(&Value) -> bool) -> Option<String> {
    config.as_object()?.iter().find_map(|(name, value)| {
        let below = match is_it(value) {
            true => Some(String::new()),
            false => pointer_to(value, is_it),
        };
        let name = name.replace('~', "~0").replace('/', "~1");
        below.map(|below| format!("/{name}{below}"))
    })
}

/// Whether the variable is valid as a key of a claim. A name in its pointer may contain characters that a key cannot.
fn is_writable(variable: &Variable) -> bool {
    let key = KeyPattern::Variable(variable.clone());
    let claim = ClaimPath {
        scope: ClaimScope::Job,
        field: Field::Labels,
        key: Some(key),
    };
    claim.to_string().parse() == Ok(claim)
}
