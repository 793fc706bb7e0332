//! A plugin's directory with a `build.sh` is built by it, and what goes wrong is reported with what to do, such as which tool to install.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Output,
};

use crate::common::{
    command,
    plugin_folder::{created, trainyard},
    root, stderr, stdout, test_plugin,
};

/// Creates a directory with the manifest of the plugin `survey`, and a script that ends with these lines.
fn scripted(folder: &Path, lines: &str) -> PathBuf {
    let own = folder.join("survey");
    fs::create_dir(&own).unwrap();
    let manifest = fs::read_to_string(root().join("tests/plugins/survey/manifest.json")).unwrap();
    let manifest = manifest.replacen('{', r#"{"name": "survey", "version": "0.1.0","#, 1);
    fs::write(own.join("manifest.json"), manifest).unwrap();
    let script = own.join("build.sh");
    fs::write(&script, format!("#!/bin/sh\nset -e\n{lines}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    own
}

fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    stderr(output)
}

#[test]
fn a_directory_with_a_script_is_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let lines = format!(
        "echo built; test -x \"$TRAINYARD\"; cp {} survey.wasm",
        test_plugin("survey")
    );
    let own = scripted(folder.path(), &lines);
    let built = trainyard(&["plugin", "build", "survey"], folder.path());
    let printed = stdout(&built);
    // Only the command's own result is on its standard output.
    assert!(
        printed.starts_with("survey.wasm: plugin survey "),
        "{printed}"
    );
    let written = fs::read(folder.path().join("survey.wasm")).unwrap();
    assert_eq!(written, fs::read(own.join("survey.wasm")).unwrap());
}

#[test]
fn a_file_of_an_earlier_build_is_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let own = scripted(folder.path(), "true");
    fs::copy(test_plugin("survey"), own.join("survey.wasm")).unwrap();
    let error = failure(&trainyard(&["plugin", "build", "survey"], folder.path()));
    assert!(
        error.contains("did not write the plugin to survey/survey.wasm"),
        "{error}"
    );
}

#[test]
fn what_goes_wrong_is_reported() {
    for (lines, problems) in [
        (
            "echo 'main.x: syntax error'; exit 3",
            &[
                "main.x: syntax error",
                "survey/build.sh: failed (exit status: 3); correct what it printed above",
            ][..],
        ),
        (
            "true",
            &["survey/build.sh: did not write the plugin to survey/survey.wasm"],
        ),
        ("cp manifest.json survey.wasm", &["survey/survey.wasm: "]),
        (
            &format!("cp {} survey.wasm", test_plugin("site")),
            &[
                "survey/survey.wasm: contains the plugin `site`, but manifest.json in its directory has the name `survey`",
            ],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        scripted(folder.path(), lines);
        let error = failure(&trainyard(&["plugin", "build", "survey"], folder.path()));
        for problem in problems {
            assert!(error.contains(problem), "{lines}: {error}");
        }
        assert!(!folder.path().join("survey.wasm").exists());
    }
    let folder = tempfile::tempdir().unwrap();
    let own = scripted(folder.path(), "true");
    let script = own.join("build.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    let error = failure(&trainyard(&["plugin", "build", "survey"], folder.path()));
    assert!(
        error.contains("make it executable with `chmod +x survey/build.sh`"),
        "{error}"
    );
    fs::remove_file(script).unwrap();
    let error = failure(&trainyard(&["plugin", "build", "survey"], folder.path()));
    assert!(
        error.contains("survey is not a plugin's directory: it has no build.sh"),
        "{error}"
    );
}

/// The manifest is checked first, because a build can take long.
#[test]
fn mistakes_in_the_manifest_are_found_before_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let own = scripted(folder.path(), "touch ran");
    let manifest = own.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(manifest, text.replace("claims", "claim")).unwrap();
    for command in ["build", "test", "claims", "check"] {
        fs::create_dir_all(own.join("cases/none")).unwrap();
        fs::write(own.join("cases/none/input.yaml"), "").unwrap();
        let error = failure(&trainyard(&["plugin", command, "survey"], folder.path()));
        assert!(
            error.contains("did you mean `claims`?"),
            "{command}: {error}"
        );
    }
    assert!(!own.join("ran").exists());
}

#[test]
fn a_missing_tool_is_named_with_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for tool in ["bash", "dirname"] {
        let mut found = std::env::split_paths(&path).map(|dir| dir.join(tool));
        let found = found.find(|file| file.is_file()).unwrap();
        symlink(found, tools.join(tool)).unwrap();
    }
    for (language, problem) in [
        (
            "c",
            "a compiler for WebAssembly was not found; install Zig with `pip install ziglang`",
        ),
        (
            "go",
            "the command `go` was not found; install Go 1.24 or newer",
        ),
        (
            "javascript",
            "the command `node` was not found; install Node.js 20 or newer",
        ),
        (
            "python",
            "the command `componentize-py` was not found; run `pip install -r requirements.txt`",
        ),
    ] {
        let own = created(language, "sidecar", language, folder.path());
        let mut build = command(&["plugin", "build", "."]);
        build
            .env("PATH", &tools)
            .env_remove("WASM_CC")
            .current_dir(&own);
        let error = failure(&build.output().unwrap());
        assert!(error.contains(problem), "{language}: {error}");
        assert!(error.contains("build.sh: failed"), "{language}: {error}");
    }
}
