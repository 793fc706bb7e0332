//! The plugins that `plugin new` creates in C, Go, JavaScript and Python are the same as those in Rust: their manifests are equal, they
//! render a TrainJob with its own runtime and with every shipped runtime to the same objects, and they give the same reasons. Their unit
//! tests pass, and fail for a changed plugin.
//!
//! A language whose tools are not installed is skipped, and `make test` counts that. `make test-languages` installs them, and also tests JavaScript and Python, whose
//! plugins take long to build.
//!
//! The bindings for Go, which Trainyard generates itself, have every method of the contract, and pass values of all its types.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Output,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

use trainyard_model::names::without_digests;
use trainyard_pods::skip;

use crate::common::{
    expect_file,
    plugin_folder::{created, run, succeeded, trainyard},
    root, stderr, stdout,
};

/// The case of a new plugin.
const CASE: &str = "cases/basic";

/// A plugin that was built.
struct Built {
    folder: PathBuf,
    name: String,
    language: String,
}

impl Built {
    /// Creates a plugin and builds it. `None` if the tools of its language are not installed.
    fn new(kind: &str, language: &str, folder: &Path) -> Option<Self> {
        let name = format!("z-{kind}");
        let own = folder.join(language);
        fs::create_dir_all(&own).unwrap();
        Self::of(created(&name, kind, language, &own), name, language)
    }

    /// Builds the plugin of this name in its folder.
    fn of(folder: PathBuf, name: String, language: &str) -> Option<Self> {
        if let Some(modules) =
            env::var_os("TRAINYARD_NODE_MODULES").filter(|_| language == "javascript")
        {
            symlink(modules, folder.join("node_modules")).unwrap();
        }
        let output = format!("{name}.wasm");
        let built = trainyard(&["plugin", "build", ".", "--output", &output], &folder);
        if !built.status.success() && stderr(&built).contains("was not found; ") {
            return None;
        }
        succeeded(&built, &format!("{language}, {name}"));
        let language = language.to_owned();
        Some(Self {
            folder,
            name,
            language,
        })
    }

    fn printed(&self, args: &[&str]) -> String {
        let output = trainyard(args, &self.folder);
        succeeded(&output, &self.folder.display().to_string());
        stdout(&output)
    }

    fn manifest(&self) -> Value {
        let file = format!("{}.wasm", self.name);
        let printed = self.printed(&["plugin", "inspect", "-o", "json", &file]);
        serde_json::from_str::<Value>(&printed).unwrap()["manifest"].take()
    }

    /// Runs a command on a file with the plugin and its policy file.
    fn run(&self, name: &str, input: &str) -> Output {
        let file = format!("{}.wasm", self.name);
        let mut args = vec![name, "-f", input, "--plugin", &file];
        if self.folder.join("policy.yaml").exists() {
            args.extend(["--policy", "policy.yaml"]);
        }
        trainyard(&args, &self.folder)
    }

    /// Returns what set each field of the case, and why.
    fn explained(&self) -> String {
        stdout(&self.run("explain", &format!("{CASE}/input.yaml")))
    }

    /// Returns the errors and warnings for the case with a changed runtime.
    fn problems(&self, from: &str, to: &str) -> String {
        without_digests(&stderr(&self.changed(from, to)))
    }

    /// Renders the case with a changed runtime.
    fn changed(&self, from: &str, to: &str) -> Output {
        let input = fs::read_to_string(self.folder.join(CASE).join("input.yaml")).unwrap();
        assert!(input.contains(from), "{input}");
        fs::write(self.folder.join("changed.yaml"), input.replace(from, to)).unwrap();
        self.run("render", "changed.yaml")
    }

    /// Runs the unit tests, as its workflow does.
    fn run_unit_tests(&self) -> Output {
        let command = match &*self.language {
            "c" => "./test.sh",
            "go" => "go test ./...",
            "javascript" => "npm test",
            "python" => "python3 -m unittest",
            other => panic!("{other} has no command for unit tests"),
        };
        let workflow = self.folder.join(".github/workflows/test.yaml");
        let workflow = fs::read_to_string(workflow).unwrap();
        assert!(
            workflow.contains(&format!("- run: {command}\n")),
            "{workflow}"
        );
        run("bash", &["-c", command], &self.folder)
    }

    /// Takes the case with the expected files of another plugin.
    fn take_case(&self, other: &Self) {
        fs::remove_dir_all(self.folder.join(CASE)).unwrap();
        copy(&other.folder.join(CASE), &self.folder.join(CASE));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// Compares the plugins of a kind.
fn is_the_same_in_every_language(kind: &str) {
    // A plugin with an interpreter takes most of a machine to compile, within a limit of time.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let every_language = env::var_os("TRAINYARD_ALL_LANGUAGES").is_some();
    let languages: &[&str] = match every_language {
        true => &["c", "go", "javascript", "python"],
        false => &["c", "go"],
    };
    let folder = tempfile::tempdir().unwrap();
    let rust = Built::new(kind, "rust", folder.path()).unwrap();
    rust.printed(&["plugin", "test", "--update"]);
    for language in languages {
        match Built::new(kind, language, folder.path()) {
            Some(other) => agrees(&other, &rust, kind),
            None if every_language => panic!("the tools of {language} are not installed"),
            None => skip(&format!(
                "the tools of {language} are not installed: `make test-languages` installs those of all languages but Go"
            )),
        }
    }
}

/// Compares a plugin with that in Rust.
fn agrees(other: &Built, rust: &Built, kind: &str) {
    let place = other.folder.display();
    // Its own expected file, which it was created with, is that of Rust.
    let own = |plugin: &Built| {
        fs::read_to_string(plugin.folder.join(CASE).join("expected.yaml")).unwrap()
    };
    assert_eq!(own(other), own(rust), "{place}");
    other.take_case(rust);
    assert_eq!(other.manifest(), rust.manifest(), "{place}");
    assert_eq!(other.explained(), rust.explained(), "{place}");
    other.printed(&["plugin", "check"]);
    let file = format!("{}.wasm", other.name);
    let of_file = |command| {
        let mut args = vec!["plugin", command, &*file, "--cases", "cases"];
        if other.folder.join("policy.yaml").exists() {
            args.extend(["--policy", "policy.yaml"]);
        }
        trainyard(&args, &other.folder)
    };
    let tested = of_file("test");
    succeeded(&tested, &place.to_string());
    let tested = stdout(&tested);
    assert!(tested.ends_with(": all as expected\n"), "{tested}");
    let claims = of_file("claims");
    succeeded(&claims, &place.to_string());
    assert!(!stderr(&claims).contains("warning"), "{}", stderr(&claims));
    succeeded(&other.run_unit_tests(), &format!("unit tests in {place}"));
    match kind {
        "framework" => refuses_and_warns_as_in_rust(other, rust),
        "fabric" => faults_are_found(other),
        "scheduler" => gangs_are_as_in_rust(other, rust),
        "sidecar" => refuses_a_volume_as_in_rust(other, rust),
        _ => {}
    }
}

#[test]
fn frameworks_are_the_same_in_every_language() {
    is_the_same_in_every_language("framework");
}

#[test]
fn schedulers_are_the_same_in_every_language() {
    is_the_same_in_every_language("scheduler");
}

#[test]
fn fabrics_are_the_same_in_every_language() {
    is_the_same_in_every_language("fabric");
}

#[test]
fn sidecars_are_the_same_in_every_language() {
    is_the_same_in_every_language("sidecar");
}

/// Changes of the runtime that a framework warns of, or refuses.
fn refuses_and_warns_as_in_rust(other: &Built, rust: &Built) {
    for (from, to, problem) in [
        (
            "      replicatedJobs:",
            "      network: {enableDNSHostnames: false}\n      replicatedJobs:",
            "by its DNS name",
        ),
        (
            "          spec:\n            template:",
            "          spec:\n            completionMode: NonIndexed\n            template:",
            "by their index",
        ),
        (
            "ancestor-step: trainer}",
            "ancestor-step: model-initializer}",
            "needs a container `node`",
        ),
    ] {
        let (found, wanted) = (other.problems(from, to), rust.problems(from, to));
        assert!(wanted.contains(problem), "{wanted}");
        assert_eq!(found, wanted);
    }
}

/// Nodes that wait for other pods are members, and a label that a user set is replaced with a warning.
fn gangs_are_as_in_rust(other: &Built, rust: &Built) {
    let jobs = "      replicatedJobs:\n";
    let helper = "      - {name: helper, template: {spec: {template: {spec: {containers: [{name: helper, image: \"registry.example.com/helper:1\"}]}}}}}\n";
    let in_order = "      startupPolicy: {startupPolicyOrder: InOrder}\n";
    let labels = "            template:\n              metadata: {labels: {scheduling.example.com/group: other}}\n";
    for (from, to, wanted) in [
        (jobs, format!("{in_order}{jobs}{helper}"), "minMembers: 2"),
        (
            "            template:\n",
            labels.to_owned(),
            "is `other`, but the scheduler finds the pods of the group by `bert`",
        ),
    ] {
        let result = |plugin: &Built| {
            let output = plugin.changed(from, &to);
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            printed + &without_digests(&stderr(&output))
        };
        let (found, expected) = (result(other), result(rust));
        assert!(expected.contains(wanted), "{expected}");
        assert_eq!(found, expected, "{}", other.folder.display());
    }
}

fn refuses_a_volume_as_in_rust(other: &Built, rust: &Built) {
    let containers = "                containers:";
    let volume =
        format!("                volumes: [{{name: sidecar, emptyDir: {{}}}}]\n{containers}");
    let problems = |plugin: &Built| {
        plugin
            .problems(containers, &volume)
            .replace("changed.yaml", "")
    };
    let (found, wanted) = (problems(other), problems(rust));
    assert!(
        wanted.contains("the plugin adds a volume with the name `sidecar`"),
        "{wanted}"
    );
    assert_eq!(found, wanted);
}

/// A changed value is reported with what set it, and the unit tests show it.
fn faults_are_found(plugin: &Built) {
    let sources = ["plugin.c", "main.go", "plugin.js", "plugin.py"];
    let mut sources = sources.map(|name| plugin.folder.join(name)).into_iter();
    let source = sources.find(|file| file.exists()).unwrap();
    let text = fs::read_to_string(&source).unwrap();
    fs::write(source, text.replace("\"nic\"", "\"mlx5\"")).unwrap();
    let tested = trainyard(&["plugin", "test"], &plugin.folder);
    assert_eq!(tested.status.code(), Some(1), "{}", stderr(&tested));
    let printed = String::from_utf8(tested.stdout).unwrap();
    let wanted = "env[NCCL_IB_HCA].value
      expected: \"nic\"
      found:    \"mlx5\"
      set by:   z-fabric 0.1.0 (a node with accelerators has network devices)";
    assert!(printed.contains(wanted), "{printed}");
    let tested = plugin.run_unit_tests();
    let printed = String::from_utf8_lossy(&tested.stdout) + String::from_utf8_lossy(&tested.stderr);
    assert!(
        !tested.status.success() && printed.contains("mlx5"),
        "{printed}"
    );
}

/// Returns the code of a Go file that uses every method, so that the linker keeps all of them, and `plugin wrap` compares their types with
/// the contract.
fn every_method(policy: &Path) -> String {
    let mut methods = Vec::new();
    for file in fs::read_dir(policy)
        .unwrap()
        .map(|file| file.unwrap().path())
    {
        if file.is_dir() {
            continue;
        }
        for line in fs::read_to_string(&file).unwrap().lines() {
            let method = line.strip_prefix("func (self ");
            let method = method.and_then(|rest| rest.split_once(") "));
            if let Some((of, rest)) = method {
                let (first, others) = of.strip_suffix("Handle").unwrap().split_at(1);
                let (name, _) = rest.split_once('(').unwrap();
                methods.push(format!("policy.{}{others}.{name}", first.to_uppercase()));
            }
        }
    }
    assert!(methods.len() > 150, "{methods:?}");
    format!(
        "package main\n\nimport \"example.com/shapes/policy\"\n\nfunc init() {{\n\tfor _, method := range []any{{{}}} {{\n\t\tif method == nil {{\n\t\t\tpanic(\"no method\")\n\t\t}}\n\t}}\n}}\n",
        methods.join(", ")
    )
}

#[test]
fn go_has_every_method_and_passes_values_of_every_type() {
    let data = root().join("tests/plugins_in_other_languages_work");
    let folder = tempfile::tempdir().unwrap();
    let own = created("shapes", "fabric", "go", folder.path());
    let source = fs::read_to_string(data.join("shapes.go")).unwrap();
    let source = source.replace("example.com/plugin/", "example.com/shapes/");
    fs::write(own.join("main.go"), source).unwrap();
    fs::write(own.join("every.go"), every_method(&own.join("policy"))).unwrap();
    fs::copy(data.join("shapes.json"), own.join("manifest.json")).unwrap();
    fs::copy(data.join("job.yaml"), own.join("job.yaml")).unwrap();
    let Some(plugin) = Built::of(own, "shapes".to_owned(), "go") else {
        return skip("Go is not installed: see https://go.dev/dl");
    };
    let methods = plugin.printed(&["plugin", "inspect", "-o", "json", "shapes.wasm"]);
    let methods: Value = serde_json::from_str(&methods).unwrap();
    let imports = methods["imports"].as_array().unwrap().len();
    let wit = fs::read_dir(root().join("wit")).unwrap();
    let wit = wit.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let functions: usize = wit.map(|text| text.matches(": func(").count()).sum();
    assert_eq!(
        imports,
        functions - 3,
        "all but the functions of the phases"
    );
    let policy = plugin.printed(&["plugin", "inspect", "--policy", "shapes.wasm"]);
    fs::write(plugin.folder.join("policy.yaml"), policy).unwrap();
    let rendered = plugin.run("render", "job.yaml");
    expect_file(&data.join("expected.yaml"), &stdout(&rendered));
    let warnings = stderr(&rendered);
    assert!(
        warnings.contains("spec.trainer.command: is seen by the check")
            && warnings.contains("TrainJob research/bert: a message without a field"),
        "{warnings}"
    );
}
