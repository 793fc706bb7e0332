//! Loads plugins for a process that skips those that are refused.

use std::sync::Arc;

use trainyard_model::{plan::PlanError, plugin::Plugin};
use trainyard_render::{Renderer, SkippedPlugin};

use super::{
    Loading, Origin, Refused, declared,
    result::{LoadResult, closed_gate},
};
use crate::{
    policy::{PluginFile, Policy, Warning},
    report::ErrorList,
};

/// The plugins that run together.
pub(crate) struct LenientLoad {
    pub(crate) renderer: Renderer,
    /// The warnings about the plugins that are loaded.
    pub(crate) warnings: Vec<Warning>,
    /// The skipped plugins: the file, and the reason. A PolicyPlugin that has no effect, such as one for a plugin that does not
    /// exist, is one of them.
    pub(crate) refused: Vec<(String, String)>,
    /// The names of the plugins that PolicyPlugins disable.
    pub(crate) disabled: Vec<String>,
}

impl LenientLoad {
    /// Loads the built-in plugins and these files. A plugin that conflicts with others is skipped like one that cannot be loaded, and so is a
    /// PolicyPlugin that has no effect, such as one for a plugin that does not exist: neither stops the TrainJobs that do not need
    /// it. Plugins that are `missing` are skipped, too.
    pub(crate) fn load(
        loading: &Loading<'_>,
        files: &[PluginFile],
        policy: &Policy,
        missing: Vec<SkippedPlugin>,
    ) -> Result<Self, ErrorList> {
        let mut plugins = LoadResult::default();
        plugins.add_all(loading, files, policy);
        let of_policy = plugins.policy_errors(policy, None);
        let renderer = loop {
            let loaded = plugins.loaded.iter().map(|(plugin, _)| plugin.clone());
            let errors = match Renderer::new(loaded, policy.facts()) {
                Ok(renderer) => break renderer,
                Err(errors) => errors,
            };
            let Some(refused) = skip_conflicting(&mut plugins.loaded, &errors) else {
                return Err(ErrorList::from_iter(errors));
            };
            plugins.refused.push(refused);
        };
        // No TrainJob needs a plugin whose feature gate is off.
        let is_needed = |one: &SkippedPlugin| {
            let declared = one.declared.as_ref();
            declared.is_none_or(|it| closed_gate(&it.name, policy).is_none())
        };
        let missing = missing.into_iter().filter(is_needed);
        let skipped = plugins.refused.iter().filter_map(Refused::skipped);
        let skipped = skipped.chain(plugins.left_out()).chain(missing);
        let renderer = renderer.with_skipped(skipped.collect());
        let disabled = plugins.disabled_names();
        let refused = plugins.refused.iter();
        let refused = refused.map(|refused| (refused.file(), refused.to_string()));
        let of_policy = of_policy.into_iter();
        let refused = refused.chain(of_policy.map(|it| (it.location.to_string(), it.message)));
        Ok(Self {
            renderer,
            warnings: plugins.warnings(policy),
            refused: refused.collect(),
            disabled,
        })
    }
}

/// Removes the last plugin that the first error names, which resolves the error. `None` if that is a built-in plugin; these come first.
fn skip_conflicting(
    loaded: &mut Vec<(Arc<dyn Plugin>, Origin)>,
    errors: &[PlanError],
) -> Option<Refused> {
    let error = errors.first()?;
    let names = error.plugins();
    let at = loaded
        .iter()
        .rposition(|(plugin, _)| names.contains(&&*plugin.info().id.name))?;
    if matches!(loaded.get(at)?, (_, Origin::BuiltIn)) {
        return None;
    }
    let (plugin, origin) = loaded.remove(at);
    Some(Refused::Conflict {
        origin,
        declared: declared(&plugin.info().manifest, &plugin.info().settings),
        error: error.clone(),
    })
}
