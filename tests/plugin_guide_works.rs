//! Following docs/write-a-plugin.md literally in a new folder gives a plugin that works.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::common::{
    plugin_folder::{lock, target},
    root,
};

/// Returns the files of the guide, by the name in the comment before each block.
fn files() -> Vec<(String, String)> {
    let guide = fs::read_to_string(root().join("docs/write-a-plugin.md")).unwrap();
    let blocks = guide.split("<!-- file: ").skip(1).map(|rest| {
        let (name, rest) = rest.split_once(" -->").unwrap();
        let (_, rest) = rest.split_once("```").unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        let (text, _) = rest.split_once("```").unwrap();
        (name.to_owned(), text.to_owned())
    });
    blocks.collect()
}

/// Returns the first block of shell commands below a heading.
fn commands(heading: &str) -> String {
    let guide = fs::read_to_string(root().join("docs/write-a-plugin.md")).unwrap();
    let (_, rest) = guide.split_once(heading).unwrap();
    let (_, rest) = rest.split_once("```sh\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

fn shell(script: &str, folder: &Path) -> Output {
    let binaries = Path::new(env!("CARGO_BIN_EXE_trainyard")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    // The crate does not belong to the workspace whose cargo runs this test.
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PKG"))
    {
        command.env_remove(name);
    }
    let output = command
        .args(["-euc", script])
        .current_dir(folder)
        .env("TRAINYARD", root())
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{script}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Writes the second plugin of the guide into its folder.
fn needs_a_grant(pool: &Path) {
    lock(pool);
    shell("cargo test", pool);
    shell(&commands("prints a PolicyPlugin with these grants"), pool);
    let inspected = shell("trainyard plugin inspect pool.wasm", pool).stdout;
    let inspected = String::from_utf8(inspected).unwrap();
    assert!(
        inspected.contains("node-selector[example.com/pool] (needs a grant)"),
        "{inspected}"
    );
}

#[test]
#[ignore = "takes minutes: `make test-conform`"]
fn guide_can_be_followed_literally() {
    let folder = tempfile::tempdir().unwrap();
    shell(&commands("## 1. Create a crate"), folder.path());
    let tracer = folder.path().join("tracer");
    shell(&commands("## 8. A plugin that needs a grant"), &tracer);
    let (with_yaml, others): (Vec<_>, Vec<_>) = files()
        .into_iter()
        .partition(|(name, _)| name == "tests/yaml.rs");
    for (name, text) in others {
        let path = tracer.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    lock(&tracer);
    shell(&commands("## 4. Test it"), &tracer);
    shell(&commands("## 5. Build the component"), &tracer);
    let component = fs::read(tracer.join("tracer.wasm")).unwrap();
    // Its dependencies are added later than the other files are tested.
    for (name, text) in with_yaml {
        fs::write(tracer.join(name), text).unwrap();
    }
    // What earlier steps did not use was removed.
    lock(&tracer);
    shell(
        &commands("### YAML and other plugins in unit tests"),
        &tracer,
    );
    shell(&commands("## 5. Build the component"), &tracer);
    assert!(component == fs::read(tracer.join("tracer.wasm")).unwrap());
    needs_a_grant(&folder.path().join("pool"));
    shell("trainyard plugin check", &tracer);
    shell(
        &commands("## 7. Test it with the shipped runtimes"),
        &tracer,
    );
    let on_mpi = "cases/traced/runtimes/openmpi-distributed/expected.yaml";
    let on_mpi = fs::read_to_string(tracer.join(on_mpi)).unwrap();
    assert!(on_mpi.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{on_mpi}");
    let output = shell("trainyard render -f job.yaml --plugin tracer.wasm", &tracer);
    let text = String::from_utf8(output.stdout).unwrap();
    let objects: Vec<_> = trainyard_api::yaml::read(&text)
        .into_iter()
        .map(|d| d.unwrap().value)
        .collect();
    assert_eq!(objects.len(), 2, "{text}");
    assert_eq!(objects[0]["metadata"]["name"], "bert-tracer");
    assert_eq!(
        objects[0]["data"]["tracer.yaml"],
        "service: bert\nsampling: 10\n"
    );
    let pod = &objects[1]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["configMap"]["name"], "bert-tracer");
    let env = pod["containers"][0]["env"].as_array().unwrap();
    assert!(
        env.iter()
            .any(|e| e["name"] == "OTEL_EXPORTER_OTLP_ENDPOINT"
                && e["value"] == "http://collector.tracing:4317")
    );
    let explained = shell(
        "trainyard explain -f job.yaml --plugin tracer.wasm",
        &tracer,
    )
    .stdout;
    assert!(
        String::from_utf8(explained)
            .unwrap()
            .contains("the endpoint in the ConfigMap `tracing`")
    );
}
