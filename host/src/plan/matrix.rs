//! Claims as a matrix of paths and plugins.

use std::collections::BTreeMap;

use trainyard_model::claims::{ClaimPath, Verb};

use super::report::PlanReport;

/// The claims of all plugins, with a row for each path.
pub(super) struct Matrix<'a>(Vec<(&'a ClaimPath, Vec<Cell>)>);

/// A plugin's claim of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    /// No claim.
    Empty,
    /// The plugin claims another path that overlaps.
    Overlaps(Verb),
    /// The plugin claims this path.
    Claims(Verb),
}

impl<'a> Matrix<'a> {
    pub(super) fn of(report: &PlanReport<'a>) -> Self {
        let mut rows: BTreeMap<&ClaimPath, Vec<Cell>> = BTreeMap::new();
        for plugin in &report.plugins {
            for path in plugin.paths() {
                rows.entry(path).or_default();
            }
        }
        for (row, cells) in &mut rows {
            cells.extend(report.plugins.iter().map(|plugin| {
                let cell = |(touch, path): (Verb, &ClaimPath)| {
                    if path == *row {
                        Cell::Claims(touch)
                    } else if path.overlaps(row) {
                        Cell::Overlaps(touch)
                    } else {
                        Cell::Empty
                    }
                };
                plugin.touches().map(cell).max().unwrap_or(Cell::Empty)
            }));
        }
        Self(rows.into_iter().collect())
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&ClaimPath, &[Cell])> {
        self.0.iter().map(|(path, cells)| (*path, &**cells))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use serde_json::{Value, json};
    use trainyard_model::{
        facts::Facts,
        manifest::Manifest,
        plan::Generation,
        plugin_info::{PluginInfo, Settings},
    };

    use super::*;
    use crate::plan::report::Relations;

    fn plugin(name: &str, claims: Value) -> Arc<PluginInfo> {
        let manifest = json!({
            "name": name, "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform"],
            "claims": claims,
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        Arc::new(PluginInfo::new(manifest, "digest", Settings::built_in()).unwrap())
    }

    #[test]
    fn rows_have_claims_and_overlapping_claims() {
        let plugins = [
            plugin(
                "a",
                json!({"writes": ["labels[x]"], "reads": ["labels[*]"]}),
            ),
            plugin("b", json!({"reads": ["labels[x]", "annotations[y]"]})),
        ];
        let generation = Generation::new(plugins).unwrap();
        let relations = Relations::new(&generation, &Facts::default(), true);
        let report = relations.of_all(&[]);
        let matrix = Matrix::of(&report);
        let mut rows: Vec<_> = matrix
            .rows()
            .map(|(path, cells)| (path.to_string(), cells.to_vec()))
            .collect();
        rows.sort();
        assert_eq!(
            rows,
            [
                (
                    "annotations[y]".to_owned(),
                    vec![Cell::Empty, Cell::Claims(Verb::Read)]
                ),
                (
                    "labels[*]".to_owned(),
                    vec![Cell::Claims(Verb::Read), Cell::Overlaps(Verb::Read)]
                ),
                (
                    "labels[x]".to_owned(),
                    vec![Cell::Claims(Verb::Write), Cell::Claims(Verb::Read)]
                ),
            ]
        );
    }
}
