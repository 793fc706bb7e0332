//! Reads a cluster: only with `get` and `list`, which the client enforces.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{
    Client, Resource as _,
    api::{ApiResource, DynamicObject, GetParams, ListParams},
    core::{GroupVersionKind, Request},
    discovery::Scope,
};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use trainyard_api::{Object, Source as ObjectSource, names};
use trainyard_controller::{
    client::{message_of, segment},
    watch::discover,
};
use trainyard_model::{
    lookup::{LookupAnswer, LookupKey, Requester},
    text::clean,
};
use trainyard_render::InputJob;

use super::{
    DiffArgs,
    live::KINDS,
    releases,
    source::{Source, without_server_fields},
};
use crate::{
    cluster::{self, Access},
    input,
    live_objects::{LiveObjects, Pages},
    output::Reading,
    report::ErrorList,
};

/// The file that errors name for objects of a cluster.
const CLUSTER: &str = "the cluster";

/// A cluster, with what plugins looked up in it.
pub(super) struct Cluster {
    runtime: Runtime,
    client: Client,
    found: Mutex<BTreeMap<(String, LookupKey), Found>>,
    /// Lookups that the API server did not answer.
    gaps: Mutex<BTreeSet<String>>,
}

/// What a lookup found.
#[derive(Clone)]
enum Found {
    Object(Option<Arc<Value>>),
    All(Vec<Arc<Value>>),
    Served(bool),
    NotServed,
    /// The API server did not answer.
    Unknown,
}

/// The kinds of which a cluster must show at least an empty list.
const NEEDED: [&str; 3] = [
    names::CLUSTER_TRAINING_RUNTIME,
    names::TRAINING_RUNTIME,
    names::TRAIN_JOB,
];

impl Cluster {
    /// Connects to a cluster, and reads its TrainJobs and runtimes, and the objects of its TrainJobs.
    pub(super) fn read(args: &DiffArgs) -> Result<(Self, Source), ErrorList> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let config = runtime.block_on(args.cluster.config())?;
        let client = {
            let _entered = runtime.enter();
            cluster::client(config, Access::Read)
        };
        let client = client.map_err(|error| ErrorList::from_iter([error.to_string()]))?;
        let cluster = Self {
            runtime,
            client,
            found: Mutex::default(),
            gaps: Mutex::default(),
        };
        let namespace = args.input.namespace.as_deref();
        let mut source = cluster.source(namespace)?;
        if namespace.is_none() {
            source.releases = cluster.releases();
        }
        Ok((cluster, source))
    }

    fn source(&self, namespace: Option<&str>) -> Result<Source, ErrorList> {
        let (mut source, mut failure) = (Source::default(), ErrorList::default());
        let mut number = 0;
        for kind in NEEDED {
            let scope = namespace.filter(|_| kind != names::CLUSTER_TRAINING_RUNTIME);
            let read = |object: Value| {
                number += 1;
                source.add_of_cluster(number, object);
            };
            match self.each(names::TRAINER_API_VERSION, kind, scope, read) {
                Ok(()) => {}
                // Who may read one namespace may lack the permission for these. TrainJobs with a snapshot need none.
                Err(error) if scope != namespace && !is_not_served(&error) => {
                    source.gaps.push(needed(kind, &error));
                }
                Err(error) => failure.add(needed(kind, &error)),
            }
        }
        failure.or_ok(())?;
        for (api_version, kind) in KINDS {
            let live = &mut source.live;
            // Other ConfigMaps and JobSets are dropped at once: there can be many.
            let read = |object: Value| drop(live.add(object));
            match self.each(api_version, kind, namespace, read) {
                Ok(()) => source.live.reads(api_version, kind),
                Err(error) if is_not_served(&error) && kind == "PodGroup" => {}
                Err(error) => source.gaps.push(gap(api_version, kind, &error)),
            }
        }
        if let Some(namespace) = namespace
            && !source.objects.iter().any(input::is_train_job)
        {
            // This may be a typo.
            source.notes.push(format!(
                "there are no TrainJobs in the namespace {}",
                clean(namespace)
            ));
        }
        Ok(source)
    }

    fn releases(&self) -> Vec<String> {
        let live = LiveObjects {
            client: self.client.clone(),
            namespace: String::new(),
        };
        self.runtime.block_on(releases::notes(&live))
    }

    /// Calls `read` with each object of a kind.
    fn each(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        mut read: impl FnMut(Value),
    ) -> Result<(), kube::Error> {
        let resource = ApiResource::from_gvk(&kind_of(api_version, kind));
        let reading = Reading::new(resource.plural.clone());
        let params = ListParams::default();
        let mut pages = Pages::new(&self.client, &resource, namespace, params);
        while let Some(page) = self.runtime.block_on(pages.next())? {
            reading.add(page.len());
            page.into_iter().for_each(&mut read);
        }
        Ok(())
    }

    /// Returns the answer to a lookup of a TrainJob's plugins.
    pub(super) fn answer(
        &self,
        job: &InputJob,
        key: &LookupKey,
        catalog: Option<&str>,
    ) -> Option<LookupAnswer> {
        let namespace = key.namespace(&*job.namespace, catalog)?;
        match self.find(namespace, key) {
            Found::Object(found) => found
                .map(LookupAnswer::Object)
                .or_else(|| key.answer_without_object()),
            Found::All(objects) => {
                let asker = Requester {
                    name: &job.train_job.metadata.name,
                    uid: job.train_job.metadata.uid.as_deref(),
                };
                Some(LookupAnswer::all(objects, asker))
            }
            Found::Served(served) => Some(LookupAnswer::Served(served)),
            Found::NotServed => Some(LookupAnswer::NotServed),
            Found::Unknown => None,
        }
    }

    /// Returns the LimitRanges of a namespace, if plugins looked them up.
    pub(super) fn limit_ranges(&self, namespace: &str) -> Vec<Value> {
        let key = LookupKey::All {
            api_version: "v1".to_owned(),
            kind: "LimitRange".to_owned(),
        };
        match self.held().get(&(namespace.to_owned(), key)) {
            Some(Found::All(objects)) => objects.iter().map(|one| (**one).clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the lookups that the API server did not answer.
    pub(super) fn gaps(&self) -> Vec<String> {
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.iter().cloned().collect()
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<(String, LookupKey), Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, namespace: &str, key: &LookupKey) -> Found {
        let known = (namespace.to_owned(), key.clone());
        if let Some(found) = self.held().get(&known) {
            return found.clone();
        }
        let found = self.request(namespace, key).unwrap_or_else(|error| {
            let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
            let (api_version, kind) = key.api_version_and_kind();
            gaps.insert(format!(
                "{kind} ({api_version}), which plugins look up, cannot be read in the namespace {namespace}: {}; what depends on it is not compared",
                message_of(&error)
            ));
            Found::Unknown
        });
        self.held().insert(known, found.clone());
        found
    }

    fn request(&self, namespace: &str, key: &LookupKey) -> Result<Found, kube::Error> {
        let (api_version, kind) = key.api_version_and_kind();
        let gvk = kind_of(api_version, kind);
        let served = self.runtime.block_on(discover(&self.client, &gvk))?;
        let Some((resource, scope)) = served else {
            return Ok(match key {
                LookupKey::Served { .. } => Found::Served(false),
                _ => Found::NotServed,
            });
        };
        let namespace = matches!(scope, Scope::Namespaced).then_some(namespace);
        match key {
            LookupKey::Served { .. } => Ok(Found::Served(true)),
            LookupKey::All { .. } => {
                let mut all = Vec::new();
                self.each(api_version, kind, namespace, |object| {
                    all.push(object.into())
                })?;
                Ok(Found::All(all))
            }
            LookupKey::Object(object)
            | LookupKey::Optional(object)
            | LookupKey::Catalog(object) => {
                let request = Request::new(DynamicObject::url_path(&resource, namespace));
                let request = request.get(&segment(&object.name), &GetParams::default());
                let request = request.map_err(kube::Error::BuildRequest)?;
                match self.runtime.block_on(self.client.request(request)) {
                    Ok(found) => Ok(Found::Object(Some(Arc::new(found)))),
                    Err(error) if is_not_served(&error) => Ok(Found::Object(None)),
                    Err(error) => Err(error),
                }
            }
        }
    }
}

impl Source {
    /// Adds an object of a cluster, or a gap if it cannot be read.
    fn add_of_cluster(&mut self, number: usize, mut object: Value) {
        without_server_fields(&mut object);
        match Object::read(ObjectSource::new(CLUSTER, number), object) {
            Ok(object) => self.objects.push(object),
            Err(errors) => self.gaps.extend(errors.0.iter().map(ToString::to_string)),
        }
    }
}

fn kind_of(api_version: &str, kind: &str) -> GroupVersionKind {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    GroupVersionKind::gvk(group, version, kind)
}

/// Whether the API server has no such kind, or no such object.
fn is_not_served(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Returns the error for a kind without which nothing can be compared.
fn needed(kind: &str, error: &kube::Error) -> String {
    let group = names::TRAINER_API_VERSION;
    if is_not_served(error) {
        return format!(
            "the cluster does not serve the kind {kind} ({group}); check that --kubeconfig names the cluster with the Kubeflow Trainer, or pass a dump with -f"
        );
    }
    format!(
        "cannot list the kind {kind} ({group}): {}; with permissions for one namespace only, pass it with -n",
        message_of(error)
    )
}

/// Returns what is not compared because a kind cannot be listed.
fn gap(api_version: &str, kind: &str, error: &kube::Error) -> String {
    let what = match kind {
        names::JOB_SET => {
            "which rows may concern a TrainJob follows from what it uses, because no JobSet was compared"
        }
        "ConfigMap" => {
            "ConfigMaps are not compared, and TrainJobs are rendered from the current runtimes, and not from those in their snapshots"
        }
        _ => "PodGroups are not compared",
    };
    format!(
        "cannot list the kind {kind} ({api_version}): {}; {what}",
        message_of(error)
    )
}
