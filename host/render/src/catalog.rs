//! The objects of one run: TrainJobs with their runtimes, and what plugins may look up.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use serde_json::Value;
use thiserror::Error;
use trainyard_api::{
    FieldError, FieldPath, InputError, Inputs, Object, ObjectId, Place, Runtime, TrainJob,
    dialect::Modernized, names, runtime::RuntimeKind,
};
use trainyard_model::lookup::{LookupAnswer, LookupKey};

use crate::{
    Fetch,
    problem::{About, Problem, Warning},
};

/// Something that is wrong with the input, with its place.
#[derive(Debug, Error)]
#[error("{place}: {message}")]
pub struct CatalogError {
    /// File, document, object and field.
    pub place: Place,
    /// What is wrong.
    pub message: String,
}

impl From<InputError> for CatalogError {
    fn from(error: InputError) -> Self {
        Self {
            place: error.place,
            message: error.problem.to_string(),
        }
    }
}

impl CatalogError {
    fn field(object: &Object, namespace: Option<&str>, error: &FieldError) -> Self {
        let place = place(object, namespace).at(error.path.clone());
        Self {
            place,
            message: error.problem.to_string(),
        }
    }
}

/// A TrainJob with its namespace and runtime.
pub struct Job {
    /// The TrainJob.
    pub job: TrainJob,
    /// Its namespace: its own, else the run's.
    pub namespace: String,
    /// Its runtime.
    pub runtime: Arc<Runtime>,
    /// What was rewritten of the TrainJob, for the fields that its author wrote.
    dialect: Modernized,
    place: Place,
    runtime_place: Place,
}

impl Job {
    /// The problem with its place in the input.
    #[must_use]
    pub fn locate(&self, problem: &Problem) -> CatalogError {
        let place = match problem.about() {
            About::TrainJob => self.place.clone(),
            About::Runtime => self.runtime_place.clone(),
        };
        let message = match problem {
            Problem::Field {
                about: About::TrainJob,
                path,
                message,
            } => format!("{}: {message}", self.dialect.written(path)),
            other => other.to_string(),
        };
        CatalogError { place, message }
    }

    /// The warning with its place in the input.
    #[must_use]
    pub fn locate_warning(&self, warning: &Warning) -> CatalogError {
        let place = match warning.about {
            About::TrainJob => self.place.clone(),
            About::Runtime => self.runtime_place.clone(),
        };
        CatalogError {
            place,
            message: warning.to_string(),
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
    pub warnings: Vec<CatalogError>,
    objects: BTreeMap<(String, String, Option<String>, String), Arc<Value>>,
}

type RuntimeKey = (RuntimeKind, Option<String>, String);

impl Catalog {
    /// Sorts the objects of a run; `namespace` is that of objects which name none.
    ///
    /// The errors beside it are everything that is wrong with the input, with a TrainJob or a runtime, two objects of one
    /// name, and runtimes that are missing; the catalog holds the TrainJobs that have none, so that theirs can be told in
    /// the same run.
    #[must_use]
    pub fn new(inputs: Inputs, namespace: &str) -> (Self, Vec<CatalogError>) {
        let errors = inputs.errors.into_iter().map(CatalogError::from).collect();
        let mut reader = Reader {
            namespace,
            errors,
            ..Reader::default()
        };
        for object in inputs.objects {
            reader.add(object);
        }
        reader.finish()
    }
}

#[derive(Default)]
struct Reader<'a> {
    namespace: &'a str,
    jobs: Vec<(TrainJob, String, Modernized, Place)>,
    runtimes: BTreeMap<RuntimeKey, (Arc<Runtime>, Place)>,
    broken_runtimes: Vec<RuntimeKey>,
    objects: BTreeMap<(String, String, Option<String>, String), Arc<Value>>,
    /// The first place of each object, by group, kind, namespace and name.
    seen: BTreeMap<(String, ObjectId), Place>,
    warnings: Vec<CatalogError>,
    errors: Vec<CatalogError>,
}

impl Reader<'_> {
    fn add(&mut self, mut object: Object) {
        let dialect = object.modernize();
        let runtime_kind = RuntimeKind::of(&object);
        let namespace = match runtime_kind {
            Some(RuntimeKind::Cluster) => None,
            _ => Some(
                object
                    .metadata
                    .namespace
                    .clone()
                    .unwrap_or_else(|| self.namespace.to_owned()),
            ),
        };
        let place = place(&object, namespace.as_deref());
        if let Some(id) = place.object.clone() {
            match self.seen.entry((object.group().to_owned(), id)) {
                Entry::Vacant(seen) => drop(seen.insert(place.clone())),
                Entry::Occupied(first) => {
                    let message = format!("is there twice; the first stands in {}", first.get());
                    self.errors.push(CatalogError {
                        place: place.clone(),
                        message,
                    });
                    return;
                }
            }
        }
        let warnings = dialect.warnings.iter().map(|warning| CatalogError {
            place: place.clone().at(warning.path.clone()),
            message: warning.message.clone(),
        });
        self.warnings.extend(warnings);
        if TrainJob::is(&object) {
            self.add_job(&object, namespace.unwrap_or_default(), dialect, place);
        } else if let Some(kind) = runtime_kind {
            let key = (kind, namespace.clone(), object.metadata.name.clone());
            match Runtime::read(&object) {
                Ok(runtime) => drop(self.runtimes.insert(key, (Arc::new(runtime), place))),
                Err(errors) => {
                    self.broken_runtimes.push(key);
                    self.fail(&object, namespace.as_deref(), &errors.0);
                }
            }
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
            self.errors.push(CatalogError { place, message });
        } else {
            let name = object.metadata.name.clone();
            let given = object.metadata.namespace.clone();
            let key = (object.api_version.clone(), object.kind.clone(), given, name);
            self.objects.insert(key, Arc::new(object.value));
        }
    }

    fn add_job(&mut self, object: &Object, namespace: String, dialect: Modernized, place: Place) {
        let mut errors = dialect.errors.clone();
        match TrainJob::read(object) {
            Ok(job) if errors.is_empty() => {
                return self.jobs.push((job, namespace, dialect, place));
            }
            Ok(_) => {}
            Err(read) => errors.extend(read.0),
        }
        for error in &mut errors {
            error.path = dialect.written(&error.path);
        }
        self.fail(object, Some(&namespace), &errors);
    }

    fn fail(&mut self, object: &Object, namespace: Option<&str>, errors: &[FieldError]) {
        self.errors.extend(
            errors
                .iter()
                .map(|error| CatalogError::field(object, namespace, error)),
        );
    }

    fn finish(mut self) -> (Catalog, Vec<CatalogError>) {
        let mut jobs = Vec::new();
        for (job, namespace, dialect, place) in std::mem::take(&mut self.jobs) {
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
                    dialect,
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
) -> CatalogError {
    let (kind, namespace, name) = key;
    let whole = namespace
        .as_ref()
        .map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"));
    let names: Vec<String> = given
        .map(|(kind, _, name)| format!("{kind} {name}"))
        .collect();
    let given = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    CatalogError {
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
        names::TRAINER_GROUP | names::TRAINYARD_GROUP | "kubeflow.org"
    )
}

fn place(object: &Object, namespace: Option<&str>) -> Place {
    let mut place = Place::from(&object.source);
    place.object = Some(ObjectId {
        kind: object.kind.clone(),
        namespace: namespace.map(str::to_owned),
        name: object.metadata.name.clone(),
    });
    place
}

impl Fetch for Catalog {
    /// Offline, the objects of the input are all there are: an object that none of them is was not given.
    fn fetch(&self, namespace: &str, key: &LookupKey) -> Option<LookupAnswer> {
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
                Some(LookupAnswer::All(
                    of_kind.map(|(_, value)| value.clone()).collect(),
                ))
            }
            LookupKey::Served { .. } => Some(LookupAnswer::Served(true)),
        }
    }
}
