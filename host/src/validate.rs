//! `trainyard validate`.

use clap::Args;
use serde::Serialize;
use trainyard_render::Counts;

use crate::{
    args::{InputArgs, LoadArgs, ReportFormat},
    finding::Parts,
    input::{self, CheckSummary, Strictness},
    output::{self, counted},
    report::{self, ErrorList},
};

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Check only what an API server checks, without running plugins.
    #[arg(long, conflicts_with_all = ["plugin", "plugin_dir", "policy"])]
    no_plugins: bool,
    /// Also accept old forms that a cluster's API server refuses, such as `spec.trainer.numProcPerNode: auto`. See docs/dialects.md.
    #[arg(long)]
    allow_old_forms: bool,
    /// Refuse a TrainJob whose runtime is not in the input.
    #[arg(long)]
    require_runtimes: bool,
    /// The output format. With JSON, the result is also printed if there are errors. Each error and warning has a `message` and, if they are
    /// known, `file`, `line`, `object` (with `kind`, `namespace` and `name`) and `field`.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn run(args: &ValidateArgs) -> Result<(), ErrorList> {
    let checked = check(args);
    if args.output == ReportFormat::Json {
        output::json(&report_of(&checked))?;
        return checked.map(drop);
    }
    let checked = checked?;
    let Counts {
        train_jobs,
        runtimes,
        others,
    } = checked.counts;
    let counts = [
        (train_jobs, "TrainJob"),
        (runtimes, "runtime"),
        (checked.policy_plugins, "PolicyPlugin"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts.map(|(count, what)| counted(count, what)).collect();
    let (by, plugins) = plugins(&checked, args.no_plugins);
    let others = not_checked(others);
    output::lines([format!("{by}: {}{plugins}{others}", counts.join(" and "))])
}

fn check(args: &ValidateArgs) -> Result<CheckSummary, ErrorList> {
    if args.input.filename.is_empty() {
        return Err(["nothing to check; pass files or directories with -f"]
            .into_iter()
            .collect());
    }
    let load = (!args.no_plugins).then_some(&args.load);
    let strictness = Strictness {
        allow_old_forms: args.allow_old_forms,
        require_runtimes: args.require_runtimes,
    };
    let checked = input::check(&args.input, load, strictness)?;
    let Counts {
        train_jobs,
        runtimes,
        others,
    } = checked.counts;
    if train_jobs + runtimes + checked.policy_plugins == 0 {
        return Err(ErrorList::from_iter([format!(
            "there is no TrainJob and no runtime in the input{}",
            not_checked(others)
        )]));
    }
    Ok(checked)
}

/// Describes the number of objects that are not checked.
fn not_checked(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!("; {} not checked", counted(others, "other object")),
    }
}

/// The result as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'e> {
    valid: bool,
    /// The errors, up to a maximum number.
    errors: Vec<&'e Parts>,
    /// The number of further errors.
    omitted_errors: usize,
    /// The warnings, up to a maximum number.
    warnings: Vec<Parts>,
    /// The number of further warnings.
    omitted_warnings: usize,
    /// The numbers of checked objects; absent if there are errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    checked: Option<Checked>,
}

/// The numbers of checked objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    train_jobs: usize,
    runtimes: usize,
    other_objects: usize,
    /// The TrainJobs that plugins checked.
    checked_by_plugins: usize,
    /// The TrainJobs whose runtime is not in the input.
    without_runtime: usize,
}

fn report_of(checked: &Result<CheckSummary, ErrorList>) -> Report<'_> {
    let (warnings, omitted_warnings) = report::warnings();
    match checked {
        Ok(checked) => Report {
            valid: true,
            errors: Vec::new(),
            omitted_errors: 0,
            warnings,
            omitted_warnings,
            checked: Some(Checked {
                train_jobs: checked.counts.train_jobs,
                runtimes: checked.counts.runtimes,
                other_objects: checked.counts.others,
                checked_by_plugins: checked.rendered,
                without_runtime: checked.without_runtime,
            }),
        },
        Err(failure) => {
            let (errors, omitted_errors) = failure.parts();
            Report {
                valid: false,
                errors: errors.collect(),
                omitted_errors,
                warnings,
                omitted_warnings,
                checked: None,
            }
        }
    }
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
