//! Compares what Trainyard renders for each TrainJob with what the reference made of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Value, json};
use trainyard_api::{Admitted, Inputs, Located, names};
use trainyard_controller::reconcile::Snapshot;
use trainyard_divergences::{
    difference::{Answer, Refusal},
    listing::used,
    live::{is_secret, listed, written},
    seen::Subject,
};
use trainyard_model::{deadline::Deadline, record::Accelerators};
use trainyard_render::{Catalog, InputJob, InputObject, Rendered, Renderer, Stopped};
use trainyard_schema::Admission;

use super::{
    cluster::Cluster,
    keys::{Key, id, job_key, key_of, key_of_id, reference_of, runtime_key},
    live::{LiveJob, Maker, OwnedObjects},
    objects::{ComparedWith, Effect, Finding, ObjectReport},
    report::DiffReport,
    source::Source,
    subject::{add_to, refusal, refused, with_namespace},
};
use crate::{
    input::{self, errors_of, is_stand_in, locate},
    load::LoadedPlugins,
    output::Progress,
    report::ErrorList,
};

/// The TrainJobs and runtimes to compare.
pub(super) struct Comparison<'a> {
    catalog: Catalog,
    cluster: Option<&'a Cluster>,
    accelerators: &'a Accelerators,
    live: OwnedObjects,
    /// TrainJobs and runtimes as their authors wrote them.
    originals: BTreeMap<Key, Value>,
    /// The LimitRanges of the input.
    limit_ranges: Vec<Value>,
    /// The errors of objects that cannot be rendered, and warnings about old forms.
    found: BTreeMap<Key, Vec<Finding>>,
    gaps: Vec<String>,
    notes: Vec<String>,
}

impl<'a> Comparison<'a> {
    /// Admits the objects as an API server with Trainyard's CRDs does.
    pub(super) fn new(
        source: Source,
        namespace: &str,
        cluster: Option<&'a Cluster>,
        accelerators: &'a Accelerators,
    ) -> Result<Self, ErrorList> {
        let Source {
            objects,
            live,
            gaps,
            mut notes,
            releases,
            ..
        } = source;
        notes.extend(releases);
        let admission = Admission::default();
        let progress = Progress::new("checking", objects.len());
        let (mut admitted, mut originals, mut limit_ranges) =
            (Vec::new(), BTreeMap::new(), Vec::new());
        for object in objects {
            let is_ours = input::is_train_job(&object) || input::is_runtime(&object);
            let value = object.value.clone();
            let one = admission.admit(object, None, namespace);
            let one = one.map_err(|error| ErrorList::from_iter([error]))?;
            if is_ours {
                let value = with_namespace(value, one.namespace.as_deref());
                originals.entry(key_of(&one)).or_insert(value);
            } else if one.object.is("v1", "LimitRange") {
                limit_ranges.push(value);
            }
            admitted.push(one);
            progress.step();
        }
        progress.finish();
        let mut comparison = Self {
            catalog: Catalog::new([]).0,
            cluster,
            accelerators,
            live,
            originals,
            limit_ranges,
            found: BTreeMap::new(),
            gaps,
            notes,
        };
        for form in admitted.iter_mut().flat_map(Admitted::take_file_forms) {
            comparison.add(Effect::Fails, &form);
        }
        let kept = comparison.with_kept_runtimes(&admission, &mut admitted, namespace)?;
        admitted.extend(input::stand_ins(&admitted, namespace)?);
        comparison.catalog = comparison.cataloged(admitted);
        for objects in kept {
            let catalog = comparison.cataloged(objects);
            comparison.catalog.jobs.extend(catalog.jobs);
        }
        Ok(comparison)
    }

    /// Returns a catalog, and adds what was found at its objects.
    fn cataloged(&mut self, objects: Vec<Admitted>) -> Catalog {
        let (catalog, errors) = Catalog::new(objects);
        let missing = catalog.without_runtime.iter();
        let warnings = catalog.warnings.iter();
        let found = errors.iter().map(|error| (Effect::Fails, error));
        let found = found.chain(missing.map(|error| (Effect::NotCompared, error)));
        let found = found.chain(warnings.map(|warning| (Effect::Warns, warning)));
        found.for_each(|(effect, located)| self.add(effect, located));
        catalog
    }

    /// Takes each TrainJob whose runtime was deleted and is kept in its snapshot, with this runtime and the queues that it may be in. The
    /// snapshot of one TrainJob, which its author can write, says nothing about other TrainJobs.
    fn with_kept_runtimes(
        &self,
        admission: &Admission,
        admitted: &mut Vec<Admitted>,
        namespace: &str,
    ) -> Result<Vec<Vec<Admitted>>, ErrorList> {
        let is_queue = |one: &&Admitted| one.object.kind == "LocalQueue";
        let queues: Vec<_> = admitted.iter().filter(is_queue).cloned().collect();
        let (mut kept, mut others) = (Vec::new(), Vec::new());
        for one in std::mem::take(admitted) {
            let Some(runtime) = self.kept_runtime(&one) else {
                others.push(one);
                continue;
            };
            let of_job = one.namespace.clone();
            let mut objects = queues.clone();
            objects.push(one);
            let file = "the snapshot of a TrainJob";
            for object in Inputs::read_text(file, &runtime.to_string()).objects {
                let runtime = admission.admit(object, None, of_job.as_deref().unwrap_or(namespace));
                let mut runtime = runtime.map_err(|error| ErrorList::from_iter([error]))?;
                // It was accepted when the snapshot was made.
                runtime.errors.clear();
                objects.push(runtime);
            }
            kept.push(objects);
        }
        *admitted = others;
        Ok(kept)
    }

    /// Returns the runtime in the snapshot of a TrainJob, if there is no other one.
    fn kept_runtime(&self, one: &Admitted) -> Option<Value> {
        let is_job = input::is_train_job(&one.object);
        let job = self.originals.get(&key_of(one)).filter(|_| is_job)?;
        let reference = reference_of(job, one.namespace.as_deref()?);
        let runtime = self.live.of(job)?.runtime?.ok()?;
        let is_needed = !self.originals.contains_key(&reference);
        (is_needed && Snapshot::new(runtime.clone()).is_ok()).then_some(runtime)
    }

    /// Adds what was found at an object.
    fn add(&mut self, effect: Effect, located: &Located) {
        let Some(object) = &located.location.object else {
            self.gaps.push(located.to_string());
            return;
        };
        if effect == Effect::Fails {
            return add_to(&mut self.found, &self.originals, self.accelerators, located);
        }
        let key = key_of_id(object);
        let finding = match effect {
            Effect::NotCompared => Finding::not_compared(located),
            _ => Finding::warning(located),
        };
        self.found.entry(key).or_default().push(finding);
    }

    /// Renders and compares everything.
    pub(super) fn run(
        mut self,
        loaded: &LoadedPlugins,
        timeout: Duration,
    ) -> Result<DiffReport, ErrorList> {
        for job in &self.catalog.stand_ins {
            let problems =
                loaded
                    .renderer
                    .runtime_problems(&job.train_job, &job.runtime, &job.namespace);
            for problem in &problems {
                add_to(
                    &mut self.found,
                    &self.originals,
                    self.accelerators,
                    &locate(job, problem),
                );
            }
        }
        let mut report = DiffReport::default();
        let rendered = self.compare_all(loaded, timeout, &mut report)?;
        for key in self.originals.keys().filter(|key| !rendered.contains(*key)) {
            let found: Vec<_> = self.found_at(key).collect();
            let says_why = found.iter().any(|it| it.effect >= Effect::NotCompared);
            let why = (!says_why).then(|| {
                let why = "it was not rendered because of the errors of another object, such as its runtime";
                Finding::failed(why.to_owned())
            });
            report.add(
                id(key),
                ObjectReport::not_rendered().with(found.into_iter().chain(why)),
            );
        }
        let gaps = self.cluster.map(Cluster::gaps).unwrap_or_default();
        report.not_read.extend(self.found_at_others());
        report.not_read.extend(self.gaps.into_iter().chain(gaps));
        report.notes = self.notes;
        report.finish();
        Ok(report)
    }

    /// Compares what can be rendered, and returns the TrainJobs and runtimes that were.
    fn compare_all(
        &self,
        loaded: &LoadedPlugins,
        timeout: Duration,
        report: &mut DiffReport,
    ) -> Result<BTreeSet<Key>, ErrorList> {
        let progress = Progress::new("comparing", self.catalog.jobs.len());
        let one = |job: &InputJob| {
            let compared = self.compare(job, &loaded.renderer, timeout);
            progress.step();
            compared
        };
        let mut rendered = BTreeSet::new();
        let done = loaded.run_in_order(&self.catalog.jobs, one, |job, compared| {
            let key = match is_stand_in(job) {
                true => runtime_key(job),
                false => job_key(job),
            };
            let compared =
                compared.unwrap_or_else(|panicked| ObjectReport::failed(panicked.to_string()));
            report.add(id(&key), compared.with(self.found_at(&key)));
            rendered.insert(key);
            Ok(())
        });
        progress.finish();
        done.map(|()| rendered)
    }

    /// Returns what was found at an object before it was rendered.
    fn found_at(&self, key: &Key) -> impl Iterator<Item = Finding> {
        self.found.get(key).into_iter().flatten().cloned()
    }

    /// Returns what was found at objects that are neither TrainJobs nor runtimes.
    fn found_at_others(&self) -> Vec<String> {
        let others = self.found.iter();
        let others = others.filter(|(key, _)| !self.originals.contains_key(*key));
        let others = others.flat_map(|(key, found)| found.iter().map(move |one| (key, one)));
        others
            .map(|(key, one)| format!("{}: {}", id(key), one.message))
            .collect()
    }

    fn compare(&self, job: &InputJob, renderer: &Renderer, timeout: Duration) -> ObjectReport {
        let deadline = Deadline::after(timeout);
        let key = job_key(job);
        // A runtime is compared by a TrainJob with nothing but a command.
        let stand_in = json!({"spec": {"trainer": {"command": ["true"]}}});
        let original = self.originals.get(&key).unwrap_or(&stand_in);
        let live = self.live.of(original);
        let snapshot = live.as_ref().and_then(|live| live.runtime.clone());
        let snapshot = snapshot.map(|kept| kept.and_then(Snapshot::new));
        let (snapshot, broken) = match snapshot.transpose() {
            Ok(snapshot) => (snapshot, None),
            Err(problem) => (None, Some(problem)),
        };
        let rendered = match &snapshot {
            Some(snapshot) => {
                let mut job = job.clone();
                job.runtime = snapshot.runtime.clone();
                self.render(&job, renderer, &deadline)
            }
            None => self.render(job, renderer, &deadline),
        };
        if job.of_another().is_some() {
            return ObjectReport::of_another(job.train_job.managed_by.clone());
        }
        let ranges = self.limit_ranges(&job.namespace);
        let current = self.originals.get(&runtime_key(job));
        let subject = Subject {
            job: original,
            runtime: snapshot
                .as_ref()
                .map(Snapshot::runtime_object)
                .or(current)
                .unwrap_or(&Value::Null),
            documents: &ranges,
            accelerators: self.accelerators,
        };
        if is_stand_in(job) {
            return of_runtime(job, subject, &rendered);
        }
        let (with, mut findings) = match (&rendered, &live) {
            (Err(stopped), _) => {
                let refusals = self.errors(job, stopped);
                (ComparedWith::of(live.as_ref()), refused(subject, refusals))
            }
            (Ok(rendered), Some(live)) => {
                let findings = match &live.maker {
                    Maker::Reference => self.differences(subject, rendered, live),
                    Maker::Trainyard => Vec::new(),
                    Maker::Unknown(problem) => vec![Finding::failed(problem.clone())],
                };
                (ComparedWith::of(Some(live)), findings)
            }
            (Ok(_), None) => (
                ComparedWith::Nothing,
                used(subject).map(Finding::of_use).collect(),
            ),
        };
        if let Ok(rendered) = &rendered {
            let warnings = rendered
                .warnings
                .iter()
                .map(|warning| job.locate_warning(warning));
            let warnings = warnings.map(|warning| Finding::warning(&warning));
            let is_of_known_runtime =
                |warning: &Finding| current.is_some() && warning.is_warning_of_runtime();
            findings.extend(warnings.filter(|warning| !is_of_known_runtime(warning)));
        }
        findings.extend(broken.map(|problem| {
            Finding::failed(format!(
                "the runtime in its snapshot cannot be read, so the current one was used: {problem}"
            ))
        }));
        ObjectReport::new(state(original), with, findings)
    }

    fn render(
        &self,
        job: &InputJob,
        renderer: &Renderer,
        deadline: &Deadline,
    ) -> Result<Rendered, Stopped> {
        let Some(cluster) = self.cluster else {
            return self.catalog.render(job, renderer, deadline);
        };
        let catalog = renderer.facts().catalog.as_deref();
        self.catalog.render_with(job, renderer, deadline, |key| {
            cluster.answer(job, key, catalog)
        })
    }

    /// Compares the rendered objects with the live ones.
    fn differences(
        &self,
        subject: Subject<'_>,
        rendered: &Rendered,
        live: &LiveJob<'_>,
    ) -> Vec<Finding> {
        let is_compared = |object: &&Value| {
            let text = |field: &str| {
                object
                    .get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let (api_version, kind) = (text("apiVersion"), text("kind"));
            let is_read = self.live.has_read(api_version, kind);
            let is_of_reference = super::live::KINDS.contains(&(api_version, kind));
            !is_secret(api_version, kind) && (is_read || !is_of_reference)
        };
        let ours = rendered.all_objects().filter(is_compared).map(written);
        let theirs = live.objects.iter().copied().map(written);
        let ours = Answer {
            objects: ours.collect(),
            ..Answer::default()
        };
        let theirs = Answer {
            objects: theirs.collect(),
            ..Answer::default()
        };
        let found = listed(subject, &ours, &theirs).into_iter();
        found.map(Finding::of_difference).collect()
    }

    /// Returns why a TrainJob cannot be rendered. In a cluster, no file can be added.
    fn errors(&self, job: &InputJob, stopped: &Stopped) -> Vec<Refusal> {
        if self.cluster.is_none() {
            return errors_of(job, stopped)
                .map(|error| refusal(&error))
                .collect();
        }
        let problems = stopped
            .problems()
            .iter()
            .map(|problem| locate(job, problem));
        let lookups = stopped
            .lookups()
            .iter()
            .map(|lookup| job.locate_lookup(lookup));
        problems
            .chain(lookups)
            .map(|error| refusal(&error))
            .collect()
    }

    fn limit_ranges(&self, namespace: &str) -> Vec<Value> {
        if let Some(cluster) = self.cluster {
            return cluster.limit_ranges(namespace);
        }
        let is_here = |range: &&Value| {
            let own = range.pointer("/metadata/namespace").and_then(Value::as_str);
            own.is_none_or(|own| own == namespace)
        };
        self.limit_ranges.iter().filter(is_here).cloned().collect()
    }
}

/// Returns what is found of a runtime, by a TrainJob that only names it. A runtime need not be able to run such a TrainJob.
fn of_runtime(
    job: &InputJob,
    subject: Subject<'_>,
    rendered: &Result<Rendered, Stopped>,
) -> ObjectReport {
    let is_runtimes = |located: &Located| {
        let object = located.location.object.as_ref();
        object.is_some_and(|object| object.kind != names::TRAIN_JOB)
    };
    let mut findings = match rendered {
        Ok(rendered) => {
            let warnings = rendered.warnings.iter();
            let warnings = warnings.filter(|warning| warning.about == InputObject::Runtime);
            let warnings = warnings.map(|warning| job.locate_warning(warning));
            warnings.map(|warning| Finding::warning(&warning)).collect()
        }
        Err(stopped) => {
            let errors = errors_of(job, stopped).filter(is_runtimes);
            refused(subject, errors.map(|error| refusal(&error)).collect())
        }
    };
    findings.extend(used(subject).map(Finding::of_use));
    ObjectReport::new(None, ComparedWith::Nothing, findings)
}

/// Returns what a TrainJob is doing, by its status.
pub(super) fn state(job: &Value) -> Option<&'static str> {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    let is = |kind: &str| {
        let mut all = conditions.into_iter().flatten();
        all.any(|it| {
            it.get("type").is_some_and(|of| of == kind)
                && it.get("status").is_some_and(|of| of == "True")
        })
    };
    let is_suspended = job.pointer("/spec/suspend") == Some(&Value::Bool(true));
    let states = [
        (is("Complete"), "complete"),
        (is("Failed"), "failed"),
        (is_suspended, "suspended"),
    ];
    states
        .into_iter()
        .find_map(|(is, state)| is.then_some(state))
}
