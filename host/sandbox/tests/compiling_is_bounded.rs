//! A small file that costs much to compile is refused within its limits, with the plugin's name; so is one whose
//! compiling process can't be run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::{fmt::Write, time::Instant};

use crate::common::{self, good, load, loader, loader_with, next_job_renders, transform};
use trainyard_model::text::MAX_TEXT;
use trainyard_sandbox::{
    CompileError, CompilerCommand, LoadLimits, LoadProblem, Loader, LoaderOptions,
};

/// A component of many functions that are dear to compile.
fn bomb() -> Vec<u8> {
    let mut functions = String::new();
    for at in 0..200 {
        write!(
            functions,
            "(func (param i64 i64) (result i64) (local.get 0)"
        )
        .unwrap();
        for op in 0..600 {
            let number = at * 7919 + op * 104_729;
            write!(
                functions,
                "(i64.const {number}) i64.mul (local.get 1) i64.xor (local.set 0) (local.get 0) (if (param i64) (result i64) (i64.eqz (local.get 1)) (then i64.clz) (else (i64.const {op}) i64.rotl))"
            )
            .unwrap();
        }
        functions.push(')');
    }
    transform(&functions, "")
}

fn problem(loader: &Loader, bytes: Vec<u8>) -> CompileError {
    let problem = match load(loader, bytes) {
        Ok(_) => panic!("it was loaded"),
        Err(problem) => problem,
    };
    let text = problem.to_string();
    assert!(text.contains("mole 0.3.1 (sha256:"), "{text}");
    assert!(text.chars().count() < MAX_TEXT + 200, "{text}");
    next_job_renders(&common::loader());
    match problem {
        LoadProblem::Compile { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn by_time() {
    let limits = LoadLimits {
        compile_seconds: 1,
        ..LoadLimits::default()
    };
    let loader = loader_with(limits, None);
    let bytes = bomb();
    assert!(bytes.len() < 4 << 20, "{} bytes", bytes.len());
    let start = Instant::now();
    let problem = problem(&loader, bytes);
    assert!(matches!(problem, CompileError::Time(1)), "{problem}");
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn by_memory() {
    let limits = LoadLimits {
        compile_memory_bytes: 48 << 20,
        ..LoadLimits::default()
    };
    let problem = problem(&loader_with(limits, None), bomb());
    assert!(matches!(problem, CompileError::Memory(_)), "{problem}");
}

fn with_compiler(program: &str, args: &[&str]) -> Loader {
    Loader::new(LoaderOptions {
        compiler: CompilerCommand {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
        },
        cache: None,
        limits: LoadLimits {
            compile_seconds: 2,
            ..LoadLimits::default()
        },
        threads: 1,
    })
    .unwrap()
}

#[test]
fn a_compiler_that_is_not_there() {
    let problem = problem(&with_compiler("/no/such/program", &[]), good());
    assert!(matches!(problem, CompileError::Child(_)), "{problem}");
}

#[test]
fn a_compiler_that_hangs_is_ended() {
    let problem = problem(&with_compiler("/bin/sleep", &["1000"]), good());
    assert!(matches!(problem, CompileError::Time(2)), "{problem}");
}

#[test]
fn a_compiler_that_says_too_much_is_cut_short() {
    let script = "cat >/dev/null; yes | head -c 1000000 >&2; exit 3";
    let problem = problem(&with_compiler("/bin/sh", &["-c", script]), good());
    assert!(matches!(problem, CompileError::Refused(_)), "{problem}");
}

#[test]
fn a_compiler_that_writes_nonsense_is_not_believed() {
    let loader = with_compiler("/bin/sh", &["-c", "cat >/dev/null; echo nonsense"]);
    let text = load(&loader, good()).map(drop).unwrap_err().to_string();
    assert!(text.contains("mole 0.3.1"), "{text}");
}

#[test]
fn what_the_compiler_refuses_is_told() {
    // Valid to the eye of the contract, but with a proposal that is off: threads.
    let items = "(func (drop (i32.atomic.load (i32.const 0))))";
    let text = load(&loader(), transform(items, ""))
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(text.contains("threads"), "{text}");
    let items = "(func (drop (i32x4.relaxed_trunc_f32x4_s (v128.const i32x4 0 0 0 0))))";
    let text = load(&loader(), transform(items, ""))
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(text.contains("relaxed"), "{text}");
}
