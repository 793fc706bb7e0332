//! The kinds of values that both plugins and users set, and how users set them.

use serde_json::{Value, json};
use trainyard_api::Object;

use super::{
    report::CheckName,
    scenarios::{entry, of_pod_templates},
};
use crate::input::is_train_job;

/// The name and the value of what a user sets.
const OWN: &str = "users-own";

/// A kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Env,
    Mount,
    Volume,
    Port,
    Limit,
    Request,
    Label,
    Annotation,
    Scheduler,
}

/// What differs between the kinds.
struct Form {
    check: CheckName,
    noun: &'static str,
    /// The field of the record.
    field: &'static str,
    /// The list or the object with the values, below the container or the pod template.
    pointer: &'static str,
    /// The key of the items, if it is a list.
    id: Option<&'static str>,
    is_of_container: bool,
}

const fn form(
    is_of_container: bool,
    (check, noun): (CheckName, &'static str),
    field: &'static str,
    (pointer, id): (&'static str, Option<&'static str>),
) -> Form {
    Form {
        check,
        noun,
        field,
        pointer,
        id,
        is_of_container,
    }
}

/// Where a value is: a pod template of a runtime, or a container in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pod_set: String,
    /// The list and the name of the container.
    container: Option<(&'static str, String)>,
}

impl Kind {
    pub(super) const ALL: [Self; 9] = [
        Self::Env,
        Self::Mount,
        Self::Volume,
        Self::Port,
        Self::Limit,
        Self::Request,
        Self::Label,
        Self::Annotation,
        Self::Scheduler,
    ];

    const fn form(self) -> Form {
        use CheckName as C;
        match self {
            Self::Env => form(true, (C::Env, "env var"), "env", ("/env", Some("name"))),
            Self::Mount => {
                let list = ("/volumeMounts", Some("mountPath"));
                form(true, (C::Mounts, "mount"), "mounts", list)
            }
            Self::Volume => {
                let list = ("/spec/volumes", Some("name"));
                form(false, (C::Mounts, "volume"), "volumes", list)
            }
            Self::Port => {
                let list = ("/ports", Some("containerPort"));
                form(true, (C::Ports, "port"), "ports", list)
            }
            Self::Limit => {
                let limits = ("/resources/limits", None);
                form(true, (C::Resources, "limit"), "limits", limits)
            }
            Self::Request => {
                let requests = ("/resources/requests", None);
                form(true, (C::Resources, "request"), "requests", requests)
            }
            Self::Label => {
                let labels = ("/metadata/labels", None);
                form(false, (C::Labels, "label"), "pod-labels", labels)
            }
            Self::Annotation => {
                let all = ("/metadata/annotations", None);
                form(
                    false,
                    (C::Annotations, "annotation"),
                    "pod-annotations",
                    all,
                )
            }
            Self::Scheduler => {
                let spec = ("/spec", None);
                form(false, (C::Scheduler, "field"), "scheduler-name", spec)
            }
        }
    }

    /// Returns the kind of a field of the record.
    pub(super) fn of_field(field: &str, is_of_container: bool) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| {
            let form = kind.form();
            form.field == field && form.is_of_container == is_of_container
        })
    }

    pub(super) const fn check(self) -> CheckName {
        self.form().check
    }

    pub(super) const fn noun(self) -> &'static str {
        self.form().noun
    }

    /// Returns the key in a JobSet of what has these keys in the record.
    pub(super) fn key(self, keys: &[&str]) -> Option<String> {
        let key = match self {
            Self::Scheduler => "schedulerName",
            // The protocol is left out.
            Self::Port => keys.first()?.split('/').next()?,
            _ => keys.first()?,
        };
        Some(key.to_owned())
    }

    /// Returns the user's value.
    fn own(self, key: &str) -> Value {
        match self {
            Self::Env => json!({"name": key, "value": OWN}),
            Self::Mount => json!({"mountPath": key, "name": OWN}),
            Self::Volume => json!({"name": key, "emptyDir": {"sizeLimit": "7Mi"}}),
            Self::Port => {
                let number = key.parse::<u32>();
                let number = number.map_or_else(|_| json!(key), |number| json!(number));
                json!({"containerPort": number, "name": OWN})
            }
            Self::Limit | Self::Request => match key {
                "memory" | "ephemeral-storage" => json!("7Gi"),
                _ => json!("7"),
            },
            Self::Label | Self::Annotation | Self::Scheduler => json!(OWN),
        }
    }

    /// Sets the user's value in runtimes, and in TrainJobs that would replace it.
    pub(super) fn set(self, key: &str, place: &Place, objects: &mut [Object]) {
        of_pod_templates(objects, |name, template| {
            if name != place.pod_set {
                return;
            }
            if self == Self::Mount {
                let volume = json!({"name": OWN, "emptyDir": {}});
                add(template, "/spec/volumes", volume);
            }
            if let Some(owner) = place.in_template_mut(template) {
                self.set_in(key, owner);
            }
        });
        if !matches!(self, Self::Limit | Self::Request) {
            return;
        }
        for job in objects.iter_mut().filter(|object| is_train_job(object)) {
            let per_node = job.value.pointer_mut("/spec/trainer/resourcesPerNode");
            if let Some(per_node) = per_node {
                let mut owner = json!({"resources": per_node.take()});
                self.set_in(key, &mut owner);
                *per_node = owner
                    .get_mut("resources")
                    .map(Value::take)
                    .unwrap_or_default();
            }
        }
    }

    fn set_in(self, key: &str, owner: &mut Value) {
        let (form, own) = (self.form(), self.own(key));
        let Some(id) = form.id else {
            // A request cannot exceed its limit, and that of a device equals it.
            let other = match self {
                Self::Limit => Some(("/resources/requests", false)),
                Self::Request => Some(("/resources/limits", key.contains('/'))),
                _ => None,
            };
            put(owner, form.pointer, key, own.clone());
            if let Some((pointer, is_needed)) = other {
                let found = owner.pointer(pointer).and_then(|all| all.get(key));
                if is_needed || found.is_some() {
                    put(owner, pointer, key, own);
                }
            }
            return;
        };
        let list = owner
            .pointer_mut(form.pointer)
            .and_then(Value::as_array_mut);
        if let Some(list) = list {
            list.retain(|item| item.get(id) != own.get(id));
        }
        add(owner, form.pointer, own);
    }

    /// Whether a pod template or a container has the user's value.
    pub(super) fn is_own(self, key: &str, owner: &Value) -> bool {
        let (form, own) = (self.form(), self.own(key));
        let Some(all) = owner.pointer(form.pointer) else {
            return false;
        };
        match (form.id, &own) {
            (Some(_), Value::Object(own)) => {
                let is_own =
                    |item: &Value| own.iter().all(|(key, value)| item.get(key) == Some(value));
                all.as_array().is_some_and(|items| items.iter().any(is_own))
            }
            _ => all.get(key) == Some(&own),
        }
    }
}

impl Place {
    pub(super) fn new(pod_set: &str, container: Option<(&'static str, &str)>) -> Self {
        Self {
            pod_set: pod_set.to_owned(),
            container: container.map(|(list, name)| (list, name.to_owned())),
        }
    }

    /// Returns the place in the spec of a JobSet.
    pub(super) fn in_spec<'v>(&self, spec: &'v Value) -> Option<&'v Value> {
        let job = named(spec.get("replicatedJobs"), &self.pod_set)?;
        let template = job.pointer("/template/spec/template")?;
        match &self.container {
            None => Some(template),
            Some((list, name)) => named(template.pointer(&format!("/spec/{list}")), name),
        }
    }

    fn in_template_mut<'v>(&self, template: &'v mut Value) -> Option<&'v mut Value> {
        let Some((list, name)) = &self.container else {
            return Some(template);
        };
        let list = template.pointer_mut(&format!("/spec/{list}"))?;
        let mut containers = list.as_array_mut()?.iter_mut();
        containers.find(|one| one.get("name").is_some_and(|own| own == name))
    }
}

/// Returns the item of this name in a list.
fn named<'v>(list: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    let mut items = list?.as_array()?.iter();
    items.find(|item| item.get("name").is_some_and(|own| own == name))
}

/// Adds an item to the list at a pointer.
fn add(owner: &mut Value, pointer: &str, item: Value) {
    if let Some(Value::Array(list)) = entry(owner, pointer, json!([])) {
        list.push(item);
    }
}

/// Sets a member of the object at a pointer.
fn put(owner: &mut Value, pointer: &str, key: &str, value: Value) {
    if let Some(Value::Object(all)) = entry(owner, pointer, json!({})) {
        all.insert(key.to_owned(), value);
    }
}
