//! What there is to say about one path that a person typed.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;
use thiserror::Error;
use trainyard_api::{FieldPath, merge::Names, path::Segment};
use trainyard_model::text::{clean, listed};

use super::{Explainer, Provenance};
use crate::place::{is_of_additions, job_set_path};

/// A path that the JobSet does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{path}` is not in the JobSet, {}{}", near(nearest, has), no_env(env))]
pub struct NoSuchField {
    /// The path as it was asked for.
    pub path: FieldPath,
    /// The path in a JobSet that it means.
    pub in_job_set: FieldPath,
    /// The nearest parent that the JobSet has.
    pub nearest: FieldPath,
    /// The names of what stands there: fields, keys, or items.
    pub has: Vec<String>,
    /// The names of the env vars of all containers, if the path is one word and may be meant as such a name.
    pub env: Option<Vec<String>>,
}

/// What there is at the nearest parent.
fn near(nearest: &FieldPath, has: &[String]) -> String {
    let what = if nearest.is_root() {
        "which".to_owned()
    } else {
        format!("whose `{}`", clean(&nearest.to_string()))
    };
    match has {
        [] => format!("{what} has no fields"),
        names => format!("{what} has {}", in_words(names)),
    }
}

/// Says that no container has such an env var, and which there are.
fn no_env(env: &Option<Vec<String>>) -> String {
    match env.as_deref() {
        None => String::new(),
        Some([]) => "; no container has an env var of that name, or any other".to_owned(),
        Some(names) => format!(
            "; no container has an env var of that name, but there are {}",
            in_words(names)
        ),
    }
}

/// Names may come from guests, and there may be many.
fn in_words(names: &[String]) -> String {
    const MOST: usize = 20;
    listed(names.iter().map(|name| clean(name)), MOST)
}

/// A path, found in a JobSet as far as it goes.
struct FieldQuery<'a> {
    path: &'a FieldPath,
    /// By positions, as far as the JobSet has it.
    placed: FieldPath,
    /// By names, and what the JobSet does not have as it was typed.
    named: FieldPath,
    is_there: bool,
    /// Whether only the record's own paths can tell what is meant.
    is_of_additions: bool,
}

impl<'a> FieldQuery<'a> {
    fn new(path: &'a FieldPath, job_set: &Names<'_>) -> Self {
        let target = path_in_job_set(path);
        let placed = job_set.by_positions(&target);
        let found = placed.segments().len();
        let rest = target.segments().iter().skip(found).cloned().collect();
        Self {
            path,
            named: job_set.by_names(&target).join(&rest),
            is_there: found == target.segments().len(),
            is_of_additions: is_of_additions(path),
            placed,
        }
    }

    /// Whether a row is of this path, or of one below it.
    fn is_around(&self, row: &Provenance) -> bool {
        if self.is_of_additions {
            return of_record(row).is_some_and(|path| begins(&path, self.path));
        }
        match (&row.placed, &row.named) {
            (Some(placed), _) => self.is_there && begins(placed, &self.placed),
            (None, Some(named)) => begins(named, &self.named),
            (None, None) => of_record(row).is_some_and(|path| begins(&path, self.path)),
        }
    }

    /// Whether a row is of a path that this one is below: of a value that was written as a whole.
    fn is_below(&self, row: &Provenance) -> bool {
        match (&row.placed, &row.named) {
            (Some(placed), _) => self.is_there && begins(&self.placed, placed),
            (None, Some(named)) => begins(&self.named, named),
            (None, None) => of_record(row).is_some_and(|path| begins(self.path, &path)),
        }
    }
}

impl Explainer<'_> {
    pub(super) fn explain(&self, path: &FieldPath) -> Result<Vec<Provenance>, NoSuchField> {
        let asked = FieldQuery::new(path, &self.paths);
        let (found, others): (Vec<_>, Vec<_>) = self
            .provenance()
            .into_iter()
            .partition(|row| asked.is_around(row));
        if !found.is_empty() {
            return Ok(found);
        }
        if let Some(found) = self.of_parent(&asked, &others) {
            return Ok(found);
        }
        let mut names = None;
        if let [Segment::Field(name)] = path.segments() {
            let found = self.env(name, others);
            if !found.is_empty() {
                return Ok(found);
            }
            let all: BTreeSet<_> = env_vars(self.job_set)
                .map(|(_, name)| name.to_owned())
                .collect();
            names = Some(all.into_iter().collect());
        }
        Err(NoSuchField {
            path: path.clone(),
            in_job_set: path_in_job_set(path),
            has: self.members(&asked.placed),
            nearest: self.paths.by_names(&asked.placed),
            env: names,
        })
    }

    /// The origin of a field that was written with what it stands in, or that nobody changed. `None` if it is not there.
    fn of_parent(&self, asked: &FieldQuery<'_>, rows: &[Provenance]) -> Option<Vec<Provenance>> {
        let length = |row: &&Provenance| row.named.as_ref().map_or(0, |path| path.segments().len());
        let around = rows.iter().filter(|row| asked.is_below(row));
        if let Some(nearest) = around.max_by_key(length) {
            return Some(vec![nearest.clone()]);
        }
        asked.is_there.then(|| self.untouched(&asked.placed))
    }

    /// The origins of the env vars of that name in all containers.
    fn env(&self, name: &str, rows: Vec<Provenance>) -> Vec<Provenance> {
        let (mut found, others): (Vec<_>, Vec<_>) = rows
            .into_iter()
            .partition(|row| row.named.as_ref().and_then(env_name).as_deref() == Some(name));
        let told: BTreeSet<_> = found.iter().filter_map(|row| row.named.clone()).collect();
        let of_name = env_vars(self.job_set).filter(|(_, one)| *one == name);
        let untold = of_name
            .map(|(path, _)| path)
            .filter(|path| !told.contains(path));
        for path in untold.collect::<BTreeSet<_>>() {
            let asked = FieldQuery::new(&path, &self.paths);
            found.extend(self.of_parent(&asked, &others).into_iter().flatten());
        }
        found
    }

    /// The names of what stands at a path with positions.
    fn members(&self, path: &FieldPath) -> Vec<String> {
        match value_at(self.job_set, path) {
            Some(Value::Object(members)) => members.keys().cloned().collect(),
            Some(Value::Array(items)) => {
                let name = |at: usize| {
                    let named = self.paths.by_names(&path.index(at));
                    named.segments().last().map(|name| name.text().into_owned())
                };
                (0..items.len()).filter_map(name).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the path in a JobSet that a path means: itself, or that of the field if it is a path that plugins claim.
#[must_use]
pub fn path_in_job_set(path: &FieldPath) -> FieldPath {
    job_set_path(path).unwrap_or_else(|| path.clone())
}

/// Returns the env vars of all containers of a JobSet: the path of each, by names, and its name.
pub fn env_vars(job_set: &Value) -> impl Iterator<Item = (FieldPath, &str)> {
    let jobs = list(job_set, "/spec/replicatedJobs");
    jobs.flat_map(|job| {
        let path = FieldPath::of(["spec", "replicatedJobs"]).key(name_of(job));
        let pods = path.fields(["template", "spec", "template", "spec"]);
        CONTAINERS.into_iter().flat_map(move |containers| {
            let path = pods.field(containers);
            let containers = list(job, &format!("/template/spec/template/spec/{containers}"));
            containers.flat_map(move |container| {
                let path = path.key(name_of(container)).field("env");
                list(container, "/env").map(move |env| (path.key(name_of(env)), name_of(env)))
            })
        })
    })
}

/// The lists of a pod spec's containers.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// The items of a list, if there is one.
fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    let items = value.pointer(pointer).and_then(Value::as_array);
    items.into_iter().flatten()
}

fn name_of(item: &Value) -> &str {
    item.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The name of the env var that a path of the JobSet, by names, means as a whole.
fn env_name(path: &FieldPath) -> Option<Cow<'_, str>> {
    let [above @ .., list, _, env, name] = path.segments() else {
        return None;
    };
    let is_env = above.len() == 7 && CONTAINERS.contains(&&*list.text()) && env.text() == "env";
    is_env.then(|| name.text())
}

/// The path of a row that is none of the JobSet.
fn of_record(row: &Provenance) -> Option<FieldPath> {
    row.path.parse().ok()
}

/// Whether a path begins with another one; a name is the same in brackets and behind a dot.
fn begins(path: &FieldPath, start: &FieldPath) -> bool {
    let (path, start) = (path.segments(), start.segments());
    let same = |(one, other): (&Segment, &Segment)| one.text() == other.text();
    start.len() <= path.len() && path.iter().zip(start).all(same)
}

/// The value at a path with positions.
pub(super) fn value_at<'v>(value: &'v Value, path: &FieldPath) -> Option<&'v Value> {
    path.segments()
        .iter()
        .try_fold(value, |value, segment| match segment {
            Segment::Index(at) => value.get(at),
            Segment::Field(name) | Segment::Key(name) => value.get(name),
        })
}
