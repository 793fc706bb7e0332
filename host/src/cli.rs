//! The command line: the commands with their flags.

use std::{convert::Infallible, fmt, path::PathBuf, process::ExitCode, str::FromStr};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use trainyard_model::quantity::Quantity;

use crate::{
    controller, crds, explain, log, output, plan, plugin, policy_file, rbac, render, replay,
    report, validate,
};

/// What the command's help ends with.
const AFTER_HELP: &str = "\
Exit codes:
  0  success
  1  the input, a plugin or the policy file is refused; nothing is printed to standard output, except by \"plan --against\" and \"replay\", and with --keep-going
  2  the command line is invalid

Examples:
  trainyard validate -f trainjob.yaml -f runtimes/
  trainyard render -f trainjob.yaml -f runtimes/
  trainyard explain -f trainjob.yaml -f runtimes/ PET_NNODES PET_NPROC_PER_NODE
  trainyard explain trainjob/llama-sft -n research
  trainyard plan --claims";

/// Turns Kubeflow TrainJobs into JobSets with policies that run as sandboxed WebAssembly plugins.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = AFTER_HELP
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the objects that the controller would create for TrainJobs, in the order in which it applies them.
    ///
    /// The output is for review and comparison. To run a TrainJob, apply the TrainJob itself: the controller does not adopt a JobSet
    /// that it did not create.
    Render(render::RenderArgs),
    /// Explain what set each field of a JobSet, and why.
    // A field may follow a file, so that `-f` takes one file here.
    #[command(mut_arg("filename", |files| files.num_args(1)))]
    Explain(explain::ExplainArgs),
    /// Show the order in which plugins run, for all loaded plugins or for each TrainJob.
    Plan(plan::PlanArgs),
    /// Render the TrainJobs of a bundle again, and report the first field that differs from the recorded result.
    Replay(replay::ReplayArgs),
    /// Validate TrainJobs and runtimes without a cluster: the API server's checks and, for TrainJobs whose runtime is given, the plugins' checks.
    Validate(validate::ValidateArgs),
    /// Run the controller, which reconciles the TrainJobs of a cluster.
    Controller(controller::ControllerArgs),
    /// Print a ClusterRole and a Role with only the permissions that the controller needs for the loaded plugins.
    Rbac(rbac::RbacArgs),
    /// Inspect or build a plugin.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Print the CustomResourceDefinitions of TrainJob and both runtimes, for `kubectl apply --server-side -f -`.
    Crds,
    /// Print the JSON Schema of the policy file.
    PolicySchema,
    /// Print a shell completion script.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Compile a component from standard input. The loader runs it in a process with limits.
    #[command(name = plugin::COMPILE_WORKER, hide = true)]
    CompileWorker,
}

impl Cli {
    /// Runs the command, prints its errors and returns the exit code.
    pub(crate) fn run(self) -> ExitCode {
        if !matches!(self.command, Command::Controller(_)) {
            log::to_stderr();
        }
        let done = match self.command {
            Command::Render(args) => render::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Plan(args) => plan::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Validate(args) => validate::run(&args),
            Command::Controller(args) => controller::run(&args),
            Command::Rbac(args) => rbac::run(&args),
            Command::Plugin(command) => plugin::run(&command),
            Command::Crds => crds::run(),
            Command::PolicySchema => policy_file::print_schema(),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "trainyard", &mut script);
                output::print(&String::from_utf8_lossy(&script))
            }
            Command::CompileWorker => return plugin::compile_worker(),
        };
        report::exit(done)
    }
}

/// The input and the plugins of a command that renders.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// Print the results of the other TrainJobs if one is refused. The exit code is still 1.
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// The input.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// A file, a directory (its *.yaml, *.yml and *.json files), or `-` for standard input, with TrainJobs, runtimes, and objects that
    /// plugins look up. Can be repeated.
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", num_args = 1.., value_hint = clap::ValueHint::AnyPath)]
    pub(crate) filename: Vec<PathBuf>,
    /// The namespace of objects without one [default: default].
    #[arg(short, long, value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// Select the TrainJob of this name from the input. Can be repeated.
    #[arg(long, value_name = "[NAMESPACE/]NAME", requires = "filename")]
    pub(crate) train_job: Vec<JobName>,
}

/// The name of a TrainJob in one namespace or in any namespace.
#[derive(Clone, Debug)]
pub(crate) struct JobName {
    namespace: Option<String>,
    name: String,
}

impl FromStr for JobName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, text),
        };
        let name = name.to_owned();
        Ok(Self { namespace, name })
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl JobName {
    /// Whether it selects the TrainJob of that namespace and name.
    pub(crate) fn is_of(&self, namespace: &str, name: &str) -> bool {
        self.name == name && self.namespace.as_deref().is_none_or(|own| own == namespace)
    }
}

impl InputArgs {
    /// The namespace of objects without one.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

pub(crate) fn namespace(text: &str) -> Result<String, String> {
    if trainyard_model::names::is_dns_label(text) {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 63 characters of a-z, 0-9 and -, and start and end with a letter or digit".to_owned())
    }
}

/// The plugins.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// A plugin file to load in addition to the built-in plugins. Can be repeated.
    #[arg(long = "plugin", value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    pub(crate) plugin: Vec<PathBuf>,
    /// A directory of plugin files: every *.wasm file in it is loaded.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) plugin_dir: Option<PathBuf>,
    /// The policy file, with grants, limits and configuration of plugins.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) policy: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

/// The cache of compiled plugins.
#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// The directory that caches compiled plugins [default: $XDG_CACHE_HOME/trainyard]. The key that authenticates them is in
    /// $XDG_STATE_HOME/trainyard, or in the cache directory if there is no home directory.
    #[arg(long, value_name = "DIR", env = "TRAINYARD_CACHE_DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) cache_dir: Option<PathBuf>,
    /// The maximum size of the cache, such as 512Mi. The least recently used plugins are deleted first.
    #[arg(long, value_name = "BYTES", env = "TRAINYARD_CACHE_SIZE", default_value = "512Mi", value_parser = bytes)]
    pub(crate) cache_size: u64,
}

/// Parses a number of bytes, written as a Kubernetes quantity.
fn bytes(text: &str) -> Result<u64, String> {
    let quantity = Quantity::parse(text).and_then(Quantity::ceil);
    let bytes = quantity.and_then(|bytes| u64::try_from(bytes).ok());
    bytes.ok_or_else(|| "must be a number of bytes, such as 512Mi".to_owned())
}

/// The output format of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectFormat {
    /// A YAML document for each object.
    Yaml,
    /// A v1 List, as kubectl prints it.
    Json,
}

/// The output format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A table.
    Table,
    /// JSON.
    Json,
}
