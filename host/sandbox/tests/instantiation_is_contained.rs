//! A component that misbehaves during instantiation is refused when it is loaded, within its limits, with the plugin's name and the reason.
//! The next component in the same process works.

use trainyard_model::{
    limits::Limits,
    plugin::{CallFailure, Limit},
};
use trainyard_sandbox::LoadProblem;

use crate::common::{good, keep, loader, next_job_renders, settings, transform, with_instances};

/// Loads a component that must be refused, and gives why.
fn refused(bytes: Vec<u8>, limits: Limits) -> LoadProblem {
    keep(&bytes);
    let loader = loader();
    let problem = match loader.load_untrusted(bytes, |_| settings(limits)) {
        Ok(_) => panic!("it was loaded"),
        Err(problem) => problem,
    };
    let text = problem.to_string();
    assert!(text.contains("mole 0.3.1 (sha256:"), "{text}");
    next_job_renders(&loader);
    problem
}

fn cause(problem: LoadProblem) -> CallFailure {
    match problem {
        LoadProblem::Instantiate { cause, .. } => *cause,
        other => panic!("{other}"),
    }
}

#[test]
fn endless_start_function_exhausts_fuel() {
    let start = "(func $start (loop $again (br $again))) (start $start)";
    let ended = cause(refused(transform(start, ""), Limits::default()));
    assert!(
        matches!(
            ended,
            CallFailure::Limit {
                limit: Limit::Fuel(_),
                ..
            }
        ),
        "{ended:?}"
    );
}

#[test]
fn crashing_start_function_is_reported() {
    let start = "(func $start unreachable) (start $start)";
    match cause(refused(transform(start, ""), Limits::default())) {
        CallFailure::Trap { kind, .. } => assert!(kind.contains("unreachable"), "{kind}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_growth_in_a_start_function_hits_the_limit() {
    let start = "(func $start (loop $again (drop (memory.grow (i32.const 16))) (br $again))) (start $start)";
    let limits = Limits {
        memory_bytes: 2 << 20,
        ..Limits::default()
    };
    let ended = cause(refused(transform(start, ""), limits));
    assert!(
        matches!(ended, CallFailure::Limit { limit: Limit::Memory(n), .. } if n == 2 << 20),
        "{ended:?}"
    );
}

#[test]
fn data_segment_outside_the_memory_is_reported() {
    let data = r#"(data (i32.const 262143) "four")"#;
    let ended = cause(refused(transform(data, ""), Limits::default()));
    assert!(matches!(ended, CallFailure::Trap { .. }), "{ended:?}");
}

#[test]
fn all_memories_share_one_limit() {
    // Three memories of 12 MiB: each is within the limit of 32 MiB, together they are not.
    let many = with_instances(good(), "(module (memory 192))", 3);
    let ended = cause(refused(many, Limits::default()));
    assert!(
        matches!(
            ended,
            CallFailure::Limit {
                limit: Limit::Memory(_),
                ..
            }
        ),
        "{ended:?}"
    );
}

#[test]
fn too_many_memories_are_refused() {
    let many = with_instances(good(), "(module (memory 1))", 20);
    let text = refused(many, Limits::default()).to_string();
    assert!(text.contains("memories"), "{text}");
}

#[test]
fn too_many_tables_and_instances_are_refused() {
    let tables = with_instances(good(), "(module (table 1 funcref))", 20);
    let text = refused(tables, Limits::default()).to_string();
    assert!(text.contains("tables"), "{text}");
    let instances = with_instances(good(), "(module)", 200);
    let text = refused(instances, Limits::default()).to_string();
    assert!(text.contains("instances"), "{text}");
}

#[test]
fn huge_table_is_refused() {
    let table = "(table 100000000 funcref)";
    refused(transform(table, ""), Limits::default());
}

#[test]
fn memory_larger_than_the_limit_is_refused() {
    let huge = with_instances(good(), "(module (memory 65536))", 1);
    refused(huge, Limits::default());
}
