//! Changes of TrainJobs and runtimes, as users make them.

use serde_json::{Map, Value, json};
use trainyard_api::{Inputs, Object};
use trainyard_model::manifest::Union;
use trainyard_schema::documents::union_keys;

use crate::input::{is_runtime, is_train_job};

/// Changes the objects of an input.
type Edit = Box<dyn Fn(&mut Vec<Object>) + Sync>;

/// A change of the input.
pub(super) struct Scenario {
    /// What it is, in words.
    pub(super) name: String,
    /// Whether it activates other plugins, whose order may matter.
    pub(super) adds_plugins: bool,
    /// Whether the plugin writes to the same nodes as without it.
    pub(super) keeps_nodes: bool,
    edit: Edit,
}

impl Scenario {
    fn new(name: impl Into<String>, edit: impl Fn(&mut Vec<Object>) + Sync + 'static) -> Self {
        Self {
            name: name.into(),
            adds_plugins: false,
            keeps_nodes: false,
            edit: Box::new(edit),
        }
    }

    fn with_plugins(self) -> Self {
        Self {
            adds_plugins: true,
            ..self
        }
    }

    fn with_same_nodes(self) -> Self {
        Self {
            keeps_nodes: true,
            ..self
        }
    }

    pub(super) fn apply(&self, objects: &mut Vec<Object>) {
        (self.edit)(objects);
    }
}

/// Returns all scenarios.
pub(super) fn scenarios() -> Vec<Scenario> {
    let gangs = union_keys(Union::PodGroupPolicy.name()).filter(|key| *key != "plugin");
    let gangs = gangs.map(|key| {
        let name = format!("in a gang of {key}");
        Scenario::new(name, move |objects| gang(objects, key)).with_plugins()
    });
    let mut all = vec![
        Scenario::new("with 8 accelerators per node", |objects| {
            resources(objects, &json!({"limits": {"nvidia.com/gpu": "8"}}));
        }),
        Scenario::new("without accelerators", |objects| {
            resources(objects, &json!({"requests": {"cpu": "1"}}));
            of_containers(objects, without_devices);
        }),
        Scenario::new("with 1 node", |objects| {
            of_trainer(objects, "numNodes", &json!(1))
        }),
        Scenario::new("with 1,000 nodes", |objects| {
            of_trainer(objects, "numNodes", &json!(1000))
        }),
        Scenario::new("with an init container", |objects| {
            let prepare =
                json!({"name": "prepare-data", "image": "registry.example.com/prepare:1"});
            of_pods(objects, |pod| add(pod, "initContainers", prepare.clone()));
        }),
        Scenario::new("with a container of the user beside training", |objects| {
            let beside = json!({"name": "users-own", "image": "registry.example.com/beside:1"});
            of_pods(objects, |pod| add(pod, "containers", beside.clone()));
        }),
        Scenario::new("with claims of devices", claims_of_devices).with_plugins(),
        Scenario::new("without DNS names of pods", |objects| {
            of_job_sets(objects, |spec| {
                let network = spec.entry("network").or_insert_with(|| json!({}));
                if let Some(network) = network.as_object_mut() {
                    network.insert("enableDNSHostnames".to_owned(), json!(false));
                }
            });
        }),
        Scenario::new("with pods that have to be ready first", |objects| {
            of_job_sets(objects, helper_first);
        })
        .with_same_nodes(),
        Scenario::new("without the objects that it looks up", |objects| {
            objects.retain(|object| is_train_job(object) || is_runtime(object));
        }),
    ];
    all.extend(gangs);
    all
}

/// Changes the specs of the pod templates of all runtimes.
fn of_pods(objects: &mut [Object], edit: impl Fn(&mut Map<String, Value>)) {
    of_pod_templates(objects, |_, template| {
        if let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) {
            edit(pod);
        }
    });
}

/// Changes the pod templates of all runtimes, by the names of the replicated jobs.
pub(super) fn of_pod_templates(objects: &mut [Object], mut edit: impl FnMut(&str, &mut Value)) {
    of_job_sets(objects, |spec| {
        for job in replicated_jobs(spec) {
            let name = job.get("name").and_then(Value::as_str);
            let name = name.unwrap_or_default().to_owned();
            if let Some(template) = job.pointer_mut("/template/spec/template") {
                edit(&name, template);
            }
        }
    });
}

/// Changes the specs of the JobSets of all runtimes.
fn of_job_sets(objects: &mut [Object], mut edit: impl FnMut(&mut Map<String, Value>)) {
    for runtime in objects.iter_mut().filter(|object| is_runtime(object)) {
        let spec = runtime.value.pointer_mut("/spec/template/spec");
        if let Some(spec) = spec.and_then(Value::as_object_mut) {
            edit(spec);
        }
    }
}

fn replicated_jobs(spec: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    let jobs = spec.get_mut("replicatedJobs").and_then(Value::as_array_mut);
    jobs.into_iter().flatten()
}

/// Returns the value at a pointer. Objects on the way that do not exist are added, and the value itself is `empty`.
pub(super) fn entry<'v>(
    owner: &'v mut Value,
    pointer: &str,
    empty: Value,
) -> Option<&'v mut Value> {
    let mut names = pointer.split('/').skip(1).peekable();
    let mut at = owner;
    while let Some(name) = names.next() {
        let missing = match names.peek() {
            Some(_) => json!({}),
            None => empty.clone(),
        };
        at = at.as_object_mut()?.entry(name).or_insert(missing);
    }
    Some(at)
}

/// Changes the containers of all runtimes.
fn of_containers(objects: &mut [Object], edit: impl Fn(&mut Map<String, Value>)) {
    of_pods(objects, |pod| containers(pod, "containers").for_each(&edit));
}

/// Returns the containers in a list of a pod.
fn containers<'p>(
    pod: &'p mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'p mut Map<String, Value>> {
    let list = pod.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Adds an item to a list.
fn add(parent: &mut Map<String, Value>, list: &str, item: Value) {
    let list = parent.entry(list).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

/// Sets a field of the trainer of all TrainJobs.
fn of_trainer(objects: &mut [Object], field: &str, value: &Value) {
    for job in objects.iter_mut().filter(|object| is_train_job(object)) {
        let spec = job.value.get_mut("spec").and_then(Value::as_object_mut);
        let trainer = spec.map(|spec| spec.entry("trainer").or_insert_with(|| json!({})));
        if let Some(trainer) = trainer.and_then(Value::as_object_mut) {
            trainer.insert(field.to_owned(), value.clone());
        }
    }
}

fn resources(objects: &mut [Object], resources: &Value) {
    of_trainer(objects, "resourcesPerNode", resources);
}

/// Removes resources that only devices have, such as `nvidia.com/gpu`.
fn without_devices(container: &mut Map<String, Value>) {
    for list in ["limits", "requests"] {
        let resources = container
            .get_mut("resources")
            .and_then(|all| all.get_mut(list));
        if let Some(resources) = resources.and_then(Value::as_object_mut) {
            resources.retain(|name, _| !name.contains('/'));
        }
    }
}

/// Adds a gang to all runtimes without one, and a scheduler that is not the default, which starts pods one by one.
fn gang(objects: &mut [Object], policy: &str) {
    for runtime in objects.iter_mut().filter(|object| is_runtime(object)) {
        let spec = runtime.value.get_mut("spec").and_then(Value::as_object_mut);
        if let Some(spec) = spec {
            spec.entry("podGroupPolicy")
                .or_insert_with(|| json!({policy: {}}));
        }
    }
    of_pods(objects, |pod| {
        pod.entry("schedulerName").or_insert_with(|| json!("gangs"));
    });
}

/// Puts a replicated job before the others, which start once its pods are ready.
fn helper_first(spec: &mut Map<String, Value>) {
    let container = json!({"name": "users-helper", "image": "registry.example.com/helper:1"});
    let pod = json!({"spec": {"containers": [container]}});
    let helper = json!({"name": "users-helper", "template": {"spec": {"template": pod}}});
    // JobSet refuses both ways of an order together.
    if replicated_jobs(spec).any(|job| job.get("dependsOn").is_some()) {
        let ready = json!([{"name": "users-helper", "status": "Ready"}]);
        for job in replicated_jobs(spec).filter_map(Value::as_object_mut) {
            job.entry("dependsOn").or_insert_with(|| ready.clone());
        }
    } else {
        let in_order = json!({"startupPolicyOrder": "InOrder"});
        spec.insert("startupPolicy".to_owned(), in_order);
    }
    let jobs = spec.get_mut("replicatedJobs").and_then(Value::as_array_mut);
    if let Some(jobs) = jobs {
        jobs.insert(0, helper);
    }
}

/// Lets the pods of all runtimes claim devices by a template.
fn claims_of_devices(objects: &mut Vec<Object>) {
    let claim = json!({"name": "users-own", "resourceClaimTemplateName": "users-own"});
    of_pods(objects, |pod| {
        add(pod, "resourceClaims", claim.clone());
        for container in containers(pod, "containers") {
            let resources = container.entry("resources").or_insert_with(|| json!({}));
            if let Some(resources) = resources.as_object_mut() {
                add(resources, "claims", json!({"name": "users-own"}));
            }
        }
    });
    let namespaces: Vec<_> = objects
        .iter()
        .filter(|object| is_train_job(object))
        .map(|job| job.metadata.namespace.clone())
        .collect();
    for namespace in namespaces {
        let request =
            json!({"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 8}});
        let template = json!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "users-own", "namespace": namespace},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        });
        objects.extend(Inputs::read_text("devices.yaml", &template.to_string()).objects);
    }
}
