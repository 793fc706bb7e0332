//! Calls of transform: Torch alone, and a chain of four, in the sandbox beside natively; one thread, and two.

#![allow(missing_docs, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use trainyard_bench::{
    BUILT_INS, CHAIN, Chain, Job, LARGE, SMALL, Size, loader, native, sandboxed,
};
use trainyard_model::session::Session;

/// Calls of one thread between two looks at the clock.
const ROUND: usize = 64;

fn calls(c: &mut Criterion) {
    let loader = loader(2).unwrap();
    let chained = |size: Size| size.chained();
    let claimed = |size: Size| size.claimed();
    for (what, count, plugins, sized) in [
        ("torch", 1, CHAIN, chained as fn(Size) -> Size),
        ("chain of four", 4, CHAIN, chained),
        ("dra", 1, BUILT_INS, claimed),
        ("dra and torch", 2, BUILT_INS, claimed),
    ] {
        let chains = [
            ("sandboxed", sandboxed(&loader, plugins).unwrap()),
            ("native", native(plugins).unwrap()),
        ];
        for size in [SMALL, LARGE].map(sized) {
            let mut group = c.benchmark_group(format!("{what}, {}", size.name));
            for (kind, chain) in &chains {
                let session = Job::read(size)
                    .unwrap()
                    .session(&chain.renderer().unwrap())
                    .unwrap();
                group.bench_function(*kind, |b| {
                    b.iter_batched_ref(
                        || session.clone(),
                        |session| chain.call(session, count).unwrap(),
                        BatchSize::SmallInput,
                    );
                });
            }
        }
    }
}

fn threads(c: &mut Criterion) {
    for size in [SMALL, LARGE] {
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

/// The time that so many calls take, shared among threads.
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
