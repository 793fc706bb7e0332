//! Each difference from the reference in what a TrainJob becomes names the case that proves it, and the case is there.

#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

#[test]
fn each_row_names_cases_that_are_there() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    let text = fs::read_to_string(tests.join("reference/divergences.md")).unwrap();
    let section = text.split("\n## What a TrainJob becomes\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1);
    let mut count = 0;
    for row in rows {
        let proof = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let cases: Vec<_> = proof.split('`').skip(1).step_by(2).collect();
        assert!(!cases.is_empty(), "nothing proves: {row}");
        for case in cases {
            let input = tests.join("cases").join(case).join("input.yaml");
            assert!(input.is_file(), "there is no case {case}: {row}");
        }
        count += 1;
    }
    assert!(
        count > 10,
        "only {count} rows were found: has the table moved?"
    );
}
