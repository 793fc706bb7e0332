//! Calls of transform: each machine learning policy alone and after DRA, Torch with each policy of PodGroups, and a chain of four, in the
//! sandbox and natively, with one and two threads.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use trainyard_bench::{
    CHAIN, Chain, DRA, Job, LARGE, SMALL, Size, entries, loader, native, sandboxed,
};
use trainyard_model::session::Session;
use trainyard_policies::BuiltInParts;
use trainyard_sandbox::Loader;

/// The number of calls of one thread between two readings of the clock.
const ROUND: usize = 64;

fn calls(c: &mut Criterion) {
    let loader = loader(2).unwrap();
    for size in [*SMALL, *LARGE] {
        for entry in entries() {
            let (name, of, plugins) = (entry.name(), size.of(entry), entry.plugins());
            if entry.is_gang() {
                call(c, &loader, &format!("{name} and torch"), of, &plugins);
            } else {
                call(c, &loader, name, of, &plugins);
                let with_dra = [&[DRA], &plugins[..]].concat();
                call(
                    c,
                    &loader,
                    &format!("dra and {name}"),
                    of.claimed(),
                    &with_dra,
                );
            }
        }
        call(c, &loader, "chain of four", size.chained(), CHAIN);
    }
}

/// Measures calls of transform of these plugins, one after another.
fn call(c: &mut Criterion, loader: &Loader, what: &str, size: Size, plugins: &[BuiltInParts]) {
    let mut group = c.benchmark_group(format!("{what}, {}", size.name));
    for (kind, chain) in [
        ("sandboxed", sandboxed(loader, plugins).unwrap()),
        ("native", native(plugins).unwrap()),
    ] {
        let session = Job::read(size)
            .unwrap()
            .session(&chain.renderer().unwrap())
            .unwrap();
        group.bench_function(kind, |b| {
            b.iter_batched_ref(
                || session.clone(),
                |session| chain.call(session, plugins.len()).unwrap(),
                BatchSize::SmallInput,
            );
        });
    }
}

fn threads(c: &mut Criterion) {
    for size in [*SMALL, *LARGE] {
        let mut group = c.benchmark_group(format!("torch on threads, {}", size.name));
        group.throughput(Throughput::Elements(1));
        for threads in [1, 2] {
            let loader = loader(threads).unwrap();
            for (kind, chain) in [
                ("sandboxed", sandboxed(&loader, CHAIN).unwrap()),
                ("native", native(CHAIN).unwrap()),
            ] {
                let session = Job::read(size.chained())
                    .unwrap()
                    .session(&chain.renderer().unwrap())
                    .unwrap();
                group.bench_function(format!("{kind}, {threads}"), |b| {
                    b.iter_custom(|calls| on_threads(&chain, &session, threads, calls));
                });
            }
        }
    }
}

/// Returns the time of this number of calls, distributed over threads.
fn on_threads(chain: &Chain, session: &Session, threads: usize, calls: u64) -> Duration {
    let each = usize::try_from(calls).unwrap().div_ceil(threads);
    let barrier = std::sync::Barrier::new(threads);
    let work = || {
        let mut spent = Duration::ZERO;
        let mut left = each;
        while left > 0 {
            let round = left.min(ROUND);
            let mut sessions = vec![session.clone(); round];
            barrier.wait();
            let start = Instant::now();
            for session in &mut sessions {
                chain.call(session, 1).unwrap();
            }
            spent += start.elapsed();
            left -= round;
        }
        spent
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .max()
            .unwrap()
    })
}

criterion_group!(benches, calls, threads);
criterion_main!(benches);
