//! References of a plugin to its own ConfigMaps and Secrets. The plugin must emit these objects, because an object of the same name could
//! have another owner.

use std::collections::BTreeSet;

use thiserror::Error;
use trainyard_text::json;

use super::{Emitted, Session};
use crate::{
    call::OwnDataUse,
    object::DataKind,
    plugin_info::PluginId,
    record::{EntryPath, EntryScope},
};

/// A volume or env var refers to an object of its plugin, but the plugin did not emit it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error(
    "the plugin {plugin} refers to its own {kind} `{name}`, but does not emit it; emit it in build under the same suffix, without content, or remove the reference"
)]
pub struct MissingObject {
    /// The volume or env var.
    pub place: EntryPath,
    /// The plugin.
    pub plugin: PluginId,
    /// The object's kind.
    pub kind: &'static str,
    /// The object's name.
    pub name: String,
}

impl Session {
    /// Finds, after build, the volumes and env vars that refer to an object of their own plugin which the plugin did not emit
    /// under that name. References that were replaced or removed since are ignored.
    #[must_use]
    pub fn find_missing_objects(&self) -> BTreeSet<MissingObject> {
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

    /// Whether the record still has the reference.
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
                let name = json.and_then(|json| json::pointer(json, at));
                name.and_then(serde_json::Value::as_str) == Some(&put.name)
            })
    }
}

/// Whether the reference is to this object.
fn is_it(emitted: &Emitted, plugin: &PluginId, put: &OwnDataUse) -> bool {
    let object = &emitted.object;
    emitted.plugin == *plugin
        && object.name.as_str() == put.name
        && DataKind::of(object.kind.api_version(), object.kind.kind()) == Some(put.kind)
}
