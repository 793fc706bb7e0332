//! `trainyard diff` finds the rows that the comparison with the reference lists, in a dump of a cluster in which the reference has made its
//! objects, as an API server stores them. The folders in tests/diff have what it prints.

use std::{collections::BTreeMap, collections::BTreeSet, fs, slice};

use serde_json::{Value, json};
use trainyard_api::{list, yaml};
use trainyard_divergences::{
    difference::{Answer, Difference, differences},
    listing::all,
    seen::Documents,
};

use crate::{
    common::{answers, case, command, expect_file, root},
    differences_from_the_reference_are_listed::{CASES, inputs, trainyard},
};

/// Returns an object in another namespace.
fn moved(object: &Value, to: &str) -> Value {
    let from = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or("default");
    let text = object
        .to_string()
        .replace(&format!(".{from}.svc"), &format!(".{to}.svc"));
    let mut object: Value = serde_json::from_str(&text).unwrap();
    object["metadata"]["namespace"] = to.into();
    object
}

/// Returns an object that the TrainJob owns, as an API server and JobSet's webhook complete it.
fn stored(mut object: Value, job: &str) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": job, "uid": format!("of {job}"),
        "controller": true,
    }]);
    object["metadata"]["resourceVersion"] = "7".into();
    if object["kind"] == "JobSet" {
        object["status"] = json!({"restarts": 0});
        let spec = object["spec"].as_object_mut().unwrap();
        spec.entry("suspend").or_insert(json!(false));
        spec.entry("successPolicy")
            .or_insert(json!({"operator": "All"}));
        spec.entry("startupPolicy")
            .or_insert(json!({"startupPolicyOrder": "AnyOrder"}));
        let network = spec.entry("network").or_insert(json!({}));
        for field in ["enableDNSHostnames", "publishNotReadyAddresses"] {
            network
                .as_object_mut()
                .unwrap()
                .entry(field)
                .or_insert(json!(true));
        }
        for job in spec["replicatedJobs"].as_array_mut().unwrap() {
            let job = job.as_object_mut().unwrap();
            job.entry("replicas").or_insert(json!(1));
            job.entry("groupName").or_insert(json!("default"));
            let spec = job["template"]["spec"].as_object_mut().unwrap();
            spec.entry("completionMode").or_insert(json!("Indexed"));
            let pod = spec["template"]["spec"].as_object_mut().unwrap();
            pod.entry("restartPolicy").or_insert(json!("OnFailure"));
        }
    }
    object
}

/// A case whose TrainJob both sides render.
struct Both {
    objects: Vec<Value>,
    /// The rows of the fields that differ.
    rows: BTreeSet<String>,
}

/// Returns the only object of these kinds in the documents.
fn only<'d>(documents: &'d [Value], kinds: &[&str]) -> Option<&'d Value> {
    let is = |document: &&Value| kinds.iter().any(|kind| document["kind"] == *kind);
    let mut all = documents.iter().filter(is);
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// Returns what a cluster has of a case in a namespace of its own; `None` if it has several TrainJobs or one side refuses it.
fn both(name: &str, input: &str, reference: &Answer) -> Option<Both> {
    let ours = trainyard::of_case(&case(name));
    if !ours.refused.is_empty() || !reference.refused.is_empty() || reference.objects.is_empty() {
        return None;
    }
    let documents: Vec<_> = yaml::read(input)
        .into_iter()
        .map(|document| document.unwrap().value)
        .collect();
    let documents: Vec<_> = documents
        .into_iter()
        .flat_map(|document| list::unpack(document).unwrap_or_else(|one| vec![one]))
        .collect();
    let job = only(&documents, &["TrainJob"])?;
    let runtime = only(&documents, &["TrainingRuntime", "ClusterTrainingRuntime"])?;
    let mut objects = Vec::new();
    for document in &documents {
        match document["kind"].as_str().unwrap() {
            "TrainingRuntime" | "ClusterTrainingRuntime" => {}
            "TrainJob" => {
                let mut job = moved(document, name);
                job["metadata"]["uid"] =
                    format!("of {}", job["metadata"]["name"].as_str().unwrap()).into();
                objects.push(job);
            }
            "RuntimeClass" | "PriorityClass" => objects.push(document.clone()),
            _ => objects.push(moved(document, name)),
        }
    }
    let job_name = job["metadata"]["name"].as_str().unwrap();
    let mut runtime = runtime.clone();
    if runtime["kind"] == "TrainingRuntime" {
        runtime["metadata"]["namespace"] = name.into();
    }
    let snapshot = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("{job_name}-runtime-snapshot"), "namespace": name},
        "data": {"runtime": yaml::write(&runtime)},
    });
    objects.push(stored(snapshot, job_name));
    objects.extend(
        reference
            .objects
            .iter()
            .map(|object| stored(moved(object, name), job_name)),
    );
    let seen = Documents::read(input);
    let fields = differences(&ours, slice::from_ref(reference));
    let is_compared = |difference: &Difference| matches!(difference, Difference::Field { object, .. } if !object.starts_with("Secret "));
    let rows = fields
        .iter()
        .filter(|difference| is_compared(difference))
        .flat_map(|difference| {
            let seen = seen.see(difference, &ours.objects);
            let rows = all().filter(|row| row.lists(&seen));
            rows.map(|row| row.id.to_owned()).collect::<Vec<_>>()
        });
    Some(Both {
        objects,
        rows: rows.collect(),
    })
}

#[test]
fn rows_are_those_of_the_comparison() {
    let inputs = inputs();
    let answers = answers::recorded(CASES, &inputs);
    let cases: BTreeMap<_, _> = inputs
        .iter()
        .filter_map(|(name, input)| Some((name, both(name, input, answers[name].first()?)?)))
        .collect();
    assert!(cases.len() > 150, "only {} cases", cases.len());
    let folder = tempfile::tempdir().unwrap();
    let objects = cases.values().flat_map(|case| case.objects.iter().cloned());
    let dump = list::list(objects.collect()).to_string();
    fs::write(folder.path().join("dump.json"), dump).unwrap();
    let output = command(&["diff", "-f", "dump.json", "-o", "json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"));
    let mut wrong = Vec::new();
    for (name, expected) in &cases {
        let objects = report["objects"].as_array().unwrap();
        let job = objects
            .iter()
            .find(|object| object["namespace"] == name.as_str());
        let job = job.unwrap_or_else(|| panic!("{name} is not in the report: {error}"));
        assert_eq!(job["comparedWith"], "jobSet", "{name}: {job:#}");
        let findings = job["findings"].as_array().unwrap();
        let differs =
            |finding: &&Value| finding["effect"] == "differs" || finding["effect"] == "fails";
        let rows: BTreeSet<String> = findings
            .iter()
            .filter(differs)
            .flat_map(|finding| finding["rows"].as_array().unwrap())
            .map(|row| row.as_str().unwrap().to_owned())
            .collect();
        let unlisted: Vec<_> = findings
            .iter()
            .filter(|finding| differs(finding) && finding["rows"].as_array().unwrap().is_empty())
            .collect();
        if rows != expected.rows || !unlisted.is_empty() {
            wrong.push(format!(
                "{name}: {rows:?} instead of {:?}, unlisted: {unlisted:#?}",
                expected.rows
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// Each folder has the input, and what is printed, with the exit code.
#[test]
fn every_case_prints_what_its_folder_has() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("tests/diff")).unwrap() {
        let folder = entry.unwrap().path();
        let json = folder.join("expected.json").exists();
        let mut args = vec!["diff", "-f", "input.yaml"];
        args.extend(json.then_some("--output=json"));
        let name = folder.file_name().unwrap().to_str().unwrap();
        args.extend(name.starts_with("back-").then_some("--back"));
        let output = command(&args).current_dir(&folder).output().unwrap();
        let code = output.status.code().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let text = format!(
            "{stderr}{}exit code {code}\n",
            String::from_utf8(output.stdout).unwrap()
        );
        let file = if json {
            "expected.json"
        } else {
            "expected.txt"
        };
        expect_file(
            &folder.join(file),
            &trainyard_model::names::without_digests(&text),
        );
        count += 1;
    }
    assert!(count > 5, "{count} cases");
}
