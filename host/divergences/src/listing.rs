//! All rows, with those of the plugins.

use crate::{
    plugins::PLUGINS,
    rows::{ROWS, Row},
    seen::Subject,
};

/// Returns every row.
pub fn all() -> impl Iterator<Item = &'static Row> {
    let of_plugins = PLUGINS.iter().flat_map(|(_, plugin)| plugin.rows);
    ROWS.iter().chain(of_plugins)
}

/// Returns the rows that may concern a TrainJob, by what it and its runtime use.
pub fn used(subject: Subject<'_>) -> impl Iterator<Item = &'static Row> {
    all().filter(move |row| row.uses.is_some_and(|uses| uses(&subject)))
}
