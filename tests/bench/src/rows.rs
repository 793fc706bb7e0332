//! The renderings that are measured.

use crate::{
    entries::entries,
    jobs::{LARGE, SMALL, Size},
    policies::{BUILT_INS, CHAIN, Plugins},
};

/// A rendering that is measured.
pub struct Row {
    /// Its name, such as `torch, small`.
    pub name: String,
    /// The TrainJob and its runtime.
    pub size: Size,
    /// The loaded plugins.
    pub plugins: Plugins,
    /// Whether the reference has the same policies.
    pub has_reference: bool,
}

/// Returns all renderings: first those that the reference has as well, small ones before large ones.
#[must_use]
pub fn rows() -> Vec<Row> {
    let (mut both, mut ours) = (Vec::new(), Vec::new());
    for size in [*SMALL, *LARGE] {
        for entry in entries() {
            let (name, of) = (entry.name(), size.of(entry));
            if entry.is_gang() {
                both.push(row(&format!("{name} and torch"), of));
            } else {
                both.push(row(name, of));
                ours.push(row(&format!("dra and {name}"), of.claimed()));
            }
        }
        ours.push(Row {
            plugins: CHAIN,
            ..row("chain of four", size.chained())
        });
    }
    for entry in entries() {
        let more = |(name, nodes): (&str, usize)| Row {
            name: format!("{}, {name}", entry.name()),
            ..row(name, SMALL.of(entry).nodes(nodes))
        };
        both.extend(entry.nodes().map(more));
    }
    let ours = ours.into_iter().map(|row| Row {
        has_reference: false,
        ..row
    });
    both.into_iter().chain(ours).collect()
}

fn row(name: &str, size: Size) -> Row {
    Row {
        name: format!("{name}, {}", size.name),
        size,
        plugins: BUILT_INS,
        has_reference: true,
    }
}
