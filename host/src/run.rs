//! The files and plugins of one run, and the rendering of its TrainJobs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use trainyard_api::{Admitted, Inputs, Located, Location, Object, Source, names};
use trainyard_model::text::listed;
use trainyard_render::{Catalog, Counts, InputJob, InputObject, Problem, Rendered, Renderer};
use trainyard_schema::Admission;

use crate::{
    args::{InputArgs, LoadArgs, RunArgs},
    load::LoadedPlugins,
    output::{BufferedList, Progress},
    report::{self, ErrorList, MAX_LINES},
    stats::Stats,
};

/// The most TrainJobs that a sentence lists.
const MAX_LISTED: usize = 8;

/// TrainJobs and runtimes as they were read, before conversion and defaulting.
#[derive(Default)]
pub(crate) struct Originals(BTreeMap<Source, Value>);

impl Originals {
    /// Returns the object at that location.
    pub(crate) fn at(&self, location: &Location) -> Option<&Value> {
        let mut source = Source::new(location.file.as_str(), location.document?);
        source.items.clone_from(&location.items);
        self.0.get(&source)
    }

    fn insert(&mut self, object: &Object) {
        let kinds = [
            names::TRAIN_JOB,
            names::TRAINING_RUNTIME,
            names::CLUSTER_TRAINING_RUNTIME,
        ];
        if kinds.contains(&&*object.kind) {
            self.0.insert(object.source.clone(), object.value.clone());
        }
    }
}

/// The files and plugins of one run.
pub(crate) struct Run {
    pub(crate) catalog: Catalog,
    pub(crate) loaded: LoadedPlugins,
    /// The errors of the files. The valid TrainJobs are still checked.
    pub(crate) failure: ErrorList,
}

impl Run {
    /// Records the resources that plugin calls use, if `stats` is given.
    pub(crate) fn measured(mut self, stats: Option<&Arc<Stats>>) -> Self {
        if let Some(stats) = stats {
            let measure = |policy| stats.measure(policy);
            self.loaded.renderer = self.loaded.renderer.wrapped(measure);
        }
        self
    }
}

/// The result of a run.
pub(crate) struct RunResult {
    pub(crate) loaded: LoadedPlugins,
    /// The number of rendered TrainJobs.
    pub(crate) rendered: usize,
    /// The errors. Empty unless `--keep-going` is given.
    pub(crate) failure: ErrorList,
}

/// Prints the results, unless a TrainJob is refused and `--keep-going` is not given.
pub(crate) fn print(
    buffered: BufferedList,
    failure: ErrorList,
    keep_going: bool,
) -> Result<(), ErrorList> {
    if keep_going || failure.is_empty() {
        buffered.print()?;
    }
    failure.or_ok(())
}

/// Reads the files of a run and loads its plugins; what is wrong with either is told in one run. TrainJobs of another controller
/// are left out, with a warning.
pub(crate) fn read_and_load(input: &InputArgs, load: &LoadArgs) -> Result<Run, ErrorList> {
    read_with_originals(input, load, None)
}

/// The same, and keeps the objects as they were written if there is something to keep them in.
fn read_with_originals(
    input: &InputArgs,
    load: &LoadArgs,
    originals: Option<&mut Originals>,
) -> Result<Run, ErrorList> {
    let (catalog, mut failure) = read(input, originals)?;
    let without_runtime = catalog.without_runtime.iter();
    without_runtime.for_each(|missing| failure.add(missing));
    if catalog.jobs.is_empty() && failure.is_empty() {
        failure.add("there is no TrainJob in the input; give one with -f");
    }
    with_plugins(catalog, failure, load)
}

/// Loads the plugins for what was read.
fn with_plugins(
    mut catalog: Catalog,
    mut failure: ErrorList,
    load: &LoadArgs,
) -> Result<Run, ErrorList> {
    match LoadedPlugins::load(load) {
        Ok(loaded) => {
            catalog.jobs.retain(is_mine);
            check_runtimes(&catalog.stand_ins, &loaded.renderer, &mut failure);
            Ok(Run {
                catalog,
                loaded,
                failure,
            })
        }
        Err(refused) => {
            failure.absorb(refused);
            Err(failure)
        }
    }
}

/// Adds the errors of the runtimes of refused TrainJobs, so that both can be corrected at once.
fn check_runtimes(stand_ins: &[InputJob], renderer: &Renderer, failure: &mut ErrorList) {
    for job in stand_ins {
        let problems = renderer.plan(&job.train_job, &job.runtime).err();
        let problems = problems.into_iter().flatten();
        let of_runtime = problems.filter(|problem| problem.about() == InputObject::Runtime);
        of_runtime.for_each(|problem| failure.add(locate(job, &problem)));
    }
}

/// The counts of a check without errors.
pub(crate) struct CheckSummary {
    pub(crate) counts: Counts,
    /// The number of TrainJobs that plugins checked.
    pub(crate) rendered: usize,
    /// The number of TrainJobs whose runtime is not in the input.
    pub(crate) without_runtime: usize,
}

/// Reads the files of a run and, if plugins are given, renders the TrainJobs whose runtime is among them. What is wrong with any object
/// is told in one run.
pub(crate) fn check(input: &InputArgs, load: Option<&LoadArgs>) -> Result<CheckSummary, ErrorList> {
    let (catalog, failure) = read(input, None)?;
    let (counts, without_runtime) = (catalog.counts, catalog.without_runtime.len());
    let rendered = match load {
        Some(load) if !(catalog.jobs.is_empty() && catalog.stand_ins.is_empty()) => {
            let run = with_plugins(catalog, failure, load)?;
            render_run(run, false, |_, _| (), |_, ()| Ok(()))?.rendered
        }
        _ => failure.or_ok(0)?,
    };
    Ok(CheckSummary {
        counts,
        rendered,
        without_runtime,
    })
}

/// Reads the files of a run. The failure beside the catalog holds what is wrong so far: the TrainJobs that are in order
/// can still be judged.
fn read(
    args: &InputArgs,
    originals: Option<&mut Originals>,
) -> Result<(Catalog, ErrorList), ErrorList> {
    let (objects, mut failure) = admit(args, originals)?;
    let (catalog, errors) = Catalog::new(objects);
    catalog.warnings.iter().for_each(report::warn);
    errors.into_iter().for_each(|error| failure.add(error));
    Ok((catalog, failure))
}

/// Reads the files of a run, and lets in what an API server would; what stands against an object comes with it. The failure
/// holds what can't be read.
fn admit(
    args: &InputArgs,
    mut originals: Option<&mut Originals>,
) -> Result<(Vec<Admitted>, ErrorList), ErrorList> {
    let inputs = Inputs::read(&args.filename, std::io::stdin());
    inputs.warnings.iter().for_each(report::warn);
    let mut failure = ErrorList::from_iter(inputs.errors);
    let objects = picked(inputs.objects, args, &mut failure);
    let admission = Admission::default();
    let progress = Progress::new("checking", objects.len());
    let mut admitted = Vec::with_capacity(objects.len());
    let mut errors = 0;
    for object in objects {
        if let Some(originals) = &mut originals {
            originals.insert(&object);
        }
        let mut object = admission
            .admit(object, None, args.namespace())
            .map_err(|error| ErrorList::from_iter([error]))?;
        if errors > MAX_LINES && object.errors.len() > 1 {
            // They would not be printed. One remains, so that the object is refused.
            failure.omit(object.errors.len() - 1);
            object.errors.truncate(1);
            object.errors.shrink_to_fit();
        }
        errors += object.errors.len();
        admitted.push(object);
        progress.step();
    }
    progress.finish();
    Ok((admitted, failure))
}

/// Removes the TrainJobs that are not selected, if any are.
fn picked(mut objects: Vec<Object>, args: &InputArgs, failure: &mut ErrorList) -> Vec<Object> {
    if args.train_job.is_empty() {
        return objects;
    }
    let mut found: BTreeSet<usize> = BTreeSet::new();
    let mut others = BTreeSet::new();
    objects.retain(|object| {
        let groups = [names::TRAINER_GROUP, names::OLD_GROUP];
        if object.kind != names::TRAIN_JOB || !groups.contains(&object.group()) {
            return true;
        }
        let metadata = &object.metadata;
        let namespace = metadata.namespace.as_deref();
        let namespace = namespace.unwrap_or_else(|| args.namespace());
        let picks = args.train_job.iter().enumerate();
        let picks = picks.filter(|(_, pick)| pick.is_of(namespace, &metadata.name));
        let picks: Vec<_> = picks.map(|(at, _)| at).collect();
        if picks.is_empty() {
            others.insert(format!("{namespace}/{}", metadata.name));
        }
        found.extend(&picks);
        !picks.is_empty()
    });
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(", which has {}", listed(&others, MAX_LISTED)),
    };
    let missing = args.train_job.iter().enumerate();
    for (_, pick) in missing.filter(|(at, _)| !found.contains(at)) {
        failure.add(format!(
            "there is no TrainJob `{pick}` in the input{others}"
        ));
    }
    objects
}

/// Reads the files and renders every TrainJob. On the threads that render, `make` makes what is printed of a TrainJob out of what it
/// became, of which nothing else is kept; `keep` gets that in the order of the input, as long as nothing is refused or `--keep-going`
/// is given.
pub(crate) fn render_all<T: Send>(
    args: &RunArgs,
    make: impl Fn(&InputJob, &Rendered) -> T + Sync,
    keep: impl FnMut(&InputJob, T) -> Result<(), ErrorList>,
) -> Result<RunResult, ErrorList> {
    let run = read_and_load(&args.input, &args.load)?;
    render_run(run, args.keep_going, make, keep)
}

/// Like [`render_all`], but `make` also gets the original objects.
pub(crate) fn render_all_as_written<T: Send>(
    args: &RunArgs,
    stats: Option<&Arc<Stats>>,
    make: impl Fn(&InputJob, &Rendered, &Originals) -> T + Sync,
    keep: impl FnMut(&InputJob, T) -> Result<(), ErrorList>,
) -> Result<RunResult, ErrorList> {
    let mut originals = Originals::default();
    let run = read_with_originals(&args.input, &args.load, Some(&mut originals))?;
    let make = |job: &InputJob, rendered: &Rendered| make(job, rendered, &originals);
    render_run(run.measured(stats), args.keep_going, make, keep)
}

/// Renders the TrainJobs of a run, as [`render_all`] does.
pub(crate) fn render_run<T: Send>(
    run: Run,
    keep_going: bool,
    make: impl Fn(&InputJob, &Rendered) -> T + Sync,
    mut keep: impl FnMut(&InputJob, T) -> Result<(), ErrorList>,
) -> Result<RunResult, ErrorList> {
    let Run {
        catalog,
        loaded,
        mut failure,
    } = run;
    let mut rendered = 0;
    let progress = Progress::new("rendering", catalog.jobs.len());
    let one = |job: &InputJob| {
        let rendered = catalog.render(job, &loaded.renderer);
        let made = rendered.map(|rendered| (make(job, &rendered), rendered.warnings));
        progress.step();
        made
    };
    let done = loaded.run_in_order(&catalog.jobs, one, |job, result| match result {
        Ok(Ok((made, warnings))) => {
            progress.suspend(|| {
                warnings
                    .iter()
                    .for_each(|warning| report::warn(job.locate_warning(warning)));
            });
            rendered += 1;
            if keep_going || failure.is_empty() {
                keep(job, made)?;
            }
            Ok(())
        }
        Ok(Err(stopped)) => {
            for problem in stopped.problems() {
                failure.add(locate(job, problem));
            }
            for lookup in stopped.lookups() {
                failure.add(format!(
                    "{}; give a file that contains it with -f",
                    job.locate_lookup(lookup)
                ));
            }
            Ok(())
        }
        Err(panicked) => {
            failure.add(format!("{}: {panicked}", job.location()));
            Ok(())
        }
    });
    progress.finish();
    done?;
    if !keep_going && !failure.is_empty() {
        return Err(failure);
    }
    Ok(RunResult {
        loaded,
        rendered,
        failure,
    })
}

/// Returns the problem with its location in the input, and advice for the command line.
pub(crate) fn locate(job: &InputJob, problem: &Problem) -> Located {
    let mut located = job.locate(problem);
    if problem.is_unknown_plugin() {
        let advice = "; use `--plugin FILE.wasm` to load one that is not built in";
        located.message.push_str(advice);
    }
    located
}

/// Whether this controller would reconcile the TrainJob. Warns if not.
fn is_mine(job: &InputJob) -> bool {
    let mine = job.train_job.managed_by == names::MANAGED_BY_TRAINER;
    if !mine {
        report::warn(format!(
            "{}: spec.managedBy: is {}, so another controller manages this TrainJob; it is skipped",
            job.location(),
            job.train_job.managed_by
        ));
    }
    mine
}
