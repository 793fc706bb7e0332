//! `trainyard validate`.

use clap::Args;
use trainyard_api::{Admitted, Runtime, TrainJob};
use trainyard_schema::Admission;

use crate::{
    cli::InputArgs,
    output,
    report::{self, Failure},
    run,
};

/// What `validate` takes.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &ValidateArgs) -> Result<(), Failure> {
    if args.input.filename.is_empty() {
        return Err(["give what to check with -f"].into_iter().collect());
    }
    let (objects, mut failure) = run::admit(&args.input)?;
    let (ours, others): (Vec<_>, Vec<_>) = objects
        .into_iter()
        .partition(|admitted| Admission::knows(&admitted.object));
    let checked = ours.len();
    for mut admitted in ours {
        admitted.warnings.iter().for_each(report::warn);
        read(&mut admitted);
        admitted
            .errors
            .into_iter()
            .for_each(|error| failure.add(error));
    }
    let others = match others.len() {
        0 => String::new(),
        n => format!("; {n} of other kinds were not checked"),
    };
    failure.or_ok(())?;
    output::print(&format!(
        "valid: {checked} TrainJobs and runtimes{others}\n"
    ))
}

/// What an API server lets in is read as `render` reads it.
fn read(admitted: &mut Admitted) {
    if !admitted.errors.is_empty() {
        return;
    }
    let object = &admitted.object;
    let read = if TrainJob::is(object) {
        TrainJob::read(object).map(drop)
    } else {
        Runtime::read(object).map(drop)
    };
    if let Err(errors) = read {
        admitted.refuse(&errors.0);
    }
}
