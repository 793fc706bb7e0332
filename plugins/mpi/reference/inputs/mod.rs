//! Runtimes of MPI, generated. This is a module of tests/differences_from_the_reference_are_listed.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{Generator, compare};
use crate::differences_from_the_reference_are_listed::generated::{
    fields, one_of,
    parts::word,
    runtime::{self, nodes, replicated_job},
};

pub(crate) const GENERATORS: &[Generator] = &[Generator {
    reserved_env: &["OMPI_MCA_plm_rsh_args", "PRTE_MCA_plm_ssh_args"],
    // Numbers above the accelerators of a node are refused.
    most_processes: 3,
    patched: &["launcher"],
    ..Generator::new("mpi", runtime)
}];

fn runtime() -> BoxedStrategy<Value> {
    runtime::runtime(policy().prop_map(Some).boxed(), jobs())
}

fn policy() -> BoxedStrategy<Value> {
    let implementations = ["OpenMPI"; 12].into_iter().chain(["", "Intel", "MPICH"]);
    let mpi = fields(vec![
        (
            "numProcPerNode",
            0.3,
            one_of(vec![json!(1), json!(1), json!(2), json!(4)]),
        ),
        (
            "mpiImplementation",
            0.5,
            one_of(implementations.map(Value::from).collect()),
        ),
        (
            "sshAuthMountPath",
            0.6,
            word(&["/home/mpiuser/.ssh", "/home/mpiuser/.ssh", "/root/.ssh"]),
        ),
        (
            "runLauncherAsNode",
            0.7,
            prop::bool::ANY.prop_map(Value::from).boxed(),
        ),
    ]);
    (fields(vec![("numNodes", 0.5, nodes())]), mpi)
        .prop_map(|(mut policy, mpi)| {
            policy["mpi"] = mpi;
            policy
        })
        .boxed()
}

/// Generates a launcher after its nodes or before them.
fn jobs() -> BoxedStrategy<Value> {
    let launcher = prop_oneof![
        24 => replicated_job("launcher", "node", Some("trainer")),
        1 => replicated_job("starter", "node", Some("trainer")),
    ];
    let nodes = prop_oneof![
        24 => replicated_job("node", "node", None),
        1 => replicated_job("node", "worker", None),
    ];
    let initializer = replicated_job(
        "dataset-initializer",
        "dataset-initializer",
        Some("dataset-initializer"),
    );
    (
        prop::option::weighted(0.15, initializer),
        nodes,
        launcher,
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(initializer, nodes, mut launcher, is_last, has_counts)| {
            let counts = launcher["template"]["spec"].as_object_mut();
            if let Some(counts) = counts.filter(|_| !has_counts) {
                counts.remove("parallelism");
                counts.remove("completions");
            }
            if is_last {
                launcher["dependsOn"] = json!([{"name": "node", "status": "Ready"}]);
            }
            let both = if is_last {
                [nodes, launcher]
            } else {
                [launcher, nodes]
            };
            initializer.into_iter().chain(both).collect()
        })
        .boxed()
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 1000);
}
