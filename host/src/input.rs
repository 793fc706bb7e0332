//! The input of a command: reads its files, loads the plugins for them, and renders its TrainJobs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use trainyard_api::{Admitted, Inputs, Located, Location, Object, Source, names};
use trainyard_model::{deadline::Deadline, text::listed};
use trainyard_render::{Catalog, Counts, InputJob, Problem, Rendered, Renderer, Stopped};

use crate::{
    args::{InputArgs, LoadArgs},
    load::LoadedPlugins,
    output::{BufferedList, Progress},
    policy,
    report::{self, ErrorList, MAX_LINES},
    stats::Stats,
};

/// The maximum number of TrainJobs that an error lists.
const MAX_LISTED_TRAIN_JOBS: usize = 8;

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

/// The objects of the input, with the plugins to render them.
pub(crate) struct Input {
    pub(crate) catalog: Catalog,
    pub(crate) loaded: LoadedPlugins,
    /// The maximum time for rendering one TrainJob.
    timeout: Duration,
    /// Whether there are PolicyPlugins, but no TrainJob.
    pub(crate) has_only_policies: bool,
    /// The errors of the input so far. The valid TrainJobs are still checked.
    pub(crate) failure: ErrorList,
}

impl Input {
    /// Measures plugin calls, if `stats` is set.
    pub(crate) fn measured(mut self, stats: Option<&Arc<Stats>>) -> Self {
        if let Some(stats) = stats {
            let measure = |plugin| stats.measure(plugin);
            self.loaded.renderer = self.loaded.renderer.wrapped(measure);
        }
        self
    }
}

/// An input whose TrainJobs were rendered.
pub(crate) struct RenderedInput {
    pub(crate) loaded: LoadedPlugins,
    /// The number of rendered TrainJobs.
    pub(crate) rendered: usize,
    /// The errors. Empty unless `--keep-going` is set.
    pub(crate) failure: ErrorList,
}

/// Prints the results, unless a TrainJob is refused and `--keep-going` is not set.
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

/// Reads the input and loads the plugins, and reports the errors of both. TrainJobs of another controller are skipped with a warning. Adds the
/// objects as they were read to `originals`.
pub(crate) fn read_and_load(
    input: &InputArgs,
    load: &LoadArgs,
    originals: Option<&mut Originals>,
) -> Result<Input, ErrorList> {
    let read = read_and_load_any(input, load, originals)?;
    match read.has_only_policies {
        true => Err(ErrorList::from_iter([NO_TRAIN_JOB])),
        false => Ok(read),
    }
}

const NO_TRAIN_JOB: &str = "there is no TrainJob in the input; pass one with -f";

/// Reads the input like [`read_and_load`], but it may have only PolicyPlugins.
pub(crate) fn read_and_load_any(
    input: &InputArgs,
    load: &LoadArgs,
    originals: Option<&mut Originals>,
) -> Result<Input, ErrorList> {
    let Admission {
        objects,
        policy_plugins,
        failure,
    } = admit(input, originals)?;
    let (catalog, mut failure) = catalog(objects, failure);
    let without_runtime = catalog.without_runtime.iter();
    without_runtime.for_each(|missing| failure.add(missing));
    let has_only_policies = catalog.jobs.is_empty() && !policy_plugins.is_empty();
    if catalog.jobs.is_empty() && failure.is_empty() && !has_only_policies {
        failure.add(NO_TRAIN_JOB);
    }
    let read = with_plugins(catalog, failure, load, &policy_plugins, input.limit.timeout)?;
    Ok(Input {
        has_only_policies,
        ..read
    })
}

/// Loads the plugins for the objects of a catalog.
fn with_plugins(
    mut catalog: Catalog,
    mut failure: ErrorList,
    load: &LoadArgs,
    policy_plugins: &[Object],
    timeout: Duration,
) -> Result<Input, ErrorList> {
    match LoadedPlugins::load_with(load, policy_plugins) {
        Ok(loaded) => {
            catalog.jobs.retain(is_ours);
            check_runtimes(&catalog.stand_ins, &loaded.renderer, &mut failure);
            Ok(Input {
                catalog,
                loaded,
                timeout,
                has_only_policies: false,
                failure,
            })
        }
        Err(refused) => {
            failure.absorb(refused);
            Err(failure)
        }
    }
}

/// Adds the errors of the runtimes of refused TrainJobs, so the user can correct both at once.
pub(crate) fn check_runtimes(stand_ins: &[InputJob], renderer: &Renderer, failure: &mut ErrorList) {
    for job in stand_ins {
        let of_runtime = renderer.runtime_problems(&job.train_job, &job.runtime, &job.namespace);
        let of_runtime = of_runtime.iter();
        of_runtime.for_each(|problem| failure.add(locate(job, problem)));
    }
}

/// What a check accepts although a cluster may refuse it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strictness {
    /// Whether forms of earlier releases are accepted that a cluster's API server refuses.
    pub(crate) allow_old_forms: bool,
    /// Whether a TrainJob is refused if its runtime is not in the input.
    pub(crate) require_runtimes: bool,
}

/// The counts of a check without errors.
pub(crate) struct CheckSummary {
    pub(crate) counts: Counts,
    /// The number of PolicyPlugins.
    pub(crate) policy_plugins: usize,
    /// The number of TrainJobs that plugins checked.
    pub(crate) rendered: usize,
    /// The number of TrainJobs whose runtime is not in the input.
    pub(crate) without_runtime: usize,
}

/// Reads the input and, if `load` is set, loads the plugins and renders the TrainJobs whose runtime is in the input. Reports the errors of all
/// objects.
pub(crate) fn check(
    input: &InputArgs,
    load: Option<&LoadArgs>,
    strictness: Strictness,
) -> Result<CheckSummary, ErrorList> {
    let Admission {
        mut objects,
        policy_plugins,
        mut failure,
    } = admit(input, None)?;
    if !strictness.allow_old_forms {
        let forms = objects.iter_mut().flat_map(Admitted::take_file_forms);
        forms.for_each(|form| failure.add(form));
    }
    let (catalog, mut failure) = catalog(objects, failure);
    for missing in &catalog.without_runtime {
        match strictness.require_runtimes {
            true => failure.add(missing),
            false => report::warn(missing),
        }
    }
    let (counts, without_runtime) = (catalog.counts, catalog.without_runtime.len());
    let rendered = match load {
        Some(load)
            if !(catalog.jobs.is_empty()
                && catalog.stand_ins.is_empty()
                && policy_plugins.is_empty()) =>
        {
            let timeout = input.limit.timeout;
            let input = with_plugins(catalog, failure, load, &policy_plugins, timeout)?;
            render(input, false, |_, _| (), |_, ()| Ok(()))?.rendered
        }
        _ => {
            if let Err(errors) = policy::Declared::read(&[], &policy_plugins) {
                failure.absorb(errors);
            }
            failure.or_ok(0)?
        }
    };
    Ok(CheckSummary {
        counts,
        policy_plugins: policy_plugins.len(),
        rendered,
        without_runtime,
    })
}

/// Sorts the objects of the input, and adds their errors to those so far.
pub(crate) fn catalog(objects: Vec<Admitted>, mut failure: ErrorList) -> (Catalog, ErrorList) {
    let (catalog, errors) = Catalog::new(objects);
    catalog.warnings.iter().for_each(report::warn);
    errors.into_iter().for_each(|error| failure.add(error));
    (catalog, failure)
}

/// The objects of the input.
pub(crate) struct Admission {
    /// The objects, each with its own errors.
    pub(crate) objects: Vec<Admitted>,
    /// The PolicyPlugins, which count as given by `--policy`.
    pub(crate) policy_plugins: Vec<Object>,
    /// The errors of unreadable files.
    pub(crate) failure: ErrorList,
}

/// Reads the objects of the input and admits them like an API server.
pub(crate) fn admit(
    args: &InputArgs,
    mut originals: Option<&mut Originals>,
) -> Result<Admission, ErrorList> {
    let inputs = Inputs::read(&args.filename, std::io::stdin());
    inputs.warnings.iter().for_each(report::warn);
    let mut failure = ErrorList::from_iter(inputs.errors);
    let objects = selected(inputs.objects, args, &mut failure);
    let (policy_plugins, objects): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(policy::is_policy_plugin);
    let admission = trainyard_schema::Admission::default();
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
            // The errors would not be printed. One is kept, because it marks the object as refused.
            failure.omit(object.errors.len() - 1);
            object.errors.truncate(1);
            object.errors.shrink_to_fit();
        }
        errors += object.errors.len();
        admitted.push(object);
        progress.step();
    }
    progress.finish();
    Ok(Admission {
        objects: admitted,
        policy_plugins,
        failure,
    })
}

/// Whether an object is a TrainJob of any release.
pub(crate) fn is_train_job(object: &Object) -> bool {
    is_of_any_release(object, &[names::TRAIN_JOB])
}

/// Whether an object is a runtime of any release.
pub(crate) fn is_runtime(object: &Object) -> bool {
    let kinds = [names::TRAINING_RUNTIME, names::CLUSTER_TRAINING_RUNTIME];
    is_of_any_release(object, &kinds)
}

fn is_of_any_release(object: &Object, kinds: &[&str]) -> bool {
    let groups = [names::TRAINER_GROUP, names::OLD_GROUP];
    kinds.contains(&&*object.kind) && groups.contains(&object.group())
}

/// Removes the TrainJobs that `--train-job` does not select.
pub(crate) fn selected(
    mut objects: Vec<Object>,
    args: &InputArgs,
    failure: &mut ErrorList,
) -> Vec<Object> {
    if args.train_job.is_empty() {
        return objects;
    }
    let mut found: BTreeSet<usize> = BTreeSet::new();
    let mut others = BTreeSet::new();
    objects.retain(|object| {
        if !is_train_job(object) {
            return true;
        }
        let metadata = &object.metadata;
        let namespace = metadata.namespace.as_deref();
        let namespace = namespace.unwrap_or_else(|| args.namespace());
        let matching = args.train_job.iter().enumerate();
        let matching = matching.filter(|(_, selected)| selected.is_of(namespace, &metadata.name));
        let matching: Vec<_> = matching.map(|(at, _)| at).collect();
        if matching.is_empty() {
            others.insert(format!("{namespace}/{}", metadata.name));
        }
        found.extend(&matching);
        !matching.is_empty()
    });
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(", which has {}", listed(&others, MAX_LISTED_TRAIN_JOBS)),
    };
    let missing = args.train_job.iter().enumerate();
    for (_, selected) in missing.filter(|(at, _)| !found.contains(at)) {
        failure.add(format!("TrainJob `{selected}` is not in the input{others}"));
    }
    objects
}

/// Renders the TrainJobs of the input. `make` runs on the rendering threads and returns what is kept of a result. `keep` is called with that in the
/// order of the input, unless a TrainJob was refused and `--keep-going` is not set.
pub(crate) fn render<T: Send>(
    input: Input,
    keep_going: bool,
    make: impl Fn(&InputJob, &Rendered) -> T + Sync,
    mut keep: impl FnMut(&InputJob, T) -> Result<(), ErrorList>,
) -> Result<RenderedInput, ErrorList> {
    let Input {
        catalog,
        loaded,
        timeout,
        mut failure,
        ..
    } = input;
    let mut rendered = 0;
    let progress = Progress::new("rendering", catalog.jobs.len());
    let one = |job: &InputJob| {
        let rendered = catalog.render(job, &loaded.renderer, &Deadline::after(timeout));
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
            let errors = errors_of(job, &stopped);
            errors.for_each(|error| failure.add(error));
            Ok(())
        }
        Err(panicked) => {
            failure.add(Located {
                location: job.location().clone(),
                message: panicked.to_string(),
            });
            Ok(())
        }
    });
    progress.finish();
    done?;
    if !keep_going && !failure.is_empty() {
        return Err(failure);
    }
    Ok(RenderedInput {
        loaded,
        rendered,
        failure,
    })
}

/// Returns why a TrainJob cannot be rendered, with locations in the input and advice for the command line.
pub(crate) fn errors_of<'a>(
    job: &'a InputJob,
    stopped: &'a Stopped,
) -> impl Iterator<Item = Located> + 'a {
    const ADVICE: &str = "pass a file that contains it with -f";
    let problems = stopped.problems().iter();
    let problems = problems.map(|problem| locate(job, problem));
    let lookups = stopped.lookups().iter();
    problems.chain(lookups.map(|lookup| advised(job.locate_lookup(lookup), ADVICE)))
}

/// Returns the problem with its location in the input, and advice for the command line.
pub(crate) fn locate(job: &InputJob, problem: &Problem) -> Located {
    let located = job.locate(problem);
    match problem.is_unknown_plugin() {
        true => advised(
            located,
            "use `--plugin FILE.wasm` to load one that is not built in",
        ),
        false => located,
    }
}

/// Adds advice for the command line.
fn advised(located: Located, advice: &str) -> Located {
    Located {
        message: format!("{}; {advice}", located.message),
        ..located
    }
}

/// Whether this controller would reconcile the TrainJob. Warns if not.
pub(crate) fn is_ours(job: &InputJob) -> bool {
    let warning = job.of_another();
    warning.iter().for_each(report::warn);
    warning.is_none()
}

/// The file of TrainJobs that are not in the input.
const STAND_INS: &str = "(a TrainJob that only names a runtime)";

/// Returns a TrainJob for each runtime, with names that no object of the input has.
pub(crate) fn stand_ins(objects: &[Admitted], namespace: &str) -> Result<Vec<Admitted>, ErrorList> {
    let runtimes = objects.iter().filter(|one| is_runtime(&one.object));
    let admission = trainyard_schema::Admission::default();
    let mut all = Vec::new();
    let names: BTreeSet<_> = objects
        .iter()
        .map(|one| &*one.object.metadata.name)
        .collect();
    let free = (0..).map(|at| format!("example-{at}"));
    let free = free.filter(|name| !names.contains(name.as_str()));
    for (runtime, name) in runtimes.zip(free) {
        let job = json!({
            "apiVersion": names::TRAINER_API_VERSION,
            "kind": names::TRAIN_JOB,
            "metadata": {"name": name, "namespace": runtime.namespace},
            "spec": {
                "runtimeRef": {"kind": runtime.object.kind, "name": runtime.object.metadata.name},
                "trainer": {"command": ["true"]},
            },
        });
        for object in Inputs::read_text(STAND_INS, &job.to_string()).objects {
            let admitted = admission.admit(object, None, namespace);
            all.push(admitted.map_err(|error| ErrorList::from_iter([error]))?);
        }
    }
    Ok(all)
}

/// Whether it is a TrainJob of [`stand_ins`].
pub(crate) fn is_stand_in(job: &InputJob) -> bool {
    job.location().file == STAND_INS
}
