//! `render` prints the same bytes in every run, in both formats, from files, folders and standard input, and for every order of the documents
//! of an input. `cases_render_as_expected` compares each case with what earlier runs printed on other machines.

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    path::Path,
};

use proptest::test_runner::{Config, RngSeed};

use crate::common::{case, cases, root, stdout, trainyard, trainyard_with_input};

/// Returns the standard output of a run in a case's folder.
fn run(args: &[&str], name: &str) -> String {
    stdout(&trainyard(&case(name), args))
}

#[test]
fn repeated_runs_print_the_same() {
    let first = run(&["render", "-f", "input.yaml"], "torch-two-jobs");
    for _ in 0..5 {
        assert_eq!(
            run(&["render", "-f", "input.yaml"], "torch-two-jobs"),
            first
        );
    }
}

/// Every eighth case, others in each run, is rendered with its documents in another order. TrainJobs are printed in their order, so only
/// cases with one of them are the same.
#[test]
fn order_of_documents_does_not_matter() {
    let seed = match Config::default().rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(0),
    };
    println!("PROPTEST_RNG_SEED={seed} repeats this run");
    let mut tried = 0;
    for (number, (name, folder)) in (seed % 8..).zip(cases()) {
        let input = fs::read_to_string(folder.join("input.yaml")).unwrap();
        let mut documents: Vec<_> = input.split("\n---\n").collect();
        let is_one = input.matches("kind: TrainJob").count() == 1;
        let Ok(expected) = fs::read_to_string(folder.join("expected.yaml")) else {
            continue;
        };
        if number % 8 != 0 || !is_one || documents.len() < 2 {
            continue;
        }
        let most = documents.len() as u64 - 1;
        documents.rotate_left((seed % most) as usize + 1);
        let output = trainyard_with_input(&documents.join("\n---\n"), &["render", "-f", "-"]);
        assert_eq!(stdout(&output), expected, "{name}");
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn standard_input_renders_as_a_file() {
    let input = fs::read_to_string(case("torch-two-jobs").join("input.yaml")).unwrap();
    let output = trainyard_with_input(&input, &["render", "-f", "-"]);
    assert_eq!(
        stdout(&output),
        run(&["render", "-f", "input.yaml"], "torch-two-jobs")
    );
}

#[test]
fn json_output_is_one_list_of_the_same_objects() {
    let json = run(
        &["render", "-f", "input.yaml", "-o", "json"],
        "torch-two-jobs",
    );
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (list["apiVersion"].as_str(), list["kind"].as_str()),
        (Some("v1"), Some("List"))
    );
    let yaml = run(&["render", "-f", "input.yaml"], "torch-two-jobs");
    let documents: Vec<_> = trainyard_api::yaml::read(&yaml)
        .into_iter()
        .map(|d| d.unwrap().value)
        .collect();
    assert_eq!(list["items"].as_array().unwrap(), &documents);
}

#[test]
fn printed_objects_round_trip() {
    let yaml = run(&["render", "-f", "input.yaml"], "nemo-tcpxo");
    let inputs = trainyard_api::Inputs::read_text("out", &yaml);
    assert!(inputs.errors.is_empty());
    assert_eq!(inputs.objects.len(), 1);
}

#[test]
fn printed_crds_match_the_deployment() {
    let deployed = root().join("charts/trainyard/files/crds");
    let files = [
        "clustertrainingruntimes",
        "trainingruntimes",
        "trainjobs",
        "pluginrevisions",
        "policyplugins",
    ];
    let files =
        files.map(|name| fs::read_to_string(deployed.join(format!("{name}.yaml"))).unwrap());
    let printed = stdout(&trainyard(Path::new("."), &["crds"]));
    assert_eq!(printed, files.join("---\n"));
}
