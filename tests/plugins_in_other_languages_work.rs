//! The plugins in examples/plugins are built by the tools of their languages and `trainyard plugin wrap`, and give each node its env var.
//!
//! A language whose tools are not installed is skipped; `make test-languages` installs them.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{command, root};

/// Copies the files of a folder, and those of folders in it that tools installed.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let output = Command::new(program).args(args).output();
    output.is_ok_and(|output| output.status.success())
}

/// Whether the tools of a language are installed.
fn has_tools(language: &str) -> bool {
    match language {
        "c" => {
            let compiler = env::var("WASM_CC").unwrap_or_else(|_| "clang".to_owned());
            let mut words = compiler.split(' ');
            let program = words.next().unwrap_or_default();
            let mut args: Vec<_> = words.collect();
            args.extend(["--target=wasm32-freestanding", "--version"]);
            // clang needs a linker for WebAssembly, which Zig contains.
            succeeds(program, &args)
                && (compiler.contains("zig") || succeeds("wasm-ld", &["--version"]))
        }
        "go" => succeeds("go", &["version"]),
        "javascript" => env::var_os("TRAINYARD_NODE_MODULES").is_some(),
        "python" => succeeds("componentize-py", &["--version"]),
        other => panic!("examples/plugins/{other}: add its tools to this test"),
    }
}

/// Builds the plugin of a language in a folder of its own.
fn build(language: &str, to: &Path) -> PathBuf {
    copy(&root().join("examples/plugins").join(language), to);
    if let Some(modules) =
        env::var_os("TRAINYARD_NODE_MODULES").filter(|_| language == "javascript")
    {
        std::os::unix::fs::symlink(modules, to.join("node_modules")).unwrap();
    }
    let mut command = Command::new(to.join("build.sh"));
    let output = command
        .env("TRAINYARD", env!("CARGO_BIN_EXE_trainyard"))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{language}: {error}");
    to.join(format!("greeter-{language}.wasm"))
}

#[test]
fn plugins_of_each_language_greet_the_nodes() {
    let examples = root().join("examples/plugins");
    let job = fs::read_to_string(examples.join("job.yaml")).unwrap();
    let mut built = 0;
    for entry in fs::read_dir(examples).unwrap() {
        let entry = entry.unwrap();
        let language = entry.file_name().into_string().unwrap();
        // `example_plugins_work` tests those in Rust.
        if !entry.path().join("build.sh").exists() {
            continue;
        }
        if !has_tools(&language) {
            eprintln!(
                "skipped: the tools of {language} are not installed; `make test-languages` installs them"
            );
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let plugin = build(&language, folder.path());
        let job_file = folder.path().join("job.yaml");
        fs::write(&job_file, job.replace("LANGUAGE", &language)).unwrap();
        let files = [
            "-f",
            job_file.to_str().unwrap(),
            "--plugin",
            plugin.to_str().unwrap(),
        ];
        let run = |name: &str| {
            let output = command(&[&[name][..], &files].concat()).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{language}: {error}");
            String::from_utf8(output.stdout).unwrap()
        };
        let rendered = run("render");
        assert!(
            rendered.contains("name: GREETING\n                value: hello"),
            "{language}: {rendered}"
        );
        let explained = run("explain");
        assert!(
            explained.contains("each node is greeted"),
            "{language}: {explained}"
        );
        built += 1;
    }
    if env::var_os("TRAINYARD_ALL_LANGUAGES").is_some() {
        assert_eq!(built, 4);
    }
}
