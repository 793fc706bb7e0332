//! Components that were built for each version of the contract load, and still render the same bytes. tests/contract/README.md describes
//! which of these files may change.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use trainyard_api::{Admitted, Inputs, yaml};
use trainyard_model::{
    contract::{VERSION, VersionSupport, version_support},
    deadline::Deadline,
    plugin::Plugin,
    plugin_info::Settings,
};
use trainyard_render::{Catalog, ClusterFacts, Renderer};
use trainyard_sandbox::{CompilerCommand, LoadLimits, Loader, LoaderOptions, screen::screen};

use crate::common::root;

fn folder() -> PathBuf {
    root().join("tests/contract")
}

fn folders_of(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

/// Returns the hidden subcommand that compiles.
fn compiler() -> CompilerCommand {
    CompilerCommand {
        program: env!("CARGO_BIN_EXE_trainyard").into(),
        args: vec!["compile-worker".into()],
    }
}

/// Returns the output and the warnings of a component for the TrainJobs in its folder.
fn rendered(fixture: &Path) -> (String, String) {
    let loader = Loader::new(LoaderOptions {
        compiler: compiler(),
        cache: None,
        compiled: None,
        limits: LoadLimits::default(),
        threads: 1,
    });
    let component = fs::read(fixture.join("plugin.wasm")).unwrap();
    let plugin = loader
        .unwrap()
        .load_untrusted(component, |_| Settings::built_in())
        .unwrap_or_else(|problem| panic!("{}: {problem}", fixture.display()));
    let plugin: Arc<dyn Plugin> = Arc::new(plugin);
    let renderer = Renderer::new([plugin], ClusterFacts::default()).unwrap();

    let text = fs::read_to_string(fixture.join("input.yaml")).unwrap();
    let inputs = Inputs::read_text("input.yaml", &text);
    assert!(inputs.errors.is_empty(), "{}", inputs.errors[0]);
    let objects = inputs.objects.into_iter();
    let (catalog, errors) = Catalog::new(objects.map(|object| Admitted::new(object, "default")));
    assert!(errors.is_empty(), "{}", errors[0]);
    let (mut objects, mut warnings) = (Vec::new(), String::new());
    for job in &catalog.jobs {
        let rendered = catalog.render(job, &renderer, &Deadline::none());
        let rendered = rendered.unwrap_or_else(|stopped| panic!("{:?}", stopped.lines()));
        objects.extend(rendered.objects.into_iter().map(|object| object.value));
        objects.push(rendered.job_set);
        for warning in rendered.warnings {
            warnings += &format!("{}\n", job.locate_warning(&warning));
        }
    }
    (yaml::write_documents(&objects), warnings)
}

#[test]
fn recorded_components_render_the_same_bytes() {
    let update = std::env::var_os("UPDATE_EXPECTED").is_some();
    let mut seen = 0;
    for fixture in folders_of(&folder())
        .iter()
        .flat_map(|version| folders_of(version))
    {
        let (objects, warnings) = rendered(&fixture);
        for (name, text) in [("expected.yaml", objects), ("warnings.txt", warnings)] {
            let path = fixture.join(name);
            if update {
                fs::write(&path, &text).unwrap();
            }
            let expected = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                text == expected,
                "{}: expected\n{expected}\ngot\n{text}",
                path.display()
            );
        }
        seen += 1;
    }
    assert!(seen > 1, "{seen}");
}

/// The allocator of the program must not take memory before the compiler process limits it.
#[test]
fn memory_of_the_compiler_process_is_limited() {
    let limits = LoadLimits {
        compile_memory_bytes: 16 << 20,
        ..LoadLimits::default()
    };
    let loader = Loader::new(LoaderOptions {
        compiler: compiler(),
        cache: None,
        compiled: None,
        limits,
        threads: 1,
    });
    let component = fs::read(folder().join("1.0.0/torch/plugin.wasm")).unwrap();
    let loaded = loader
        .unwrap()
        .load_untrusted(component, |_| Settings::built_in());
    let problem = loaded.map(drop).unwrap_err().to_string();
    assert!(
        problem.contains("took more than 16777216 bytes of memory"),
        "{problem}"
    );
}

/// A version that is raised without recording components would be held by no test after the next one.
#[test]
fn current_version_has_recorded_components() {
    let version = folder().join(VERSION);
    let recorded = folders_of(&version);
    assert!(!recorded.is_empty(), "{}", version.display());
}

#[test]
fn recorded_components_have_the_version_of_their_folder() {
    for version in folders_of(&folder()) {
        let name = version.file_name().unwrap().to_str().unwrap();
        assert_eq!(
            version_support(name, VERSION),
            VersionSupport::Supported,
            "{name}"
        );
        for fixture in folders_of(&version) {
            let component = fs::read(fixture.join("plugin.wasm")).unwrap();
            let screened = screen(component, &LoadLimits::default(), &compiler()).unwrap();
            assert_eq!(screened.manifest.contract, name);
            let of_it = format!("@{name}#");
            assert!(
                screened
                    .imports
                    .iter()
                    .all(|import| import.contains(&of_it))
            );
        }
    }
}
