//! The table of results, with the median and range of its rows.

/// The throughput and the cost of a controller.
pub(crate) struct Figures {
    /// JobSets per second, from the first that was observed to the last.
    pub(crate) rate: f64,
    /// CPU time per TrainJob, in milliseconds.
    pub(crate) milliseconds: f64,
    /// Answered calls per TrainJob, including the lists and watches at startup.
    pub(crate) calls: f64,
    /// Memory after one TrainJob, in MiB.
    pub(crate) rss_idle: f64,
    /// Memory after all TrainJobs, in MiB.
    pub(crate) rss_after: f64,
}

/// A controller and the bare client on one API server.
pub(crate) struct Pair {
    pub(crate) figures: Figures,
    /// JobSets of the bare client per second.
    pub(crate) bare: f64,
}

impl Pair {
    /// Returns the rate as a percentage of the bare client's.
    fn ratio(&self) -> f64 {
        100.0 * self.figures.rate / self.bare
    }

    pub(crate) fn print_row(&self, name: &str) {
        self.figures
            .print(name, &format!("{:.0} | {:.0} %", self.bare, self.ratio()));
    }
}

impl Figures {
    /// Formats a row without a bare client.
    pub(crate) fn print_row(&self, name: &str) {
        self.print(name, "|");
    }

    fn print(&self, name: &str, bare: &str) {
        println!(
            "| {name} | {:.0} | {bare} | {:.2} | {:.2} | {:.1} | {:.1} |",
            self.rate, self.milliseconds, self.calls, self.rss_idle, self.rss_after
        );
    }
}

pub(crate) fn header() {
    println!(
        "| | JobSets a second | the bare client | ratio | ms of CPU for each | calls for each | MiB idle | MiB after |"
    );
    println!("|---|---|---|---|---|---|---|---|");
}

/// Prints the row of all pairs: the median, minimum and maximum of each figure.
pub(crate) fn print(name: &str, pairs: &[Pair]) {
    let row = |figure: &dyn Fn(&Pair) -> f64, decimals: usize| {
        let mut values: Vec<f64> = pairs.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        let (Some(least), Some(greatest)) = (values.first(), values.last()) else {
            return String::new();
        };
        format!(
            "{:.decimals$} ({least:.decimals$} to {greatest:.decimals$})",
            median(&values)
        )
    };
    let cells = [
        row(&|pair| pair.figures.rate, 0),
        row(&|pair| pair.bare, 0),
        row(&Pair::ratio, 0) + " %",
        row(&|pair| pair.figures.milliseconds, 2),
        row(&|pair| pair.figures.calls, 2),
        row(&|pair| pair.figures.rss_idle, 1),
        row(&|pair| pair.figures.rss_after, 1),
    ];
    println!(
        "| {name}, median of {} (least to greatest) | {} |",
        pairs.len(),
        cells.join(" | ")
    );
}

/// Returns the median of sorted values.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(at(middle.wrapping_sub(1)), at(middle))
    } else {
        at(middle)
    }
}
