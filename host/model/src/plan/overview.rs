//! An overview of the orders of a generation.

use std::{collections::BTreeSet, sync::Arc};

use super::Generation;
use crate::{
    manifest::{ActiveWhen, Union},
    plugin_info::PluginInfo,
};

/// A position in an order of [`Generation::overview`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The plugin, or several members of `mlPolicy`, of which one is active.
    pub names: Vec<Arc<str>>,
    /// When the first of them is active.
    pub when: ActiveWhen,
    is_ml: bool,
}

impl Slot {
    /// Returns the slot of one plugin.
    #[must_use]
    pub fn of(plugin: &PluginInfo) -> Self {
        Self {
            names: vec![plugin.id.name.clone()],
            when: plugin.manifest.active_when.clone(),
            is_ml: false,
        }
    }
}

impl Generation {
    /// All orders: one list for each member of `mlPolicy` with a different order. Members with the same order share a slot.
    #[must_use]
    pub fn overview(&self) -> Vec<Vec<Slot>> {
        let in_ml_policy =
            |plugin: &PluginInfo| plugin.manifest.active_when.union() == Some(Union::MlPolicy);
        let (members, others): (Vec<_>, Vec<_>) = self
            .plugins
            .values()
            .partition(|plugin| in_ml_policy(plugin));
        let others: BTreeSet<&str> = others.iter().map(|plugin| &*plugin.id.name).collect();
        if members.is_empty() {
            return vec![self.slots(&others, None)];
        }
        let mut lines: Vec<Vec<Slot>> = Vec::new();
        for member in members {
            let name = &*member.id.name;
            let with: BTreeSet<&str> = others.iter().copied().chain([name]).collect();
            let line = self.slots(&with, Some(name));
            let same = lines.iter_mut().find(|other| {
                other.len() == line.len()
                    && other
                        .iter()
                        .zip(&line)
                        .all(|(a, b)| a == b || (a.is_ml && b.is_ml))
            });
            match same {
                Some(line) => line
                    .iter_mut()
                    .filter(|slot| slot.is_ml)
                    .for_each(|slot| slot.names.push(name.into())),
                None => lines.push(line),
            }
        }
        lines
    }

    fn slots(&self, names: &BTreeSet<&str>, member: Option<&str>) -> Vec<Slot> {
        let slot = |name: &str| Slot {
            names: vec![name.into()],
            is_ml: Some(name) == member,
            when: self
                .plugins
                .get(name)
                .map(|p| p.manifest.active_when.clone())
                .unwrap_or(ActiveWhen::Always),
        };
        self.sorted(names).into_iter().map(slot).collect()
    }
}
