//! Plugins that are disabled for a TrainJob, although they are active for every other one.

use std::{fmt, sync::Arc};

use trainyard_api::{Runtime, TrainJob, names, runtime::RuntimeKind};
use trainyard_model::{
    manifest::ActiveWhen,
    plugin_info::{Exemptions, JobSelector, PluginInfo},
};

/// A plugin that is disabled for a TrainJob.
#[derive(Clone, Debug)]
pub struct DisabledPlugin {
    pub plugin: Arc<PluginInfo>,
    pub by: DisabledBy,
}

/// What disables a plugin for a TrainJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisabledBy {
    /// The PolicyPlugin, for the TrainJob's namespace.
    Namespace(String),
    /// The PolicyPlugin, for the TrainJob's runtime.
    Runtime(String),
    /// The operator's settings, which enable it for other TrainJobs only.
    NotSelected,
    /// The TrainJob, which the PolicyPlugin permits.
    TrainJob,
}

impl fmt::Display for DisabledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace(name) => write!(f, "PolicyPlugin, for namespace {name}"),
            Self::Runtime(name) => write!(f, "PolicyPlugin, for {name}"),
            Self::NotSelected => {
                f.write_str("PolicyPlugin, whose `enabledFor` does not select the TrainJob")
            }
            Self::TrainJob => write!(
                f,
                "annotation {} of the TrainJob",
                names::DISABLED_PLUGINS_ANNOTATION
            ),
        }
    }
}

/// What decides which plugins are disabled for a TrainJob.
pub(super) struct Subject<'a> {
    job: &'a TrainJob,
    /// The namespace in which it is rendered, whatever its own metadata says.
    namespace: &'a str,
    /// Its runtime, as the PolicyPlugin names it.
    runtime: String,
}

impl<'a> Subject<'a> {
    pub(super) fn new(job: &'a TrainJob, runtime: &Runtime, namespace: &'a str) -> Self {
        let (kind, name) = (runtime.kind, &runtime.metadata.name);
        Self {
            job,
            namespace,
            runtime: match kind {
                RuntimeKind::Cluster => format!("{kind}/{name}"),
                RuntimeKind::Namespaced => format!("{kind}/{namespace}/{name}"),
            },
        }
    }

    /// Returns what disables a plugin; `None` if nothing does. Only a plugin that is always active can be disabled.
    pub(super) fn disabled_by(
        &self,
        plugin: &str,
        active_when: &ActiveWhen,
        exemptions: &Exemptions,
    ) -> Option<DisabledBy> {
        let operators = &exemptions.disabled_for;
        let of_job = || self.job.plugins.disabled.contains(plugin);
        if *active_when != ActiveWhen::Always {
            None
        } else if operators.namespaces.contains(self.namespace) {
            Some(DisabledBy::Namespace(self.namespace.to_owned()))
        } else if operators.runtimes.contains(&self.runtime) {
            Some(DisabledBy::Runtime(self.runtime.clone()))
        } else if !exemptions.enabled_for.is_empty() && !self.is_selected(&exemptions.enabled_for) {
            Some(DisabledBy::NotSelected)
        } else if exemptions.train_jobs_may_disable && of_job() {
            Some(DisabledBy::TrainJob)
        } else {
            None
        }
    }

    fn is_selected(&self, selector: &JobSelector) -> bool {
        selector.namespaces.contains(self.namespace) || selector.runtimes.contains(&self.runtime)
    }
}
