//! The command line: its commands, each with the arguments that its module defines.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches as _, Parser, Subcommand};

use crate::{
    compile_worker, completions, controller, crds, diff, explain, kubectl, log, plan, plugin, rbac,
    render, replay, report, runtimes, schemas, support, validate, why,
};

/// The end of the help.
const AFTER_HELP: &str = "\
Exit codes:
  0  success
  1  the input, a plugin or its PolicyPlugin is refused; nothing is printed to standard output, except by \"plan --against\", \"plugin diff\", \"plugin test\", \"plugin claims\", \"plugin conform\", \"replay\" and \"validate -o json\", and with --keep-going
  2  the command line is invalid

Exit codes of \"diff\":
  0  nothing differs
  1  something differs, as the rows that are printed list
  2  something would fail, differs without a row, or could not be compared; or the command line is invalid

Examples:
  trainyard validate -f trainjob.yaml -f runtimes/
  trainyard render -f trainjob.yaml -f runtimes/
  trainyard explain -f trainjob.yaml -f runtimes/ PET_NNODES PET_NPROC_PER_NODE
  trainyard explain trainjob/llama-sft -n research
  trainyard plan --claims";

/// Turns Kubeflow TrainJobs into JobSets, using policies that run as sandboxed WebAssembly plugins.
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
    // A field may follow a file, so `-f` takes one file here.
    #[command(mut_arg("filename", |files| files.num_args(1)))]
    Explain(explain::ExplainArgs),
    /// Say why a TrainJob of a cluster does not run, or that it does: the error of its reconcile, its admission, its pods and its Events. If plugins
    /// are declared in the cluster, also with which it was rendered.
    Why(why::WhyArgs),
    /// Show the order in which plugins run, for all loaded plugins or for each TrainJob.
    Plan(plan::PlanArgs),
    /// Render the TrainJobs of a bundle again, and report the first field that differs from the recorded result.
    Replay(replay::ReplayArgs),
    /// Validate TrainJobs and runtimes without a cluster: the API server's checks and, for TrainJobs whose runtime is in the input, the plugins' checks.
    Validate(validate::ValidateArgs),
    /// Compare a cluster of the Kubeflow Trainer, a dump of it, or files with what Trainyard would render, and say what would fail or differ.
    ///
    /// Only reads. Without -f, the cluster of the kubeconfig is compared: for each TrainJob, the objects that the Kubeflow Trainer made with
    /// those that Trainyard renders. Each difference is a row of tests/reference/divergences.md, which says what it means.
    #[command(
        mut_arg("kubeconfig", |file| file.conflicts_with("filename")),
        mut_arg("namespace", |name| name.help("Compare only this namespace of a cluster. Of files: the namespace of objects without one [default: default]"))
    )]
    Diff(diff::DiffArgs),
    /// Collect what shows why a cluster's controller or its TrainJobs do not work, without Secrets and credentials, into a file.
    SupportBundle(support::SupportArgs),
    /// Run the controller, which reconciles the TrainJobs of a cluster.
    Controller(controller::ControllerArgs),
    /// Print a ClusterRole and a Role with only the permissions that the controller needs for the loaded plugins, or a ClusterRole for each
    /// plugin with a PolicyPlugin.
    Rbac(rbac::RbacArgs),
    /// Create, check, test, build or inspect a plugin.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Print the CustomResourceDefinitions of TrainJob, both runtimes, PolicyPlugin and PluginRevision, for `kubectl apply --server-side -f -`.
    Crds,
    /// List the runtimes that are shipped with Trainyard, or print them as YAML, for `kubectl apply --server-side -f -`.
    Runtimes(runtimes::RuntimesArgs),
    /// Print the JSON Schema of the policy file.
    PolicySchema,
    /// Print the JSON Schema of the controller's configuration file.
    ConfigSchema,
    /// Print a shell completion script.
    Completions(completions::CompletionsArgs),
    /// Compile a component from standard input. The loader runs it in a process with limits.
    #[command(name = compile_worker::NAME, hide = true)]
    CompileWorker,
}

impl Cli {
    /// Reads the command line, and runs its command. Errors of the command line are returned.
    pub(crate) fn main() -> Result<ExitCode, clap::Error> {
        let role = kubectl::Role::of(std::env::args_os().next().as_ref());
        let mut command = role.command(Self::command());
        if role == kubectl::Role::Completer {
            // The shell passes what is typed so far, which need not be UTF-8.
            let arguments = std::env::args_os().skip(1);
            let arguments: Vec<_> = arguments
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect();
            return Ok(report::exit(kubectl::complete(command, &arguments)));
        }
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        let cli = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        Ok(cli.run())
    }

    /// Runs the command, prints its errors and returns the exit code.
    fn run(self) -> ExitCode {
        match self.command {
            Command::Controller(_) => {}
            Command::Render(_) => log::to_stderr(log::OF_PLUGINS),
            _ => log::to_stderr("warn"),
        }
        let done = match self.command {
            Command::Render(args) => render::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Why(args) => why::run(&args),
            Command::Plan(args) => plan::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Validate(args) => validate::run(&args),
            Command::Diff(args) => return diff::run(&args),
            Command::SupportBundle(args) => support::run(&args),
            Command::Controller(args) => controller::run(&args),
            Command::Rbac(args) => rbac::run(&args),
            Command::Plugin(command) => plugin::run(&command),
            Command::Crds => crds::run(),
            Command::Runtimes(args) => runtimes::run(&args),
            Command::PolicySchema => schemas::policy_file(),
            Command::ConfigSchema => schemas::configuration(),
            Command::Completions(args) => completions::run(&args, Self::command()),
            Command::CompileWorker => return compile_worker::run(),
        };
        report::exit(done)
    }
}
