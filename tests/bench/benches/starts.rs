//! The run of a whole process that renders one TrainJob, with and without cached built-in plugins.
//!
//! The program is the one that `TRAINYARD` names, or else the release build of this workspace.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use trainyard_bench::SMALL;

fn program() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/trainyard");
    std::env::var_os("TRAINYARD").map_or(built, PathBuf::from)
}

fn run(args: &[&str], cache: &Path) {
    let status = Command::new(program())
        .args(args)
        .env("TRAINYARD_CACHE_DIR", cache)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

fn starts(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.yaml");
    std::fs::write(&input, SMALL.input()).unwrap();
    let render = ["render", "-f", input.to_str().unwrap()];
    let kept = folder.path().join("kept");
    run(&render, &kept);
    let mut group = c.benchmark_group("process");
    group.sample_size(50);
    group.bench_function("without any plugin", |b| {
        b.iter(|| run(&["--version"], &kept))
    });
    group.bench_function("render, from the cache", |b| b.iter(|| run(&render, &kept)));
    group.bench_function("render, compiled anew", |b| {
        b.iter_batched(
            || tempfile::tempdir_in(folder.path()).unwrap(),
            |empty| run(&render, empty.path()),
            BatchSize::PerIteration,
        );
    });
}

criterion_group!(benches, starts);
criterion_main!(benches);
