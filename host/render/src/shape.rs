//! The path and shape of each field of the record in a JobSet, in one table for reading and writing.

use std::borrow::Cow;

use crate::json::{get, text};
use serde_json::Value;
use trainyard_model::record::{Datum, Field, env_json};

/// The shape of a field's values in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A single value, such as `image`.
    One,
    /// An object whose members are the values, such as `nodeSelector`.
    Map,
    /// A list whose items have a key, such as `name` in `env`.
    List(ListKey),
    /// Items that plugins add to a list, after those of the template, which have no key; see [`crate::additions`].
    Additions,
    /// Members of the object, keyed by name. `securityContext/runAsUser` is one level down.
    Members,
    /// A single value of the replicated job, above its pod template, with its own rules for reading and writing.
    Job,
    /// Not part of a JobSet.
    Elsewhere,
}

/// The key of a list's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKey {
    /// The field of this name.
    Field(&'static str),
    /// The number and protocol of a port (W28).
    Port,
    /// The item itself, a string.
    Text,
    Position,
}

/// Returns the path of a field in its JobSet, replicated job, pod template or container, and its shape.
pub(crate) const fn shape(field: Field) -> (&'static [&'static str], Shape) {
    use ListKey::{Field as By, Port, Position, Text};
    use Shape::{Additions, Elsewhere, Job, List, Map, Members, One};
    match field {
        Field::Labels => (&["metadata", "labels"], Map),
        Field::Annotations => (&["metadata", "annotations"], Map),
        Field::PodLabels => (&["metadata", "labels"], Map),
        Field::PodAnnotations => (&["metadata", "annotations"], Map),
        Field::Volumes => (&["spec", "volumes"], List(By("name"))),
        Field::ResourceClaims => (&["spec", "resourceClaims"], List(By("name"))),
        Field::NodeSelector => (&["spec", "nodeSelector"], Map),
        Field::PriorityClass => (&["spec", "priorityClassName"], One),
        Field::SchedulerName => (&["spec", "schedulerName"], One),
        Field::SchedulingGates => (&["spec", "schedulingGates"], List(By("name"))),
        Field::Tolerations => (&["spec", "tolerations"], Additions),
        Field::AffinityTerms => (&["spec", "affinity"], Additions),
        Field::DnsSearches => (&["spec", "dnsConfig", "searches"], List(Text)),
        Field::FsGroup => (&["spec", "securityContext", "fsGroup"], One),
        Field::PodRaw => (&["spec"], Members),
        Field::ContainerRaw => (&[], Members),
        Field::Containers => (&["spec", "containers"], List(By("name"))),
        Field::InitContainers => (&["spec", "initContainers"], List(By("name"))),
        Field::Image => (&["image"], One),
        Field::ImagePullPolicy => (&["imagePullPolicy"], One),
        Field::Command => (&["command"], One),
        Field::Args => (&["args"], One),
        Field::WorkingDir => (&["workingDir"], One),
        Field::RestartPolicy => (&["restartPolicy"], One),
        Field::Env => (&["env"], List(By("name"))),
        Field::EnvFrom => (&["envFrom"], List(Position)),
        Field::Ports => (&["ports"], List(Port)),
        Field::Mounts => (&["volumeMounts"], List(By("mountPath"))),
        Field::Requests => (&["resources", "requests"], Map),
        Field::Limits => (&["resources", "limits"], Map),
        Field::ResourceClaimUses => (&["resources", "claims"], List(By("name"))),
        Field::Count => (&["template", "spec", "parallelism"], Job),
        Field::Replicas => (&["replicas"], Job),
        Field::BackoffLimit => (&["template", "spec", "backoffLimit"], Job),
        Field::Objects | Field::JobSpec | Field::Lookups | Field::Devices | Field::Placement => {
            (&[], Elsewhere)
        }
    }
}

/// Returns the key of a list's item. `None` if the item has no key.
pub(crate) fn item_key(by: ListKey, at: usize, item: &Value) -> Option<Cow<'_, str>> {
    match by {
        ListKey::Field(name) => get(item, name)?.as_str().map(Cow::from),
        ListKey::Port => {
            let protocol = get(item, "protocol").and_then(Value::as_str);
            let number = get(item, "containerPort")?.as_u64()?;
            Some(format!("{number}/{}", protocol.unwrap_or("TCP")).into())
        }
        ListKey::Text => item.as_str().map(Cow::from),
        ListKey::Position => Some(at.to_string().into()),
    }
}

/// Returns the record's value of a list's item.
pub(crate) fn item_datum(field: Field, item: &Value) -> Datum {
    match (field, get(item, "valueFrom")) {
        (Field::Env, Some(source)) => source.clone().into(),
        (Field::Env, None) => text(item, "value").into(),
        _ => match item {
            Value::String(text) => text.as_str().into(),
            item => item.clone().into(),
        },
    }
}

/// Returns the list's item for a value of the record.
pub(crate) fn item_json(field: Field, key: &str, datum: &Datum) -> Value {
    match field {
        Field::Env => env_json(key, datum),
        _ => datum.to_json().unwrap_or_default(),
    }
}

/// Returns a map's value as text. Quantities may be numbers in YAML.
pub(crate) fn map_text(field: Field, value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) if matches!(field, Field::Requests | Field::Limits) => {
            Some(number.to_string().into())
        }
        _ => None,
    }
}
