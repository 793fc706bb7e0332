//! The cases of a plugin: TrainJobs that `plugin test` and `plugin claims` render with the runtimes of the case and with the shipped
//! runtimes.
//!
//! `folder` finds the cases and reads them, `placement` switches the plugin on in a shipped runtime, `rendering` renders a case to
//! a `result`, and `observed` records what the plugin's calls use.

mod folder;
mod observed;
mod placement;
mod rendering;
mod result;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use trainyard_model::{plugin_info::PluginInfo, text::clean};
use trainyard_render::Renderer;
use trainyard_sandbox::{LoadLimits, screen};
use trainyard_schema::Admission;

use self::{
    folder::Case,
    observed::Observed,
    rendering::{Host, Prepared},
};
pub(super) use self::{
    folder::{OBJECTS, REFUSAL, WARNINGS},
    observed::{Missing, Usage},
    result::{RenderedJob, Rendering, Skipped},
};
use super::build;
use crate::{
    args::{CacheArgs, TimeoutArgs},
    load::LoadedPlugins,
    output::Progress,
    report::ErrorList,
    runtimes::{self, Runtime},
};

/// Arguments of the commands that render the cases of a plugin.
#[derive(Debug, Args)]
pub(super) struct CasesArgs {
    /// The plugin's directory, a crate or one with a `build.sh`, which is built first, or a plugin file.
    #[arg(value_name = "DIR|FILE.wasm", default_value = ".", value_hint = clap::ValueHint::AnyPath)]
    plugin: PathBuf,
    /// The directory of the cases. Each file in it, and each directory of files, is a case: TrainJobs, their runtimes, and objects that
    /// plugins look up [default: `cases` in the plugin's directory].
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(super) cases: Option<PathBuf>,
    /// The policy file, with grants, limits and configuration of plugins [default: `policy.yaml` in the plugin's directory, if it exists]. Without one,
    /// the plugin is granted what it claims.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    policy: Option<PathBuf>,
    /// Fail if Cargo.lock is missing or would change.
    #[arg(long)]
    locked: bool,
    #[command(flatten)]
    limit: TimeoutArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

/// A plugin with its cases, ready to be rendered.
pub(super) struct Cases {
    pub(super) plugin: Arc<PluginInfo>,
    pub(super) cases: Vec<Case>,
    host: Host,
    observed: Arc<Observed>,
}

impl CasesArgs {
    /// Finds the cases, builds the plugin if its directory was passed, and loads it beside the built-in plugins.
    pub(super) fn load(&self) -> Result<Cases, ErrorList> {
        let is_dir = self.plugin.is_dir();
        // Without a leading `./`, as users write the path.
        let folder = self.plugin.strip_prefix(".").unwrap_or(&self.plugin);
        let in_dir = |name: &str| is_dir.then(|| folder.join(name));
        let Some(folder) = self.cases.clone().or_else(|| in_dir("cases")) else {
            return Err(ErrorList::from_iter([format!(
                "{}: a plugin file has no cases beside it; pass their directory with --cases",
                clean(&self.plugin.display().to_string())
            )]));
        };
        let cases = folder::find(&folder)?;
        let policy = self.policy.clone();
        let policy = policy.or_else(|| in_dir("policy.yaml").filter(|file| file.exists()));
        let component = match is_dir {
            true => build::component(&self.plugin, self.locked)?.bytes,
            false => screen::read(&self.plugin, &LoadLimits::default()).map_err(|error| {
                let file = clean(&self.plugin.display().to_string());
                ErrorList::from_iter([format!("{file}: {error}")])
            })?,
        };
        let (mut loaded, plugin) =
            LoadedPlugins::load_component(&self.plugin, component, policy.as_deref(), &self.cache)?;
        let without = loaded.renderer.without(&plugin.id.name);
        let observed = Arc::<Observed>::default();
        loaded.renderer = loaded
            .renderer
            .wrapped(|other| observed.wrap(other, &plugin.id.name));
        Ok(Cases {
            host: Host {
                plugin: plugin.clone(),
                loaded,
                without: without.map_err(ErrorList::from_iter)?,
                admission: Admission::default(),
                timeout: self.limit.timeout,
            },
            plugin,
            cases,
            observed,
        })
    }
}

/// Checks the cases in a directory without rendering them. Cases whose expected result is a refusal are not checked. `renderer` knows the
/// plugin, but cannot call it. Returns the number of cases, and their errors.
pub(super) fn check(folder: &Path, renderer: &Renderer) -> Result<(usize, ErrorList), ErrorList> {
    let cases = folder::find(folder)?;
    let admission = Admission::default();
    let mut failure = ErrorList::default();
    for case in cases.iter().filter(|case| !case.is_refused()) {
        let errors = rendering::check(case, &admission, renderer)?;
        let errors = errors
            .lines()
            .map(|line| format!("case {}: {line}", case.name));
        failure.absorb(errors.collect());
    }
    Ok((cases.len(), failure))
}

impl Cases {
    /// Renders each case with its own runtimes and with each shipped runtime. `make` runs on the rendering threads and returns what is kept of
    /// a rendering.
    ///
    /// # Errors
    /// The host could not render all of them, such as for lack of time. A TrainJob that is refused is a result.
    pub(super) fn render<T: Send>(
        &self,
        make: impl Fn(Rendering<'_>) -> T + Sync,
    ) -> Result<Vec<T>, ErrorList> {
        let prepared = self.cases.iter().map(|case| self.host.prepare(case));
        let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
        let mut runs = Vec::new();
        for case in &prepared {
            let shipped = runtimes::shipped().iter().map(Some);
            runs.extend([None].into_iter().chain(shipped).map(|on| (case, on)));
        }
        let progress = Progress::new("rendering", runs.len());
        let (mut results, mut failure) = (Vec::new(), ErrorList::default());
        let one = |(case, shipped): &(&Prepared<'_>, Option<&'static Runtime>)| {
            let rendered = match shipped {
                None => self.host.render_own(case),
                Some(shipped) => self.host.render_shipped(case, shipped),
            };
            progress.step();
            rendered.map(&make)
        };
        let done = self
            .host
            .loaded
            .run_in_order(&runs, one, |(case, _), result| {
                match result {
                    Ok(Ok(made)) => results.push(made),
                    Ok(Err(error)) => failure.absorb(error),
                    Err(panicked) => failure.add(format!("case {}: {panicked}", case.name())),
                }
                Ok(())
            });
        progress.finish();
        done?;
        failure.or_ok(results)
    }

    /// Returns what the plugin's calls used so far.
    pub(super) fn usage(&self) -> Usage {
        self.observed.usage()
    }
}
