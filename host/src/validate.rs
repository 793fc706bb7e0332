//! `trainyard validate`.

use clap::Args;
use trainyard_render::Counts;

use crate::{
    args::{InputArgs, LoadArgs},
    output::{self, counted},
    report::ErrorList,
    run::{self, CheckSummary},
};

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Check only what an API server checks, without running plugins.
    #[arg(long, conflicts_with_all = ["plugin", "plugin_dir", "policy"])]
    no_plugins: bool,
    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn run(args: &ValidateArgs) -> Result<(), ErrorList> {
    if args.input.filename.is_empty() {
        return Err(["nothing to check; pass files or directories with -f"]
            .into_iter()
            .collect());
    }
    let load = (!args.no_plugins).then_some(&args.load);
    let checked = run::check(&args.input, load)?;
    let Counts {
        train_jobs,
        runtimes,
        others,
    } = checked.counts;
    let others = match others {
        0 => String::new(),
        others => format!("; {} not checked", counted(others, "other object")),
    };
    if train_jobs + runtimes == 0 {
        return Err(ErrorList::from_iter([format!(
            "there is no TrainJob and no runtime in the input{others}"
        )]));
    }
    let counts = [(train_jobs, "TrainJob"), (runtimes, "runtime")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts.map(|(count, what)| counted(count, what)).collect();
    let (by, plugins) = plugins(&checked, args.no_plugins);
    output::lines([format!("{by}: {}{plugins}{others}", counts.join(" and "))])
}

/// Returns the verdict, and a note on TrainJobs that plugins did not check.
fn plugins(checked: &CheckSummary, no_plugins: bool) -> (&'static str, String) {
    let by = match checked.rendered {
        0 => "valid for the API server",
        _ => "valid",
    };
    let missing = match checked.without_runtime {
        0 => String::new(),
        _ if no_plugins => String::new(),
        count => format!(
            "; plugins did not check {} whose runtime is not in the input",
            counted(count, "TrainJob")
        ),
    };
    (by, missing)
}
