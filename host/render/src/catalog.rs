//! The objects of one run: TrainJobs with their runtimes, and what plugins may look up.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use serde_json::Value;
use trainyard_api::{
    Admitted, FieldPath, Located, ObjectId, Place, Runtime, TrainJob, names, path::PathError,
    runtime::RuntimeKind,
};
use trainyard_model::lookup::{LookupAnswer, LookupKey};

use crate::problem::{About, Problem, Warning};

/// A TrainJob with its namespace and runtime.
pub struct Job {
    /// The TrainJob.
    pub job: TrainJob,
    /// Its namespace: its own, else the run's.
    pub namespace: String,
    /// Its runtime.
    pub runtime: Arc<Runtime>,
    place: Place,
    runtime_place: Place,
}

impl Job {
    /// The problem with its place in the input.
    #[must_use]
    pub fn locate(&self, problem: &Problem) -> Located {
        self.say(
            problem.about(),
            problem.field().as_deref(),
            problem.sentence(),
        )
    }

    /// The warning with its place in the input.
    #[must_use]
    pub fn locate_warning(&self, warning: &Warning) -> Located {
        self.say(warning.about, warning.field.as_deref(), warning.sentence())
    }

    /// A sentence about a field, which is named as its author spelled it.
    fn say(&self, about: About, field: Option<&str>, sentence: String) -> Located {
        let (place, dialect) = match about {
            About::TrainJob => (&self.place, &self.job.dialect),
            About::Runtime => (&self.runtime_place, &self.runtime.dialect),
        };
        // A plugin may name anything: what is no path is printed as it is.
        let field = field.map(|field| match field.parse() {
            Ok(path) => dialect.written(&path).to_string(),
            Err(PathError { .. }) => field.to_owned(),
        });
        Located {
            place: place.clone(),
            message: match field {
                Some(field) => format!("{field}: {sentence}"),
                None => sentence,
            },
        }
    }

    /// The TrainJob's place in the input.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// The runtime's place in the input.
    #[must_use]
    pub const fn runtime_place(&self) -> &Place {
        &self.runtime_place
    }
}

/// All objects of a run.
pub struct Catalog {
    /// The TrainJobs, in the order of the input.
    pub jobs: Vec<Job>,
    /// Forms of earlier releases, with what to write instead.
    pub warnings: Vec<Located>,
    objects: BTreeMap<(String, String, Option<String>, String), Arc<Value>>,
}

type RuntimeKey = (RuntimeKind, Option<String>, String);

impl Catalog {
    /// Sorts the objects of a run.
    ///
    /// The errors beside it are everything that is wrong with a TrainJob or a runtime, two objects of one name, and runtimes
    /// that are missing; the catalog holds the TrainJobs that have none, so that theirs can be told in the same run.
    #[must_use]
    pub fn new(objects: impl IntoIterator<Item = Admitted>) -> (Self, Vec<Located>) {
        let mut reader = Reader::default();
        for object in objects {
            reader.add(object);
        }
        reader.finish()
    }

    /// The answer to what a plugin asks for; none where the object was not given. Offline, the objects of the input are all
    /// there are, and every kind is served.
    #[must_use]
    pub fn answer(&self, namespace: &str, key: &LookupKey) -> Option<LookupAnswer> {
        match key {
            LookupKey::Object {
                api_version,
                kind,
                name,
            } => {
                let find = |namespace: Option<&str>| {
                    let key = (
                        api_version.clone(),
                        kind.clone(),
                        namespace.map(str::to_owned),
                        name.clone(),
                    );
                    self.objects.get(&key)
                };
                find(Some(namespace))
                    .or_else(|| find(None))
                    .cloned()
                    .map(LookupAnswer::Object)
            }
            LookupKey::All { api_version, kind } => {
                let of_kind = self.objects.iter().filter(|((version, k, scope, _), _)| {
                    version == api_version
                        && k == kind
                        && scope.as_deref().is_none_or(|scope| scope == namespace)
                });
                Some(LookupAnswer::all(
                    of_kind.map(|(_, value)| value.clone()).collect(),
                ))
            }
            LookupKey::Served { .. } => Some(LookupAnswer::Served(true)),
        }
    }
}

#[derive(Default)]
struct Reader {
    jobs: Vec<(TrainJob, String, Place)>,
    runtimes: BTreeMap<RuntimeKey, (Arc<Runtime>, Place)>,
    broken_runtimes: Vec<RuntimeKey>,
    objects: BTreeMap<(String, String, Option<String>, String), Arc<Value>>,
    /// The first place of each object, by group, kind, namespace and name.
    seen: BTreeMap<(String, ObjectId), Place>,
    warnings: Vec<Located>,
    errors: Vec<Located>,
}

impl Reader {
    fn add(&mut self, admitted: Admitted) {
        let place = admitted.place();
        if !self.is_first(&admitted, &place) {
            return;
        }
        self.warnings.extend(admitted.warnings.iter().cloned());
        let object = &admitted.object;
        if TrainJob::is(object) {
            self.add_job(admitted, place);
        } else if let Some(kind) = RuntimeKind::of(object) {
            self.add_runtime(admitted, kind, place);
        } else if is_ours(&object.api_version) {
            let message = format!(
                "`{}` of `{}` is not known; known are {}, {} and {} of {}, and objects that plugins look up",
                object.kind,
                object.api_version,
                names::TRAIN_JOB,
                names::TRAINING_RUNTIME,
                names::CLUSTER_TRAINING_RUNTIME,
                names::TRAINER_API_VERSION
            );
            let place = place.at(FieldPath::root().field("kind"));
            self.errors.push(Located { place, message });
        } else {
            let name = object.metadata.name.clone();
            let given = object.metadata.namespace.clone();
            let key = (object.api_version.clone(), object.kind.clone(), given, name);
            self.objects.insert(key, Arc::new(admitted.object.value));
        }
    }

    /// Whether no earlier object has its kind, namespace and name.
    fn is_first(&mut self, admitted: &Admitted, place: &Place) -> bool {
        let Some(id) = place.object.clone() else {
            return true;
        };
        match self.seen.entry((admitted.object.group().to_owned(), id)) {
            Entry::Vacant(seen) => {
                seen.insert(place.clone());
                true
            }
            Entry::Occupied(first) => {
                let message = format!("is there twice; the first stands in {}", first.get());
                let place = place.clone();
                self.errors.push(Located { place, message });
                false
            }
        }
    }

    fn add_job(&mut self, mut admitted: Admitted, place: Place) {
        if admitted.errors.is_empty() {
            match TrainJob::read(&admitted.object) {
                Ok(job) => {
                    let namespace = admitted.namespace.unwrap_or_default();
                    return self.jobs.push((job, namespace, place));
                }
                Err(errors) => admitted.refuse(&errors.0),
            }
        }
        self.errors.extend(admitted.errors);
    }

    fn add_runtime(&mut self, mut admitted: Admitted, kind: RuntimeKind, place: Place) {
        let name = admitted.object.metadata.name.clone();
        let key = (kind, admitted.namespace.clone(), name);
        if admitted.errors.is_empty() {
            match Runtime::read(&admitted.object) {
                Ok(runtime) => {
                    self.runtimes.insert(key, (Arc::new(runtime), place));
                    return;
                }
                Err(errors) => admitted.refuse(&errors.0),
            }
        }
        self.broken_runtimes.push(key);
        self.errors.extend(admitted.errors);
    }

    fn finish(mut self) -> (Catalog, Vec<Located>) {
        let mut jobs = Vec::new();
        for (job, namespace, place) in std::mem::take(&mut self.jobs) {
            let reference = &job.runtime_ref;
            let scope = (reference.kind == RuntimeKind::Namespaced).then(|| namespace.clone());
            let key = (reference.kind, scope, reference.name.clone());
            if self.broken_runtimes.contains(&key) {
                continue;
            }
            match self.runtimes.get(&key) {
                Some((runtime, runtime_place)) => jobs.push(Job {
                    job,
                    namespace,
                    runtime: runtime.clone(),
                    place,
                    runtime_place: runtime_place.clone(),
                }),
                None => self
                    .errors
                    .push(missing_runtime(&key, place, self.runtimes.keys())),
            }
        }
        (
            Catalog {
                jobs,
                warnings: self.warnings,
                objects: self.objects,
            },
            self.errors,
        )
    }
}

fn missing_runtime<'k>(
    key: &RuntimeKey,
    place: Place,
    given: impl Iterator<Item = &'k RuntimeKey>,
) -> Located {
    let (kind, namespace, name) = key;
    let whole = namespace
        .as_ref()
        .map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"));
    let names: Vec<String> = given
        .map(|(kind, namespace, name)| match namespace {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        })
        .collect();
    let given = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    Located {
        place: place.at(FieldPath::root()
            .field("spec")
            .field("runtimeRef")
            .field("name")),
        message: format!(
            "there is no {kind} `{whole}` in the input; give its file with -f (given: {given})"
        ),
    }
}

fn is_ours(api_version: &str) -> bool {
    let group = api_version.split('/').next().unwrap_or_default();
    matches!(
        group,
        names::TRAINER_GROUP | names::TRAINYARD_GROUP | names::OLD_GROUP
    )
}
