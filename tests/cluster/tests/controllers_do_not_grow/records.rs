//! What is measured, in a file for the plot, and whether it grows.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write as _,
    path::Path,
    sync::{Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use procfs::process::{FDTarget, Process};
use trainyard_cluster::sum_of;

use super::{Soak, replicas::Replica};

/// The time between two samples.
const EVERY: Duration = Duration::from_secs(5);
/// How long memory may grow: caches and the allocator's free lists fill.
const WARM: f64 = 3600.0;
/// The least time over which a slope of memory means something.
const LEAST: f64 = 900.0;
/// The greatest growth for each TrainJob in bytes. One that exists takes 2.1 KiB (docs/benchmarks.md), so a controller that forgets none grows
/// by more, and by this much if it forgets only half of one.
const MOST: f64 = 1024.0;
/// Growth in MiB that means nothing: memory moves by more from minute to minute, with the number of TrainJobs that exist.
const NOISE: f64 = 1.0;
/// Metrics by the names of their series.
const METRICS: [(&str, &str); 4] = [
    ("tasks", "go_goroutines"),
    ("calls", "trainyard_api_calls_total"),
    ("cpu", "process_cpu_seconds_total"),
    ("leads", "trainyard_leader"),
];

/// One value.
struct Row {
    seconds: f64,
    series: String,
    of: String,
    value: f64,
}

/// All values, also in `target/tmp/soak.csv`.
pub(super) struct Records {
    since: Instant,
    file: File,
    rows: Mutex<Vec<Row>>,
}

impl Records {
    pub(super) fn create() -> Result<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(folder)?;
        let path = folder.join("soak.csv");
        let mut file = File::create(&path).with_context(|| path.display().to_string())?;
        writeln!(file, "seconds,series,of,value")?;
        Ok(Self {
            since: Instant::now(),
            file,
            rows: Mutex::default(),
        })
    }

    pub(super) fn seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    /// Adds a value of something, such as of a process by its number.
    pub(super) fn add(&self, series: &str, of: &str, value: f64) -> Result<()> {
        self.add_at(self.seconds(), series, of, value)
    }

    fn add_at(&self, seconds: f64, series: &str, of: &str, value: f64) -> Result<()> {
        writeln!(&self.file, "{seconds:.1},{series},{of},{value}")?;
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.push(Row {
            seconds,
            series: series.to_owned(),
            of: of.to_owned(),
            value,
        });
        Ok(())
    }
}

/// Takes samples until the crowd is gone.
pub(super) async fn sample(soak: &Soak<'_>) -> Result<()> {
    let records = &soak.records;
    while !soak.is_over.load(Ordering::Relaxed) {
        for replica in soak.replicas.running() {
            // It may be starting, or be killed meanwhile.
            let _ = records.measure(&replica).await;
        }
        let alive = soak.alive.load(Ordering::Relaxed) as f64;
        records.add("TrainJobs", "", alive)?;
        let watches = soak.shared.proxy.watches() as f64;
        records.add("watches", "", watches)?;
        tokio::time::sleep(EVERY).await;
    }
    Ok(())
}

impl Records {
    async fn measure(&self, replica: &Replica) -> Result<()> {
        let (of, now) = (replica.number.to_string(), self.seconds());
        let metrics = replica.controller.metrics().await?;
        let process = Process::new(replica.controller.process().id()?)?;
        let status = process.status()?;
        let memory = status.rssanon.context("no RssAnon")? as f64;
        let (mut files, mut sockets) = (0, 0);
        for file in process.fd()? {
            files += 1;
            sockets += u32::from(matches!(file?.target, FDTarget::Socket(_)));
        }
        self.add_at(now, "memory", &of, memory / 1024.0)?;
        self.add_at(now, "threads", &of, status.threads as f64)?;
        self.add_at(now, "files", &of, files.into())?;
        self.add_at(now, "sockets", &of, sockets.into())?;
        for (series, metric) in METRICS {
            self.add_at(now, series, &of, sum_of(&metrics, metric, ""))?;
        }
        Ok(())
    }

    /// Prints what was measured, and checks that the process that led for longest did not grow after it was warm.
    pub(super) fn judge(&self) -> Result<()> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut times: Vec<_> = of(&rows, "creation").map(|row| row.value).collect();
        times.sort_by(f64::total_cmp);
        ensure!(!times.is_empty(), "no TrainJob was created");
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let [half, most, all] = [0.5, 0.99, 1.0].map(at);
        let seconds = rows.last().map_or(0.0, |row| row.seconds);
        println!(
            "{} faults in {seconds:.0} s; the JobSets of {} TrainJobs after {half:.2} s (p50), {most:.2} s (p99), {all:.2} s (worst)",
            of(&rows, "fault").count(),
            times.len(),
        );
        let each = times.len() as f64 * 3600.0 / seconds;
        does_not_grow(&rows, each)
    }
}

/// Prints the slopes of the process that led for longest, and checks that of its memory at this number of TrainJobs per hour.
fn does_not_grow(rows: &[Row], per_hour: f64) -> Result<()> {
    let led = longest_led(rows).context("no process has led")?;
    let (begins, ends) = (led.begins, led.ends);
    let warm = begins + WARM.min((ends - begins) / 2.0);
    if ends - warm < LEAST {
        let what = "no process led for long enough to show whether its memory grows";
        println!("{what}");
        let seconds = rows.last().map_or(0.0, |row| row.seconds);
        ensure!(seconds < WARM + 2.0 * LEAST, "{what}; run it again");
        return Ok(());
    }
    let mut slopes = Vec::new();
    for series in ["memory", "threads", "tasks", "files", "sockets"] {
        let of_it = of(rows, series).filter(|row| row.of == led.process);
        let later = of_it.filter(|row| (warm..=ends).contains(&row.seconds));
        let points: Vec<_> = later.map(|row| (row.seconds / 3600.0, row.value)).collect();
        let values = points.iter().map(|(_, value)| *value);
        let least = values.clone().fold(f64::MAX, f64::min);
        let greatest = values.fold(f64::MIN, f64::max);
        let slope = slope(&points);
        println!("{series}: {least:.1} to {greatest:.1}, {slope:+.2} per hour");
        slopes.push(slope);
    }
    let growth = slopes[0] * (ends - warm) / 3600.0;
    let bytes = slopes[0] * 1024.0 * 1024.0 / per_hour;
    let what = format!(
        "memory: {growth:+.2} MiB in minutes {:.0} to {:.0}, {bytes:+.0} bytes for each TrainJob",
        warm / 60.0,
        ends / 60.0
    );
    println!("{what}");
    ensure!(growth < NOISE || bytes < MOST, "{what}");
    Ok(())
}

fn of<'r>(rows: &'r [Row], series: &str) -> impl Iterator<Item = &'r Row> + Clone {
    rows.iter().filter(move |row| row.series == series)
}

/// A time during which a process led.
struct Led {
    process: String,
    begins: f64,
    ends: f64,
}

fn longest_led(rows: &[Row]) -> Option<Led> {
    let mut led: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for row in of(rows, "leads").filter(|row| row.value == 1.0) {
        led.entry(&row.of).or_default().push(row.seconds);
    }
    let (process, times) = led.into_iter().max_by_key(|(_, times)| times.len())?;
    Some(Led {
        process: process.clone(),
        begins: *times.first()?,
        ends: *times.last()?,
    })
}

/// Returns the slope of the line with the least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    both / squares
}
