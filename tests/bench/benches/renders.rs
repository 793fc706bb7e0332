//! A whole rendering in this process, from parsed objects to encoded ones, beside the reference. Prints the table of docs/benchmarks.md.
//!
//! The subjects of a row take turns, so a change of the machine's speed affects all of them. An argument selects the rows that contain it.

#![allow(missing_docs)]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use trainyard_api::Inputs;
use trainyard_bench::{Job, LARGE, Reference, Row, SMALL, loader, native, rows, sandboxed};

/// How often each subject is measured. The median counts.
const TURNS: usize = 41;

/// About how long one measurement takes.
const TURN: Duration = Duration::from_millis(10);

/// Runs a subject this number of times, and returns the time.
type Subject<'s> = Box<dyn FnMut(u64) -> Result<Duration> + 's>;

fn main() -> Result<()> {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let mut reference = Reference::start()?;
    if reference.is_none() {
        println!("The reference is not measured, because it needs Go (https://go.dev/dl).");
    }
    println!("| µs | sandboxed | native | reference | sandboxed / reference |");
    println!("|---|---|---|---|---|");
    let rows = rows().into_iter();
    for row in rows.filter(|row| {
        wanted
            .as_ref()
            .is_none_or(|wanted| row.name.contains(wanted))
    }) {
        print_row(&row, &mut reference)?;
    }
    for size in [*SMALL, *LARGE] {
        let text = size.input();
        let read = timed(|| drop(black_box(Inputs::read_text(size.name, &text))));
        let micros = medians(&mut [read])?;
        println!(
            "| reading the YAML before it, {} | | {} | | |",
            size.name,
            shown(&micros, 0)
        );
    }
    Ok(())
}

fn print_row(row: &Row, reference: &mut Option<Reference>) -> Result<()> {
    let text = row.size.input();
    let job = Job::read(row.size)?;
    let loader = loader(1)?;
    let sandboxed = sandboxed(&loader, row.plugins)?.renderer()?;
    let native = native(row.plugins)?.renderer()?;
    // Once with the error, because the measured closures drop it.
    job.encoded(&sandboxed)?;
    let mut subjects = vec![
        timed(|| drop(black_box(job.encoded(&sandboxed)))),
        timed(|| drop(black_box(job.encoded(&native)))),
    ];
    if let Some(reference) = reference.as_mut().filter(|_| row.has_reference) {
        subjects.push(Box::new(move |times| reference.time(&text, times)));
    }
    let micros = medians(&mut subjects)?;
    let ratio = match micros.as_slice() {
        [ours, _, reference] => format!("{:.2}", ours / reference),
        _ => String::new(),
    };
    let [ours, native, reference] = [0, 1, 2].map(|at| shown(&micros, at));
    println!(
        "| {} | {ours} | {native} | {reference} | {ratio} |",
        row.name
    );
    Ok(())
}

fn timed<'s>(mut run: impl FnMut() + 's) -> Subject<'s> {
    Box::new(move |times| {
        let start = Instant::now();
        (0..times).for_each(|_| run());
        Ok(start.elapsed())
    })
}

/// Returns the median of each subject's time in microseconds.
fn medians(subjects: &mut [Subject<'_>]) -> Result<Vec<f64>> {
    let mut measured = Vec::new();
    for subject in &mut *subjects {
        // The first runs fill caches.
        subject(20)?;
        let once = subject(20)?.as_secs_f64() / 20.0;
        let times = (TURN.as_secs_f64() / once).ceil().max(1.0);
        measured.push((times, Vec::new()));
    }
    for _ in 0..TURNS {
        for (subject, (times, micros)) in subjects.iter_mut().zip(&mut measured) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a small positive integer"
            )]
            let took = subject(*times as u64)?;
            micros.push(took.as_secs_f64() * 1e6 / *times);
        }
    }
    let median = |mut micros: Vec<f64>| {
        micros.sort_by(f64::total_cmp);
        micros
            .get(TURNS / 2)
            .copied()
            .context("nothing was measured")
    };
    measured
        .into_iter()
        .map(|(_, micros)| median(micros))
        .collect()
}

/// Returns three digits.
fn shown(micros: &[f64], at: usize) -> String {
    match micros.get(at) {
        Some(micros) if *micros < 100.0 => format!("{micros:.1}"),
        Some(micros) => format!("{micros:.0}"),
        None => String::new(),
    }
}
