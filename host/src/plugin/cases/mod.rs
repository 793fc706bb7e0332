//! The cases of a plugin: TrainJobs that `plugin test`, `plugin claims` and `plugin conform` render with the runtimes of the case and with
//! the shipped runtimes.
//!
//! `folder` finds the cases and reads them, `placement` switches the plugin on in a shipped runtime, `rendering` renders a case to
//! a `result`, `observed` records what the plugin's calls use, and `reach` which pod sets they write to.

mod folder;
mod observed;
mod placement;
mod reach;
mod rendering;
mod result;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use trainyard_model::{manifest::Manifest, plugin_info::PluginInfo};
use trainyard_render::Renderer;
use trainyard_sandbox::{LoadLimits, screen};
use trainyard_schema::Admission;

use self::{folder::Case, observed::Observed, rendering::Host};
pub(super) use self::{
    folder::{OBJECTS, REFUSAL, RUNTIMES, WARNINGS},
    observed::{Missing, Usage},
    reach::Reach,
    rendering::{Prepared, Variant},
    result::{RenderedJob, Rendering, Skipped},
};
use super::build;
use crate::{
    args::{CacheArgs, TimeoutArgs},
    load::LoadedPlugins,
    output::{self, Progress},
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
    /// The file with PolicyPlugins, which have grants, limits and configuration of plugins [default: `policy.yaml` in the plugin's directory, if it exists]. Without one,
    /// the plugin is granted what it claims.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    policy: Option<PathBuf>,
    /// For a crate: fail if Cargo.lock is missing or would change.
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
    /// The plugin's file.
    pub(super) component: Vec<u8>,
    host: Host,
    observed: Arc<Observed>,
}

/// A rendering of a case.
#[derive(Clone, Copy)]
pub(super) struct Run<'r> {
    pub(super) case: &'r Prepared<'r>,
    /// The shipped runtime. `None` for the runtimes of the case.
    pub(super) shipped: Option<&'static Runtime>,
    pub(super) variant: &'r Variant<'r>,
}

impl<'r> Run<'r> {
    /// Returns the renderings of a case: with its own runtimes, and with each shipped one.
    pub(super) fn of_case(
        case: &'r Prepared<'r>,
        variant: &'r Variant<'r>,
    ) -> impl Iterator<Item = Self> {
        let shipped = runtimes::shipped().iter().map(Some);
        [None].into_iter().chain(shipped).map(move |shipped| Self {
            case,
            shipped,
            variant,
        })
    }
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
                "{}: is a plugin file, so pass the directory of its cases with --cases, or the directory of the plugin instead of the file",
                output::path(&self.plugin)
            )]));
        };
        let cases = folder::find(&folder)?;
        let policy = self.policy.clone();
        let policy = policy.or_else(|| in_dir("policy.yaml").filter(|file| file.exists()));
        let component = match is_dir {
            true => build::component(&self.plugin, self.locked)?.bytes,
            false => screen::read(&self.plugin, &LoadLimits::default()).map_err(|error| {
                let file = output::path(&self.plugin);
                ErrorList::from_iter([format!("{file}: {error}")])
            })?,
        };
        let (mut loaded, plugin) = LoadedPlugins::load_component(
            &self.plugin,
            component.clone(),
            policy.as_deref(),
            &self.cache,
        )?;
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
            component,
            observed,
        })
    }

    /// Returns the files and directories that the result depends on.
    pub(super) fn sources(&self) -> Vec<&Path> {
        let others = self.cases.iter().chain(&self.policy);
        let all = [&self.plugin].into_iter().chain(others);
        all.map(PathBuf::as_path).collect()
    }

    /// The plugin's directory, if it is built from one.
    pub(super) fn dir(&self) -> Option<&Path> {
        Some(&*self.plugin).filter(|plugin| plugin.is_dir())
    }

    /// Builds a copy of the plugin's directory.
    pub(super) fn build_copy(&self, dir: &Path) -> Result<Vec<u8>, ErrorList> {
        Ok(build::component(dir, self.locked)?.bytes)
    }
}

/// Checks the cases in a directory without rendering them. Cases whose expected result is a refusal are not checked. `renderer` knows the
/// plugin with the manifest, but cannot call it. Returns the number of cases, and their errors.
pub(super) fn check(
    folder: &Path,
    renderer: &Renderer,
    manifest: &Manifest,
) -> Result<(usize, ErrorList), ErrorList> {
    let cases = folder::find(folder)?;
    let admission = Admission::default();
    let mut failure = ErrorList::default();
    for case in cases.iter().filter(|case| !case.is_refused()) {
        let errors = rendering::check(case, &admission, (renderer, manifest))?;
        if errors.is_empty() {
            continue;
        }
        let hint = "has no `expected.txt`; correct these errors, or run `trainyard plugin test --update` to expect them";
        let lines = errors.lines().chain([hint.into()]);
        let lines = lines.map(|line| format!("case {}: {line}", case.name));
        failure.absorb(lines.collect());
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
        let prepared = self.prepare()?;
        let runs = prepared
            .iter()
            .flat_map(|case| Run::of_case(case, &Variant::SAME));
        self.render_runs(&runs.collect::<Vec<_>>(), |_, rendering| make(rendering))
    }

    /// Reads the cases.
    pub(super) fn prepare(&self) -> Result<Vec<Prepared<'_>>, ErrorList> {
        self.cases
            .iter()
            .map(|case| self.host.prepare(case))
            .collect()
    }

    /// The plugins that render them.
    pub(super) const fn renderer(&self) -> &Renderer {
        &self.host.loaded.renderer
    }

    /// Renders cases, like [`Self::render`].
    ///
    /// # Errors
    /// As for [`Self::render`].
    pub(super) fn render_runs<T: Send>(
        &self,
        runs: &[Run<'_>],
        make: impl Fn(&Run<'_>, Rendering<'_>) -> T + Sync,
    ) -> Result<Vec<T>, ErrorList> {
        let progress = Progress::new("rendering", runs.len());
        let (mut results, mut failure) = (Vec::new(), ErrorList::default());
        let one = |run: &Run<'_>| {
            let rendered = match run.shipped {
                None => self.host.render_own(run.case, run.variant),
                Some(shipped) => self.host.render_shipped(run.case, shipped, run.variant),
            };
            progress.step();
            rendered.map(|rendering| make(run, rendering))
        };
        let done = self.host.loaded.run_in_order(runs, one, |run, result| {
            match result {
                Ok(Ok(made)) => results.push(made),
                Ok(Err(error)) => failure.absorb(error),
                Err(panicked) => failure.add(format!("case {}: {panicked}", run.case.name())),
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
