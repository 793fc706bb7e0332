//! Values of the input at the path of a difference.

use serde_json::{Map, Value, json};

use crate::{form::form, maps::has_any_keys, seen::Seen};

/// Returns the value at the path of a difference in an object in its normal form.
pub(crate) fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(object);
    }
    let mut members = object.as_object()?.iter();
    members.find_map(|(key, value)| {
        // The key of a map is in brackets.
        let in_brackets = || {
            path.strip_prefix('[')?
                .strip_prefix(&**key)?
                .strip_prefix(']')
        };
        let rest = path.strip_prefix(&**key).or_else(in_brackets)?;
        let is_whole = rest.is_empty() || rest.starts_with(['.', '[']);
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        at(value, rest).filter(|_| is_whole)
    })
}

/// Returns the path behind this text, without the dot.
pub(crate) fn behind<'p>(path: &'p str, text: &str) -> Option<&'p str> {
    let (_, rest) = path.split_once(text)?;
    Some(rest.strip_prefix('.').unwrap_or(rest))
}

/// Returns what the runtime's template has at the path.
pub(crate) fn of_runtime(seen: &Seen<'_>) -> Option<Value> {
    at(&form(&seen.runtime["spec"]["template"]), seen.path()).cloned()
}

/// Returns the name of the env var in the path, and the rest of the path.
fn env_var<'d>(seen: &Seen<'d>) -> Option<(&'d str, &'d str)> {
    let (_, rest) = seen.path().split_once(".env[")?;
    let (name, rest) = rest.split_once(']')?;
    Some((name, rest.strip_prefix('.').unwrap_or(rest)))
}

/// Returns what the env vars of the TrainJob have at the path: those of its trainer, or of its initializers.
pub(crate) fn of_train_job_env(seen: &Seen<'_>) -> Option<Value> {
    let (name, rest) = env_var(seen)?;
    let initializer = &seen.job["spec"]["initializer"];
    let step = match seen.set_name() {
        "dataset-initializer" => &initializer["dataset"],
        "model-initializer" => &initializer["model"],
        _ => seen.trainer(),
    };
    let mut vars = step["env"].clone();
    let files = vars.as_array_mut().into_iter().flatten();
    let files = files.filter_map(|var| var.pointer_mut("/valueFrom/fileKeyRef")?.as_object_mut());
    for file in files {
        // The default of the API.
        file.entry("optional").or_insert(false.into());
    }
    let env = form(&json!({"env": vars}));
    at(&env, &format!("env[{name}]")).and_then(|var| at(var, rest).cloned())
}

/// Returns what a computed env var has at the path, which may be nothing. `None` if nothing computes the env var.
pub(crate) fn of_env_var(
    seen: &Seen<'_>,
    value: impl FnOnce(&str) -> Option<Value>,
) -> Option<Option<Value>> {
    let (name, rest) = env_var(seen)?;
    let mut var = value(name)?;
    if let Some(var) = var.as_object_mut() {
        var.insert("name".to_owned(), name.into());
    }
    Some(at(&var, rest).cloned())
}

/// Returns the amount, or the resources, that the path has in these layers of resources, of which a later one counts.
fn of_layers(seen: &Seen<'_>, layers: &[&Value]) -> Option<Value> {
    let mut merged = Map::new();
    for layer in layers {
        for (list, amounts) in layer.as_object().into_iter().flatten() {
            let list = merged.entry(list.clone()).or_insert_with(|| json!({}));
            let (Some(list), Some(amounts)) = (list.as_object_mut(), amounts.as_object()) else {
                continue;
            };
            list.extend(amounts.clone());
        }
    }
    let resources = form(&json!({"resources": merged}));
    let rest = behind(seen.path(), "].resources")?;
    at(&resources["resources"], rest)
        .filter(|value| !value.is_null())
        .cloned()
}

/// Returns the resources of a container: the runtime's, and over them the TrainJob's if it applies to the container.
pub(crate) fn resources(seen: &Seen<'_>, is_given: bool) -> Option<Value> {
    let (to_container, _) = seen.path().split_once(".resources")?;
    let runtime = form(&seen.runtime["spec"]["template"]);
    let own = at(&runtime, to_container).map_or(&Value::Null, |container| &container["resources"]);
    let given = &seen.trainer()["resourcesPerNode"];
    match is_given {
        true => of_layers(seen, &[own, given]),
        false => of_layers(seen, &[own]),
    }
}

/// Returns the objects that are merged into the pods of the difference, in their order: the runtime's template, the overrides of earlier
/// releases, and the patches, each with what is at the path.
fn layers(seen: &Seen<'_>) -> Vec<Value> {
    let spec = &seen.job["spec"];
    let list = |field: &str| spec[field].as_array().into_iter().flatten();
    let is_for = |one: &&Value| {
        let mut targets = one["targetJobs"].as_array().into_iter().flatten();
        targets.any(|target| target["name"] == seen.set_name())
    };
    let in_pod = |pod: Value| {
        let job = json!({"name": seen.set_name(), "template": {"spec": {"template": pod}}});
        json!({"spec": {"replicatedJobs": [job]}})
    };
    let flat = |one: &Value| {
        let mut spec = one.clone();
        if let Some(members) = spec.as_object_mut() {
            members.remove("targetJobs");
        }
        in_pod(json!({"spec": spec}))
    };
    let nested = |one: &Value| in_pod(json!({"metadata": one["metadata"], "spec": one["spec"]}));
    let patch = |one: &Value| one["trainingRuntimeSpec"]["template"].clone();
    [seen.runtime["spec"]["template"].clone()]
        .into_iter()
        .chain(list("podSpecOverrides").filter(is_for).map(flat))
        .chain(list("podTemplateOverrides").filter(is_for).map(nested))
        .chain(
            seen.patches()
                .filter(|patch| !is_replaced(seen, patch))
                .map(patch),
        )
        .collect()
}

/// Returns whether overrides of earlier releases, which come again, replace a patch that was made of them.
fn is_replaced(seen: &Seen<'_>, patch: &Value) -> bool {
    let made_of_overrides = "trainer.kubeflow.org/pod-template-overrides";
    let spec = &seen.job["spec"];
    let has_overrides =
        spec["podTemplateOverrides"].is_array() || spec["podSpecOverrides"].is_array();
    let manager = patch["manager"].as_str().unwrap_or_default();
    has_overrides && manager.starts_with(made_of_overrides)
}

/// Returns whether Trainyard's value is what the runtime's template, the TrainJob's overrides and its patches are merged to.
pub(crate) fn is_merged(seen: &Seen<'_>) -> bool {
    let layers = layers(seen);
    let Some(ours) = seen.ours() else {
        return is_removed(seen, &layers);
    };
    let normal: Vec<_> = layers.iter().map(form).collect();
    let found: Vec<_> = normal
        .iter()
        .filter_map(|layer| at(layer, seen.path()))
        .collect();
    is_merged_from(ours, &found)
}

fn is_merged_from(ours: &Value, layers: &[&Value]) -> bool {
    let Some(members) = ours.as_object() else {
        return layers.last() == Some(&ours);
    };
    let of_layers = |key: &str| {
        layers
            .iter()
            .filter_map(|layer| layer.get(key))
            .collect::<Vec<_>>()
    };
    let mut known = layers.iter().filter_map(|layer| layer.as_object());
    !layers.is_empty()
        && known.all(|layer| layer.keys().all(|key| members.contains_key(key)))
        && members
            .iter()
            .all(|(key, value)| is_merged_from(value, &of_layers(key)))
}

/// Returns whether a later layer removes the field with a null, or replaces its source by another one, or if only a patch that is replaced
/// has it.
fn is_removed(seen: &Seen<'_>, layers: &[Value]) -> bool {
    let Some((parent, field)) = split_last(seen.path()) else {
        return false;
    };
    let has = |layer: &Value| at(&form(layer), seen.path()).is_some();
    let mut replaced = seen.patches().filter(|patch| is_replaced(seen, patch));
    if replaced.any(|patch| has(&patch["trainingRuntimeSpec"]["template"])) {
        return !layers.iter().any(has);
    }
    let mut later = layers.iter().skip(1);
    later.any(|layer| {
        let is_null = |object: &Value| object.get(field).is_some_and(Value::is_null);
        let normal = form(layer);
        let has_other = at(&normal, parent)
            .and_then(Value::as_object)
            .is_some_and(|item| {
                item.contains_key("name") && item.len() > 1 && !item.contains_key(field)
            });
        any_object(layer, &is_null) || has_other
    })
}

fn split_last(path: &str) -> Option<(&str, &str)> {
    let key = path
        .strip_suffix(']')
        .and_then(|path| path.rsplit_once('['));
    let of_map = key.filter(|(map, _)| has_any_keys(map.rsplit('.').next().unwrap_or_default()));
    of_map.or_else(|| path.rsplit_once('.'))
}

fn any_object(value: &Value, test: &impl Fn(&Value) -> bool) -> bool {
    match value {
        Value::Object(members) => {
            test(value) || members.values().any(|value| any_object(value, test))
        }
        Value::Array(items) => items.iter().any(|value| any_object(value, test)),
        _ => false,
    }
}
