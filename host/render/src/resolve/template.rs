//! Reads the runtime's JobSet template into the record.

use serde_json::Value;
use trainyard_api::{FieldPath, StackPath, ancestor::Ancestor, fields::describe};
use trainyard_model::{
    record::{Datum, Field, Fields, Level, ListKey, PodSet, Record, Shape},
    value::Dependency,
};

use crate::{
    json::{get, get_at},
    problem::Problem,
};

/// The path of the replicated jobs in a runtime.
pub(super) const REPLICATED_JOBS: &[&str] = &["spec", "template", "spec", "replicatedJobs"];

/// Returns the path of the replicated jobs in a runtime.
pub(super) fn replicated_jobs() -> FieldPath {
    FieldPath::of(REPLICATED_JOBS)
}

/// Reads a template and collects its problems.
pub(crate) struct TemplateReader<'a> {
    /// The JobSet's spec in the runtime.
    pub(crate) spec: &'a Value,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> TemplateReader<'a> {
    pub(crate) const fn new(spec: &'a Value) -> Self {
        Self {
            spec,
            problems: Vec::new(),
        }
    }

    /// Adds the pod sets of the template to the record.
    pub(crate) fn load(&mut self, record: &mut Record) {
        let root = StackPath::ROOT;
        let at = root.fields(REPLICATED_JOBS);
        let Some(jobs) = self.list(get(self.spec, "replicatedJobs"), &at) else {
            self.problems.push(Problem::runtime(
                at.path(),
                "is required: a runtime must have at least one replicated job",
            ));
            return;
        };
        if jobs.is_empty() {
            self.problems.push(Problem::runtime(
                at.path(),
                "is empty: a runtime must have at least one replicated job",
            ));
        }
        for (index, job) in jobs.iter().enumerate() {
            self.load_pod_set(record, job, &at.index(index));
        }
        if is_started_in_order(self.spec) {
            depend_on_predecessors(record);
        }
    }

    fn load_pod_set(&mut self, record: &mut Record, job: &'a Value, at: &StackPath<'_>) {
        let Some(name) = self.name(job, at) else {
            return;
        };
        if record.pod_set_named(name).is_some() {
            self.problems.push(Problem::runtime(
                at.field("name").path(),
                format!("`{name}` is already the name of another replicated job"),
            ));
            return;
        }
        let mut set = PodSet::new(name);
        let job_path = at.field("template");
        set.ancestor = Ancestor::of(job).map(|ancestor| ancestor.step.into());
        set.count = self.pods(job, &job_path.field("spec"));
        set.replicas = self.count(get(job, "replicas"), &at.field("replicas"));
        set.depends_on = dependencies(job);
        let mode = get_at(job, &["template", "spec", "completionMode"]);
        set.is_indexed = mode.and_then(Value::as_str) != Some("NonIndexed");
        let limit = find(job, Field::BackoffLimit.keys());
        if let Some(limit) = limit
            .and_then(Value::as_u64)
            .and_then(|n| i64::try_from(n).ok())
        {
            set.fields
                .load(Field::BackoffLimit, "", Datum::Integer(limit));
        }
        let pod_path = job_path.fields(&["spec", "template"]);
        let empty = &Value::Null;
        let pod = get_at(job, &["template", "spec", "template"]).unwrap_or(empty);
        for field in Field::in_templates(Level::PodSet) {
            self.load_field(&mut set.fields, field, pod, &pod_path);
        }
        let position = u32::try_from(record.pod_sets.len()).unwrap_or(u32::MAX);
        record.pod_sets.push(set);
        for list in [Field::InitContainers, Field::Containers] {
            self.load_containers(record, position, list, pod, &pod_path);
        }
    }

    fn load_containers(
        &mut self,
        record: &mut Record,
        set: u32,
        list: Field,
        pod: &'a Value,
        pod_path: &StackPath<'_>,
    ) {
        let keys = list.keys();
        let path = pod_path.fields(keys);
        for (index, json) in self
            .list(find(pod, keys), &path)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let at = path.index(index);
            let Some(name) = self.name(json, &at) else {
                continue;
            };
            if record.container_named(set, name).is_some() {
                let message =
                    format!("`{name}` is already the name of another container of the pod");
                self.problems
                    .push(Problem::runtime(at.field("name").path(), message));
                continue;
            }
            let mut fields = Fields::default();
            for field in Field::in_templates(Level::Container) {
                self.load_field(&mut fields, field, json, &at);
            }
            record.load_container(set, list, name, fields);
        }
    }

    /// Reads a field of a pod template or container.
    pub(super) fn load_field(
        &mut self,
        fields: &mut Fields,
        field: Field,
        json: &'a Value,
        at: &StackPath<'_>,
    ) {
        let keys = field.keys();
        let path = at.fields(keys);
        let Some(value) = find(json, keys) else {
            return;
        };
        match field.shape() {
            Shape::One => self.load_one(fields, field, value, &path),
            Shape::Map => self.load_map(fields, field, value, &path),
            Shape::List(by) => {
                for (index, item) in self
                    .list(Some(value), &path)
                    .into_iter()
                    .flatten()
                    .enumerate()
                {
                    match by.of(index, item) {
                        Some(key) => fields.load(field, &key, field.datum_of(item)),
                        None => self
                            .problems
                            .push(Problem::runtime(path.index(index).path(), missing_key(by))),
                    }
                }
            }
            Shape::Additions | Shape::Members | Shape::Job | Shape::Elsewhere => {}
        }
    }

    fn load_one(&mut self, fields: &mut Fields, field: Field, value: &Value, path: &StackPath<'_>) {
        match (field, value) {
            (Field::Command | Field::Args, Value::Array(items)) => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                match texts {
                    Some(texts) => fields.load(field, "", texts.as_slice().into()),
                    None => self.wrong(path, "a list of strings", value),
                }
            }
            (Field::Command | Field::Args, _) => self.wrong(path, "a list of strings", value),
            (Field::FsGroup, _) => match value.as_i64() {
                Some(group) => fields.load(field, "", Datum::Integer(group)),
                None => self.wrong(path, "an integer", value),
            },
            (_, Value::String(text)) => fields.load(field, "", text.as_str().into()),
            _ => self.wrong(path, "a string", value),
        }
    }

    fn load_map(&mut self, fields: &mut Fields, field: Field, value: &Value, path: &StackPath<'_>) {
        let Value::Object(map) = value else {
            return self.wrong(path, "an object", value);
        };
        for (key, value) in map {
            match field.map_text(value) {
                Some(text) => fields.load(field, key, (&*text).into()),
                None => self.wrong(&path.key(key), "a string", value),
            }
        }
    }

    fn list(&mut self, value: Option<&'a Value>, path: &StackPath<'_>) -> Option<&'a Vec<Value>> {
        match value? {
            Value::Array(items) => Some(items),
            other => {
                self.wrong(path, "a list", other);
                None
            }
        }
    }

    /// Returns the name of a replicated job or container, or reports that it has none.
    fn name(&mut self, item: &'a Value, at: &StackPath<'_>) -> Option<&'a str> {
        match get(item, "name").unwrap_or(&Value::Null) {
            Value::String(name) if !name.is_empty() => return Some(name),
            Value::String(_) | Value::Null => self
                .problems
                .push(Problem::runtime(at.field("name").path(), "is required")),
            other => self.wrong(&at.field("name"), "a string", other),
        }
        None
    }

    fn wrong(&mut self, path: &StackPath<'_>, expected: &str, found: &Value) {
        let message = format!("must be {expected}; found {}", describe(found));
        self.problems.push(Problem::runtime(path.path(), message));
    }

    /// Returns how many pods of a replicated job run at once. A Job creates no more pods than it has completions.
    fn pods(&mut self, job: &Value, path: &StackPath<'_>) -> u32 {
        let parallelism = get_at(job, &["template", "spec", "parallelism"]);
        let parallelism = self.count(parallelism, &path.field("parallelism"));
        let completions = get_at(job, &["template", "spec", "completions"]);
        if completions.is_none_or(Value::is_null) {
            return parallelism;
        }
        parallelism.min(self.count(completions, &path.field("completions")))
    }

    /// Returns a number of pods or jobs, which defaults to 1.
    fn count(&mut self, value: Option<&Value>, path: &StackPath<'_>) -> u32 {
        let Some(value) = value else { return 1 };
        value
            .as_u64()
            .and_then(|n| u32::try_from(n).ok())
            .filter(|n| i32::try_from(*n).is_ok())
            .unwrap_or_else(|| {
                self.wrong(path, "an integer from 0 to 2147483647", value);
                1
            })
    }
}

fn dependencies(job: &Value) -> Vec<Dependency> {
    let list = get(job, "dependsOn").and_then(Value::as_array);
    let text = |item: &Value, key: &str| {
        get(item, key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    list.into_iter()
        .flatten()
        .map(|item| Dependency {
            pod_set: text(item, "name"),
            status: text(item, "status"),
        })
        .collect()
}

/// Whether each replicated job is created when the one before it is ready (`startupPolicy` of a JobSet).
fn is_started_in_order(spec: &Value) -> bool {
    let order = get_at(spec, &["startupPolicy", "startupPolicyOrder"]);
    order.and_then(Value::as_str) == Some("InOrder")
}

/// Lets each pod set depend on the one before it.
fn depend_on_predecessors(record: &mut Record) {
    let names: Vec<_> = record.pod_sets.iter().map(|set| set.name.clone()).collect();
    let after_first = record.pod_sets.iter_mut().skip(1);
    for (set, before) in after_first.zip(names) {
        set.depends_on.push(Dependency {
            pod_set: before.to_string(),
            status: "Ready".to_owned(),
        });
    }
}

fn missing_key(by: ListKey) -> String {
    match by {
        ListKey::Field(name) => format!("needs `{name}`, a string"),
        ListKey::Port => "needs `containerPort`, an integer".to_owned(),
        ListKey::Text => "must be a string".to_owned(),
        ListKey::Position => "must be an object".to_owned(),
    }
}

fn find<'v>(json: &'v Value, keys: &[&str]) -> Option<&'v Value> {
    get_at(json, keys).filter(|value| !value.is_null())
}

/// Reads the labels and annotations of the JobSet.
pub(crate) fn load_metadata<'m>(
    record: &mut Record,
    labels: impl IntoIterator<Item = (&'m String, &'m String)>,
    annotations: impl IntoIterator<Item = (&'m String, &'m String)>,
) {
    for (key, value) in labels {
        record
            .fields
            .load(Field::Labels, key, value.as_str().into());
    }
    for (key, value) in annotations {
        record
            .fields
            .load(Field::Annotations, key, value.as_str().into());
    }
}
