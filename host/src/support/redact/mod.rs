//! Removes credentials from what is collected. What stays is chosen, rather than what goes, where users put credentials: the values of
//! variables of containers, and annotations. Everything else loses what looks like a credential by its name or its form. Values that were
//! removed in one place are removed everywhere.

pub(crate) mod text;

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::AhoCorasick;
use serde::Serialize;
use serde_json::Value;

use self::text::{REMOVED, is_credential, without_credentials};

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
const REFERENCES: [&str; 5] = ["key", "name", "namespace", "path", "secretName"];

/// The shortest value that is removed everywhere. Shorter ones are parts of other words.
const SHORTEST: usize = 8;

/// The most values that are removed everywhere.
const MOST: usize = 20_000;

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
    values: BTreeSet<String>,
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
        Everywhere(AhoCorasick::new(&self.values).ok())
    }

    fn visit(&mut self, value: &mut Value, path: &str, removed: &mut RemovedFrom) {
        match value {
            Value::String(text) => *text = self.string(text, path, removed),
            Value::Array(items) => self.list(items, path, removed),
            Value::Object(members) => {
                members.remove("managedFields");
                for (key, value) in members {
                    let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                    match (key.as_str(), value) {
                        ("env", Value::Array(variables)) => {
                            self.variables(variables, &path, removed);
                        }
                        ("env", Value::Object(variables)) => {
                            self.variables_by_name(variables, &path, removed);
                        }
                        ("annotations", Value::Object(annotations)) => {
                            self.annotations(annotations, &path, removed);
                        }
                        (key, value @ (Value::String(_) | Value::Number(_)))
                            if is_credential(key) =>
                        {
                            self.remove(value, &path, Why::Name, removed);
                        }
                        (key, value) if is_credential(key) => self.below(value, &path, removed),
                        (_, value) => self.visit(value, &path, removed),
                    }
                }
            }
            _ => {}
        }
    }

    /// Removes the texts below a key whose name is that of a credential, except for references to objects.
    fn below(&mut self, value: &mut Value, path: &str, removed: &mut RemovedFrom) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.below(item, &format!("{path}/{at}"), removed);
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                    match REFERENCES.contains(&key.as_str()) {
                        true => self.visit(value, &path, removed),
                        false => self.below(value, &path, removed),
                    }
                }
            }
            Value::String(_) => self.remove(value, path, Why::Name, removed),
            _ => {}
        }
    }

    /// Visits the items of a list. The item after a flag that names a credential is its value.
    fn list(&mut self, items: &mut [Value], path: &str, removed: &mut RemovedFrom) {
        let mut is_value = false;
        for (at, item) in items.iter_mut().enumerate() {
            let path = format!("{path}/{at}");
            let flag = item.as_str().filter(|text| text.starts_with('-'));
            let names_next = flag.is_some_and(|flag| is_credential(flag.trim_start_matches('-')));
            if is_value && item.is_string() && flag.is_none() {
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
            let name = variable.get("name").and_then(Value::as_str);
            let name = name.unwrap_or_default();
            let is_known = VARIABLES.iter().any(|start| name.starts_with(start));
            if is_known && !is_credential(name) {
                self.visit(variable, &path, removed);
            } else if let Some(value) = variable.get_mut("value") {
                self.remove(value, &format!("{path}/value"), Why::Env, removed);
            }
        }
    }

    /// The same for variables by their names, as in configurations of plugins.
    fn variables_by_name(
        &mut self,
        variables: &mut serde_json::Map<String, Value>,
        path: &str,
        removed: &mut RemovedFrom,
    ) {
        for (name, value) in variables {
            let path = format!("{path}/{name}");
            let is_known = VARIABLES.iter().any(|start| name.starts_with(start));
            match is_known && !is_credential(name) {
                true => self.visit(value, &path, removed),
                false => self.remove(value, &path, Why::Env, removed),
            }
        }
    }

    fn annotations(
        &mut self,
        annotations: &mut serde_json::Map<String, Value>,
        path: &str,
        removed: &mut RemovedFrom,
    ) {
        for (key, value) in annotations {
            let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
            let is_known = ANNOTATIONS.iter().any(|domain| key.starts_with(domain));
            match is_known && !is_credential(key) {
                true => self.visit(value, &path, removed),
                false => self.remove(value, &path, Why::Annotation, removed),
            }
        }
    }

    /// Returns a string without credentials. JSON in it is read, because a name and its value may be far apart in a text.
    fn string(&mut self, text: &str, path: &str, removed: &mut RemovedFrom) -> String {
        let is_json = text.starts_with(['{', '[']);
        match is_json.then(|| serde_json::from_str::<Value>(text)) {
            Some(Ok(mut inner)) => {
                let mut within = RemovedFrom::default();
                self.visit(&mut inner, path, &mut within);
                if within.is_empty() {
                    return text.to_owned();
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
            self.remember(value);
            removed.note(path, Why::Form);
        })
    }

    fn remove(&mut self, value: &mut Value, path: &str, why: Why, removed: &mut RemovedFrom) {
        match value.as_str() {
            Some("") => return,
            Some(text) => self.remember(text),
            None => self.remember(&value.to_string()),
        }
        *value = REMOVED.into();
        removed.note(path, why);
    }

    /// Remembers a removed value, its lines, and the password after a user, unless it is too short, or a word or a path that other texts contain too.
    fn remember(&mut self, value: &str) {
        let password = value.split_once(':').map(|(_, password)| password);
        let whole = std::iter::once(value).chain(password);
        for part in whole.chain(value.lines()) {
            let part = part.trim();
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || b"/._- ".contains(&byte);
            if part.len() >= SHORTEST && !part.bytes().all(is_plain) && self.values.len() < MOST {
                // Logs quote texts.
                let quoted = Value::from(part).to_string();
                self.values.insert(quoted.trim_matches('"').to_owned());
                self.values.insert(part.to_owned());
            }
        }
    }
}

/// Removes known values from texts.
pub(crate) struct Everywhere(Option<AhoCorasick>);

impl Everywhere {
    /// Removes the values from the strings of a value.
    pub(crate) fn value(&self, value: &mut Value, removed: &mut RemovedFrom) {
        match value {
            Value::String(text) => self.text(text, removed),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, removed)),
            Value::Object(members) => members
                .values_mut()
                .for_each(|member| self.value(member, removed)),
            _ => {}
        }
    }

    /// Removes the values from a text.
    pub(crate) fn text(&self, text: &mut String, removed: &mut RemovedFrom) {
        let Some(values) = self.0.as_ref().filter(|values| values.is_match(&**text)) else {
            return;
        };
        let mut replaced = String::with_capacity(text.len());
        values.replace_all_with(text, &mut replaced, |_, _, to| {
            to.push_str(REMOVED);
            removed.note("", Why::Elsewhere);
            true
        });
        *text = replaced;
    }
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
            "config": {"env": {"A": "x", "PET_B": "y"}, "credentials": {"user": "u", "name": "n"}},
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
                "credentials": {"user": REMOVED, "name": "n"},
            },
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
