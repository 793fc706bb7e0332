//! A whole rendering in this process, from parsed objects to the JobSet: with the built-in plugins, compared with the reference if it has
//! the policy, and with a chain of four.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, criterion_group, criterion_main};
use trainyard_api::Inputs;
use trainyard_bench::{
    BUILT_INS, CHAIN, Gang, Job, LARGE, MlPolicy, Plugins, Reference, SMALL, Size, loader, native,
    sandboxed,
};

fn renders(c: &mut Criterion) {
    let mut reference = Reference::start().unwrap();
    if reference.is_none() {
        eprintln!("skipped: the reference needs Go (https://go.dev/dl)");
    }
    for size in [SMALL, LARGE] {
        let text = size.input();
        let name = size.name;
        c.bench_function(&format!("read the input, {name}"), |b| {
            b.iter(|| Inputs::read_text(name, &text))
        });
        for (policy, of) in MlPolicy::ALL {
            beside(
                c,
                &mut reference,
                &format!("render {policy}, {name}"),
                size.of(of),
            );
            let claimed = format!("render dra and {policy}, {name}");
            ours(c, &claimed, size.of(of).claimed(), BUILT_INS);
        }
        for (scheduler, gang) in Gang::ALL {
            beside(
                c,
                &mut reference,
                &format!("render {scheduler} and torch, {name}"),
                size.in_gang(gang),
            );
        }
        let chain = format!("render a chain of four, {name}");
        ours(c, &chain, size.chained(), CHAIN);
    }
    let many = SMALL.of(MlPolicy::Mpi).nodes(1000);
    beside(c, &mut reference, "render mpi, 1,000 nodes", many);
}

fn beside(c: &mut Criterion, reference: &mut Option<Reference>, name: &str, size: Size) {
    ours(c, name, size, BUILT_INS);
    if let Some(reference) = reference {
        let text = size.input();
        let mut group = c.benchmark_group(name);
        group.bench_function("the reference", |b| {
            b.iter_custom(|times| reference.time(&text, times).unwrap())
        });
    }
}

fn ours(c: &mut Criterion, name: &str, size: Size, plugins: Plugins) {
    let mut group = c.benchmark_group(name);
    let loader = loader(1).unwrap();
    let job = Job::read(size).unwrap();
    for (kind, chain) in [
        ("sandboxed", sandboxed(&loader, plugins).unwrap()),
        ("native", native(plugins).unwrap()),
    ] {
        let renderer = chain.renderer().unwrap();
        group.bench_function(kind, |b| b.iter(|| job.render(&renderer).unwrap()));
    }
}

criterion_group!(benches, renders);
criterion_main!(benches);
