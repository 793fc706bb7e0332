//! The objects of the input: TrainJobs with their runtimes, and objects that plugins look up.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use trainyard_api::{
    Admitted, FieldPath, FirstLocations, Located, Location, ObjectRole, Runtime, TrainJob, names,
    runtime::RuntimeKind,
};
use trainyard_model::{
    deadline::Deadline,
    lookup::{LookupAnswer, LookupKey, Lookups, Requester},
    pipeline::with_answers,
    text::{listed, nearest},
};

use crate::{Rendered, Renderer, Stopped, differences, input_job::InputJob};

/// All objects of the input.
pub struct Catalog {
    /// The TrainJobs, in the order of the input.
    pub jobs: Vec<InputJob>,
    /// For each runtime that only refused TrainJobs reference, a TrainJob with nothing but this reference. Planning it finds the errors of
    /// the runtime in the same run.
    pub stand_ins: Vec<InputJob>,
    /// The errors of TrainJobs whose runtime is not in the input.
    pub without_runtime: Vec<Located>,
    /// The number of objects, including refused ones.
    pub counts: Counts,
    /// Warnings about forms of earlier releases, with the current form.
    pub warnings: Vec<Located>,
    objects: Objects,
}

/// The number of objects of the input by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// TrainJobs.
    pub train_jobs: usize,
    /// Runtimes, of both kinds.
    pub runtimes: usize,
    /// Objects of other kinds, which are not checked.
    pub others: usize,
}

/// The maximum number of runtimes that an error lists.
const MAX_LISTED_RUNTIMES: usize = 8;

/// An API version, a kind, a namespace and a name.
type ObjectKey = (String, String, Option<String>, String);
type Objects = BTreeMap<ObjectKey, Arc<Value>>;
type RuntimeKey = (RuntimeKind, Option<String>, String);

impl Catalog {
    /// Sorts the objects of the input. Also returns the errors of TrainJobs and runtimes, and of objects with the same name. The catalog contains
    /// the valid TrainJobs, so errors that rendering finds are reported in the same run.
    #[must_use]
    pub fn new(objects: impl IntoIterator<Item = Admitted>) -> (Self, Vec<Located>) {
        let mut reader = CatalogBuilder::default();
        for object in objects {
            reader.add(object);
        }
        reader.finish()
    }

    /// Renders a TrainJob, with a deadline for all lookups together. Its plugins, and the comparison with Kueue, look up objects of the input.
    ///
    /// # Errors
    /// All problems of the TrainJob, [`Stopped::Needs`] if an object is not in the input, or
    /// [`Problem::Overdue`](crate::Problem::Overdue) if the deadline passes.
    pub fn render(
        &self,
        job: &InputJob,
        renderer: &Renderer,
        deadline: &Deadline,
    ) -> Result<Rendered, Stopped> {
        self.render_with(job, renderer, deadline, |_| None)
    }

    /// Renders a TrainJob. `answer` has the answers that replace those from the objects of the input, such as for kinds that a cluster does
    /// not serve.
    ///
    /// # Errors
    /// As for [`Self::render`].
    pub fn render_with(
        &self,
        job: &InputJob,
        renderer: &Renderer,
        deadline: &Deadline,
        answer: impl Fn(&LookupKey) -> Option<LookupAnswer>,
    ) -> Result<Rendered, Stopped> {
        let catalog = renderer.facts().catalog.as_deref();
        let answer = |key: &LookupKey| answer(key).or_else(|| self.answer(job, key, catalog));
        let mut rendered = with_answers(answer, |lookups| {
            let InputJob {
                train_job,
                runtime,
                namespace,
                ..
            } = job;
            renderer.render(train_job, runtime, namespace, lookups, deadline)
        })?;
        let mut known = Lookups::default();
        for key in differences::lookups(&job.train_job, &job.runtime) {
            if let Some(answer) = answer(&key) {
                known.insert(key, answer);
            }
        }
        if !known.is_empty() {
            rendered.warn_of_differences(&job.train_job, &job.runtime, &known);
        }
        Ok(rendered)
    }

    /// Returns the answer to a lookup, with the namespace of the operator's catalog. `None` if the object is not in the input. Every kind
    /// counts as served.
    #[must_use]
    pub fn answer(
        &self,
        job: &InputJob,
        key: &LookupKey,
        catalog: Option<&str>,
    ) -> Option<LookupAnswer> {
        let Some(namespace) = key.namespace(&*job.namespace, catalog) else {
            return key.answer_without_object();
        };
        match key {
            LookupKey::Object(object)
            | LookupKey::Optional(object)
            | LookupKey::Catalog(object) => {
                let find = |namespace: Option<&str>| {
                    let key = (
                        object.api_version.clone(),
                        object.kind.clone(),
                        namespace.map(str::to_owned),
                        object.name.clone(),
                    );
                    self.objects.get(&key)
                };
                let is_in_catalog = matches!(key, LookupKey::Catalog(_));
                find(Some(namespace))
                    .or_else(|| find(None).filter(|_| !is_in_catalog))
                    .cloned()
                    .map(LookupAnswer::Object)
                    .or_else(|| key.answer_without_object())
            }
            LookupKey::All { api_version, kind } => {
                let of_kind = self.objects.iter().filter(|((version, k, scope, _), _)| {
                    version == api_version
                        && k == kind
                        && scope.as_deref().is_none_or(|scope| scope == namespace)
                });
                let asker = Requester {
                    name: &job.train_job.metadata.name,
                    uid: job.train_job.metadata.uid.as_deref(),
                };
                let objects = of_kind.map(|(_, value)| value.clone()).collect();
                Some(LookupAnswer::all(objects, asker))
            }
            LookupKey::Served { .. } => Some(LookupAnswer::Served(true)),
        }
    }
}

#[derive(Default)]
struct CatalogBuilder {
    jobs: Vec<(TrainJob, String, Location)>,
    /// Refused TrainJobs, reduced to their reference to a runtime.
    refused: Vec<(TrainJob, String, Location)>,
    runtimes: BTreeMap<RuntimeKey, (Arc<Runtime>, Location)>,
    broken_runtimes: BTreeSet<RuntimeKey>,
    objects: Objects,
    first_locations: FirstLocations,
    counts: Counts,
    warnings: Vec<Located>,
    errors: Vec<Located>,
}

impl CatalogBuilder {
    /// Adds an object. A second object of the same name is checked and then ignored.
    fn add(&mut self, admitted: Admitted) {
        let double = self.first_locations.add(&admitted).err();
        let is_first = double.is_none();
        self.errors.extend(double.map(|double| *double));
        self.warnings.extend(admitted.warnings.iter().cloned());
        match ObjectRole::of(&admitted) {
            Ok(ObjectRole::TrainJob) => self.add_job(admitted, is_first),
            Ok(ObjectRole::Runtime(kind)) => self.add_runtime(admitted, kind, is_first),
            Ok(ObjectRole::Foreign) => {
                self.counts.others += 1;
                let object = admitted.object;
                let name = object.metadata.name.clone();
                let namespace = object.metadata.namespace.clone();
                let key = (object.api_version, object.kind, namespace, name);
                let value = || Arc::new(object.value);
                self.objects.entry(key).or_insert_with(value);
            }
            Err(unknown) => self.errors.push(*unknown),
        }
    }

    fn add_job(&mut self, mut admitted: Admitted, is_first: bool) {
        self.counts.train_jobs += 1;
        match admitted.train_job() {
            Some(job) if is_first => {
                let location = admitted.location();
                let namespace = admitted.namespace.unwrap_or_default();
                self.jobs.push((job, namespace, location));
            }
            Some(_) => {}
            None => {
                let location = admitted.location();
                self.errors.extend(admitted.errors);
                let namespace = admitted.namespace.unwrap_or_default();
                let job = TrainJob::of_runtime_alone(&admitted.object);
                self.refused
                    .extend(job.map(|job| (job, namespace, location)));
            }
        }
    }

    fn add_runtime(&mut self, mut admitted: Admitted, kind: RuntimeKind, is_first: bool) {
        self.counts.runtimes += 1;
        let name = admitted.object.metadata.name.clone();
        let key = (kind, admitted.namespace.clone(), name);
        match admitted.runtime() {
            Some(runtime) if is_first => {
                let location = admitted.location();
                self.runtimes.insert(key, (Arc::new(runtime), location));
            }
            Some(_) => {}
            None => {
                self.broken_runtimes.insert(key);
                self.errors.extend(admitted.errors);
            }
        }
    }

    fn finish(self) -> (Catalog, Vec<Located>) {
        let existing: BTreeSet<_> = self.runtimes.keys().chain(&self.broken_runtimes).collect();
        let (mut jobs, mut without_runtime) = (Vec::new(), Vec::new());
        let default_queues = default_queues(&self.objects);
        let (mut used, mut stand_ins) = (BTreeSet::new(), BTreeMap::new());
        let all = self.jobs.into_iter().map(|job| (job, true));
        let all = all.chain(self.refused.into_iter().map(|job| (job, false)));
        for ((mut job, namespace, location), is_whole) in all {
            if default_queues.contains(&None::<&str>)
                || default_queues.contains(&Some(namespace.as_str()))
            {
                queue(&mut job);
            }
            let reference = &job.runtime_ref;
            let scope = (reference.kind == RuntimeKind::Namespaced).then(|| namespace.clone());
            let key = (reference.kind, scope, reference.name.clone());
            if self.broken_runtimes.contains(&key) {
                continue;
            }
            match self.runtimes.get(&key) {
                Some((runtime, runtime_location)) => {
                    let job = InputJob {
                        train_job: job,
                        namespace,
                        runtime: runtime.clone(),
                        location,
                        runtime_location: runtime_location.clone(),
                    };
                    if is_whole {
                        used.insert(key);
                        jobs.push(job);
                    } else if !used.contains(&key) {
                        stand_ins.entry(key).or_insert(job);
                    }
                }
                None => {
                    without_runtime.push(missing_runtime(&key, &namespace, location, &existing))
                }
            }
        }
        (
            Catalog {
                jobs,
                stand_ins: stand_ins.into_values().collect(),
                without_runtime,
                counts: self.counts,
                warnings: self.warnings,
                objects: self.objects,
            },
            self.errors,
        )
    }
}

/// Returns the namespaces that have a LocalQueue `default`.
fn default_queues(objects: &Objects) -> BTreeSet<Option<&str>> {
    let queues = objects.keys().filter(|(version, kind, _, name)| {
        version.starts_with("kueue.x-k8s.io/")
            && (kind.as_str(), name.as_str()) == ("LocalQueue", names::DEFAULT_QUEUE)
    });
    queues
        .map(|(_, _, namespace, _)| namespace.as_deref())
        .collect()
}

/// Sets the label of the queue as Kueue's webhook does in such a namespace.
fn queue(job: &mut TrainJob) {
    let labels = &mut job.metadata.labels;
    if !labels.contains_key(names::QUEUE_LABEL) {
        labels.insert(
            names::QUEUE_LABEL.to_owned(),
            names::DEFAULT_QUEUE.to_owned(),
        );
    }
}

/// Returns the error of a TrainJob in `of_job`, whose runtime is not among the existing ones.
fn missing_runtime(
    (kind, namespace, name): &RuntimeKey,
    of_job: &str,
    location: Location,
    existing: &BTreeSet<&RuntimeKey>,
) -> Located {
    let names = existing.iter().map(|(_, _, name)| name.as_str());
    let similar = match same_name(name, of_job, existing) {
        Some(advice) => advice,
        None => nearest(name, names)
            .map_or_else(String::new, |near| format!(", or did you mean `{near}`?")),
    };
    let existing = match existing.is_empty() {
        true => "no runtimes".to_owned(),
        false => listed(existing.iter().map(|key| shown(key)), MAX_LISTED_RUNTIMES),
    };
    let whole = namespace
        .as_ref()
        .map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"));
    Located {
        location: location.at(FieldPath::of(["spec", "runtimeRef", "name"])),
        message: format!(
            "{kind} `{whole}` is not in the input, which has {existing}; add it to the input{similar}"
        ),
    }
}

/// Returns how a TrainJob can have a runtime of that name, which is of another kind or in another namespace.
fn same_name(name: &str, of_job: &str, existing: &BTreeSet<&RuntimeKey>) -> Option<String> {
    let named = existing.iter().filter(|(.., other)| other == name);
    let is_usable = |namespace: &Option<String>| namespace.as_deref().is_none_or(|it| it == of_job);
    let (usable, others): (Vec<_>, Vec<_>) =
        named.partition(|(_, namespace, _)| is_usable(namespace));
    let of_kind = |(kind, ..): &&RuntimeKey| {
        format!(", or set `spec.runtimeRef.kind` to `{kind}`, which has this name")
    };
    let elsewhere = |(kind, namespace, _): &&RuntimeKey| {
        let namespace = namespace.as_deref().unwrap_or_default();
        format!(
            ", or create the TrainJob in the namespace `{namespace}`, because only TrainJobs there can use this {kind}"
        )
    };
    let usable = usable.first().map(of_kind);
    usable.or_else(|| others.first().map(elsewhere))
}

fn shown((kind, namespace, name): &RuntimeKey) -> String {
    match namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}
