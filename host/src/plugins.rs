//! Plugins of one run: the built-in ones, those given as files, and `trainyard plugin`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Subcommand;
use serde::Serialize;
use trainyard_componentize::build;
use trainyard_model::{
    manifest::Manifest,
    plugin::{PluginId, Settings},
    policy::Policy,
};
use trainyard_render::Renderer;
use trainyard_sandbox::{CachePaths, CompilerCommand, LoadLimits, Loader, LoaderOptions, screen};

use crate::{
    built_ins::BUILT_INS,
    cli::{LoadArgs, ReportFormat},
    output,
    policy_file::PolicyFile,
    report::{self, Failure},
};

/// The argument that makes this program a compiling process.
pub(crate) const COMPILE_WORKER: &str = "compile-worker";

/// The plugins of one run.
pub(crate) struct Loaded {
    pub(crate) renderer: Renderer,
    pub(crate) loader: Loader,
}

impl Loaded {
    /// Loads the built-in plugins and those that were given, and checks them against each other.
    pub(crate) fn load(args: &LoadArgs) -> Result<Self, Failure> {
        let policy = match &args.policy {
            Some(path) => PolicyFile::read(path).map_err(Failure::from_iter)?,
            None => PolicyFile::default(),
        };
        let loader = loader(args)?;
        let mut failure = Failure::default();
        let mut policies: Vec<Arc<dyn Policy>> = Vec::new();
        for plugin in BUILT_INS {
            let settings =
                |manifest: &Manifest| policy.settings(&manifest.name, Settings::built_in());
            match loader.load_built_in(plugin.name, plugin.component, settings) {
                Ok(loaded) => policies.push(Arc::new(loaded)),
                Err(error) => failure.add(error),
            }
        }
        for path in &args.plugin {
            let settings =
                |manifest: &Manifest| policy.settings(&manifest.name, Settings::default());
            match loader.load_file(path, settings) {
                Ok(loaded) => policies.push(Arc::new(loaded)),
                Err(error) => failure.add(error),
            }
        }
        let is_loaded = |name: &str| {
            policies
                .iter()
                .any(|policy| *policy.plugin().id.name == *name)
        };
        for name in policy.names().filter(|name| !is_loaded(name)) {
            report::warn(format!(
                "the policy file speaks of the plugin `{name}`, which is not loaded"
            ));
        }
        failure.or_ok(())?;
        Renderer::new(policies, policy.facts())
            .map(|renderer| Self { renderer, loader })
            .map_err(Failure::from_iter)
    }

    /// Runs `run` for each item on the threads that plugin calls run on.
    pub(crate) fn run_each<T: Sync, R: Send>(
        &self,
        items: &[T],
        run: impl Fn(&T) -> R + Send + Sync,
    ) -> Vec<R> {
        self.loader.pool().run_each(items, run)
    }
}

fn loader(args: &LoadArgs) -> Result<Loader, Failure> {
    let mut cache = CachePaths::of_user();
    if let (Some(paths), Some(folder)) = (&mut cache, &args.cache_dir) {
        paths.folder.clone_from(folder);
    }
    let options = LoaderOptions {
        compiler: CompilerCommand::this_program(COMPILE_WORKER)?,
        cache,
        limits: LoadLimits::default(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    Loader::new(options).map_err(|error| Failure::from_iter([error]))
}

/// `trainyard plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Show what a plugin file declares and imports. Nothing of it runs.
    Inspect {
        /// The plugin file.
        #[arg(value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
        file: PathBuf,
        /// The form of the output.
        #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
        output: ReportFormat,
    },
    /// Build a plugin's crate into a component.
    Build {
        /// The folder of the crate.
        #[arg(value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
        dir: PathBuf,
        /// The file to write [default: NAME.wasm in the current folder].
        #[arg(short, long, value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
        output: Option<PathBuf>,
        /// Fail where Cargo.lock is missing or would change.
        #[arg(long)]
        locked: bool,
    },
}

pub(crate) fn run(command: &PluginCommand) -> Result<(), Failure> {
    match command {
        PluginCommand::Inspect { file, output } => inspect(file, *output),
        PluginCommand::Build {
            dir,
            output,
            locked,
        } => build(dir, output.as_ref(), *locked),
    }
}

/// What `inspect` shows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspected {
    file: String,
    bytes: usize,
    digest: String,
    manifest: Manifest,
    imports: Vec<String>,
}

fn inspect(file: &Path, format: ReportFormat) -> Result<(), Failure> {
    let name = file.display().to_string();
    let limits = LoadLimits::default();
    let screened = screen::read(file, &limits)
        .and_then(|bytes| screen::screen(bytes, &limits))
        .map_err(|error| Failure::from_iter([format!("{name}: {error}")]))?;
    let inspected = Inspected {
        file: name,
        bytes: screened.bytes.len(),
        digest: screened.digest,
        manifest: screened.manifest,
        imports: screened.imports,
    };
    match format {
        ReportFormat::Json => output::json(&inspected),
        ReportFormat::Table => output::print(&inspected.text()),
    }
}

impl Inspected {
    fn text(&self) -> String {
        let manifest = &self.manifest;
        let phases: Vec<&str> = manifest.phases.iter().map(|phase| phase.name()).collect();
        let mut lines = vec![
            format!("name:        {}", manifest.name),
            format!("version:     {}", manifest.version),
            format!("description: {}", manifest.description),
            format!("contract:    {}", manifest.contract),
            format!("active when: {}", manifest.active_when),
            format!("phases:      {}", phases.join(", ")),
            format!("size:        {} bytes", self.bytes),
            format!("digest:      {}", self.digest),
        ];
        if !manifest.reserved_env.is_empty() {
            lines.push(format!("reserves:    {}", manifest.reserved_env.join(", ")));
        }
        lines.push("claims:".to_owned());
        lines.extend(
            manifest
                .claims
                .iter()
                .map(|(touch, path)| format!("  {touch}s {path}")),
        );
        lines.push("imports:".to_owned());
        lines.extend(self.imports.iter().map(|import| format!("  {import}")));
        lines
            .into_iter()
            .map(|line| trainyard_model::text::clean(&line) + "\n")
            .collect()
    }
}

fn build(dir: &Path, output: Option<&PathBuf>, locked: bool) -> Result<(), Failure> {
    let options = build::Options {
        locked,
        ..build::Options::default()
    };
    let built = build::build(dir, &options).map_err(|error| Failure::from_iter([error]))?;
    let manifest = &built.component.manifest;
    let path = output
        .cloned()
        .unwrap_or_else(|| PathBuf::from(format!("{}.wasm", manifest.name)));
    std::fs::write(&path, &built.component.bytes).map_err(|error| {
        Failure::from_iter([format!("{}: can't be written: {error}", path.display())])
    })?;
    let screened = screen::screen(built.component.bytes, &LoadLimits::default())
        .map_err(|error| Failure::from_iter([format!("{}: {error}", path.display())]))?;
    let id = PluginId {
        name: manifest.name.as_str().into(),
        version: manifest.version.as_str().into(),
        digest: screened.digest.as_str().into(),
    };
    let bytes = screened.bytes.len();
    output::print(&format!("{}: plugin {id}, {bytes} bytes\n", path.display()))
}

/// The body of the compiling process.
pub(crate) fn compile_worker() -> ExitCode {
    trainyard_sandbox::compile::child_main()
}
