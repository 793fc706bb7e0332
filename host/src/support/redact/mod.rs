//! Removes credentials from what is collected. What stays is chosen, rather than what goes, where users put credentials: the values of
//! variables of containers, and annotations. Everything else loses what looks like a credential by its name or its form. Values that were
//! removed in one place are removed everywhere.

pub(crate) mod known;
pub(crate) mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use self::{
    known::{Everywhere, Known},
    text::{REMOVED, is_credential, without_credentials},
};

/// The first characters of variables that the built-in policies and frameworks set. Their values say how processes find each other.
const VARIABLES: [&str; 12] = [
    "PET_",
    "NCCL_",
    "GLOO_",
    "JAX_",
    "DMLC_",
    "OMPI_",
    "I_MPI_",
    "HYDRA_",
    "FLUX_",
    "TRAINJOB_",
    "CUDA_VISIBLE_DEVICES",
    "JOB_COMPLETION_INDEX",
];

/// The domains of annotations that controllers write. Their values say what a controller has done.
const ANNOTATIONS: [&str; 5] = [
    "trainyard.dev/",
    "trainer.kubeflow.org/",
    "jobset.sigs.k8s.io/",
    "kueue.x-k8s.io/",
    "batch.kubernetes.io/",
];

/// The fields of references to Secrets and of their volumes, which say where a credential is.
const REFERENCES: [&str; 9] = [
    "audience",
    "defaultMode",
    "expirationSeconds",
    "key",
    "mode",
    "name",
    "namespace",
    "path",
    "secretName",
];

/// The ends of the names of such references.
const REFERENCE_NAMES: [&str; 3] = ["Ref", "Selector", "Secrets"];

/// Why a value was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Why {
    /// The value of a variable of a container.
    Env,
    /// An annotation of another client.
    Annotation,
    /// The value of a key or a flag whose name is that of a credential.
    Name,
    /// A text that looks like a credential.
    Form,
    /// A value that was removed elsewhere.
    Elsewhere,
}

/// What was removed of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RemovedFrom {
    /// The paths of values of an object; empty for a text.
    paths: BTreeMap<String, Why>,
    /// How often something was removed for each reason.
    counts: BTreeMap<Why, usize>,
}

/// The most paths of a file that are listed.
const PATHS: usize = 1_000;

impl RemovedFrom {
    fn note(&mut self, path: &str, why: Why) {
        *self.counts.entry(why).or_default() += 1;
        if !path.is_empty() && self.paths.len() < PATHS {
            self.paths.insert(path.to_owned(), why);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// Removes credentials, and remembers them.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    known: Known,
}

impl Redactor {
    /// Removes credentials from a value.
    pub(crate) fn value(&mut self, value: &mut Value) -> RemovedFrom {
        let mut removed = RemovedFrom::default();
        self.visit(value, "", &mut removed);
        removed
    }

    /// Removes credentials from a text.
    pub(crate) fn text(&mut self, text: &mut String) -> RemovedFrom {
        let mut removed = RemovedFrom::default();
        *text = self.scrub(text, "", &mut removed);
        removed
    }

    /// Returns what removes the values that were removed so far from texts in which nothing shows that they are credentials.
    pub(crate) fn everywhere(&self) -> Everywhere {
        self.known.everywhere()
    }

    fn visit(&mut self, value: &mut Value, path: &str, removed: &mut RemovedFrom) {
        match value {
            Value::String(text) => *text = self.string(text, path, removed),
            Value::Array(items) => self.list(items, path, removed),
            Value::Object(members) => {
                members.remove("managedFields");
                // Such as the headers of a probe.
                let name = members.get("name").and_then(Value::as_str);
                let is_named = name.is_some_and(is_credential);
                self.members(
                    members,
                    path,
                    removed,
                    |all, key, value, path, removed| match (key, value) {
                        ("env", Value::Array(variables)) => all.variables(variables, path, removed),
                        ("env", Value::Object(variables)) => {
                            all.chosen(variables, path, (&VARIABLES, Why::Env), removed);
                        }
                        ("annotations", Value::Object(annotations)) => {
                            all.chosen(annotations, path, (&ANNOTATIONS, Why::Annotation), removed);
                        }
                        (key, value) if is_credential(key) => all.below(value, path, removed),
                        ("value", value) if is_named => all.below(value, path, removed),
                        (_, value) => all.visit(value, path, removed),
                    },
                );
            }
            _ => {}
        }
    }

    /// Calls `visit` for each member of an object with its key and its path. Keys are texts too, and are in paths.
    fn members(
        &mut self,
        members: &mut Map<String, Value>,
        path: &str,
        removed: &mut RemovedFrom,
        mut visit: impl FnMut(&mut Self, &str, &mut Value, &str, &mut RemovedFrom),
    ) {
        let visited = std::mem::take(members).into_iter().map(|(key, mut value)| {
            let kept = self.scrub(&key, path, removed);
            let path = format!("{path}/{}", kept.replace('~', "~0").replace('/', "~1"));
            visit(self, &key, &mut value, &path, removed);
            (kept, value)
        });
        *members = visited.collect();
    }

    /// Removes the texts and numbers below a key whose name is that of a credential, except for references to objects.
    fn below(&mut self, value: &mut Value, path: &str, removed: &mut RemovedFrom) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.below(item, &format!("{path}/{at}"), removed);
                }
            }
            Value::Object(members) => {
                let is_index = |name: &&str| name.bytes().all(|byte| byte.is_ascii_digit());
                let parent = path.rsplit('/').find(|name| !is_index(name));
                let parent = parent.unwrap_or_default();
                let is_reference = path.contains("/volumes/")
                    || REFERENCE_NAMES.iter().any(|end| parent.ends_with(end));
                self.members(members, path, removed, |all, key, value, path, removed| {
                    match is_reference && REFERENCES.contains(&key) {
                        true => all.visit(value, path, removed),
                        false => all.below(value, path, removed),
                    }
                });
            }
            Value::String(_) | Value::Number(_) => self.remove(value, path, Why::Name, removed),
            _ => {}
        }
    }

    /// Visits the items of a list. The item after a flag that names a credential is its value.
    fn list(&mut self, items: &mut [Value], path: &str, removed: &mut RemovedFrom) {
        let mut is_value = false;
        for (at, item) in items.iter_mut().enumerate() {
            let path = format!("{path}/{at}");
            let text = item.as_str().unwrap_or_default();
            let names_next = text.starts_with('-') && is_credential(text.trim_start_matches('-'));
            if is_value && item.is_string() && !text.starts_with("--") {
                self.remove(item, &path, Why::Name, removed);
            } else {
                self.visit(item, &path, removed);
            }
            is_value = names_next;
        }
    }

    fn variables(&mut self, variables: &mut [Value], path: &str, removed: &mut RemovedFrom) {
        for (at, variable) in variables.iter_mut().enumerate() {
            let path = format!("{path}/{at}");
            let text = variable.as_str().map(str::to_owned);
            let pair = text.as_deref();
            let pair = pair.map(|text| text.split_once('=').unwrap_or(("", text)));
            let name = pair.map(|(name, _)| name);
            let name = name.or_else(|| variable.get("name")?.as_str());
            if name.is_some_and(|name| is_known(name, &VARIABLES)) {
                self.visit(variable, &path, removed);
            } else if let Some((name, value)) = pair {
                self.known.remember(value);
                removed.note(&path, Why::Env);
                *variable = format!("{name}={REMOVED}").into();
            } else if let Value::Object(members) = variable {
                self.members(
                    members,
                    &path,
                    removed,
                    |all, key, value, path, removed| match key {
                        "name" | "key" | "valueFrom" => all.visit(value, path, removed),
                        _ => all.remove(value, path, Why::Env, removed),
                    },
                );
            } else {
                self.remove(variable, &path, Why::Env, removed);
            }
        }
    }

    /// Removes the values of members, except for those whose keys begin like one of `known`.
    fn chosen(
        &mut self,
        members: &mut Map<String, Value>,
        path: &str,
        (known, why): (&[&str], Why),
        removed: &mut RemovedFrom,
    ) {
        self.members(
            members,
            path,
            removed,
            |all, key, value, path, removed| match is_known(key, known) {
                true => all.visit(value, path, removed),
                false => all.remove(value, path, why, removed),
            },
        );
    }

    /// Returns a string without credentials. JSON in it is read, because a name and its value may be far apart in a text.
    fn string(&mut self, text: &str, path: &str, removed: &mut RemovedFrom) -> String {
        let is_json = text.trim_start().starts_with(['{', '[']);
        match is_json.then(|| serde_json::from_str::<Value>(text)) {
            Some(Ok(mut inner)) => {
                let mut within = RemovedFrom::default();
                self.visit(&mut inner, path, &mut within);
                if within.is_empty() {
                    // A key that appears twice has lost its first value.
                    return self.scrub(text, path, removed);
                }
                for (why, count) in within.counts {
                    *removed.counts.entry(why).or_default() += count;
                }
                removed.paths.extend(within.paths);
                inner.to_string()
            }
            _ => self.scrub(text, path, removed),
        }
    }

    fn scrub(&mut self, text: &str, path: &str, removed: &mut RemovedFrom) -> String {
        without_credentials(text, |value| {
            removed.note(path, Why::Form);
            if value.contains(REMOVED) {
                return;
            }
            self.known.remember(value);
            // More than the value may have been removed, and it may follow the scheme of a header.
            let start = value.split(['"', '\'', '\\', ',', ';', ')', '\n']).next();
            let start = start.unwrap_or_default();
            self.known.remember(start);
            start
                .split_whitespace()
                .take(2)
                .for_each(|word| self.known.remember(word));
        })
    }

    fn remove(&mut self, value: &mut Value, path: &str, why: Why, removed: &mut RemovedFrom) {
        match value.as_str() {
            Some("") => return,
            Some(text) => self.known.remember(text),
            None => self.known.remember(&value.to_string()),
        }
        *value = REMOVED.into();
        removed.note(path, why);
    }
}

/// Whether the value of a key stays, because the key begins like one of `known`.
fn is_known(key: &str, known: &[&str]) -> bool {
    known.iter().any(|start| key.starts_with(start)) && !is_credential(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn only_known_variables_and_annotations_keep_their_values() {
        let mut object = json!({
            "metadata": {
                "managedFields": [{"manager": "x"}],
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": "{\"spec\":{}}",
                    "trainyard.dev/reconcile-error": "RuntimeNotFound: x",
                    "trainyard.dev/plugins": "[{\"name\":\"tracer\",\"config\":{\"apiKey\":\"k-1\",\"rate\":1}}]",
                },
            },
            "spec": {"containers": [{
                "env": [
                    {"name": "HARMLESS", "value": "plain"},
                    {"name": "PET_NNODES", "value": "4"},
                    {"name": "NCCL_TOKEN", "value": "t"},
                    {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "EMPTY", "value": ""},
                ],
                "args": ["--password", "hunter2", "--nodes", "4", "--token=x1", "--token", "--flag"],
            }]},
            "config": {"env": {"A": "x", "PET_B": "y"}, "credentials": {"user": "u", "name": "n", "pin": 7}},
            "lists": {"env": ["A=x", "PET_B=y", {"key": "C", "value2": "z"}]},
            "headers": [{"name": "Authorization", "value": "Token x"}],
            "volumes": [{"secret": {"secretName": "s", "defaultMode": 420, "items": [{"key": "k", "path": "p"}]}}],
            "imagePullSecrets": [{"name": "pull"}],
            "text": " {\"password\": \"x\"}",
            "hf_Pl4ntedPl4nted": 1,
            "tail": ["--password", "-X"],
        });
        let removed = Redactor::default().value(&mut object);
        let expected = json!({
            "metadata": {
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": REMOVED,
                    "trainyard.dev/reconcile-error": "RuntimeNotFound: x",
                    "trainyard.dev/plugins": "[{\"name\":\"tracer\",\"config\":{\"apiKey\":\"(removed)\",\"rate\":1}}]",
                },
            },
            "spec": {"containers": [{
                "env": [
                    {"name": "HARMLESS", "value": REMOVED},
                    {"name": "PET_NNODES", "value": "4"},
                    {"name": "NCCL_TOKEN", "value": REMOVED},
                    {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "EMPTY", "value": ""},
                ],
                "args": ["--password", REMOVED, "--nodes", "4", format!("--token={REMOVED}"), "--token", "--flag"],
            }]},
            "config": {
                "env": {"A": REMOVED, "PET_B": "y"},
                "credentials": {"user": REMOVED, "name": REMOVED, "pin": REMOVED},
            },
            "lists": {"env": ["A=(removed)", "PET_B=y", {"key": "C", "value2": REMOVED}]},
            "headers": [{"name": "Authorization", "value": REMOVED}],
            "volumes": [{"secret": {"secretName": "s", "defaultMode": 420, "items": [{"key": "k", "path": "p"}]}}],
            "imagePullSecrets": [{"name": "pull"}],
            "text": "{\"password\":\"(removed)\"}",
            REMOVED: 1,
            "tail": ["--password", REMOVED],
        });
        assert_eq!(object, expected);
        let why = |path: &str| removed.paths.get(path).copied();
        assert_eq!(why("/spec/containers/0/env/0/value"), Some(Why::Env));
        assert_eq!(why("/spec/containers/0/args/1"), Some(Why::Name));
        assert_eq!(why("/spec/containers/0/args/4"), Some(Why::Form));
        let annotation = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
        assert_eq!(why(annotation), Some(Why::Annotation));
        assert_eq!(why("/spec/containers/0/env/1/value"), None);
    }

    #[test]
    fn removed_values_are_removed_everywhere() {
        let mut redactor = Redactor::default();
        let mut object = json!({"env": [
            {"name": "A", "value": "s3cr3t-pl4nted"},
            {"name": "B", "value": "/usr/local/bin"},
            {"name": "C", "value": "first-Line-1\nsecond-Line-2"},
        ]});
        redactor.value(&mut object);
        let everywhere = redactor.everywhere();
        let mut removed = RemovedFrom::default();
        let mut log = "using s3cr3t-pl4nted of /usr/local/bin and second-Line-2".to_owned();
        everywhere.text(&mut log, &mut removed);
        assert_eq!(log, "using (removed) of /usr/local/bin and (removed)");
        assert_eq!(removed.counts.get(&Why::Elsewhere), Some(&2));
        let mut event = json!({"message": ["x s3cr3t-pl4nted"]});
        everywhere.value(&mut event, &mut removed);
        assert_eq!(event, json!({"message": ["x (removed)"]}));
    }
}
