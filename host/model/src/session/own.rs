//! What stands on a plugin's own ConfigMaps and Secrets stands on those that it emitted: an object of that name may be another's.

use std::collections::BTreeSet;

use thiserror::Error;

use super::{Emitted, Session};
use crate::{
    call::OwnDataUse,
    object::DataKind,
    plugin::PluginId,
    record::{EntryPath, EntryScope},
};

/// A volume or env var that a plugin put over an object of its own, which it did not emit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error(
    "the plugin {plugin} refers here to its own {kind} `{name}`, but does not emit it; emit it in build under the same suffix, without content, or remove the reference"
)]
pub struct MissingObject {
    /// The volume or env var.
    pub place: EntryPath,
    /// The plugin.
    pub plugin: PluginId,
    /// What the object would be.
    pub kind: &'static str,
    /// The name that it would have.
    pub name: String,
}

impl Session {
    /// Finds what plugins put over objects of their own and did not emit under that very name, after build. What was replaced or
    /// removed since counts for nothing.
    #[must_use]
    pub fn not_emitted(&self) -> BTreeSet<MissingObject> {
        let missing = |(plugin, put): &&(PluginId, OwnDataUse)| {
            self.stands(put) && !self.emitted.iter().any(|one| is_it(one, plugin, put))
        };
        let missing = self.on_own_data.iter().filter(missing);
        missing
            .map(|(plugin, put)| MissingObject {
                place: self.record.path(&put.place),
                plugin: plugin.clone(),
                kind: put.kind.name(),
                name: put.name.clone(),
            })
            .collect()
    }

    /// Whether the record still has it.
    fn stands(&self, put: &OwnDataUse) -> bool {
        let place = &put.place;
        let is_there = match place.scope {
            EntryScope::Container(id) => self.record.container(id).is_some(),
            EntryScope::Job | EntryScope::PodSet(_) => true,
        };
        let entry = self.record.entry(place.scope, place.field, &place.key);
        let json = entry.filter(|entry| entry.owner == put.owner);
        let json = json.and_then(|entry| entry.datum.as_json());
        let (volume, variable) = match put.kind {
            DataKind::ConfigMap => ("/configMap/name", "/configMapKeyRef/name"),
            DataKind::Secret => ("/secret/secretName", "/secretKeyRef/name"),
        };
        is_there
            && [volume, variable].iter().any(|at| {
                let name = json.and_then(|json| json.pointer(at));
                name.and_then(serde_json::Value::as_str) == Some(&put.name)
            })
    }
}

/// Whether the object is the one that the plugin spoke of.
fn is_it(emitted: &Emitted, plugin: &PluginId, put: &OwnDataUse) -> bool {
    let object = &emitted.object;
    emitted.plugin == *plugin
        && object.name.as_str() == put.name
        && DataKind::of(object.kind.api_version(), object.kind.kind()) == Some(put.kind)
}
