//! Kueue computes the quota of a TrainJob from the counts and requests that Trainyard renders. Exceptions are rows of
//! `tests/reference/divergences.md` whose column "Kueue" says so.
//!
//! Kueue does not read the JobSet: it renders the TrainJob itself, with the code of the reference that it was built with. Its answers for the
//! cases, from the Go program of `tests/reference/kueue`, are checked in. `make test-reference` asks it again, and `make expected-reference`
//! writes them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod quota;
mod stored;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};
use trainyard_cluster::{Kueue, RunningOracle};

use self::{quota::Quota, stored::Cluster};
use crate::{
    common::{answers, cases},
    differences_from_the_reference_are_listed::{
        difference::{Difference, Refusal, between},
        rows::ROWS,
        seen::Documents,
        table::{self, TableRow},
        trainyard,
    },
};

const ANSWERS: &str = "kueue/cases.jsonl";

/// A case that Trainyard renders.
struct Case {
    input: String,
    /// The objects that a cluster stores.
    objects: Vec<Value>,
    rendered: Vec<Value>,
}

impl Case {
    /// Reads a case; `None` if no JobSet is rendered, or a cluster does not store the objects.
    fn read(folder: &Path, cluster: &Cluster) -> Option<Self> {
        let rendered = trainyard::of_case(folder).objects;
        if !rendered.iter().any(is_job_set) {
            return None;
        }
        let input = fs::read_to_string(folder.join("input.yaml")).unwrap();
        let objects = cluster.store(&input)?;
        Some(Self {
            input,
            objects,
            rendered,
        })
    }

    /// Returns the cases by name.
    fn all() -> BTreeMap<String, Self> {
        let cluster = Cluster::new();
        let folders = fs::read_dir(cases()).unwrap();
        let of = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            Some((name, Self::read(&path, &cluster)?))
        };
        folders.filter_map(of).collect()
    }

    /// Returns the question to Kueue.
    fn question(&self) -> Value {
        json!({"objects": self.objects})
    }

    /// Returns the differences between Kueue's quota and the rendered JobSets.
    fn differences(&self, kueue: &[Quota]) -> Vec<Difference> {
        let job_sets = self.rendered.iter().filter(|object| is_job_set(object));
        let ours = job_sets.map(|job_set| Quota::of_job_set(job_set, &self.objects));
        ours.flat_map(|ours| {
            let theirs = kueue.iter().find(|quota| quota.train_job == ours.train_job);
            differences(&ours, theirs.unwrap())
        })
        .collect()
    }
}

fn is_job_set(object: &Value) -> bool {
    object["kind"] == "JobSet"
}

/// Returns the differences in what one TrainJob needs.
fn differences(ours: &Quota, kueue: &Quota) -> Vec<Difference> {
    let mut found = Vec::new();
    if let Some(error) = &kueue.error {
        let panics = error.starts_with("panic: ");
        found.push(Difference::RefusedByReference(Refusal {
            object: format!("TrainJob {}", ours.train_job),
            by: if panics { "panic" } else { "kueue" }.to_owned(),
            field: String::new(),
            error: error.clone(),
        }));
    }
    if !kueue.pod_sets.is_empty() {
        let (mut ours, mut kueue) = (ours.clone(), kueue.clone());
        ours.ignore_requests_of_no_pods(&mut kueue);
        let object = format!("JobSet {}", ours.train_job);
        found.extend(between(&object, &ours.by_path(), &kueue.by_path()));
    }
    found
}

/// Rows that no case can show: cases have only the built-in plugins, which have no such effect.
const WITHOUT_CASE: [&str; 1] = ["plugins-by-name"];

#[test]
fn every_case_has_the_quota_of_its_pods_or_a_row() {
    let rows: BTreeMap<_, _> = table::read()
        .into_iter()
        .filter(|row| row.kueue != table::Kueue::No)
        .map(|row| (row.id.clone(), row))
        .collect();
    let found = Found::among(&rows);
    assert!(
        found.unlisted.is_empty(),
        "Kueue sees differences that no row of tests/reference/divergences.md lists with `yes` in its column:\n{}",
        found.unlisted.join("\n")
    );
    let is_unseen = |row: &&TableRow| {
        let of_row = found.shown.get(&row.id).cloned().unwrap_or_default();
        match row.kueue {
            table::Kueue::Alone => !row.cases.is_subset(&of_row),
            _ => row.cases.is_disjoint(&of_row),
        }
    };
    let unseen: Vec<_> = rows
        .values()
        .filter(|row| !WITHOUT_CASE.contains(&row.id.as_str()))
        .filter(is_unseen)
        .map(|row| &row.id)
        .collect();
    assert!(
        unseen.is_empty(),
        "Kueue does not see {unseen:?} in their cases; rows are seen in {:#?}",
        found.shown
    );
}

/// What Kueue sees in the cases.
#[derive(Default)]
struct Found {
    /// The cases that show each row.
    shown: BTreeMap<String, BTreeSet<String>>,
    /// The differences that no row lists.
    unlisted: Vec<String>,
}

impl Found {
    /// Sorts the differences of all cases by these rows.
    fn among(rows: &BTreeMap<String, TableRow>) -> Self {
        let cases = Case::all();
        let answers = answers::kept(ANSWERS, &questions(&cases));
        let mut found = Self::default();
        for (name, case) in &cases {
            let documents = Documents::read(&case.input);
            for difference in case.differences(&answers[name]) {
                let seen = documents.see(&difference);
                let mut listing = ROWS
                    .iter()
                    .filter(|row| rows.contains_key(row.id) && (row.lists)(&seen))
                    .peekable();
                if listing.peek().is_none() {
                    found.unlisted.push(format!("{name}: {difference}"));
                }
                for row in listing {
                    let shown = found.shown.entry(row.id.to_owned()).or_default();
                    shown.insert(name.clone());
                }
            }
        }
        found
    }
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn checked_in_answers_match_kueue() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut kueue = Kueue::build(folder).unwrap().start().unwrap();
    let questions = questions(&Case::all());
    let asked = |(name, question): (&String, &String)| (name.clone(), ask(&mut kueue, question));
    let answers: BTreeMap<_, _> = questions.iter().map(asked).collect();
    answers::agree(ANSWERS, &questions, &answers);
}

/// Returns the question to Kueue for each case.
fn questions(cases: &BTreeMap<String, Case>) -> BTreeMap<String, String> {
    let question = |(name, case): (&String, &Case)| (name.clone(), case.question().to_string());
    cases.iter().map(question).collect()
}

fn ask(kueue: &mut RunningOracle, question: &str) -> Vec<Quota> {
    let mut response = kueue.ask(&serde_json::from_str(question).unwrap()).unwrap();
    serde_json::from_value(response["trainJobs"].take()).unwrap()
}
