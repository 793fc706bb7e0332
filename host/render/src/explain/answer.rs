//! The origins of one path of the command line.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;
use thiserror::Error;
use trainyard_api::{FieldPath, fields::value_at, merge::Names, path::Segment};
use trainyard_model::text::{clean, listed};

use super::{Explainer, Provenance, Setter};
use crate::{
    json::{get_at, items},
    place::is_of_additions,
    record_path::{job_set_path, replicated_jobs},
};

/// A path that the JobSet does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{path}` is not in the JobSet, {}{}", near(nearest, has), no_env(env))]
pub struct NoSuchField {
    /// The path on the command line.
    pub path: FieldPath,
    /// The corresponding path in a JobSet.
    pub in_job_set: FieldPath,
    /// The nearest parent that the JobSet has.
    pub nearest: FieldPath,
    /// The names of that parent's fields, keys or items.
    pub has: Vec<String>,
    /// The names of the env vars of all containers, if the path is a single word, which may be the name of an env var.
    pub env: Option<Vec<String>>,
}

/// Describes the nearest parent.
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

/// Describes that no container has such an env var, with those that exist.
fn no_env(env: &Option<Vec<String>>) -> String {
    match env.as_deref() {
        None => String::new(),
        Some([]) => "; no container has an env var".to_owned(),
        Some(names) => format!(
            "; no container has an env var of that name, but there are {}",
            in_words(names)
        ),
    }
}

/// Lists names, cleaned because they may come from plugins, up to a maximum number.
fn in_words(names: &[String]) -> String {
    const MOST: usize = 20;
    listed(names.iter().map(|name| clean(name)), MOST)
}

/// A path on the command line, resolved in a JobSet.
struct FieldQuery<'a> {
    path: &'a FieldPath,
    /// The part that the JobSet has, with positions.
    placed: FieldPath,
    /// The whole path, with names as far as the JobSet has it.
    named: FieldPath,
    is_there: bool,
    /// Whether it is a path of the record to an addition.
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

    /// Whether a row is of this path or of one below it.
    fn contains(&self, row: &Provenance) -> bool {
        if self.is_of_additions {
            return of_record(row).is_some_and(|path| begins(&path, self.path));
        }
        match (&row.placed, &row.named) {
            (Some(placed), _) => self.is_there && begins(placed, &self.placed),
            (None, Some(named)) => begins(named, &self.named),
            (None, None) => of_record(row).is_some_and(|path| begins(&path, self.path)),
        }
    }

    /// Whether a row is of a value that contains this path and was written as a whole.
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
            .partition(|row| asked.contains(row));
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

    /// Returns what set a field of the JobSet last, by the origins of all fields.
    pub(super) fn setter(&self, rows: &[Provenance], path: &FieldPath) -> Option<Setter> {
        let asked = FieldQuery::new(path, &self.paths);
        let setter = |row: &Provenance| Some(row.steps.last()?.by.clone());
        match rows.iter().rfind(|row| asked.contains(row)) {
            Some(row) => setter(row),
            None => self.of_parent(&asked, rows)?.last().and_then(setter),
        }
    }

    /// Returns the origin of a field that was written as part of a parent, or that did not change. `None` if the field does not exist.
    fn of_parent(&self, asked: &FieldQuery<'_>, rows: &[Provenance]) -> Option<Vec<Provenance>> {
        let length = |row: &&Provenance| row.named.as_ref().map_or(0, |path| path.segments().len());
        let around = rows.iter().filter(|row| asked.is_below(row));
        if let Some(nearest) = around.max_by_key(length) {
            return Some(vec![nearest.clone()]);
        }
        asked.is_there.then(|| self.untouched(&asked.placed))
    }

    /// Returns the origins of the env vars of this name in all containers.
    fn env(&self, name: &str, rows: Vec<Provenance>) -> Vec<Provenance> {
        let (mut found, others): (Vec<_>, Vec<_>) = rows
            .into_iter()
            .partition(|row| row.named.as_ref().and_then(env_name).as_deref() == Some(name));
        let explained: BTreeSet<_> = found.iter().filter_map(|row| row.named.clone()).collect();
        let of_name = env_vars(self.job_set).filter(|(_, one)| *one == name);
        let others_of_name = of_name
            .map(|(path, _)| path)
            .filter(|path| !explained.contains(path));
        for path in others_of_name.collect::<BTreeSet<_>>() {
            let asked = FieldQuery::new(&path, &self.paths);
            found.extend(self.of_parent(&asked, &others).into_iter().flatten());
        }
        found
    }

    /// Returns the names of the members or items at a path with positions.
    fn members(&self, path: &FieldPath) -> Vec<String> {
        match value_at(self.job_set, path.segments()) {
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

/// Converts a path that plugins claim to the path of its field in a JobSet. Returns any other path unchanged.
#[must_use]
pub fn path_in_job_set(path: &FieldPath) -> FieldPath {
    job_set_path(path).unwrap_or_else(|| path.clone())
}

/// Returns the env vars of all containers of a JobSet: the path of each, by names, and its name.
pub fn env_vars(job_set: &Value) -> impl Iterator<Item = (FieldPath, &str)> {
    let spec = job_set.get("spec").unwrap_or(&Value::Null);
    let jobs = items(spec, "replicatedJobs").iter();
    jobs.flat_map(|job| {
        let path = replicated_jobs().key(name_of(job));
        let pods = path.fields(["template", "spec", "template", "spec"]);
        CONTAINERS.into_iter().flat_map(move |containers| {
            let path = pods.field(containers);
            let pod = get_at(job, &["template", "spec", "template", "spec"]);
            let containers = pod.map(|pod| items(pod, containers));
            let containers = containers.unwrap_or_default().iter();
            containers.flat_map(move |container| {
                let path = path.key(name_of(container)).field("env");
                let env = items(container, "env").iter();
                env.map(move |env| (path.key(name_of(env)), name_of(env)))
            })
        })
    })
}

/// The lists of a pod spec's containers.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

fn name_of(item: &Value) -> &str {
    item.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the name of the env var at a path of the JobSet with names, if the path is that of an env var.
fn env_name(path: &FieldPath) -> Option<Cow<'_, str>> {
    let [above @ .., list, _, env, name] = path.segments() else {
        return None;
    };
    let is_env = above.len() == 7 && CONTAINERS.contains(&&*list.text()) && env.text() == "env";
    is_env.then(|| name.text())
}

/// Returns the path of a row that is not part of the JobSet.
fn of_record(row: &Provenance) -> Option<FieldPath> {
    row.path.parse().ok()
}

/// Whether a path begins with another one. Names in brackets and after dots are equal.
fn begins(path: &FieldPath, start: &FieldPath) -> bool {
    let (path, start) = (path.segments(), start.segments());
    let same = |(one, other): (&Segment, &Segment)| one.text() == other.text();
    start.len() <= path.len() && path.iter().zip(start).all(same)
}
