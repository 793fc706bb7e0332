//! The files of `deploy/` and the runtimes in the folders of the plugins fit together and fit this program: every file is listed, references
//! between objects resolve, the roles are those that `trainyard rbac` prints, and the program starts with the Deployment's arguments and
//! environment. `UPDATE_EXPECTED=1` writes the roles of the chart and the list of runtimes again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_plugin_folders::{of_each, tables};

use crate::common::{command, expect_file, root, stderr, stdout};

const NAME: &str = "kubeflow-trainer-controller-manager";
/// The folder of the CRDs, which the chart and the kustomization share.
const CRDS: &str = "charts/trainyard/files/crds";

fn deploy() -> PathBuf {
    root().join("deploy")
}

fn documents(file: &Path) -> Vec<Value> {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let documents = yaml::read(&text).into_iter();
    documents
        .map(|document| {
            document
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
                .value
        })
        .collect()
}

/// Returns the files that a kustomization lists, including itself.
fn listed(folder: &Path) -> BTreeSet<PathBuf> {
    let file = folder.join("kustomization.yaml");
    let kustomization = documents(&file).remove(0);
    let generated = kustomization.pointer("/configMapGenerator/0/files");
    let lists = [kustomization.get("resources"), generated];
    let names = lists
        .into_iter()
        .flatten()
        .flat_map(|list| list.as_array().unwrap());
    let mut files: BTreeSet<_> = names
        .map(|name| folder.join(name.as_str().unwrap()))
        .collect();
    files.insert(file);
    files
}

/// Returns all YAML files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.insert(path);
        }
    }
    found
}

/// Returns the files of the shipped runtimes, and the kustomizations that list them.
fn shipped() -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for path in listed(&deploy().join("runtimes")) {
        if path.is_dir() {
            all.extend(listed(&path.canonicalize().unwrap()));
        } else {
            all.insert(path);
        }
    }
    all
}

/// Returns the files of the shipped runtimes and of the presets, each of which is applied on its own.
fn runtimes() -> BTreeSet<PathBuf> {
    let mut all = shipped();
    all.extend(of_each(&root(), "presets").unwrap());
    all.retain(|file| !file.ends_with("kustomization.yaml"));
    all
}

/// Returns every applied object, by kind and name.
fn objects() -> BTreeMap<(String, String), Value> {
    let mut objects = BTreeMap::new();
    let of_the_chart = files(&root().join(CRDS));
    for file in files(&deploy())
        .into_iter()
        .chain(of_the_chart)
        .chain(runtimes())
    {
        for object in documents(&file) {
            let text = |pointer: &str| {
                object
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let key = (text("/kind"), text("/metadata/name"));
            if key.0 == "Kustomization" || key.0 == "ControllerConfiguration" {
                continue;
            }
            assert!(!key.1.is_empty(), "{}: {object}", file.display());
            assert!(
                objects.insert(key.clone(), object).is_none(),
                "{key:?} is there twice"
            );
        }
    }
    objects
}

fn object(kind: &str, name: &str) -> Value {
    objects()
        .remove(&(kind.to_owned(), name.to_owned()))
        .unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value
        .pointer(pointer)
        .unwrap_or_else(|| panic!("there is no {pointer} in {value}"))
}

fn pod() -> Value {
    at(&object("Deployment", NAME), "/spec/template/spec").clone()
}

fn container() -> Value {
    at(&pod(), "/containers/0").clone()
}

/// Runs the command with its own cache folder.
fn trainyard(args: &[&str], cache: &Path) -> Output {
    let mut command = command(args);
    command.env("TRAINYARD_CACHE_DIR", cache).output().unwrap()
}

#[test]
fn every_file_is_listed_and_every_listed_file_exists() {
    let kustomization = deploy().join("runtimes/kustomization.yaml");
    expect_file(&kustomization, &tables::kustomization(&root()).unwrap());

    let mut all: BTreeSet<_> = of_each(&root(), "runtimes").unwrap().into_iter().collect();
    all.insert(kustomization.clone());
    assert_eq!(shipped(), all);
    let crds = root().join(CRDS);
    assert_eq!(files(&crds), listed(&crds));
    let mut all = listed(&deploy());
    assert!(all.remove(&deploy().join("..").join(CRDS)), "{all:?}");
    all.insert(kustomization);
    assert_eq!(files(&deploy()), all);
}

#[test]
fn roles_match_the_rbac_command() {
    let file = root().join("charts/trainyard/files/roles.yaml");
    let cache = tempfile::tempdir().unwrap();
    let output = trainyard(&["rbac"], cache.path());
    expect_file(&file, &stdout(&output));
    for role in documents(&file) {
        let kind = at(&role, "/kind").as_str().unwrap();
        assert_eq!(
            at(&object(kind, NAME), "/rules"),
            at(&role, "/rules"),
            "{kind}"
        );
    }
}

#[test]
fn roles_match_the_rbac_command_of_the_shadow_mode() {
    let file = root().join("charts/trainyard/files/shadow-role.yaml");
    let cache = tempfile::tempdir().unwrap();
    let output = trainyard(&["rbac", "--shadow"], cache.path());
    expect_file(&file, &stdout(&output));
}

/// Returns the controller's verbs in the Role and the ClusterRole, by resource.
fn verbs_of_the_roles() -> BTreeMap<String, BTreeSet<String>> {
    let mut verbs = BTreeMap::<String, BTreeSet<String>>::new();
    for kind in ["ClusterRole", "Role"] {
        let role = object(kind, NAME);
        for rule in at(&role, "/rules").as_array().unwrap() {
            let list = |pointer: &str| {
                let list = at(rule, pointer).as_array().unwrap().iter();
                list.map(|item| item.as_str().unwrap().to_owned())
            };
            for resource in list("/resources") {
                verbs.entry(resource).or_default().extend(list("/verbs"));
            }
        }
    }
    verbs
}

/// Reads the table of permissions in docs/secrets.md, which names each resource once, with its verbs.
#[test]
fn manual_lists_the_controllers_permissions() {
    const VERBS: [&str; 7] = [
        "create", "delete", "get", "list", "patch", "update", "watch",
    ];
    let manual = include_str!("../docs/secrets.md");
    let (_, table) = manual
        .split_once("\n| | verbs | why |\n|---|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let mut reported = BTreeMap::new();
    for row in rows {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, resources, verbs, ..] = cells.as_slice() else {
            panic!("{row}");
        };
        let words = verbs
            .split([' ', ',', ';'])
            .filter(|word| VERBS.contains(word));
        let verbs: BTreeSet<_> = words.map(str::to_owned).collect();
        for resource in resources.split(", ") {
            let before = reported.insert(resource.to_owned(), verbs.clone());
            assert!(before.is_none(), "{resource} is there twice");
        }
    }
    assert_eq!(reported, verbs_of_the_roles());
}

/// Returns the flags in the controller's help.
#[test]
fn manual_names_every_flag() {
    let manual = include_str!("../docs/configuration.md");
    let cache = tempfile::tempdir().unwrap();
    let help = trainyard(&["controller", "--help"], cache.path());
    let help = String::from_utf8(help.stdout).unwrap();
    let flags = help.lines().filter_map(|line| {
        let flag = line.trim_start();
        let flag = flag
            .strip_prefix("-h, ")
            .or(flag.strip_prefix("-V, "))
            .unwrap_or(flag);
        flag.starts_with("--")
            .then(|| flag.split([' ', '[', '=']).next().unwrap())
    });
    let mut flags: BTreeSet<_> = flags.collect();
    assert!(
        flags.remove("--help") && flags.remove("--version"),
        "{help}"
    );
    let reported = manual
        .lines()
        .filter_map(|line| line.strip_prefix("| `--")?.split('`').next());
    let reported: BTreeSet<_> = reported.map(|flag| format!("--{flag}")).collect();
    assert_eq!(reported, flags.into_iter().map(str::to_owned).collect());
    let variable = "TRAINYARD_LOG";
    assert!(help.contains(variable) && manual.contains(&format!("| `{variable}` |")));
}

#[test]
fn json_output_is_a_list_of_the_same_roles() {
    let cache = tempfile::tempdir().unwrap();
    let output = trainyard(&["rbac", "-o", "json", "--namespace", "ml"], cache.path());
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut roles = documents(&root().join("charts/trainyard/files/roles.yaml"));
    *roles[1].pointer_mut("/metadata/namespace").unwrap() = json!("ml");
    assert_eq!(at(&list, "/items"), &json!(roles));
}

#[test]
fn no_roles_are_printed_if_plugins_fail_to_load() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("broken.wasm"), "this is no component").unwrap();
    fs::write(folder.path().join("notes.txt"), "this is no plugin").unwrap();
    let plugins = folder.path().to_str().unwrap();
    let output = trainyard(
        &["rbac", "--plugin-dir", plugins],
        &folder.path().join("cache"),
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    // A file keeps the roles that were written before.
    let file = folder.path().join("roles.yaml");
    let args = ["rbac", "--file", file.to_str().unwrap()];
    let cache = folder.path().join("cache");
    stdout(&trainyard(&args, &cache));
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.contains("kind: ClusterRole"), "{written}");
    let failed = trainyard(&[&args[..], &["--plugin-dir", plugins]].concat(), &cache);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
    assert!(
        stderr(&output).contains("broken.wasm") && !stderr(&output).contains("notes.txt"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn runtimes_and_crds_are_accepted_by_the_schema() {
    for file in runtimes() {
        let output = command(&["validate", "-f"]).arg(&file).output().unwrap();
        stdout(&output);
        assert!(output.stderr.is_empty(), "{}", stderr(&output));
    }
    let runtime = object("ClusterTrainingRuntime", "torch-distributed");
    let label = at(&runtime, "/metadata/labels/trainer.kubeflow.org~1framework");
    assert_eq!(label, "torch", "the SDK lists runtimes by it");
}

/// Returns the output of `render` for these files.
fn rendered(files: &[&Path]) -> Vec<Value> {
    let output = command(&["render", "-o", "json"])
        .args(files.iter().flat_map(|file| [Path::new("-f"), file]))
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    let printed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    trainyard_api::list::unpack(printed).unwrap_or_else(|one| vec![one])
}

#[test]
fn every_runtime_and_example_renders() {
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("trainjob.yaml");
    let job_sets = |files: &[&Path]| {
        let objects = rendered(files).into_iter();
        objects.filter(|object| object["kind"] == "JobSet").count()
    };
    for file in runtimes() {
        let runtime = documents(&file).remove(0);
        let name = at(&runtime, "/metadata/name");
        let train_job = json!({
            "apiVersion": at(&runtime, "/apiVersion"), "kind": "TrainJob", "metadata": {"name": "llm"},
            "spec": {"runtimeRef": {"name": name}, "trainer": {"numNodes": 2, "command": ["train"]}},
        });
        fs::write(&job, train_job.to_string()).unwrap();
        assert_eq!(job_sets(&[&file, &job]), 1, "{}", file.display());
    }
    let mut examples = 0;
    for example in fs::read_dir(deploy().join("../examples")).unwrap() {
        let example = example.unwrap().path();
        if example.ends_with("plugins") {
            // `example_plugins_work` renders their cases.
            continue;
        }
        let expected = if example.ends_with("mpi") { 3 } else { 1 };
        // An example without a runtime uses a shipped one. Its kustomization only adds a script.
        let has_runtime = ["runtime.yaml", "runtimes.yaml"].map(|file| example.join(file).exists());
        let (job, shipped) = (
            example.join("trainjob.yaml"),
            root().join("plugins/torch/runtimes"),
        );
        let inputs: &[&Path] = match has_runtime {
            [false, false] => &[&job, &shipped],
            _ => &[&example],
        };
        assert_eq!(job_sets(inputs), expected, "{}", example.display());
        examples += 1;
    }
    assert!(examples > 2, "{examples} examples");
}

/// Flux's plugin sets up its own shared memory.
#[test]
fn runtimes_restart_groups_as_a_whole_and_have_shared_memory() {
    for file in runtimes() {
        let runtime = documents(&file).remove(0);
        let name = at(&runtime, "/metadata/name").as_str().unwrap().to_owned();
        let job_set = at(&runtime, "/spec/template/spec");
        let rules = at(job_set, "/failurePolicy/rules").as_array().unwrap();
        let disruptions = json!({
            "name": "disruptions", "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
        });
        assert_eq!(rules.last(), Some(&disruptions), "{name}");
        for pods in at(job_set, "/replicatedJobs").as_array().unwrap() {
            // Initializers are not part of the group, and a launcher that restarts alone starts all ranks again.
            let limit = match at(pods, "/name").as_str().unwrap() {
                "launcher" => 1,
                pods if pods.ends_with("-initializer") => continue,
                _ => 0,
            };
            let job = at(pods, "/template/spec");
            assert_eq!(at(job, "/backoffLimit"), limit, "{name}");
            assert_eq!(at(job, "/template/spec/restartPolicy"), "Never", "{name}");
            let rule = json!({
                "action": "FailJob",
                "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
            });
            assert_eq!(at(job, "/podFailurePolicy/rules"), &json!([rule]), "{name}");
            if name.starts_with("flux-") {
                continue;
            }
            let volumes = at(job, "/template/spec/volumes").as_array().unwrap();
            assert!(volumes.iter().any(|volume| {
                let medium = volume.pointer("/emptyDir/medium");
                medium.is_some_and(|medium| medium == "Memory")
                    && volume.pointer("/emptyDir/sizeLimit").is_some()
                    && volume["name"] == "shared-memory"
            }));
            let mounts = at(job, "/template/spec/containers/0/volumeMounts");
            let mount = json!({"name": "shared-memory", "mountPath": "/dev/shm"});
            assert!(mounts.as_array().unwrap().contains(&mount), "{name}");
        }
    }
}

#[test]
fn references_between_objects_resolve() {
    let all = objects();
    for ((kind, name), object) in &all {
        if let Some(role) = object.get("roleRef") {
            let key = |field: &str| at(role, field).as_str().unwrap().to_owned();
            assert!(
                all.contains_key(&(key("/kind"), key("/name"))),
                "{kind} {name}"
            );
            for subject in at(object, "/subjects").as_array().unwrap() {
                let subject_of = |field: &str| at(subject, field).as_str().unwrap().to_owned();
                let (kind, name) = (subject_of("/kind"), subject_of("/name"));
                let is_everybody = kind == "Group" && name == "system:authenticated";
                assert!(
                    is_everybody || all.contains_key(&(kind, name.clone())),
                    "{name}"
                );
            }
        }
    }
    let deployment = object("Deployment", NAME);
    let labels = at(&deployment, "/spec/template/metadata/labels");
    assert_eq!(at(&deployment, "/spec/selector/matchLabels"), labels);
    let service = object("Service", NAME);
    assert_eq!(at(&service, "/spec/selector"), labels);
    object(
        "ServiceAccount",
        at(&pod(), "/serviceAccountName").as_str().unwrap(),
    );
    let container = container();
    let ports = at(&container, "/ports").as_array().unwrap();
    let has = |name: &Value| ports.iter().any(|port| port.get("name") == Some(name));
    assert!(has(at(&service, "/spec/ports/0/targetPort")));
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert!(
            has(at(&container, &format!("/{probe}/httpGet/port"))),
            "{probe}"
        );
    }
    let kustomization = documents(&deploy().join("kustomization.yaml")).remove(0);
    let config = at(&kustomization, "/configMapGenerator/0/name");
    assert_eq!(at(&pod(), "/volumes/0/configMap/name"), config);
    let of_image = |field: &str| at(&kustomization, &format!("/images/0/{field}")).as_str();
    let (name, tag) = (of_image("name").unwrap(), of_image("newTag").unwrap());
    assert_eq!(tag, env!("CARGO_PKG_VERSION"));
    assert_eq!(at(&container, "/image"), &format!("{name}:{tag}"));
}

#[test]
fn ports_match_the_configuration() {
    let config = documents(&deploy().join("controller.yaml")).remove(0);
    let container = container();
    let port = |name: &str| {
        let ports = at(&container, "/ports").as_array().unwrap().iter();
        let mut ports = ports.filter(|port| at(port, "/name") == name);
        format!(":{}", at(ports.next().unwrap(), "/containerPort"))
    };
    assert_eq!(at(&config, "/metrics/bindAddress"), &json!(port("metrics")));
    assert_eq!(
        at(&config, "/health/healthProbeBindAddress"),
        &json!(port("health"))
    );
}

/// The pod satisfies the Pod Security level `restricted`, with a read-only file system.
#[test]
fn pod_satisfies_the_restricted_pod_security_standard() {
    let (pod, container) = (pod(), container());
    assert_eq!(at(&pod, "/securityContext/runAsNonRoot"), &json!(true));
    assert_ne!(at(&pod, "/securityContext/runAsUser"), &json!(0));
    assert_eq!(
        at(&pod, "/securityContext/seccompProfile/type"),
        "RuntimeDefault"
    );
    assert_eq!(
        at(&container, "/securityContext"),
        &json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        })
    );
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        assert!(pod.get(host).is_none(), "{host}");
    }
    let volumes = at(&pod, "/volumes").as_array().unwrap();
    assert!(
        volumes
            .iter()
            .all(|volume| volume.get("hostPath").is_none())
    );
}

/// With the Deployment's arguments and environment, with a read-only home as in a container from scratch, the program
/// starts until it looks for its cluster, and writes only below the writable mount.
#[test]
fn program_starts_with_the_deployments_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let place = |text: &str| {
        text.replace("/etc/trainyard", deploy().to_str().unwrap())
            .replace("/var/trainyard", scratch.to_str().unwrap())
    };
    let container = container();
    let kubeconfig = folder.path().join("none.yaml");
    let mut command = command(&[]);
    command.env_clear().env("HOME", "/proc/none");
    for variable in at(&container, "/env").as_array().unwrap() {
        let text = |field: &str| at(variable, field).as_str().unwrap();
        command.env(text("/name"), place(text("/value")));
    }
    let args = at(&container, "/args").as_array().unwrap();
    command.args(args.iter().map(|arg| place(arg.as_str().unwrap())));
    let output = command
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .output()
        .unwrap();
    let log = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.contains("none.yaml"), "{log}");
    assert!(!log.contains("compiled plugins cannot be cached"), "{log}");
    let written = |folder: &str| fs::read_dir(scratch.join(folder)).map(Iterator::count);
    assert!(written("cache").unwrap() > 0, "{log}");
    assert!(scratch.join("state/trainyard/cache.key").is_file(), "{log}");
}
