//! The merge agrees with Kubernetes' own on a fixed part of the generated inputs.
//!
//! `tests/reference/merge` wrote the expected results; `make test-reference` compares many more inputs.

use serde_json::Value;
use trainyard_api::merge::strategic;

#[test]
fn fixed_inputs_agree() {
    let lines: Vec<&str> = include_str!("merge_inputs/fixed.jsonl").lines().collect();
    assert!(lines.len() >= 500, "{} inputs", lines.len());
    for (at, line) in lines.iter().enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        let ours = strategic(&case["base"], &case["patch"]).unwrap();
        assert_eq!(ours, case["merged"], "line {}", at + 1);
    }
}
