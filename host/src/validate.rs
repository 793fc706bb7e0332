//! `trainyard validate`.

use std::collections::BTreeMap;

use clap::Args;
use trainyard_api::{Inputs, Object, Place, Runtime, TrainJob, dialect::Modernized};
use trainyard_schema::{
    documents::Kind,
    structural::{Structural, check_size},
};

use crate::{
    cli::InputArgs,
    output::{self, Progress},
    report::{self, Failure},
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
    let inputs = Inputs::read(&args.input.filename, std::io::stdin());
    let mut failure: Failure = inputs.errors.into_iter().collect();
    let mut schemas = BTreeMap::new();
    for kind in Kind::ALL {
        let schema = kind.structural().map_err(anyhow::Error::from)?;
        schemas.insert(kind.name(), (kind, schema));
    }
    let progress = Progress::new("validating", inputs.objects.len());
    let (mut checked, mut others) = (0usize, 0usize);
    for mut object in inputs.objects {
        let dialect = object.modernize();
        match schemas.get(object.kind.as_str()) {
            Some((kind, schema)) if is_ours(&object) => {
                check(object, &dialect, *kind, schema, &mut failure);
                checked += 1;
            }
            _ => others += 1,
        }
        progress.step();
    }
    progress.finish();
    let others = match others {
        0 => String::new(),
        n => format!("; {n} of other kinds were not checked"),
    };
    let line = format!("valid: {checked} TrainJobs and runtimes{others}\n");
    failure.or_ok(())?;
    output::print(&line)
}

fn is_ours(object: &Object) -> bool {
    TrainJob::is(object) || Runtime::is(object)
}

/// Checks one object as an API server does, and, if that lets it in, as `render` reads it.
fn check(
    mut object: Object,
    dialect: &Modernized,
    kind: Kind,
    schema: &Structural,
    failure: &mut Failure,
) {
    let place = object.place();
    let at = |path: &trainyard_api::FieldPath| -> Place { place.clone().at(dialect.written(path)) };
    for warning in &dialect.warnings {
        report::warn(format!(
            "{}: {}",
            place.clone().at(warning.path.clone()),
            warning.message
        ));
    }
    let mut refused: Vec<String> = Vec::new();
    let old = dialect.errors.iter();
    refused.extend(old.map(|error| format!("{}: {}", at(&error.path), error.problem)));
    if let Err(error) = check_size(&object.value) {
        refused.push(format!("{place}: {error}"));
    }
    let outcome = schema.admit(&mut object.value, None, &kind.options());
    refused.extend(outcome.unknown.iter().map(|unknown| {
        let near = unknown.suggestion.as_ref();
        let near = near.map(|near| format!(", did you mean \"{near}\"?"));
        let field = dialect.written(&unknown.path);
        format!(
            "{place}: unknown field \"{field}\"{}",
            near.unwrap_or_default()
        )
    }));
    let errors = outcome.errors.iter();
    refused.extend(errors.map(|error| format!("{}: {}", at(&error.path), error.body())));
    if refused.is_empty() {
        let read = match kind {
            Kind::TrainJob => TrainJob::read(&object).map(drop),
            Kind::TrainingRuntime | Kind::ClusterTrainingRuntime => {
                Runtime::read(&object).map(drop)
            }
        };
        let errors = read.err().map(|errors| errors.0).unwrap_or_default();
        refused.extend(
            errors
                .iter()
                .map(|error| format!("{}: {}", at(&error.path), error.problem)),
        );
    }
    refused.into_iter().for_each(|line| failure.add(line));
}
