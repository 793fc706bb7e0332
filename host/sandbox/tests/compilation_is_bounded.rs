//! A small file that is expensive to compile is refused within the limits, with the plugin's name, and so is a plugin whose compiler
//! process cannot be run.

use std::{
    fmt::Write,
    path::PathBuf,
    process::{Command, Stdio},
    sync::LazyLock,
    time::{Duration, Instant},
};

use trainyard_model::{
    limits::{CompileLimits, Limits},
    plugin_info::Settings,
    text::MAX_TEXT,
};
use trainyard_sandbox::{
    CompileError, CompilerCommand, LoadLimits, LoadProblem, Loader, LoaderOptions, ScreenError,
    screen::screen,
};

use crate::common::{
    self, compiler, good, keep, leb, load, loader, loader_with, next_job_renders, settings,
    transform, with_section,
};

/// A component of many functions that are dear to compile. To make it takes seconds, so that is done once.
fn bomb() -> Vec<u8> {
    static BOMB: LazyLock<Vec<u8>> = LazyLock::new(make_bomb);
    BOMB.clone()
}

fn make_bomb() -> Vec<u8> {
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
fn compilation_time_is_limited() {
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
fn compilation_memory_is_limited() {
    let limits = LoadLimits {
        compile_memory_bytes: 48 << 20,
        ..LoadLimits::default()
    };
    let problem = problem(&loader_with(limits, None), bomb());
    assert!(matches!(problem, CompileError::Memory(_)), "{problem}");
}

#[test]
fn operator_can_raise_and_lower_the_limits_of_one_plugin() {
    let loader = loader_with(LoadLimits::default(), None);
    let load = |compile| {
        let settings = Settings {
            compile,
            ..settings(Limits::default())
        };
        let loaded = loader.load_untrusted(bomb(), |_| settings);
        loaded.map(drop).unwrap_err().to_string()
    };
    let seconds = load(CompileLimits {
        seconds: Some(1),
        ..CompileLimits::default()
    });
    assert!(
        seconds.ends_with(
            "took longer than 1 s to check and compile; raise `compile.seconds` in its PolicyPlugin"
        ),
        "{seconds}"
    );
    let memory = load(CompileLimits {
        memory_bytes: Some(64 << 20),
        ..CompileLimits::default()
    });
    assert!(
        memory.ends_with("raise `compile.memoryBytes` in its PolicyPlugin"),
        "{memory}"
    );

    let none = LoadLimits {
        compile_seconds: 0,
        ..LoadLimits::default()
    };
    let loader = loader_with(none, None);
    let raised = Settings {
        compile: CompileLimits {
            seconds: Some(60),
            ..CompileLimits::default()
        },
        ..settings(Limits::default())
    };
    let problem = problem(&loader, good());
    assert!(matches!(problem, CompileError::Time(0)), "{problem}");
    loader.load_untrusted(good(), |_| raised).map(drop).unwrap();
}

fn with_compiler(program: &str, args: &[&str]) -> Loader {
    Loader::new(LoaderOptions {
        compiler: CompilerCommand {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
        },
        cache: None,
        compiled: None,
        limits: LoadLimits {
            compile_seconds: 2,
            ..LoadLimits::default()
        },
        threads: 1,
    })
    .unwrap()
}

#[test]
fn missing_compiler_is_reported() {
    let problem = problem(&with_compiler("/no/such/program", &[]), good());
    assert!(matches!(problem, CompileError::Child(_)), "{problem}");
}

#[test]
fn hanging_compiler_is_killed() {
    let problem = problem(&with_compiler("/bin/sleep", &["1000"]), good());
    assert!(matches!(problem, CompileError::Time(2)), "{problem}");
}

#[test]
fn excessive_compiler_output_is_truncated() {
    let script = "cat >/dev/null; yes | head -c 1000000 >&2; exit 3";
    let problem = problem(&with_compiler("/bin/sh", &["-c", script]), good());
    assert!(matches!(problem, CompileError::Refused(_)), "{problem}");
}

#[test]
fn invalid_compiler_output_is_refused() {
    let loader = with_compiler("/bin/sh", &["-c", "cat >/dev/null; echo nonsense"]);
    let text = load(&loader, good()).map(drop).unwrap_err().to_string();
    assert!(text.contains("mole 0.3.1"), "{text}");
}

#[test]
fn compiler_errors_are_reported() {
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

/// The engine allows several memories, but only the adapters that it generates have them.
#[test]
fn guest_modules_have_one_memory() {
    let error = load(&loader(), transform("(memory 1)", "")).map(drop);
    let text = error.unwrap_err().to_string();
    assert!(text.contains("multiple memories"), "{text}");
}

/// A core module with one section that repeats an item this many times.
fn module(section: u8, item: &[u8], times: usize) -> Vec<u8> {
    let mut contents = Vec::new();
    leb(&mut contents, times);
    contents.extend(item.repeat(times));
    with_section(b"\0asm\x01\0\0\0".to_vec(), section, &contents)
}

/// The good plugin with one more section.
fn with(section: u8, contents: &[u8]) -> Vec<u8> {
    with_section(good(), section, contents)
}

fn screened(bytes: Vec<u8>, limits: &LoadLimits) -> ScreenError {
    keep(&bytes);
    screen(bytes, limits, &compiler()).map(drop).unwrap_err()
}

/// Each type, export or segment takes some hundred bytes of memory in the process that runs the plugin: they are counted in
/// the file, before anything of it is read.
#[test]
fn declared_sizes_are_checked_before_parsing() {
    const TYPE: &[u8] = &[0x60, 0, 0];
    // `(rec)`, a group of types with none in it.
    const GROUP: &[u8] = &[0x4e, 0];
    // A passive segment without bytes.
    const SEGMENT: &[u8] = &[1, 0];
    // A passive element segment without elements.
    const ELEMENTS: &[u8] = &[1, 0, 0];
    // A custom section without a name, and without bytes.
    const CUSTOM: &[u8] = &[0, 1, 0];
    let mut component_types = Vec::new();
    leb(&mut component_types, 300_000);
    component_types.extend([0x7f].repeat(300_000));
    let table = [
        ("bytes of types", with(1, &module(1, TYPE, 1_900_000))),
        ("bytes of types", with(1, &module(1, GROUP, 1_900_000))),
        ("bytes of types", with(7, &component_types)),
        ("data segments", with(1, &module(11, SEGMENT, 1_900_000))),
        ("imports, exports", with(1, &module(9, ELEMENTS, 1_900_000))),
        ("sections", [good(), CUSTOM.repeat(5_000_000)].concat()),
    ];
    for (what, bytes) in table {
        assert!(bytes.len() < LoadLimits::default().bytes as usize);
        // The compiling process is not asked.
        let nobody = with_compiler("/no/such/program", &[]);
        match load(&nobody, bytes).map(drop).unwrap_err() {
            LoadProblem::Screen(ScreenError::TooMuch { what: found, .. }) => {
                assert!(found.contains(what), "{what}: {found}");
            }
            other => panic!("{what}: {other}"),
        }
    }
}

/// Types that double with each one take memory only where they are validated: in the limited process.
#[test]
fn exponential_types_are_refused() {
    let mut text = "(type $t0 (instance (export \"a\" (func))))".to_owned();
    for at in 1..40 {
        let below = at - 1;
        write!(
            text,
            "(type $t{at} (instance (alias outer 1 $t{below} (type $a)) (export \"a\" (instance (type $a))) (export \"b\" (instance (type $a)))))"
        )
        .unwrap();
    }
    let component = wat::parse_str(format!("(component {text})")).unwrap();
    let error = screened(with(4, &component), &LoadLimits::default());
    assert!(matches!(error, ScreenError::Malformed(_)), "{error}");
}

/// The error does not suggest a higher limit of memory, which would not help.
#[test]
fn component_types_that_nest_deeply_are_refused_as_such() {
    let mut types = vec![1];
    types.extend([0x41, 1, 1].repeat(3_000));
    types.push(0x7f);
    let error = screened(with_section(good(), 7, &types), &LoadLimits::default());
    let ScreenError::Child(CompileError::Refused(problem)) = error else {
        panic!("{error}");
    };
    assert_eq!(problem, "it nests too deeply");
}

#[test]
fn inspection_is_bounded() {
    let limits = |compile_memory_bytes, compile_seconds| LoadLimits {
        compile_memory_bytes,
        compile_seconds,
        ..LoadLimits::default()
    };
    let error = screened(bomb(), &limits(1 << 20, 60));
    assert!(
        matches!(error, ScreenError::Child(CompileError::Memory(_))),
        "{error}"
    );
    let hanging = CompilerCommand {
        program: "/bin/sleep".into(),
        args: vec!["1000".into()],
    };
    let error = screen(good(), &limits(1 << 30, 1), &hanging);
    let error = error.map(drop).unwrap_err();
    assert!(
        matches!(error, ScreenError::Child(CompileError::Time(1))),
        "{error}"
    );
    screen(good(), &LoadLimits::default(), &compiler()).unwrap();
}

#[test]
fn compiled_code_size_is_limited() {
    let limits = LoadLimits {
        code_bytes: 1 << 10,
        ..LoadLimits::default()
    };
    let problem = problem(&loader_with(limits, None), good());
    assert!(matches!(problem, CompileError::Code(1_024)), "{problem}");
}

/// The parent of the next test, in a process of its own.
#[test]
#[ignore = "a process that the next test starts and kills"]
fn a_parent() {
    let _ = load(&loader(), bomb());
}

#[test]
fn compiler_process_ends_with_its_parent() {
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "compilation_is_bounded::a_parent", "--ignored"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let child = eventually(|| child_of(parent.id()));
    parent.kill().unwrap();
    parent.wait().unwrap();
    // The process that adopts it may not have reaped it yet.
    eventually(|| (!is_running(&child)).then_some(()));
}

/// Waits for something that comes for sure if the code is right.
fn eventually<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The compiling process of a parent, by its folder in `/proc`, once it compiles.
fn child_of(parent: u32) -> Option<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap();
    let mut folders = processes.map(|entry| entry.unwrap().path());
    folders.find(|folder| {
        let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
        let memory = std::fs::read_to_string(folder.join("limits")).unwrap_or_default();
        let of_parent = status
            .lines()
            .any(|line| line == format!("PPid:\t{parent}"));
        // Its own limit is set after it has asked to end with its parent.
        of_parent && memory.contains(&LoadLimits::default().compile_memory_bytes.to_string())
    })
}

fn is_running(folder: &std::path::Path) -> bool {
    let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}
