//! Webhooks answer about the TrainJob of each case what `trainyard render` and `trainyard validate` print: the same errors refuse it, in the same
//! words. Errors that its author cannot correct are warnings.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_api::{Inputs, yaml};
use trainyard_model::{names::without_digests, plugin::Plugin, plugin_info::Settings};
use trainyard_plugin_folders::{cases, root};
use trainyard_policies::BUILT_INS;
use trainyard_sdk::native::NativePlugin;

use crate::stub::{
    cluster::Cluster,
    conditions::Condition,
    webhooks::{Webhooks, patched},
};

const MUTATE: &str = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob";
const VALIDATE: &str = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";

/// A rule of the reference's webhooks.
#[derive(Deserialize)]
struct Rule {
    rule: String,
    refused: String,
    accepted: String,
}

fn rules() -> Vec<Rule> {
    let text = include_str!("../../../tests/admission/rules.yaml");
    let document = yaml::read(text).pop().unwrap().unwrap();
    serde_json::from_value(document.value).unwrap()
}

/// The built-in plugins, native instead of sandboxed.
fn plugins() -> Vec<Arc<dyn Plugin>> {
    let native = BUILT_INS.iter().map(|(_, parts)| {
        let plugin = NativePlugin::new(parts, Settings::built_in()).unwrap();
        Arc::new(plugin) as Arc<dyn Plugin>
    });
    native.collect()
}

/// The objects of a case.
fn objects(case: &Path) -> Vec<Value> {
    let inputs = Inputs::read(&[case.join("input.yaml")], std::io::empty());
    let values = inputs.objects.into_iter().map(|object| object.value);
    values.collect()
}

/// The advice about files, which admission does not give.
const OF_FILES: [&str; 2] = [
    "; use `--plugin FILE.wasm` to load one that is not built in",
    "; pass a file that contains it with -f",
];

/// Returns the sentences of the errors that a case expects of a TrainJob.
fn expected(case: &Path, name: &str) -> Vec<String> {
    let text = fs::read_to_string(case.join("expected.txt")).unwrap_or_default();
    let start = format!(" TrainJob {name}: ");
    let errors = text.lines().filter(|line| line.starts_with("error: "));
    let errors = errors.filter_map(|line| line.split_once(&start));
    let sentence = |(_, sentence): (&str, &str)| {
        let known = OF_FILES.iter().find_map(|of| sentence.strip_suffix(of));
        match sentence.split_once(" is not in the input") {
            // The runtime, in the words of admission.
            Some((_, _)) => "there is no ".to_owned(),
            None => known.unwrap_or(sentence).to_owned(),
        }
    };
    errors.map(sentence).collect()
}

/// Returns a message without what differs between native and sandboxed plugins.
fn comparable(message: &str) -> String {
    without_digests(message).replace("(native)", "(sha256:...)")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_is_answered_as_it_is_rendered() {
    let mut wrong = Vec::new();
    let (mut refused, mut accepted) = (BTreeSet::new(), BTreeSet::new());
    let mut warned = BTreeSet::new();
    let mutates = Condition::deployed(
        "defaulter.trainjob.trainer.kubeflow.org",
        "has-patches-or-old-forms",
    );
    let mut called = BTreeSet::new();
    for (case_name, case) in cases(&root()).unwrap() {
        let objects = objects(&case);
        let kind = |object: &Value| object["kind"].as_str().unwrap_or_default().to_owned();
        let is_job = |object: &&Value| kind(object) == "TrainJob";
        // An API server has no two objects of one name.
        let is_of_files = case_name == "error-same-name";
        if is_of_files || objects.iter().any(|object| !Cluster::stores(&kind(object))) {
            continue;
        }
        let cluster = Cluster::new();
        for object in objects.iter().filter(|object| !is_job(object)) {
            let mut object = object.clone();
            if kind(&object) == "ClusterTrainingRuntime" {
                object["metadata"]["namespace"].take();
            }
            cluster.put(object);
        }
        let webhooks = Webhooks::start(&cluster, plugins()).await;
        for job in objects.iter().filter(is_job) {
            let mut job = job.clone();
            if job["metadata"]["namespace"].is_null() {
                job["metadata"]["namespace"] = "default".into();
            }
            let text = |field: &str| {
                job["metadata"][field]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            let name = format!("{}/{}", text("namespace"), text("name"));
            let expected = expected(&case, &name);
            let mutated = webhooks.review(MUTATE, &job, None).await;
            assert_eq!(mutated["allowed"], true, "{case_name}");
            let changed = patched(&job, &mutated);
            let is_called = mutates.is_met_by(&job);
            assert!(
                changed == job || is_called,
                "{case_name}: the API server does not ask"
            );
            called.insert(is_called);
            let job = changed;
            let response = webhooks.review(VALIDATE, &job, None).await;
            let message = comparable(response["status"]["message"].as_str().unwrap_or_default());
            let warnings = comparable(&response["warnings"].to_string());
            if response["allowed"] == true {
                accepted.insert(case_name.clone());
            } else {
                refused.insert(case_name.clone());
                assert_eq!(response["status"]["code"], 403);
                assert_eq!(response["status"]["reason"], "Forbidden");
            }
            // What the author cannot correct is a warning.
            let is_said = |error: &String| {
                message.contains(error)
                    || warnings.contains(json!(error).to_string().trim_matches('"'))
            };
            let is_complete = expected.iter().all(is_said);
            if !is_complete || expected.is_empty() && response["allowed"] == false {
                wrong.push(format!(
                    "{case_name}: {name}: {message}\n   warnings {warnings}\n   expected {expected:?}"
                ));
            }
            let others = expected.iter().filter(|error| !message.contains(*error));
            warned.extend(others.cloned());
        }
        webhooks.abandon();
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(called.len(), 2, "{called:?}");
    // Plugins that are not loaded, objects that do not exist yet, and nothing else.
    let is_later =
        |error: &&String| error.contains(" needs ") || error.contains("no loaded plugin");
    let denied: Vec<_> = warned.iter().filter(|error| !is_later(error)).collect();
    assert!(denied.is_empty(), "{denied:#?}");
    for Rule {
        rule,
        refused: no,
        accepted: yes,
    } in rules()
    {
        assert!(refused.contains(&no), "{rule}: {no} is not refused");
        assert!(accepted.contains(&yes), "{rule}: {yes} is not accepted");
    }
}
