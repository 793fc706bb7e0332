//! The digest of a TrainJob's inputs, an annotation of a suspended JobSet. It tells a controller after a restart whether the JobSet is up to
//! date.
//!
//! A second digest, of what was rendered, tells whether other inputs make a difference: if they do not, nothing is written.
//!
//! The first digest does not cover the runtime, which is pinned in the snapshot. A user who changes the annotation causes one more rendering, or
//! none until the JobSet is unsuspended, when it is always applied.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use trainyard_model::{lookup::Lookups, object::ApplyMode};
use trainyard_render::RenderedObject;

use crate::{generation::CommonInputs, watch::TrainJobState};

/// What separates the digest of the inputs from that of the rendering.
const RENDERING: char = '#';

/// The digest of a TrainJob's inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inputs(String);

impl Inputs {
    pub(crate) fn of(common: &CommonInputs, job: &TrainJobState) -> Self {
        let mut hash = Sha256::new();
        hash.update(common.digest());
        hash.update(job.text());
        Self(hex::encode(hash.finalize()))
    }

    #[cfg(test)]
    pub(crate) fn for_tests(digest: &str) -> Self {
        Self(digest.to_owned())
    }

    /// Whether a JobSet with this annotation was rendered from these inputs without lookups.
    pub(crate) fn are_all_of(&self, annotation: &str) -> bool {
        let parts = annotation.split_once(RENDERING);
        parts.is_some_and(|(inputs, _)| inputs == self.0)
    }

    /// Returns the annotation of a JobSet that was rendered from these inputs and lookups, with these objects beside it.
    pub(crate) fn annotation(
        &self,
        lookups: &Lookups,
        job_set: &Value,
        objects: &[RenderedObject],
    ) -> String {
        let mut text = self.0.clone();
        if !lookups.is_empty() {
            text += "/";
            text += &hex::encode(Sha256::digest(json!(lookups).to_string()));
        }
        text.push(RENDERING);
        text + &rendering(job_set, objects)
    }
}

/// Returns a digest of what was rendered, half as long as the others, because every suspended JobSet is kept in memory with it.
fn rendering(job_set: &Value, objects: &[RenderedObject]) -> String {
    let mut hash = Sha256::new();
    hash.update(job_set.to_string());
    for object in objects {
        let RenderedObject {
            kind, name, apply, ..
        } = object;
        hash.update(format!("\n{} {kind} {name} ", apply.name()));
        // One that exists never changes, whatever is rendered.
        if *apply != ApplyMode::Once {
            hash.update(object.value.to_string());
        }
    }
    let digest = hash.finalize();
    hex::encode(digest.get(..16).unwrap_or(&digest))
}

/// Whether two JobSets with these annotations, and the objects beside them, were rendered the same. An earlier release did not note that.
pub(crate) fn have_same_rendering(one: &str, other: &str) -> bool {
    let parts = one.split_once(RENDERING).zip(other.split_once(RENDERING));
    parts.is_some_and(|((_, one), (_, other))| one == other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use trainyard_model::{
        lookup::{LookupAnswer, LookupKey},
        object::{ObjectKind, ObjectName},
        plugin_info::PluginId,
    };

    use super::*;

    #[test]
    fn only_inputs_without_lookups_are_complete() {
        let inputs = Inputs("abc".to_owned());
        let mut lookups = Lookups::default();
        let annotation = |lookups: &Lookups| inputs.annotation(lookups, &json!({}), &[]);
        let without = annotation(&lookups);
        assert!(inputs.are_all_of(&without));
        // An earlier release did not note the rendering.
        assert!(!inputs.are_all_of("abc"));
        let other = Inputs("abd".to_owned());
        assert!(!other.are_all_of(&without));
        let key = LookupKey::Served {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
        };
        lookups.insert(key.clone(), LookupAnswer::Served(true));
        let with = annotation(&lookups);
        assert!(!inputs.are_all_of(&with));
        lookups.insert(key, LookupAnswer::Served(false));
        assert_ne!(with, annotation(&lookups));
    }

    #[test]
    fn the_same_rendering_is_recognized_whatever_the_inputs() {
        let kind = ObjectKind::new("v1", "ConfigMap").unwrap();
        let object = |apply, name: &str| RenderedObject {
            kind: kind.clone(),
            name: ObjectName::new(&kind, "a", "a-b".to_owned()).unwrap(),
            value: json!({"metadata": {"name": name}}),
            material: BTreeMap::new(),
            apply,
            plugin: PluginId {
                name: "a".into(),
                version: "1".into(),
                digest: "native".into(),
            },
        };
        let annotation = |inputs: &str, replicas: u8, objects: &[RenderedObject]| {
            let job_set = json!({"spec": {"replicas": replicas}});
            Inputs(inputs.to_owned()).annotation(&Lookups::default(), &job_set, objects)
        };
        let live = [object(ApplyMode::Live, "a")];
        let first = annotation("abc", 1, &live);
        assert!(have_same_rendering(&first, &annotation("abd", 1, &live)));
        let others = [
            annotation("abc", 2, &live),
            annotation("abc", 1, &[]),
            annotation("abc", 1, &[object(ApplyMode::Once, "a")]),
            annotation("abc", 1, &[object(ApplyMode::Live, "b")]),
            // An earlier release did not note it.
            "abc".to_owned(),
        ];
        for other in others {
            assert!(!have_same_rendering(&first, &other), "{other}");
        }
        assert!(!have_same_rendering("abc", "abc"));
        // Such as the certificate authorities of the status server, which are rotated. An object that exists is not changed by a rendering.
        let once = [
            [object(ApplyMode::Once, "a")],
            [object(ApplyMode::Once, "b")],
        ];
        let [one, other] = once.map(|objects| annotation("abc", 1, &objects));
        assert!(have_same_rendering(&one, &other));
    }
}
