//! Loads plugins for a process that uses all of them or none.

use trainyard_model::{plan::PlanError, plugin_info::PluginError, text::clean};
use trainyard_render::{Renderer, SkippedPlugin};
use trainyard_sandbox::{LoadError, LoadProblem};

use super::{Loading, Refused, result::LoadResult};
use crate::policy::{PluginFile, Policy, Warning};

/// Why plugins cannot be used together.
pub(crate) struct StrictRefusal {
    /// The plugins at fault; none if it is not known which.
    pub(crate) plugins: Vec<String>,
    /// The reason in CamelCase.
    pub(crate) reason: &'static str,
    /// What is wrong, and what to do.
    pub(crate) message: String,
    /// Whether two plugins conflict.
    pub(crate) is_conflict: bool,
}

impl StrictRefusal {
    /// Loads the built-in plugins and these files, and checks them against each other. Also returns the warnings about them. Plugins that are
    /// `missing` are disabled.
    ///
    /// # Errors
    /// All that is wrong.
    pub(crate) fn load(
        loading: &Loading<'_>,
        files: &[PluginFile],
        policy: &Policy,
        missing: Vec<SkippedPlugin>,
    ) -> Result<(Renderer, Vec<Warning>), Vec<Self>> {
        let mut plugins = LoadResult::default();
        plugins.add_all(loading, files, policy);
        let mut refusals: Vec<_> = plugins.refused.iter().map(Self::of).collect();
        let of_policy = plugins.policy_errors(policy, None);
        refusals.extend(of_policy.into_iter().map(|error| {
            let object = error.location.object.as_ref();
            Self {
                plugins: object.map(|it| it.name.clone()).into_iter().collect(),
                reason: "NoEffect",
                message: error.in_object(),
                is_conflict: false,
            }
        }));
        let loaded = plugins.loaded.iter().map(|(plugin, _)| plugin.clone());
        let renderer = Renderer::new(loaded, policy.facts());
        match renderer {
            Ok(renderer) if refusals.is_empty() => {
                let skipped = plugins.left_out().chain(missing).collect();
                Ok((renderer.with_skipped(skipped), plugins.warnings(policy)))
            }
            Ok(_) => Err(refusals),
            Err(errors) => {
                refusals.extend(errors.iter().map(Self::of_plan));
                Err(refusals)
            }
        }
    }

    fn of(refused: &Refused) -> Self {
        let (plugins, reason) = match refused {
            Refused::Load {
                declared, error, ..
            } => (
                declared.iter().map(|it| it.name.clone()).collect(),
                load_reason(error),
            ),
            Refused::SameName { name, .. } => (vec![name.clone()], "SameName"),
            Refused::Conflict { declared, .. } => (vec![declared.name.clone()], "Conflict"),
            Refused::Decided { name, .. } => (vec![name.clone()], "NameDecided"),
            Refused::WrongName { wanted, .. } => (vec![wanted.clone()], "WrongName"),
            Refused::SameFile(_) => (Vec::new(), "SameFile"),
        };
        Self {
            plugins,
            reason,
            message: clean(&refused.to_string()),
            is_conflict: false,
        }
    }

    fn of_plan(error: &PlanError) -> Self {
        Self {
            plugins: error.plugins().into_iter().map(str::to_owned).collect(),
            reason: match error {
                PlanError::SameName { .. } => "SameName",
                PlanError::TooMany { .. } => "TooMany",
                PlanError::Conflict { .. } => "Conflict",
                PlanError::NodeSets { .. } => "NodeSets",
                PlanError::SameSwitch { .. } => "SameSwitch",
                PlanError::Excluded { .. } | PlanError::AlwaysExcluded { .. } => "Excluded",
                PlanError::Cycle { .. } => "Cycle",
            },
            message: error.to_string(),
            is_conflict: true,
        }
    }
}

/// Returns the reason why a plugin is not loaded, in CamelCase.
fn load_reason(error: &LoadError) -> &'static str {
    match &*error.problem {
        LoadProblem::Screen(_) => "NotAPlugin",
        LoadProblem::Plugin(PluginError::Disabled(_)) => "Disabled",
        LoadProblem::Plugin(PluginError::Digest { .. }) => "DigestMismatch",
        LoadProblem::Plugin(PluginError::Claims { .. }) => "ClaimsNotGranted",
        LoadProblem::Plugin(PluginError::OperatorConfig { .. }) => "InvalidConfig",
        LoadProblem::Compile { .. } => "CompilationFailed",
        LoadProblem::Link { .. } => "ContractMismatch",
        LoadProblem::Instantiate { .. } => "InstantiationFailed",
        LoadProblem::Code { .. } => "CodeNotLoaded",
    }
}
