//! The pods of a test's TrainJob.

use serde_json::{Map, Value, json};
use trainyard_model::{
    record::{Datum, EntryRef, EntryScope, Field, Fields, Owner, PodSet, Record},
    value::Dependency,
};

/// A pod set for a test.
///
/// ```
/// use trainyard_sdk::mock::MockJob;
///
/// let job = MockJob::new("bert")
///     .pod_set("node", |set| {
///         set.nodes(true)
///             .count(4)
///             .container("node", |node| node.limit("nvidia.com/gpu", "8").env("LOG_LEVEL", "info"))
///     })
///     .pod_set("launcher", |set| {
///         set.ancestor("trainer")
///             .nodes(false)
///             .depends_on("node", "Ready")
///             .container("node", |node| node.train_job_command(&["mpirun", "train"]))
///     });
/// # drop(job);
/// ```
#[derive(Debug)]
pub struct MockPodSet {
    set: PodSet,
    /// Whether its pods are nodes. If `None`, they are if the ancestor is `trainer`.
    nodes: Option<bool>,
    containers: Vec<MockContainer>,
}

impl MockPodSet {
    pub(super) fn new(name: &str) -> Self {
        Self {
            set: PodSet::new(name),
            nodes: None,
            containers: Vec::new(),
        }
    }

    /// Adds the pod set to the record, as the host does for a runtime and a TrainJob.
    pub(super) fn load(self, record: &mut Record) {
        let position = u32::try_from(record.pod_sets.len()).unwrap_or(u32::MAX);
        let mut set = self.set;
        let is_trainer = set.ancestor.as_deref() == Some("trainer");
        set.counts_nodes = self.nodes.unwrap_or(is_trainer);
        record.pod_sets.push(set);
        for mock in self.containers {
            let id = record.load_container(position, mock.list, &mock.name, mock.fields);
            for (field, key, datum) in mock.overrides {
                let place = EntryRef {
                    scope: EntryScope::Container(id),
                    field,
                    key: key.as_str().into(),
                };
                record.write(place, Some(datum), Owner::TrainJob);
            }
        }
    }

    /// Sets the ancestor label, such as `trainer`.
    #[must_use]
    pub fn ancestor(mut self, ancestor: &str) -> Self {
        self.set.ancestor = Some(ancestor.into());
        self
    }

    /// Sets whether its pods are the nodes (`info.nodes`, `pod-sets[@nodes]`), as the `nodeSets` of an active plugin do. MPI's launcher
    /// has the ancestor `trainer` and is no node. Otherwise, the pods are nodes if the ancestor is `trainer`.
    #[must_use]
    pub const fn nodes(mut self, are_nodes: bool) -> Self {
        self.nodes = Some(are_nodes);
        self
    }

    /// Sets the number of pods in each job.
    #[must_use]
    pub fn count(mut self, count: u32) -> Self {
        self.set.count = count;
        self
    }

    /// Sets the number of jobs.
    #[must_use]
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.set.replicas = replicas;
        self
    }

    /// Sets how many pods of a job may fail before the job fails.
    #[must_use]
    pub fn backoff_limit(self, limit: u32) -> Self {
        self.field(Field::BackoffLimit, "", Datum::Integer(limit.into()))
    }

    /// Removes the index of the pods (`completionMode: NonIndexed`).
    #[must_use]
    pub const fn not_indexed(mut self) -> Self {
        self.set.is_indexed = false;
        self
    }

    /// Makes the pod set wait for another one, until that is `Ready` or `Complete`.
    #[must_use]
    pub fn depends_on(mut self, pod_set: &str, status: &str) -> Self {
        self.set.depends_on.push(Dependency {
            pod_set: pod_set.to_owned(),
            status: status.to_owned(),
        });
        self
    }

    /// Adds a container.
    #[must_use]
    pub fn container(self, name: &str, build: impl FnOnce(MockContainer) -> MockContainer) -> Self {
        self.add(Field::Containers, name, build)
    }

    /// Adds an init container.
    #[must_use]
    pub fn init_container(
        self,
        name: &str,
        build: impl FnOnce(MockContainer) -> MockContainer,
    ) -> Self {
        self.add(Field::InitContainers, name, build)
    }

    /// Adds a volume with this source, as in a pod spec: `json!({"emptyDir": {}})`.
    #[must_use]
    pub fn volume(self, name: &str, source: Value) -> Self {
        let mut volume = Map::from_iter([("name".to_owned(), name.into())]);
        if let Value::Object(source) = source {
            volume.extend(source);
        }
        self.field(Field::Volumes, name, Value::Object(volume).into())
    }

    /// Sets a label of the pods.
    #[must_use]
    pub fn pod_label(self, key: &str, value: &str) -> Self {
        self.field(Field::PodLabels, key, value.into())
    }

    /// Sets an annotation of the pods.
    #[must_use]
    pub fn pod_annotation(self, key: &str, value: &str) -> Self {
        self.field(Field::PodAnnotations, key, value.into())
    }

    /// Requires a label of the Kubernetes nodes (`nodeSelector`).
    #[must_use]
    pub fn node_selector(self, key: &str, value: &str) -> Self {
        self.field(Field::NodeSelector, key, value.into())
    }

    /// Sets the name of the pods' PriorityClass.
    #[must_use]
    pub fn priority_class(self, name: &str) -> Self {
        self.field(Field::PriorityClass, "", name.into())
    }

    /// Sets the name of the pods' scheduler.
    #[must_use]
    pub fn scheduler_name(self, name: &str) -> Self {
        self.field(Field::SchedulerName, "", name.into())
    }

    /// Sets a member of the pod spec that has no method, such as `hostNetwork` or `securityContext/runAsUser`.
    #[must_use]
    pub fn raw(self, member: &str, value: Value) -> Self {
        self.field(Field::PodRaw, member, value.into())
    }

    /// Sets the group that owns the files of the pods' volumes.
    #[must_use]
    pub fn fs_group(self, gid: i64) -> Self {
        self.field(Field::FsGroup, "", Datum::Integer(gid))
    }

    /// Adds a resource claim of the pods with this source, as in a pod spec: `json!({"resourceClaimTemplateName": "gpus"})`.
    #[must_use]
    pub fn resource_claim(self, name: &str, source: Value) -> Self {
        let mut claim = Map::from_iter([("name".to_owned(), name.into())]);
        if let Value::Object(source) = source {
            claim.extend(source);
        }
        self.field(Field::ResourceClaims, name, Value::Object(claim).into())
    }

    /// Sets the devices of a resource claim, as a DRA policy does.
    #[must_use]
    pub fn claimed_devices(self, resource_claim: &str, count: Option<u32>) -> Self {
        let devices = json!({ "count": count, "accelerator": true });
        self.field(
            Field::Devices,
            &format!("resource-claim/{resource_claim}"),
            devices.into(),
        )
    }

    fn field(mut self, field: Field, key: &str, datum: Datum) -> Self {
        self.set.fields.load(field, key, datum);
        self
    }

    fn add(
        mut self,
        list: Field,
        name: &str,
        build: impl FnOnce(MockContainer) -> MockContainer,
    ) -> Self {
        self.containers.push(build(MockContainer {
            list,
            name: name.to_owned(),
            fields: Fields::default(),
            overrides: Vec::new(),
        }));
        self
    }
}

/// A container for a test: its fields in the runtime, and the TrainJob's overrides.
#[derive(Debug)]
pub struct MockContainer {
    list: Field,
    name: String,
    fields: Fields,
    overrides: Vec<(Field, String, Datum)>,
}

impl MockContainer {
    /// Sets the image.
    #[must_use]
    pub fn image(self, image: &str) -> Self {
        self.runtime(Field::Image, "", image.into())
    }

    /// Sets the command in the runtime.
    #[must_use]
    pub fn command(self, command: &[&str]) -> Self {
        self.runtime(Field::Command, "", list(command))
    }

    /// Sets the arguments in the runtime.
    #[must_use]
    pub fn args(self, args: &[&str]) -> Self {
        self.runtime(Field::Args, "", list(args))
    }

    /// Adds an env var of the runtime.
    #[must_use]
    pub fn env(self, name: &str, value: &str) -> Self {
        self.runtime(Field::Env, name, value.into())
    }

    /// Adds an env var of the runtime whose value has a source: `json!({"fieldRef": {...}})`.
    #[must_use]
    pub fn env_source(self, name: &str, source: Value) -> Self {
        self.runtime(Field::Env, name, source.into())
    }

    /// Adds a port of the runtime.
    #[must_use]
    pub fn port(self, number: u16, protocol: &str, name: Option<&str>) -> Self {
        let mut port = json!({ "containerPort": number, "protocol": protocol });
        if let (Some(name), Value::Object(port)) = (name, &mut port) {
            port.insert("name".to_owned(), name.into());
        }
        self.runtime(Field::Ports, &format!("{number}/{protocol}"), port.into())
    }

    /// Adds a mount of the runtime.
    #[must_use]
    pub fn mount(self, volume: &str, path: &str) -> Self {
        let mount = json!({ "name": volume, "mountPath": path });
        self.runtime(Field::Mounts, path, mount.into())
    }

    /// Sets the restart policy. `Always` turns an init container into a sidecar.
    #[must_use]
    pub fn restart_policy(self, policy: &str) -> Self {
        self.runtime(Field::RestartPolicy, "", policy.into())
    }

    /// Sets a resource request.
    #[must_use]
    pub fn request(self, resource: &str, amount: &str) -> Self {
        self.runtime(Field::Requests, resource, amount.into())
    }

    /// Sets a resource limit.
    #[must_use]
    pub fn limit(self, resource: &str, amount: &str) -> Self {
        self.runtime(Field::Limits, resource, amount.into())
    }

    /// Sets a member of the container that has no method, such as `tty` or `securityContext/privileged`.
    #[must_use]
    pub fn raw(self, member: &str, value: Value) -> Self {
        self.runtime(Field::ContainerRaw, member, value.into())
    }

    /// Gives the container a Linux capability, such as `IPC_LOCK`.
    #[must_use]
    pub fn capability(self, name: &str) -> Self {
        self.runtime(Field::Capabilities, name, name.into())
    }

    /// Makes the container use a resource claim of the pod, or one request of the claim.
    #[must_use]
    pub fn uses_resource_claim(self, name: &str, request: Option<&str>) -> Self {
        let mut claim = json!({ "name": name });
        if let (Some(request), Some(claim)) = (request, claim.as_object_mut()) {
            claim.insert("request".to_owned(), request.into());
        }
        self.runtime(Field::ResourceClaimUses, name, claim.into())
    }

    /// Sets the TrainJob's command, which replaces the runtime's.
    #[must_use]
    pub fn train_job_command(self, command: &[&str]) -> Self {
        self.train_job(Field::Command, "", list(command))
    }

    /// Sets the TrainJob's arguments, which replace the runtime's.
    #[must_use]
    pub fn train_job_args(self, args: &[&str]) -> Self {
        self.train_job(Field::Args, "", list(args))
    }

    /// Adds an env var of the TrainJob.
    #[must_use]
    pub fn train_job_env(self, name: &str, value: &str) -> Self {
        self.train_job(Field::Env, name, value.into())
    }

    fn runtime(mut self, field: Field, key: &str, datum: Datum) -> Self {
        self.fields.load(field, key, datum);
        self
    }

    fn train_job(mut self, field: Field, key: &str, datum: Datum) -> Self {
        self.overrides.push((field, key.to_owned(), datum));
        self
    }
}

fn list(items: &[&str]) -> Datum {
    let items: Vec<String> = items.iter().map(|&item| item.to_owned()).collect();
    items.as_slice().into()
}
