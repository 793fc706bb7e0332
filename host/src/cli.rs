//! The command line: what can be said, and which file does it.

use std::{convert::Infallible, fmt, path::PathBuf, process::ExitCode, str::FromStr};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use trainyard_model::quantity::Quantity;

use crate::{
    controller, crds, explain, output, plan, plugin, policy_file, rbac, render, replay, report,
    validate,
};

/// What the command's help ends with.
const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  the input, a plugin or the policy file is refused; standard output is empty, except for what \"plan --against\" and \"replay\" found, and with --keep-going
  2  the command line is wrong

Examples:
  trainyard validate -f trainjob.yaml -f runtimes/
  trainyard render -f trainjob.yaml -f runtimes/
  trainyard explain -f trainjob.yaml -f runtimes/ PET_NNODES PET_NPROC_PER_NODE
  trainyard explain trainjob/llama-sft -n research
  trainyard plan --claims";

/// Turns Kubeflow TrainJobs into JobSets, by policies that are sandboxed WebAssembly plugins.
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
    /// Print every object that the TrainJobs become, in the order in which the controller applies them.
    ///
    /// The output is for reading and comparing. To run a TrainJob, apply the TrainJob itself: its controller does not take over a
    /// JobSet that it did not create.
    Render(render::RenderArgs),
    /// Say for each field that a plugin or a TrainJob set: who, from what, and why.
    // A field may stand behind a file: `-f` takes one here, and can be given again.
    #[command(mut_arg("filename", |files| files.num_args(1)))]
    Explain(explain::ExplainArgs),
    /// Show the order in which plugins run: of all that are loaded, or for each TrainJob given.
    Plan(plan::PlanArgs),
    /// Render what a bundle holds once more, and say whether the same comes of it, or the first field that differs.
    Replay(replay::ReplayArgs),
    /// Check TrainJobs and runtimes without a cluster: as an API server does, and by the plugins of each TrainJob whose runtime is given.
    Validate(validate::ValidateArgs),
    /// Reconcile the TrainJobs of a cluster until told to stop.
    Controller(controller::ControllerArgs),
    /// Print the narrowest ClusterRole and Role for the controller with the plugins that are loaded.
    Rbac(rbac::RbacArgs),
    /// Look at plugin files, or build one.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Print the CustomResourceDefinitions of TrainJob and both runtimes, for `kubectl apply --server-side -f -`.
    Crds,
    /// Print the JSON Schema of the policy file.
    PolicySchema,
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Compile a component from standard input; run by the loader, in a process with limits.
    #[command(name = plugin::COMPILE_WORKER, hide = true)]
    CompileWorker,
}

impl Cli {
    /// Runs the command; says what is wrong, and gives the exit code.
    pub(crate) fn run(self) -> ExitCode {
        if !matches!(self.command, Command::Controller(_)) {
            report::log_to_stderr();
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

/// What to read, and what to make of it by which plugins.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// If a TrainJob is refused, still print what is made of the others. The exit code is 1 all the same.
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// What to read.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// A file, a folder (its *.yaml, *.yml and *.json), or `-` for standard input. TrainJobs, runtimes, and the objects
    /// that plugins look up, in any mix. Can be given again.
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", num_args = 1.., value_hint = clap::ValueHint::AnyPath)]
    pub(crate) filename: Vec<PathBuf>,
    /// The namespace of objects that name none [default: default].
    #[arg(short, long, value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// Only the TrainJob of this name, of all that are in the input. Can be given again.
    #[arg(long, value_name = "[NAMESPACE/]NAME", requires = "filename")]
    pub(crate) train_job: Vec<JobName>,
}

/// The name of a TrainJob, in one namespace or in any.
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
    /// Whether it names a TrainJob of that namespace and name.
    pub(crate) fn is_of(&self, namespace: &str, name: &str) -> bool {
        self.name == name && self.namespace.as_deref().is_none_or(|own| own == namespace)
    }
}

impl InputArgs {
    /// The namespace of objects that name none.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

pub(crate) fn namespace(text: &str) -> Result<String, String> {
    if trainyard_model::names::is_dns_label(text) {
        Ok(text.to_owned())
    } else {
        Err("a namespace has 1 to 63 of a-z, 0-9 and -, with no - at either end".to_owned())
    }
}

/// Which plugins.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// A plugin file to load beside the built-in ones. Can be given again.
    #[arg(long = "plugin", value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    pub(crate) plugin: Vec<PathBuf>,
    /// A folder of plugin files: every *.wasm in it is loaded beside the built-in plugins.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) plugin_dir: Option<PathBuf>,
    /// The policy file: grants, limits and configuration of plugins.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) policy: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

/// Where compiled plugins are kept, and how many.
#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// Where compiled plugins are kept [default: $XDG_CACHE_HOME/trainyard]. Their key is in $XDG_STATE_HOME/trainyard, or in
    /// this folder too where there is no home.
    #[arg(long, value_name = "DIR", env = "TRAINYARD_CACHE_DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) cache_dir: Option<PathBuf>,
    /// The most bytes of compiled plugins that are kept, such as 512Mi; those used longest ago are deleted first.
    #[arg(long, value_name = "BYTES", env = "TRAINYARD_CACHE_SIZE", default_value = "512Mi", value_parser = bytes)]
    pub(crate) cache_size: u64,
}

/// A number of bytes, written as a quantity of Kubernetes.
fn bytes(text: &str) -> Result<u64, String> {
    let quantity = Quantity::parse(text).and_then(Quantity::ceil);
    let bytes = quantity.and_then(|bytes| u64::try_from(bytes).ok());
    bytes.ok_or_else(|| "write a number of bytes, such as 512Mi".to_owned())
}

/// The form of what `render` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectFormat {
    /// One YAML document an object.
    Yaml,
    /// One v1 List, as kubectl prints it.
    Json,
}

/// The form of what is said about plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A table for people.
    Table,
    /// JSON.
    Json,
}
