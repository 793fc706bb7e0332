//! A whole rendering in process: from what was read to the JobSet, with four policies.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, criterion_group, criterion_main};
use trainyard_api::Inputs;
use trainyard_bench::{Job, LARGE, SMALL, loader, native, sandboxed};

fn renders(c: &mut Criterion) {
    let loader = loader(1).unwrap();
    for size in [SMALL, LARGE] {
        let mut group = c.benchmark_group(format!("render, {}", size.name));
        let text = size.input();
        group.bench_function("read the input", |b| {
            b.iter(|| Inputs::read_text(size.name, &text))
        });
        let job = Job::read(size).unwrap();
        for (kind, chain) in [
            ("sandboxed", sandboxed(&loader).unwrap()),
            ("native", native().unwrap()),
        ] {
            let renderer = chain.renderer().unwrap();
            group.bench_function(kind, |b| b.iter(|| job.render(&renderer).unwrap()));
        }
    }
}

criterion_group!(benches, renders);
criterion_main!(benches);
