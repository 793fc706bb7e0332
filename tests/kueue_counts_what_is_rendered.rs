//! Kueue computes the quota of a TrainJob from the counts and requests that Trainyard renders. Exceptions are rows of
//! `tests/reference/divergences.md` whose column "Kueue" says so.
//!
//! Kueue does not read the JobSet: it renders the TrainJob itself, with the code of the reference that it was built with. Its answers for the
//! cases, from the Go program of `tests/reference/kueue`, are checked in. `make test-reference` asks it again, and `make expected-reference`
//! writes them.

mod queued;
mod quota;
mod stored;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use trainyard_cluster::{Kueue, RunningOracle};
use trainyard_divergences::{
    difference::{Difference, Refusal, between},
    listing,
    seen::Documents,
};

use self::{quota::Quota, stored::Cluster};
use crate::{
    common::{answers, cases},
    differences_from_the_reference_are_listed::{
        generated::{self, Seed, generators},
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
        let input = fs::read_to_string(folder.join("input.yaml")).unwrap();
        Self::of(input, trainyard::of_case(folder).objects, cluster)
    }

    /// Returns an input with what is rendered from it, on the same conditions.
    fn of(input: String, rendered: Vec<Value>, cluster: &Cluster) -> Option<Self> {
        if !rendered.iter().any(is_job_set) {
            return None;
        }
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
        let of = |(name, folder): (String, PathBuf)| Some((name, Self::read(&folder, &cluster)?));
        cases().into_iter().filter_map(of).collect()
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

impl Case {
    /// Returns the differences, each with the rows that list it.
    fn listed_differences(
        &self,
        kueue: &[Quota],
        rows: &BTreeMap<String, TableRow>,
    ) -> Vec<(Difference, Vec<&'static str>)> {
        let documents = Documents::read(&self.input);
        let listing = |difference: Difference| {
            let seen = documents.see(&difference, &self.rendered);
            let listing =
                listing::all().filter(|row| rows.contains_key(row.id) && row.lists(&seen));
            let listing = listing.map(|row| row.id).collect();
            (difference, listing)
        };
        self.differences(kueue).into_iter().map(listing).collect()
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

/// Returns the rows that Kueue can see.
fn rows_with_yes() -> BTreeMap<String, TableRow> {
    let rows = table::read().into_iter();
    rows.filter(|row| row.kueue != table::Kueue::No)
        .map(|row| (row.id.clone(), row))
        .collect()
}

#[test]
fn every_case_has_the_quota_of_its_pods_or_a_row() {
    let rows = rows_with_yes();
    let cases = Case::all();
    let answers = answers::recorded(ANSWERS, &questions(&cases));
    let mut found = Found::default();
    for (name, case) in &cases {
        found.add(name, case, &answers[name], &rows);
    }
    found.assert_listed();
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

#[test]
fn deployment_guide_names_every_row_that_kueue_sees() {
    let rows: BTreeSet<_> = rows_with_yes().into_keys().collect();
    assert_eq!(table::of_page("docs/kueue.md"), rows);
    assert_eq!(table::of_section("deploy/README.md", "Kueue"), rows);
}

#[test]
fn a_queued_train_job_is_warned_of_each_row() {
    let rows = rows_with_yes();
    let cases = Case::all();
    let answers = answers::recorded(ANSWERS, &questions(&cases));
    let wrong: Vec<_> = cases
        .iter()
        .flat_map(|(name, case)| {
            let warnings = queued::answer(&case.input).warnings;
            wrong_warnings(name, case, &answers[name], &rows, &warnings)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the differences without a warning, and the warnings without a difference.
fn wrong_warnings(
    name: &str,
    case: &Case,
    kueue: &[Quota],
    rows: &BTreeMap<String, TableRow>,
    warnings: &[String],
) -> Vec<String> {
    let mut warned = queued::rows(warnings);
    warned.retain(|row| rows.contains_key(*row));
    let differences = case.listed_differences(kueue, rows);
    let is_warned = |listing: &[&str]| listing.iter().any(|row| warned.contains(row));
    let silent = differences
        .iter()
        .filter(|(_, listing)| !is_warned(listing));
    let silent = silent.map(|(difference, _)| format!("{name}: no warning of {difference}"));
    let listed: BTreeSet<&str> = differences
        .iter()
        .flat_map(|(_, listing)| listing.iter().copied())
        .collect();
    let false_alarms = warned.difference(&listed);
    let false_alarms = false_alarms
        .map(|row| format!("{name}: a warning of `{row}`, but Kueue agrees: {warnings:#?}"));
    silent.chain(false_alarms).collect()
}

/// What Kueue sees.
#[derive(Default)]
struct Found {
    /// The inputs that show each row.
    shown: BTreeMap<String, BTreeSet<String>>,
    /// The differences that no row lists.
    unlisted: Vec<String>,
}

impl Found {
    /// Sorts the differences of an input by these rows.
    fn add(&mut self, name: &str, case: &Case, kueue: &[Quota], rows: &BTreeMap<String, TableRow>) {
        for (difference, listing) in case.listed_differences(kueue, rows) {
            if listing.is_empty() {
                let input = &case.input;
                self.unlisted
                    .push(format!("{name}: {difference}\n\n{input}"));
            }
            for row in listing {
                let shown = self.shown.entry(row.to_owned()).or_default();
                shown.insert(name.to_owned());
            }
        }
    }

    fn assert_listed(&self) {
        let first: Vec<_> = self.unlisted.iter().take(10).cloned().collect();
        assert!(
            first.is_empty(),
            "Kueue sees {} differences that no row of tests/reference/divergences.md lists with `yes` in its column; the first:\n{}",
            self.unlisted.len(),
            first.join("\n\n")
        );
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

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_have_the_quota_of_their_pods_or_a_row() {
    let seed = Seed::of_run();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut kueue = Kueue::build(folder).unwrap().start().unwrap();
    let (cluster, rows) = (Cluster::new(), rows_with_yes());
    let (mut found, mut wrong, mut compared) = (Found::default(), Vec::new(), 0);
    for generator in generators() {
        for (number, input) in generated::inputs(generator, of_each(), seed).enumerate() {
            let name = format!("{} {number}", generator.name);
            let answer = queued::answer(&input);
            let Some(case) = Case::of(input, answer.objects, &cluster) else {
                continue;
            };
            let quota = ask(&mut kueue, &case.question().to_string());
            compared += 1;
            found.add(&name, &case, &quota, &rows);
            let of_input = wrong_warnings(&name, &case, &quota, &rows, &answer.warnings);
            wrong.extend(
                of_input
                    .iter()
                    .map(|wrong| format!("{wrong}\n\n{}", case.input)),
            );
        }
    }
    let shown = found.shown.iter().map(|(row, inputs)| (row, inputs.len()));
    println!(
        "{compared} compared; how many show each row: {:?}",
        shown.collect::<BTreeMap<_, _>>()
    );
    found.assert_listed();
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(compared > of_each(), "only {compared} are accepted");
}

/// Returns how many inputs of each framework are compared.
fn of_each() -> usize {
    std::env::var("TRAINYARD_ORACLE_INPUTS").map_or(400, |count| count.parse().unwrap())
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
