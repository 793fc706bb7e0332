//! The renderings that are measured.

use crate::{
    jobs::{Gang, LARGE, MlPolicy, SMALL, Size},
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
    for size in [SMALL, LARGE] {
        for (policy, of) in MlPolicy::ALL {
            both.push(row(policy, size.of(of)));
            ours.push(row(&format!("dra and {policy}"), size.of(of).claimed()));
        }
        for (scheduler, gang) in Gang::ALL {
            both.push(row(&format!("{scheduler} and torch"), size.in_gang(gang)));
        }
        ours.push(Row {
            plugins: CHAIN,
            ..row("chain of four", size.chained())
        });
    }
    both.push(Row {
        name: "mpi, 1,000 nodes".to_owned(),
        ..row("mpi", SMALL.of(MlPolicy::Mpi).nodes(1000))
    });
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
