//! `trainyard validate`.

use clap::Args;
use trainyard_api::{Admitted, FirstPlaces, Known, Runtime, TrainJob};

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
    let mut first_places = FirstPlaces::default();
    let (mut checked, mut others) = (0, 0);
    for mut admitted in objects {
        if let Err(double) = first_places.add(&admitted) {
            failure.add(double);
        }
        match Known::of(&admitted) {
            Ok(Known::Foreign) => others += 1,
            Ok(known) => {
                checked += 1;
                admitted.warnings.iter().for_each(report::warn);
                read(&mut admitted, known);
                let errors = admitted.errors.into_iter();
                errors.for_each(|error| failure.add(error));
            }
            Err(unknown) => failure.add(unknown),
        }
    }
    let others = match others {
        0 => String::new(),
        n => format!("; {n} of other kinds were not checked"),
    };
    if checked == 0 && failure.is_empty() {
        failure.add(format!(
            "there is no TrainJob and no runtime in the input{others}"
        ));
    }
    failure.or_ok(())?;
    output::lines([format!("valid: {checked} TrainJobs and runtimes{others}")])
}

/// What an API server lets in is read as `render` reads it.
fn read(admitted: &mut Admitted, known: Known) {
    if !admitted.errors.is_empty() {
        return;
    }
    let object = &admitted.object;
    let read = match known {
        Known::TrainJob => TrainJob::read(object).map(drop),
        Known::Runtime(_) => Runtime::read(object).map(drop),
        Known::Foreign => return,
    };
    if let Err(errors) = read {
        admitted.refuse(&errors.0);
    }
}
