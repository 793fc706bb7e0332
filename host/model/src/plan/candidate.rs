//! A set of plugins that may become a generation.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Edge, Generation, MAX_PLUGINS, PlanError, PossibleClash, Slot, precedence::Precedence,
};
use crate::{facts::Facts, plugin_info::PluginInfo, record::Accelerators};

/// A set of plugins with its errors, for showing the plan even if it would be refused.
#[derive(Debug)]
pub struct Candidate {
    draft: Generation,
    errors: Vec<PlanError>,
}

impl Candidate {
    /// Checks the plugins against each other. Plugins that count devices run after those that change requests and limits of
    /// `accelerators`. Beyond [`MAX_PLUGINS`] nothing else is checked.
    #[must_use]
    pub fn new(
        plugins: impl IntoIterator<Item = Arc<PluginInfo>>,
        accelerators: &Accelerators,
    ) -> Self {
        let mut by_name = BTreeMap::new();
        let mut errors = Vec::new();
        for plugin in plugins {
            let name = plugin.id.name.clone();
            if by_name.insert(name.clone(), plugin).is_some() {
                errors.push(PlanError::SameName { name });
            }
        }
        let mut draft = Generation {
            plugins: by_name,
            edges: Vec::new(),
            precedence: Precedence::default(),
            uncertain: Vec::new(),
            excluded: Vec::new(),
            preferred: Vec::new(),
            accelerators: accelerators.clone(),
        };
        if draft.plugins.len() > MAX_PLUGINS {
            let plugins = draft.plugins.keys().cloned().collect();
            errors = vec![PlanError::TooMany { plugins }];
            return Self { draft, errors };
        }
        errors.extend(draft.connect());
        errors.extend(draft.cycles());
        Self { draft, errors }
    }

    /// The generation, if nothing is wrong.
    ///
    /// # Errors
    /// See [`Self::errors`].
    pub fn into_generation(self) -> Result<Generation, Vec<PlanError>> {
        if self.errors.is_empty() {
            Ok(self.draft)
        } else {
            Err(self.errors)
        }
    }

    /// Every conflict and every cycle.
    #[must_use]
    pub fn errors(&self) -> &[PlanError] {
        &self.errors
    }

    /// The edges that order the plugins.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.draft.edges
    }

    /// See [`Generation::possible_clashes`].
    #[must_use]
    pub fn possible_clashes(&self) -> Vec<PossibleClash> {
        self.draft.possible_clashes()
    }

    /// See [`Generation::overview`]; without the plugins that are in a cycle or after one.
    #[must_use]
    pub fn overview(&self) -> Vec<Vec<Slot>> {
        self.draft.overview()
    }

    /// See [`Generation::digest`].
    #[must_use]
    pub fn digest(&self, facts: &Facts) -> String {
        self.draft.digest(facts)
    }
}
