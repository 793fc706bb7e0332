//! What there is to say about one path that a person typed.

use serde_json::Value;
use thiserror::Error;
use trainyard_api::{FieldPath, merge::Names, path::Segment};
use trainyard_model::text::clean;

use super::{Explainer, Provenance};
use crate::place::{is_of_additions, job_set_path};

/// A path that the JobSet does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{path}` is not in the JobSet, {}", near(nearest, has))]
pub struct NotThere {
    /// The path as it was asked for.
    pub path: FieldPath,
    /// The nearest parent that the JobSet has.
    pub nearest: FieldPath,
    /// The names of what stands there: fields, keys, or items.
    pub has: Vec<String>,
}

/// What there is at the nearest parent: names may come from guests, and there may be many.
fn near(nearest: &FieldPath, has: &[String]) -> String {
    const MOST: usize = 20;
    let what = if nearest.is_root() {
        "which".to_owned()
    } else {
        format!("whose `{}`", clean(&nearest.to_string()))
    };
    match has {
        [] => format!("{what} has nothing below it"),
        names => {
            let shown: Vec<_> = names.iter().take(MOST).map(|name| clean(name)).collect();
            let more = match names.len().saturating_sub(MOST) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{what} has {}{more}", shown.join(", "))
        }
    }
}

/// A path, found in a JobSet as far as it goes.
struct Asked<'a> {
    path: &'a FieldPath,
    /// By positions, as far as the JobSet has it.
    placed: FieldPath,
    /// By names, and what the JobSet does not have as it was typed.
    named: FieldPath,
    is_there: bool,
    /// Whether only the record's own paths can tell what is meant.
    is_of_additions: bool,
}

impl<'a> Asked<'a> {
    fn new(path: &'a FieldPath, job_set: &Names<'_>) -> Self {
        let target = job_set_path(path).unwrap_or_else(|| path.clone());
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
    pub(super) fn explain(&self, path: &FieldPath) -> Result<Vec<Provenance>, NotThere> {
        let asked = Asked::new(path, &self.paths);
        let (found, others): (Vec<_>, Vec<_>) = self
            .provenance()
            .into_iter()
            .partition(|row| asked.is_around(row));
        if !found.is_empty() {
            return Ok(found);
        }
        let length = |row: &Provenance| row.named.as_ref().map_or(0, |path| path.segments().len());
        let around = others.into_iter().filter(|row| asked.is_below(row));
        if let Some(nearest) = around.max_by_key(length) {
            return Ok(vec![nearest]);
        }
        if asked.is_there {
            return Ok(self.untouched(&asked.placed));
        }
        Err(NotThere {
            path: path.clone(),
            has: self.members(&asked.placed),
            nearest: self.paths.by_names(&asked.placed),
        })
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
