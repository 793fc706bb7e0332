//! A TrainJob can have tens of thousands of fields that an API server would refuse. What set a field is searched for the first ones only.

use std::fmt::Write as _;

use crate::common::{render_edited, texts};

/// Returns the problems of a TrainJob with that many env vars with a name that is not allowed.
fn problems(count: usize) -> Vec<String> {
    let mut env = String::new();
    for at in 0..count {
        write!(env, "{{name: é{at}, value: x}}, ").unwrap();
    }
    let edit = |input: String| input.replace("{name: USERS,", &format!("{env}{{name: USERS,"));
    texts(&render_edited(&[], edit).unwrap_err())
}

#[test]
fn the_first_fields_are_located_and_the_others_counted() {
    let found = problems(1_000);
    assert_eq!(found.len(), 101);
    for (at, problem) in found[..100].iter().enumerate() {
        let field = format!("spec.trainer.env[{at}]");
        assert!(problem.starts_with(&field), "{problem}");
    }
    assert_eq!(
        found[100],
        "JobSet `job`: has 900 more fields that would be refused; correct the first 100, and render again"
    );
    assert_eq!(problems(100).len(), 100);
}

/// The search for a field takes time in proportion to the JobSet, so an object with too many entries is refused before it.
#[test]
fn an_object_with_too_many_entries_is_refused_by_itself() {
    let labels: Vec<_> = (0..2_000).map(|at| format!("é{at}: x")).collect();
    let edit = |input: String| {
        let labels = format!("labels: {{{}, app: job", labels.join(", "));
        input.replace("labels: {app: job", &labels)
    };
    let found = texts(&render_edited(&[], edit).unwrap_err());
    let [problem] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(problem.contains("has 2002 entries"), "{problem}");
}
