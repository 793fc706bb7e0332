//! The reference's policies run in the designed order, for one machine learning policy with or without one gang policy, whatever the load
//! order, without conflicts or cycles. A plugin that conflicts with one of them has ways to resolve it.
//!
//! The manifests are those of plugins/.

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};

use proptest::prelude::*;
use serde_json::{Value, json};
use trainyard_model::{
    plan::{EdgeReason, Generation},
    plugin_info::{PluginInfo, Settings},
};

use crate::common::{
    manifest,
    plans::{errors, of, planned},
    plugin, plugin_under, with,
};

/// The files of manifests in a folder, by the names of their plugins.
fn manifests(folder: &str, of: fn(PathBuf) -> PathBuf) -> BTreeSet<(String, PathBuf)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let named = files.map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, of(path))
    });
    named.filter(|(_, file)| file.is_file()).collect()
}

fn real() -> BTreeSet<(String, PathBuf)> {
    manifests("plugins", |folder| folder.join("manifest.json"))
}

/// The parts of what the SDK's macro adds that affect the order.
fn whole(manifest: &str) -> Value {
    let parts =
        json!({"version": "0.1.0", "contract": "1.0.0", "phases": ["transform", "build", "check"]});
    with(serde_json::from_str(manifest).unwrap(), parts)
}

fn policies() -> Vec<Arc<PluginInfo>> {
    real()
        .into_iter()
        .map(|(_, file)| plugin(&whole(&fs::read_to_string(file).unwrap())))
        .collect()
}

fn policy(name: &str) -> Arc<PluginInfo> {
    let mut all = policies().into_iter();
    all.find(|plugin| &*plugin.id.name == name).unwrap()
}

#[test]
fn every_policy_has_the_name_of_its_folder() {
    let names: Vec<_> = real().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() > 8, "{names:?}");
    let of_plugins = policies();
    let of_plugins: Vec<_> = of_plugins.iter().map(|plugin| &*plugin.id.name).collect();
    assert_eq!(names, of_plugins);
}

#[test]
fn test_plugins_have_claims_that_can_match() {
    let all = manifests("tests/plugins", |folder| folder.join("manifest.json"));
    assert!(all.len() > 5, "{all:?}");
    for (_, file) in all {
        plugin(&whole(&fs::read_to_string(file).unwrap()));
    }
}

/// One machine learning policy with one gang policy or none, and what is beside both; and their order.
fn combinations() -> Vec<Vec<&'static str>> {
    let gangs = [None, Some("coscheduling"), Some("volcano")];
    let mut all = Vec::new();
    for ml in ["", "torch", "jax", "xgboost", "mpi", "flux"] {
        for gang in gangs {
            let first = gang.filter(|gang| *gang == "coscheduling");
            let last = gang.filter(|gang| *gang == "volcano");
            let (before, after) = match ml {
                "" => (None, None),
                "xgboost" => (None, Some(ml)),
                _ => (Some(ml), None),
            };
            let order = [
                first,
                Some("dra"),
                before,
                Some("train-job-status"),
                last,
                after,
            ];
            all.push(order.into_iter().flatten().collect());
        }
    }
    all
}

#[test]
fn every_combination_has_the_designed_order() {
    let generation = Generation::new(policies()).unwrap();
    let config = json!({"sshAuthMountPath": "/root/.ssh"});
    let combinations = combinations();
    assert_eq!(combinations.len(), 18);
    for order in combinations {
        assert_eq!(planned(&generation, &order, &config).unwrap(), order);
        // And without the plugins that are always active.
        let some: Vec<_> = order.iter().filter(|name| **name != "dra").collect();
        assert_eq!(
            planned(&generation, &some, &config).unwrap().len(),
            some.len()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn load_order_changes_nothing(shuffled in Just(policies()).prop_shuffle()) {
        let (sorted, generation) = (Generation::new(policies()).unwrap(), Generation::new(shuffled).unwrap());
        prop_assert_eq!(generation.edges(), sorted.edges());
        prop_assert_eq!(generation.overview(), sorted.overview());
        prop_assert_eq!(generation.possible_clashes(), sorted.possible_clashes());
        let config = json!({"sshAuthMountPath": "/root/.ssh"});
        for order in combinations() {
            prop_assert_eq!(planned(&generation, &order, &config).unwrap(), order);
        }
    }
}

/// A plugin that is switched on beside any policy.
fn tuner(claim: &str, more: Value) -> Value {
    with(manifest("tuner", &[("writes", claim)]), more)
}

const PET: &str = "pod-sets[*].containers[*].env[PET_*]";

#[test]
fn conflict_names_both_claims_and_the_shared_path() {
    let other = "pod-sets[@trainer].containers[node].env[PET_*]";
    let [error] = &errors([policy("torch"), plugin(&tuner(other, json!({})))])[..] else {
        panic!()
    };
    let both =
        format!("plugins `torch` and `tuner` both write `{other}` (`torch` claims `{PET}`); ");
    assert!(error.starts_with(&both), "{error}");
    // Two vendors' plugins beside any policy, too.
    let two = [
        of("tuner", &[("writes", PET)]),
        of("profiler", &[("writes", PET)]),
    ];
    assert!(errors(two)[0].contains(&format!("both write `{PET}`")));
}

#[test]
fn each_suggested_resolution_of_a_conflict_works() {
    let names = ["torch", "tuner"];
    let accepted = |tuner: Arc<PluginInfo>| Generation::new([policy("torch"), tuner]).unwrap();
    let under = |settings: Settings| plugin_under(&tuner(PET, json!({})), settings);
    let of_operator = |list: fn(&mut Settings) -> &mut Vec<String>| {
        let mut settings = Settings::built_in();
        list(&mut settings).push("torch".to_owned());
        under(settings)
    };
    let none = json!({});
    for (tuner, order) in [
        (plugin(&tuner(PET, json!({"after": ["torch"]}))), names),
        (
            plugin(&tuner(PET, json!({"before": ["torch"]}))),
            ["tuner", "torch"],
        ),
        (of_operator(|settings| &mut settings.after), names),
        (
            of_operator(|settings| &mut settings.before),
            ["tuner", "torch"],
        ),
        // What is apart needs no order.
        (
            plugin(&tuner("pod-sets[*].containers[*].env[TUNER_*]", json!({}))),
            names,
        ),
        (
            plugin(&tuner("pod-sets[*].containers[*].env[PETS_*]", json!({}))),
            names,
        ),
    ] {
        assert_eq!(planned(&accepted(tuner), &names, &none).unwrap(), order);
    }
    let apart = accepted(of_operator(|settings| &mut settings.excludes));
    for alone in names {
        assert_eq!(planned(&apart, &[alone], &none).unwrap(), [alone]);
    }
    let refused = planned(&apart, &names, &none).unwrap_err();
    assert!(
        refused[0]
            .to_string()
            .contains("`torch` and `tuner` are both active")
    );
    // One that is switched on by another member of the union never meets it.
    let own = plugin(&tuner(PET, json!({"activeWhen": "mlPolicy.plugin"})));
    assert_eq!(
        planned(&accepted(own), &["tuner"], &none).unwrap(),
        ["tuner"]
    );
}

#[test]
fn conflict_caused_by_configuration_refuses_only_that_train_job() {
    let by_config = "pod-sets[*].containers[*].env[$config./variable]";
    let tuner = plugin(&tuner(by_config, json!({})));
    let generation = Generation::new([policy("torch"), tuner]).unwrap();
    let names = ["torch", "tuner"];
    for fine in [
        json!({"variable": "TUNER"}),
        json!({"variable": "PET"}),
        json!({}),
    ] {
        assert_eq!(planned(&generation, &names, &fine).unwrap(), names);
    }
    let meets = json!({"variable": "PET_NNODES"});
    let refused = planned(&generation, &names, &meets).unwrap_err();
    let [error] = &refused[..] else { panic!() };
    let error = error.to_string();
    for part in [
        PET,
        by_config,
        "both write `pod-sets[*].containers[*].env[PET_NNODES]`",
    ] {
        assert!(error.contains(part), "{error}");
    }
    // Where only one of the two is active, the same configuration is fine.
    assert_eq!(planned(&generation, &["tuner"], &meets).unwrap(), ["tuner"]);
    // Torch writes env vars with a prefix, and one without it.
    assert_eq!(generation.possible_clashes().len(), 2);
}

#[test]
fn overview_shows_union_members_side_by_side() {
    let generation = Generation::new(policies()).unwrap();
    let lines: Vec<Vec<String>> = generation
        .overview()
        .into_iter()
        .map(|line| {
            line.into_iter()
                .map(|slot| slot.names.join(" | "))
                .collect()
        })
        .collect();
    assert_eq!(
        lines,
        [
            vec![
                "coscheduling",
                "dra",
                "flux | jax | mpi | torch",
                "train-job-status",
                "volcano"
            ],
            vec![
                "coscheduling",
                "dra",
                "train-job-status",
                "volcano",
                "xgboost"
            ],
        ]
    );
    let member = |name: &str, verb, path| {
        let manifest = manifest(name, &[(verb, path)]);
        let when = json!({"activeWhen": format!("mlPolicy.{name}")});
        plugin(&with(manifest, when))
    };
    let around = Generation::new([
        member("jax", "writes", "labels[a]"),
        of("beside", &[("reads", "labels[a]"), ("writes", "labels[b]")]),
        member("torch", "reads", "labels[b]"),
    ]);
    let orders = around.unwrap().overview().into_iter();
    let orders = orders.map(|line| line.into_iter().flat_map(|slot| slot.names).collect());
    assert_eq!(
        orders.collect::<Vec<Vec<_>>>(),
        [
            vec!["jax".into(), "beside".into()],
            vec!["beside".into(), Arc::<str>::from("torch")],
        ]
    );
    let none = Generation::new([of("b", &[]), of("a", &[])])
        .unwrap()
        .overview();
    assert_eq!(none.len(), 1);
    assert_eq!(
        none[0]
            .iter()
            .map(|slot| slot.names.join(""))
            .collect::<String>(),
        "ab"
    );
}

#[test]
fn only_the_ssh_path_of_mpi_is_a_possible_clash() {
    let generation = Generation::new(policies()).unwrap();
    let clashes = generation.possible_clashes();
    assert!(
        clashes
            .iter()
            .all(|clash| &*clash.first == "mpi" && &*clash.second == "train-job-status"),
        "{clashes:?}"
    );
    assert!(!clashes.is_empty());
    let config = json!({"sshAuthMountPath": "/var/run/secrets/kubeflow/trainer"});
    let refused = planned(&generation, &["mpi", "train-job-status"], &config).unwrap_err();
    assert!(
        refused[0]
            .to_string()
            .contains("`mpi` and `train-job-status` both write"),
        "{refused:?}"
    );
}

#[test]
fn edges_have_reasons() {
    let generation = Generation::new(policies()).unwrap();
    let because = |first: &str, then: &str| {
        let edge = generation
            .edges()
            .iter()
            .find(|edge| &*edge.first == first && &*edge.then == then);
        edge.map(|edge| edge.because.clone())
    };
    let Some(EdgeReason::Path { path, .. }) = because("dra", "torch") else {
        panic!()
    };
    assert_eq!(path, "pod-sets[@trainer].devices[*]");
    assert_eq!(because("torch", "dra"), None);
    assert_eq!(because("torch", "flux"), None, "they never meet");
}
