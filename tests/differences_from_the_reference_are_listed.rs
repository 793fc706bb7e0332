//! The objects of a TrainJob differ from the reference's only as `tests/reference/divergences.md` and the pages of
//! the plugins list, and each case that a row
//! of its table names shows that difference. The rows that refuse what the reference renders are listed there as well. The counts of gangs,
//! which differ in many inputs, are also recomputed from the JobSet. In the place of each difference, wrong values and refusals are seeded,
//! which no row may list.
//!
//! The reference's answers for the cases are checked in, so that Go is not needed. `make test-reference` asks the reference itself, for the
//! cases and for generated inputs, which are new in each run (`PROPTEST_RNG_SEED` repeats a run, `TRAINYARD_ORACLE_INPUTS` sets their
//! number); `make expected-reference` writes the answers.

mod gang_counts_are_those_of_the_job_set;
pub(crate) mod generated;
pub(crate) mod plugins;
mod reference;
mod shipped;
pub(crate) mod table;
pub(crate) mod trainyard;
mod wrong_values;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    slice,
    sync::LazyLock,
    thread,
};

use trainyard_divergences::{
    difference::{Answer, Difference, Side, differences},
    listing::{all, used},
    plugins::PLUGINS as WITH_ROWS,
    rows::{ROWS, Row},
    seen::Documents,
    table::{SHARED, page_of, pages, rows_of},
};

use self::{
    gang_counts_are_those_of_the_job_set::wrong_counts,
    generated::{Generator, Seed, generators},
    plugins::PLUGINS,
    reference::{Answers, Reference, Runs},
    wrong_values::Seeded,
};
use crate::common::{answers, case, cases, root};

/// Returns the inputs of the cases by name, without those of plugins that the reference does not have.
pub(crate) fn inputs() -> BTreeMap<String, String> {
    let is_compared = |folder: &Path| {
        let mut plugins = PLUGINS.iter().map(|(plugin, _)| root().join(plugin));
        folder.starts_with(root().join("tests")) || plugins.any(|plugin| folder.starts_with(plugin))
    };
    let mut cases = cases();
    cases.retain(|_, folder| is_compared(folder));
    let read = |(name, folder): (String, PathBuf)| {
        let input = fs::read_to_string(folder.join("input.yaml")).unwrap();
        (name, input)
    };
    cases.into_iter().map(read).collect()
}

/// Returns the rows that the differences of an input show, and the differences that no row lists. Further rows are given. What is wrong in
/// the place of a listed difference is seeded.
fn sort(
    (name, input): (&str, &str),
    trainyard: &Answer,
    reference: &[Answer],
    further: &'static [Row],
    seeded: &mut Seeded,
) -> (BTreeSet<&'static str>, Vec<Difference>) {
    let documents = Documents::read(input);
    let (mut shown, mut unlisted) = (BTreeSet::new(), Vec::new());
    for difference in differences(trainyard, reference) {
        let seen = documents.see(&difference, &trainyard.objects);
        let rows = all().chain(further);
        let rows: Vec<_> = rows.filter(|row| row.lists(&seen)).collect();
        if rows.is_empty() {
            unlisted.push(difference.clone());
        } else {
            seeded.add((name, input), (&difference, &rows), trainyard, further);
        }
        shown.extend(rows.iter().map(|row| row.id));
    }
    // Each side stops at its own errors before it reaches the other's, so it suffices that rows list the errors of one side.
    let unlisted_by = |by: Side| {
        unlisted
            .iter()
            .any(|difference| difference.refused_by() == Some(by))
    };
    let by_both =
        !trainyard.refused.is_empty() && reference.iter().all(|answer| !answer.refused.is_empty());
    if by_both && !(unlisted_by(Side::Trainyard) && unlisted_by(Side::Reference)) {
        unlisted.retain(|difference| difference.refused_by().is_none());
    }
    (shown, unlisted)
}

/// Returns the rows that are found by what an input uses, and those that a field shows although none of its rows is found so.
fn uses(
    input: &str,
    trainyard: &Answer,
    reference: &[Answer],
) -> (BTreeSet<&'static str>, BTreeSet<&'static str>) {
    let documents = Documents::read(input);
    let (mut found, mut missed) = (BTreeSet::new(), BTreeSet::new());
    for difference in differences(trainyard, reference) {
        let seen = documents.see(&difference, &trainyard.objects);
        let used: BTreeSet<_> = used(seen.subject).map(|row| row.id).collect();
        let rows = all().filter(|row| row.lists(&seen));
        let rows: Vec<_> = rows.map(|row| row.id).collect();
        let is_field = matches!(difference, Difference::Field { .. });
        if is_field && !rows.iter().any(|row| used.contains(row)) {
            missed.extend(rows);
        }
        found.extend(used);
    }
    (found, missed)
}

/// Returns the rows that refuse an input which the reference renders.
fn refusing(input: &str, trainyard: &Answer, reference: &[Answer]) -> BTreeSet<&'static str> {
    let documents = Documents::read(input);
    let rendered = reference.iter().filter(|answer| answer.refused.is_empty());
    let differences = rendered.flat_map(|answer| differences(trainyard, slice::from_ref(answer)));
    let refusals =
        differences.filter(|difference| difference.refused_by() == Some(Side::Trainyard));
    let rows = refusals.flat_map(|refusal| {
        let seen = documents.see(&refusal, &trainyard.objects);
        let rows = all().filter(|row| row.lists(&seen));
        rows.map(|row| row.id).collect::<Vec<_>>()
    });
    rows.collect()
}

/// Returns the generated inputs whose answers are checked in.
fn samples() -> BTreeMap<String, String> {
    let of = |generator: &'static Generator| {
        let inputs = generated::inputs(generator, generator.kept, Seed::KEPT).enumerate();
        inputs.map(|(number, input)| (format!("{}-{number:02}", generator.name), input))
    };
    generators().flat_map(of).collect()
}

/// Returns the files of checked-in answers, with their inputs.
fn kept_files() -> [(&'static str, BTreeMap<String, String>); 2] {
    [(CASES, inputs()), (SAMPLES, samples())]
}

pub(crate) const CASES: &str = "oracle/cases.jsonl";
const SAMPLES: &str = "oracle/generated.jsonl";

#[test]
fn every_case_differs_as_listed() {
    let inputs = inputs();
    let answers = answers::recorded(CASES, &inputs);
    let mut found = Found::default();
    for (name, input) in &inputs {
        found.add(
            name,
            input,
            &trainyard::of_case(&case(name)),
            &answers[name],
        );
    }
    found.assert_listed();
    let listed = table::refusing();
    let refusing: BTreeSet<_> = found.refusing.keys().map(|row| (*row).to_owned()).collect();
    assert_eq!(
        listed, refusing,
        "the lists of \"What only Trainyard refuses\""
    );
    // In their cases, the reference refuses the input. Generated inputs show their fields.
    let refused = ["torchtune-model", "torchtune-complete-line"];
    let unseeded = all().filter(|row| !found.seeded.rows.contains_key(row.id));
    let unseeded: Vec<_> = unseeded
        .filter(|row| row.has_values() && !refused.contains(&row.id))
        .map(|row| row.id)
        .collect();
    assert!(
        unseeded.is_empty(),
        "no case seeds a wrong value of {unseeded:?}"
    );
    let of_reference = table::read()
        .into_iter()
        .filter(|row| row.kueue != table::Kueue::Alone);
    for row in of_reference {
        let of_row = found.shown.remove(row.id.as_str()).unwrap_or_default();
        let others: Vec<_> = row
            .cases
            .iter()
            .filter(|case| !of_row.contains(case.as_str()))
            .collect();
        assert!(
            others.is_empty(),
            "`{}` is not shown by {others:?}, but by {of_row:?}",
            row.id
        );
    }
}

#[test]
fn checked_in_generated_inputs_differ_as_listed() {
    let inputs = samples();
    let answers = answers::recorded(SAMPLES, &inputs);
    let mut found = Found::default();
    for (name, input) in &inputs {
        found.add(name, input, &trainyard::of_text(input), &answers[name]);
    }
    found.assert_listed();
}

#[test]
fn every_row_is_documented_and_has_a_matcher() {
    let of_plugins = WITH_ROWS
        .iter()
        .map(|(folder, plugin)| (page_of(folder), plugin.rows));
    let mut texts: BTreeMap<_, _> = pages().collect();
    let mut ids = BTreeSet::new();
    for (page, rows) in [(SHARED.to_owned(), ROWS)].into_iter().chain(of_plugins) {
        let text = texts.remove(&page).unwrap();
        let listed: Vec<_> = rows_of(text).into_iter().map(|row| row.id).collect();
        // A plugin can add a matcher to a row that plugins share.
        let is_added = |id: &&str| page != SHARED && ROWS.iter().any(|row| row.id == *id);
        let matched: Vec<_> = rows
            .iter()
            .map(|row| row.id)
            .filter(|id| !is_added(id))
            .collect();
        assert_eq!(listed, matched, "{page}");
        for id in matched {
            assert!(ids.insert(id), "{page}: the id `{id}` stands twice");
        }
    }
    assert!(texts.is_empty(), "without a matcher: {:?}", texts.keys());
}

/// Returns the rows that change the number of processes of a TrainJob, which warnings name.
fn rows_about_processes() -> &'static BTreeSet<String> {
    static ROWS: LazyLock<BTreeSet<String>> = LazyLock::new(|| table::of_page("docs/move.md"));
    &ROWS
}

#[test]
fn every_case_of_a_row_about_processes_has_its_warning() {
    let about_processes = rows_about_processes();
    assert_eq!(about_processes.len(), 6, "{about_processes:?}");
    for row in table::read() {
        for case in row
            .cases
            .iter()
            .filter(|_| about_processes.contains(&row.id))
        {
            let warnings = trainyard::of_case(&self::case(case)).warnings;
            let named = format!("(see `{}` in docs/move.md)", row.id);
            assert!(
                warnings.iter().any(|warning| warning.ends_with(&named)),
                "{case} has no warning of `{}`: {warnings:?}",
                row.id
            );
        }
    }
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn checked_in_answers_match_the_reference() {
    let mut reference = Reference::start();
    for (file, inputs) in kept_files() {
        let ask = |(name, text): (&String, &String)| {
            let answers = reference.ask(text, Runs::to_keep(text));
            (name.clone(), answers)
        };
        let answers: BTreeMap<String, Answers> = inputs.iter().map(ask).collect();
        answers::agree(file, &inputs, &answers);
    }
}

/// Compares the answers for this number of generated inputs, or for the number in the environment.
pub(crate) fn compare(generator: &Generator, count: usize) {
    let count =
        std::env::var("TRAINYARD_ORACLE_INPUTS").map_or(count, |count| count.parse().unwrap());
    let inputs: Vec<_> = generated::inputs(generator, count, Seed::of_run()).collect();
    let of_trainyard = |inputs: &[String]| {
        inputs
            .iter()
            .map(|input| trainyard::of_text(input))
            .collect::<Vec<_>>()
    };
    let (first, second) = inputs.split_at(count / 2);
    let (reference, trainyard) = thread::scope(|scope| {
        let reference = scope.spawn(|| {
            let mut reference = Reference::start();
            inputs
                .iter()
                .map(|input| reference.ask(input, Runs::Few))
                .collect::<Vec<_>>()
        });
        let first = scope.spawn(|| of_trainyard(first));
        let second = of_trainyard(second);
        (
            reference.join().unwrap(),
            [first.join().unwrap(), second].concat(),
        )
    });
    let mut found = Found::default();
    for (number, input) in inputs.iter().enumerate() {
        found.add(
            &format!("{} {number}", generator.name),
            input,
            &trainyard[number],
            &reference[number],
        );
    }
    let accepted = trainyard
        .iter()
        .filter(|answer| answer.refused.is_empty())
        .count();
    let rows: BTreeMap<_, _> = found
        .shown
        .iter()
        .map(|(row, inputs)| (row, inputs.len()))
        .collect();
    println!(
        "{}: {count} inputs, {accepted} of them accepted, {} without a difference; how many show each row: {rows:?}",
        generator.name, found.same
    );
    found.assert_listed();
    assert!(
        accepted * 3 > count,
        "only {accepted} of {count} are accepted"
    );
}

/// The differences found in many inputs.
#[derive(Default)]
struct Found {
    /// The rows of these inputs alone.
    further: &'static [Row],
    /// The inputs that show each row.
    shown: BTreeMap<&'static str, BTreeSet<String>>,
    /// The rows that refuse inputs which the reference renders, each with the first such input.
    refusing: BTreeMap<&'static str, String>,
    /// The number of inputs without any difference.
    same: usize,
    /// The differences that no row lists, each with the shortest input that has it, which is the easiest to read.
    unlisted: BTreeMap<String, (String, String)>,
    /// What is wrong with the counts of PodGroups, each with its input.
    wrong_counts: Vec<String>,
    /// How often each row was found by what inputs use that both sides render, and how often it was shown.
    uses: BTreeMap<&'static str, [usize; 2]>,
    /// The rows that inputs show, and that are not found by what these use.
    not_used: Vec<String>,
    /// What is wrong in the place of each difference, which no row may list.
    seeded: Seeded,
    /// The rows about processes that warnings name, although the answers show no such difference.
    false_alarms: Vec<String>,
}

impl Found {
    fn add(&mut self, name: &str, input: &str, trainyard: &Answer, reference: &[Answer]) {
        let wrong = wrong_counts(input, &trainyard.objects).into_iter();
        self.wrong_counts
            .extend(wrong.map(|wrong| format!("{name}: {wrong}\n\n{input}")));
        let seeded = &mut self.seeded;
        let (rows, unlisted) = sort((name, input), trainyard, reference, self.further, seeded);
        for row in refusing(input, trainyard, reference) {
            self.refusing.entry(row).or_insert_with(|| name.to_owned());
        }
        let is_rendered = reference.iter().any(|answer| answer.refused.is_empty());
        if trainyard.refused.is_empty() && is_rendered {
            let (used, missed) = uses(input, trainyard, reference);
            for row in used {
                let [found, shown] = self.uses.entry(row).or_default();
                *found += 1;
                *shown += usize::from(rows.contains(row));
            }
            let missed = missed.into_iter().map(|row| format!("{name}: {row}"));
            // Rows of these inputs alone are those of their runtimes.
            self.not_used
                .extend(missed.filter(|_| self.further.is_empty()));
        }
        let warned = rows_about_processes().iter().filter(|row| {
            let named = format!("(see `{row}` in docs/move.md)");
            let mut warnings = trainyard.warnings.iter();
            warnings.any(|warning| warning.ends_with(&named))
        });
        let false_alarms = warned.filter(|row| is_rendered && !rows.contains(row.as_str()));
        self.false_alarms
            .extend(false_alarms.map(|row| format!("{name}: `{row}`\n\n{input}")));
        self.same += usize::from(rows.is_empty() && unlisted.is_empty());
        for row in rows {
            self.shown.entry(row).or_default().insert(name.to_owned());
        }
        for difference in unlisted {
            let here = (name.to_owned(), input.to_owned());
            let known = self
                .unlisted
                .entry(difference.to_string())
                .or_insert_with(|| here.clone());
            if input.len() < known.1.len() {
                *known = here;
            }
        }
    }

    fn assert_listed(&self) {
        let listed: Vec<_> = self.seeded.listed.iter().take(40).collect();
        assert!(
            listed.is_empty(),
            "rows list {} wrong values and refusals, the first: {listed:#?}",
            self.seeded.listed.len()
        );
        let alarms: Vec<_> = self.false_alarms.iter().take(10).cloned().collect();
        assert!(
            alarms.is_empty(),
            "warnings of rows that the inputs do not show, the first:\n\n{}",
            alarms.join("\n\n")
        );
        let not_used = &self.not_used;
        assert!(
            not_used.is_empty(),
            "rows that `trainyard diff` would not find without a JobSet, because `when` of the row says too little: {not_used:#?}"
        );
        let [found, shown] = self
            .uses
            .values()
            .fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
        assert!(
            shown * 5 > found * 2,
            "only {shown} of {found} rows that are found by what is used are shown: {:?}",
            self.uses
        );
        let wrong: Vec<_> = self.wrong_counts.iter().take(10).cloned().collect();
        assert!(
            wrong.is_empty(),
            "wrong counts of gangs, the first:\n\n{}",
            wrong.join("\n\n")
        );
        let text = |(difference, (name, input)): (&String, &(String, String))| {
            format!("{name}: {difference}\n\n{input}")
        };
        let first: Vec<_> = self.unlisted.iter().take(40).map(text).collect();
        let count = self.unlisted.len();
        assert!(
            count == 0,
            "{count} differences are not in tests/reference/divergences.md; the first:\n\n{}",
            first.join("\n\n")
        );
        let listed = table::refusing();
        let mut refusing = self.refusing.iter();
        let unlisted = refusing.find(|(row, _)| !listed.contains(**row));
        assert_eq!(
            unlisted, None,
            "the reference renders this input, which the row refuses: list it in \"What only Trainyard refuses\""
        );
    }
}
