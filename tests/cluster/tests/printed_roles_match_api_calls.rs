//! The roles that `trainyard rbac` prints match the controller's calls exactly: every call that a proxy records is allowed by a rule, and
//! every verb of every rule is used.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, ensure};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use trainyard_cluster::{
    Call, ControlPlane, Install, Resource, Shared, Test, Write, build_plugin, eventually, install,
};

use crate::common::{self, Case, Disturbed, Namespace, Scenario, flavors, keys, roles};

/// A verb on a resource, for objects of any name or of one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    verb: String,
    group: String,
    resource: String,
    name: Option<String>,
}

impl Right {
    /// Returns whether this permission is required to use the other one.
    fn covers(&self, used: &Self) -> bool {
        let is_same = |one: fn(&Self) -> &str| one(self) == one(used);
        is_same(|right| &right.verb)
            && is_same(|right| &right.group)
            && is_same(|right| &right.resource)
            && (self.name.is_none() || self.name == used.name)
    }
}

/// Returns the permissions of a role's rules.
fn allowed(role: &Value) -> Vec<Right> {
    let texts = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|text| text.as_str().map(str::to_owned))
            .collect()
    };
    let mut rights = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let names = texts(&rule["resourceNames"]).into_iter().map(Some);
        let mut names: Vec<_> = names.collect();
        if names.is_empty() {
            names.push(None);
        }
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    rights.extend(names.iter().map(|name| Right {
                        verb: verb.clone(),
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                    }));
                }
            }
        }
    }
    rights
}

/// Returns the permission that a call has used; `None` for discovery, which any authenticated user may do.
fn used(call: &Call) -> Vec<Right> {
    let (path, query) = call.path.split_once('?').unwrap_or((&call.path, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return Vec::new(),
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let Some((plural, rest)) = rest.split_first() else {
        return Vec::new();
    };
    let selected = query
        .split('&')
        .find_map(|part| part.strip_prefix("fieldSelector=metadata.name%3D"));
    let name = rest.first().copied().or(selected).map(str::to_owned);
    let resource = match rest {
        [_, sub] => format!("{plural}/{sub}"),
        _ => (*plural).to_owned(),
    };
    let watches = query
        .split('&')
        .any(|part| matches!(part, "watch=true" | "watch=1"));
    let verbs: &[&str] = match call.method {
        Method::GET if watches => &["watch"],
        Method::GET if rest.is_empty() => &["list"],
        Method::GET => &["get"],
        Method::POST => &["create"],
        Method::PUT => &["update"],
        // An object that server-side apply creates also requires the verb create.
        Method::PATCH if call.answer == Some(StatusCode::CREATED) => &["create", "patch"],
        Method::PATCH => &["patch"],
        Method::DELETE if rest.is_empty() => &["deletecollection"],
        Method::DELETE => &["delete"],
        _ => &["unknown"],
    };
    let right = |verb: &str| Right {
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.clone(),
        name: name.clone(),
    };
    verbs.iter().map(|verb| right(verb)).collect()
}

/// The permission that the admission plugin OwnerReferencesPermissionEnforcement requires to create an object that blocks the deletion of
/// its owner, a TrainJob. No call shows it.
fn holds_up_deletion() -> Right {
    Right {
        verb: "update".to_owned(),
        group: "trainer.kubeflow.org".to_owned(),
        resource: "trainjobs/finalizers".to_owned(),
        name: None,
    }
}

/// A cluster, a plugin that looks objects up, and one that requests keys.
pub(crate) struct Recorded {
    disturbed: Disturbed,
    plugins: PathBuf,
}

impl Shared for Recorded {
    fn start() -> Result<Self> {
        let plugins = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorded");
        std::fs::create_dir_all(&plugins)?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/flavors");
        build_plugin(&source, &plugins.join("flavors.wasm"), &[])?;
        build_plugin(&keys::source(), &plugins.join("keys.wasm"), &[])?;
        Ok(Self {
            disturbed: Disturbed::start()?,
            plugins,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.disturbed.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.disturbed.still_runs()
    }
}

/// Makes the controller use all its permissions: each case, a JobSet that a user deletes while it runs, and a repeated Event.
async fn all_that_happens(shared: &Recorded) -> Result<()> {
    let cluster = &shared.disturbed.cluster;
    let scenario = Scenario::new(cluster, Duration::from_secs(4)).await?;
    for case in Case::ALL {
        case.prepare(&scenario).await?;
    }
    for case in Case::ALL {
        case.happen(&scenario).await?;
    }
    scenario.settled(&Case::ALL).await?;
    scenario.recreate_job_set(Case::Created.name()).await?;
    is_placed_otherwise(&scenario).await?;
    let missing = json!({"runtimeRef": {"name": "missing"}});
    scenario.create("waits", &missing).await?;
    scenario.event("waits", "missing").await?;
    are_refused(&scenario).await?;
    let events = scenario.api(&scenario.events);
    let repeated = |all: &[Value]| {
        let about = |event: &&Value| event["involvedObject"]["name"] == "waits";
        all.iter().filter(about).any(|event| {
            event["count"].as_i64() > Some(1) || event.get("series").is_some_and(Value::is_object)
        })
    };
    events.until_all("the Event is repeated", repeated).await?;
    Ok(())
}

/// Creates a TrainJob whose pods are refused, because their ServiceAccount does not exist.
async fn are_refused(scenario: &Scenario<'_>) -> Result<()> {
    let pods = json!({"spec": {"serviceAccountName": "missing"}});
    let job = json!({"name": "node", "template": {"spec": {"template": pods}}});
    let patch = json!({
        "manager": "example.com/team",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    });
    let spec = json!({"runtimeRef": {"name": "torch"}, "runtimePatches": [patch]});
    scenario.create("refused", &spec).await?;
    scenario.event("refused", "FailedCreate").await.map(drop)
}

/// Runs a TrainJob, suspends it, and resumes it without a label of its pods, which its Job would keep.
async fn is_placed_otherwise(scenario: &Scenario<'_>) -> Result<()> {
    let pods = json!({"metadata": {"labels": {"example.com/admission": "first"}}});
    let job = json!({"name": "node", "template": {"spec": {"template": pods}}});
    let patch = json!({
        "manager": "example.com/queue",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    });
    let spec = json!({"runtimeRef": {"name": "torch"}, "runtimePatches": [patch]});
    scenario.create("moves", &spec).await?;
    scenario.until_active("moves", 1).await?;
    let (jobs, job_sets) = (
        scenario.api(&scenario.jobs),
        scenario.api(&scenario.job_sets),
    );
    scenario.patch("moves", &json!({"suspend": true})).await?;
    jobs.until("moves", "it is suspended", common::is_suspended)
        .await?;
    let resumed = json!({"suspend": false, "runtimePatches": []});
    scenario.patch("moves", &resumed).await?;
    let goes_on = |job_set: &Value| job_set["spec"]["suspend"] == false;
    job_sets.until("moves", "it goes on", goes_on).await?;
    Ok(())
}

/// Creates suspended TrainJobs, each with another lookup of its plugin.
async fn all_that_is_looked_up(shared: &Recorded, namespace: &Namespace<'_>) -> Result<()> {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "recorded"}, "value": 1,
        "description": "first",
    });
    let classes = Resource::cluster_wide("/apis/scheduling.k8s.io/v1", "priorityclasses");
    let classes = shared.plane().api(&classes, "");
    classes.create(&class, &Write::strict()).await?.accepted()?;
    for (name, label, value) in [
        ("by-name", "flavor", "default"),
        ("by-its-label", "priority", "recorded"),
        ("all", "priorities", "all"),
        ("maps", "config-maps", "all"),
        ("served", "zone", "main"),
    ] {
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "labels": {format!("example.com/{label}"): value}},
            "spec": {"suspend": true, "runtimeRef": {"name": "flavored"}},
        });
        let jobs = namespace.api(&namespace.jobs);
        jobs.create(&job, &Write::strict()).await?.accepted()?;
    }
    let plane = shared.plane();
    for (group, kind, plural, name) in [
        ("example.com", "Flavor", "flavors", "default"),
        ("late.example.com", "Zone", "zones", "main"),
    ] {
        let definition = flavors::definition(group, kind, plural);
        let resource = install(plane, &definition, Install::ServerSide).await?;
        let object = json!({
            "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name},
            "spec": {"gpu": "large", "name": "north"},
        });
        let api = namespace.api(&resource);
        api.create(&object, &Write::strict()).await?.accepted()?;
    }
    for name in ["by-name", "by-its-label", "all", "maps", "served"] {
        namespace.job_set(name).await?;
    }
    Ok(())
}

/// Waits until every permission of the roles was used, and compares them with the calls.
async fn calls_are_what_is_allowed(shared: &Recorded, roles: &[Value]) -> Result<()> {
    let allowed: Vec<Right> = roles.iter().flat_map(allowed).collect();
    let is_unused = |calls: &[Call]| -> BTreeSet<Right> {
        let mut used: BTreeSet<Right> = calls.iter().flat_map(used).collect();
        if used
            .iter()
            .any(|right| right.verb == "create" && right.resource == "jobsets")
        {
            used.insert(holds_up_deletion());
        }
        let unused = allowed
            .iter()
            .filter(|right| !used.iter().any(|used| right.covers(used)));
        unused.cloned().collect()
    };
    let proxy = &shared.disturbed.proxy;
    let mut unused = BTreeSet::new();
    let all = eventually("every right is used", async || {
        unused = is_unused(&proxy.calls().await);
        Ok(unused.is_empty().then_some(()))
    })
    .await;
    ensure!(all.is_ok(), "allowed, and never used: {unused:#?}");
    let calls = proxy.calls().await;
    for call in &calls {
        ensure!(call.answer != Some(StatusCode::FORBIDDEN), "{call:?}");
        for used in used(call) {
            let is_allowed = allowed.iter().any(|right| right.covers(&used));
            ensure!(is_allowed, "used, and not allowed: {used:?} by {call:?}");
        }
    }
    Ok(())
}

/// Creates a TrainJob whose Secret is created, and one whose Secret already exists, whose owner is read.
async fn keys_are_generated(namespace: &Namespace<'_>) -> Result<()> {
    let foreign = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taken-keys"}});
    let secrets = keys::secrets();
    let secrets = namespace.api(&secrets);
    secrets
        .create(&foreign, &Write::strict())
        .await?
        .accepted()?;
    for name in ["keyed", "taken"] {
        let spec = json!({"suspend": true, "runtimeRef": {"name": "keyed"}});
        namespace.create(name, &spec).await?;
    }
    namespace.job_set("keyed").await?;
    let reported = "Secret `taken-keys` does not belong to this TrainJob";
    namespace.event("taken", reported).await?;
    Ok(())
}

/// Writes the policy file for both plugins.
fn policy() -> Result<PathBuf> {
    let all = std::fs::read_to_string(flavors::policy_file())?;
    let keys = json!({"name": "keys", "grants": ["objects[v1/Secret/-keys]"]});
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorded.yaml");
    std::fs::write(&file, format!("{all}- {keys}\n"))?;
    Ok(file)
}

async fn roles_match_calls_with_plugins_that_use_lookups_and_keys(shared: &Recorded) -> Result<()> {
    let _turn = shared.disturbed.turn.lock().await;
    let arguments: [OsString; 4] = [
        "--plugin-dir".into(),
        shared.plugins.clone().into(),
        "--policy".into(),
        policy()?.into(),
    ];
    let roles = roles::printed(&arguments)?;
    roles::grant(shared.plane(), &roles).await?;
    let runtimes = [("flavored", "flavors"), ("keyed", "keys")].map(|(name, plugin)| {
        let mut runtime = common::runtime();
        runtime["metadata"]["name"] = json!(name);
        runtime["spec"]["plugins"] = json!([{"name": plugin}]);
        runtime
    });
    common::create_runtimes(shared.plane(), &runtimes).await?;

    shared.disturbed.proxy.forget().await;
    let controller = shared.disturbed.leading_controller_with(&arguments).await?;
    all_that_happens(shared).await?;
    let namespace = Namespace::new(&shared.disturbed.cluster).await?;
    all_that_is_looked_up(shared, &namespace).await?;
    keys_are_generated(&namespace).await?;
    calls_are_what_is_allowed(shared, &roles).await?;
    controller.process().still_runs()
}

pub(crate) fn tests() -> Vec<Test<Recorded>> {
    tests![roles_match_calls_with_plugins_that_use_lookups_and_keys]
}
