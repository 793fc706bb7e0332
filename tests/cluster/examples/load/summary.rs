//! The table of what was measured, and the median and spread of its rows.

/// What a controller did, and what it took.
pub(crate) struct Figures {
    /// JobSets per second, from the first that was observed to the last.
    pub(crate) rate: f64,
    /// Milliseconds of CPU for each TrainJob.
    pub(crate) milliseconds: f64,
    /// Calls that got an answer, the start's lists and watches among them, for each TrainJob.
    pub(crate) calls: f64,
    /// MiB after one TrainJob.
    pub(crate) rss_idle: f64,
    /// MiB after all of them.
    pub(crate) rss_after: f64,
}

/// A controller and the bare client on one API server.
pub(crate) struct Pair {
    pub(crate) figures: Figures,
    /// JobSets of the bare client a second.
    pub(crate) bare: f64,
}

impl Pair {
    /// Percent of the bare client's rate.
    fn ratio(&self) -> f64 {
        100.0 * self.figures.rate / self.bare
    }

    pub(crate) fn print_row(&self, name: &str) {
        self.figures
            .print(name, &format!("{:.0} | {:.0} %", self.bare, self.ratio()));
    }
}

impl Figures {
    /// A row without a bare client.
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

/// Prints the row of all pairs: each figure's median, and its least and greatest value.
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

/// The middle of sorted values, or the mean of the two in the middle.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(at(middle.wrapping_sub(1)), at(middle))
    } else {
        at(middle)
    }
}
