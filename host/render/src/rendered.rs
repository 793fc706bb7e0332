//! The result of a rendering.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_api::{
    FieldPath, Runtime, TrainJob,
    path::{PathError, Segment},
};
use trainyard_model::{
    call::Write,
    facts::Facts,
    lookup::Lookups,
    object::{ApplyMode, Content, DataValue, EmittedObject, ObjectKind, ObjectName, SecretValue},
    plan::Plan,
    plugin_info::PluginId,
    session::Session,
};

use crate::{
    assemble,
    differences::{self, Rendering},
    entries,
    explain::{Defaults, NoSuchField, Origins, Provenance, Setter},
    problem::{Problem, Warning},
    resolve::{self, Resolved},
    select::{self, Active, DisabledPlugin, PlannedPlugins, plan_of},
    unplaceable,
    validation::{self, FieldProblem},
};

/// The result of a rendering.
#[derive(Debug)]
pub struct Rendered {
    /// The objects other than the JobSet, in the order in which they are applied.
    pub objects: Vec<RenderedObject>,
    /// The JobSet, which is applied last.
    pub job_set: Value,
    /// The plugins that ran, in order, with their configurations.
    pub plan: Vec<Active>,
    /// The plugins that would have run if they were not disabled for the TrainJob, by name.
    pub disabled: Vec<DisabledPlugin>,
    /// The warnings; those of differences are last.
    pub warnings: Vec<Warning>,
    without_differences: usize,
    origins: Origins,
}

impl Rendered {
    /// Assembles the JobSet and the emitted objects.
    pub(crate) fn assemble(
        (job, runtime): (&TrainJob, &Runtime),
        namespace: &str,
        mut resolved: Resolved,
        session: Session,
        planned: PlannedPlugins,
        of_reserved: Vec<Warning>,
    ) -> Self {
        let mut warnings = std::mem::take(&mut resolved.warnings);
        warnings.extend(select::unhandled_claims(session.base(), &planned.active));
        warnings.extend(session.warnings().into_iter().map(Warning::from));
        warnings.extend(of_reserved);
        warnings.extend(resolve::replaced_by_plugins(&session));
        let template = runtime.template.spec.clone();
        let defaults = Defaults {
            job: job.defaulted.clone(),
            runtime: runtime.defaulted.clone(),
        };
        let origins = Origins::new(template, resolved, session, defaults);
        let session = &origins.session;
        let record = session.record();
        let spec = assemble::assemble(origins.patched(), record, origins.journal.changed());
        let job_set = assemble::job_set(record, namespace, origins.job.suspended, spec);
        warnings.extend(unplaceable::warnings(&job_set));
        let without_differences = warnings.len();
        origins.authors().locate(&mut warnings);
        let mut objects: Vec<_> = session
            .emitted()
            .iter()
            .map(|emitted| RenderedObject {
                kind: emitted.object.kind.clone(),
                name: emitted.object.name.clone(),
                value: assemble::object(&emitted.object, namespace),
                material: material(&emitted.object),
                apply: emitted.object.apply,
                plugin: emitted.plugin.clone(),
            })
            .collect();
        // The sort is stable, so each plugin's objects keep the order in which it emitted them.
        objects.sort_by(|a, b| a.plugin.name.cmp(&b.plugin.name));
        let mut rendered = Self {
            objects,
            job_set,
            plan: planned.active,
            disabled: planned.disabled,
            warnings,
            without_differences,
            origins,
        };
        let known = rendered.origins.session.lookups().clone();
        rendered.warn_of_differences(job, runtime, &known);
        rendered
    }

    /// Replaces the warnings of what the reference and Kueue compute differently by those for which these objects are known.
    pub(crate) fn warn_of_differences(
        &mut self,
        job: &TrainJob,
        runtime: &Runtime,
        known: &Lookups,
    ) {
        let mut found = differences::warnings(&Rendering {
            job,
            runtime,
            patched: self.patched(),
            session: &self.origins.session,
            known,
            job_set: self.job_set.get("spec").unwrap_or(&Value::Null),
        });
        self.origins.authors().locate(&mut found);
        self.warnings.truncate(self.without_differences);
        self.warnings.extend(found);
    }

    /// Returns what an API server would refuse about the objects.
    pub(crate) fn check(&self) -> Vec<Problem> {
        let others = self.objects.iter().map(|object| &object.value);
        let objects = std::iter::once(&self.job_set).chain(others);
        let problems: Vec<_> = objects.flat_map(entries::check).collect();
        if !problems.is_empty() {
            return problems;
        }
        let objects = self.objects.iter();
        let problems: Vec<_> = objects.flat_map(RenderedObject::check_metadata).collect();
        if !problems.is_empty() {
            return problems;
        }
        self.check_pods()
    }

    /// Returns what JobSet's webhook or an API server would refuse about the JobSet, its Jobs or its pods, with the fields that set it. A
    /// TrainJob can cause one problem for each of tens of thousands of names, and each has to be searched for.
    fn check_pods(&self) -> Vec<Problem> {
        const MOST: usize = 100;
        let mut found = validation::check(&self.job_set);
        let more = found.split_off(found.len().min(MOST)).len();
        let paths = found.iter().map(|problem| &problem.path);
        let setters = self.origins.setters(&self.job_set, paths);
        let located = found.into_iter().zip(setters);
        let mut problems: Vec<_> = located
            .map(|(problem, setter)| locate(problem, setter))
            .collect();
        if more > 0 {
            problems.push(Problem::Invariant {
                place: entries::place(&self.job_set, &FieldPath::root()),
                message: format!(
                    "has {more} more fields that would be refused; correct the first {MOST}, and render again"
                ),
            });
        }
        problems
    }

    /// Returns all objects, in the order in which they are applied.
    pub fn all_objects(&self) -> impl Iterator<Item = &Value> {
        let others = self.objects.iter().map(|object| &object.value);
        others.chain([&self.job_set])
    }

    /// Returns the names of the pod sets whose pods are the nodes.
    pub fn node_pod_sets(&self) -> impl Iterator<Item = &str> {
        let pod_sets = self.origins.session.record().pod_sets.iter();
        let nodes = pod_sets.filter(|set| set.counts_nodes);
        nodes.map(|set| &*set.name)
    }

    /// Returns the session of the plugins' calls, with the final record. [`Self::plugin_writes`] has their writes.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.origins.session
    }

    /// Returns the writes of plugins, in order.
    #[must_use]
    pub fn plugin_writes(&self) -> Vec<Write> {
        self.origins.journal.by_plugins().collect()
    }

    /// Returns the spec of the runtime's template with the TrainJob's patches and no other changes.
    #[must_use]
    pub fn patched(&self) -> &Value {
        self.origins.patched()
    }

    /// Returns the origin of every field that differs from the runtime's template. Each call computes it.
    #[must_use]
    pub fn provenance(&self) -> Vec<Provenance> {
        self.origins.provenance(&self.job_set)
    }

    /// Returns the plan for the snapshot.
    #[must_use]
    pub fn whole_plan(&self) -> Plan {
        plan_of(&self.plan, &self.origins.job.facts)
    }

    /// Returns the parts of the looked-up objects that plugins read. Rendering with them instead of the whole objects gives the same result.
    #[must_use]
    pub fn read_lookups(&self) -> Lookups {
        self.origins.session.read_lookups()
    }

    /// Returns the parts of the looked-up objects that plugins read, of any size, for a bundle.
    #[must_use]
    pub fn all_read_lookups(&self) -> Lookups {
        self.origins.session.all_read_lookups()
    }

    /// Returns the operator's facts that plugins read.
    #[must_use]
    pub fn read_facts(&self) -> Facts {
        self.origins.session.read_facts()
    }

    /// Returns the origins of a field and all fields below it. The path is one of the JobSet, with positions
    /// (`spec.replicatedJobs[0].replicas`) or names in brackets, or one of the record (`pod-sets[node].replicas`). The result is never empty: an
    /// unchanged field is the runtime's.
    ///
    /// # Errors
    /// If the JobSet has no such field and none was removed.
    pub fn explain(&self, path: &FieldPath) -> Result<Vec<Provenance>, NoSuchField> {
        self.origins.explain(&self.job_set, path)
    }
}

/// An object other than the JobSet.
#[derive(Debug)]
pub struct RenderedObject {
    /// Its `apiVersion` and `kind`.
    pub kind: ObjectKind,
    /// Its `metadata.name`.
    pub name: ObjectName,
    /// The object, with placeholders for key material.
    pub value: Value,
    /// The values of a Secret that contain key material, which is generated when the Secret is created.
    pub material: BTreeMap<String, SecretValue>,
    /// How it is applied.
    pub apply: ApplyMode,
    /// The plugin that emitted it.
    pub plugin: PluginId,
}

impl RenderedObject {
    /// Returns what an API server would refuse about the labels and annotations.
    fn check_metadata(&self) -> impl Iterator<Item = Problem> {
        let problems = validation::check_metadata(&self.value).into_iter();
        problems.map(|FieldProblem { path, message }| Problem::Invariant {
            place: entries::place(&self.value, &path),
            message: format!(
                "{message} (the API server would refuse the object; set by the plugin {})",
                self.plugin.name
            ),
        })
    }
}

/// Returns the problem of a field of the JobSet that an API server would refuse. A field that is absent is the runtime's.
fn locate(FieldProblem { path, message }: FieldProblem, setter: Option<Setter>) -> Problem {
    let message = format!("{message} ({})", who_refuses(&path));
    match setter {
        Some(Setter::TrainJob { field } | Setter::Patch { field, .. }) => match field.parse() {
            Ok(field) => Problem::job(field, message),
            Err(PathError { .. }) => Problem::job(FieldPath::root(), message),
        },
        Some(Setter::Plugin { name, .. }) => Problem::Invariant {
            place: path.to_string(),
            message: format!("{message} (set by the plugin {name})"),
        },
        Some(Setter::Runtime { .. } | Setter::Host { .. }) | None => {
            Problem::runtime(FieldPath::of(["spec", "template"]).join(&path), message)
        }
    }
}

/// Returns who would refuse a field of the JobSet, and what would not be created.
fn who_refuses(path: &FieldPath) -> &'static str {
    let fields: Vec<_> = path.segments().iter().map(Segment::text).collect();
    match fields.as_slice() {
        [spec, jobs, _, job, below @ ..]
            if (&**spec, &**jobs, &**job) == ("spec", "replicatedJobs", "template") =>
        {
            match below {
                [spec, pod, ..] if (&**spec, &**pod) == ("spec", "template") => {
                    "the API server would refuse the pods"
                }
                _ => "the API server would refuse the Job",
            }
        }
        _ => "JobSet's webhook or the API server would refuse the JobSet",
    }
}

/// Returns the values of an object that contain key material, by key.
fn material(object: &EmittedObject) -> BTreeMap<String, SecretValue> {
    let Content::Secret { data, .. } = &object.content else {
        return BTreeMap::new();
    };
    let with_material = |(key, held): (&str, &DataValue<SecretValue>)| match held {
        DataValue::Text(text) if text.has_material() => Some((key.to_owned(), text.clone())),
        DataValue::Text(_) | DataValue::Bytes(_) => None,
    };
    data.iter().filter_map(with_material).collect()
}
