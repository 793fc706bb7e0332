//! A plan as text for a terminal.

use trainyard_model::names::short_digest;

use super::report::{GrantsReport, PlanReport, line};
use crate::output::Table;

pub(super) fn lines(report: &PlanReport<'_>) -> Vec<String> {
    let mut out = vec![report.title()];
    let orders = report.orders.iter();
    out.extend(orders.map(|order| format!("order: {}", line(order))));
    let because = report.because.iter();
    out.extend(because.map(|reason| format!("  {}", reason.message)));
    let clashes = report.possible_clashes.iter();
    out.extend(clashes.map(|clash| format!("possible clash: {}", clash.message)));
    let excluded = report.excluded.iter();
    out.extend(excluded.map(|pair| {
        format!(
            "never together: {} and {} ({})",
            pair.first, pair.second, pair.by
        )
    }));
    if !report.disabled.is_empty() {
        out.push(format!(
            "disabled: {} (PolicyPlugin)",
            report.disabled.join(", ")
        ));
    }
    let disabled_for_some = report.disabled_for_some.iter();
    out.extend(disabled_for_some.map(|plugin| {
        format!(
            "disabled for some: {} ({}; PolicyPlugin)",
            plugin.name,
            plugin.train_jobs().join(", ")
        )
    }));
    let of_job = report.disabled_for_train_job.iter();
    out.extend(of_job.map(|plugin| format!("disabled: {} ({})", plugin.name, plugin.by)));
    out.push(format!("digest: {}", report.digest));
    if !report.plugins.is_empty() {
        out.extend(plugins(report).lines());
    }
    for plugin in &report.plugins {
        for (touch, path) in plugin.touches() {
            out.push(format!("{} {touch}s {path}", plugin.name));
        }
        for set in plugin.node_sets {
            out.push(format!("{} lets numNodes set {set}", plugin.name));
        }
        if let Some(GrantsReport::Paths(paths)) = &plugin.grants {
            out.extend(
                paths
                    .iter()
                    .map(|path| format!("{} is granted {path}", plugin.name)),
            );
        }
    }
    out
}

fn plugins(report: &PlanReport<'_>) -> Table {
    let mut table = Table::new(&["plugin", "version", "active when", "phases", "digest"]);
    for plugin in &report.plugins {
        let (when, phases) = (plugin.active_when.to_string(), plugin.phases.join(","));
        let digest = short_digest(plugin.digest);
        table.row([plugin.name, plugin.version, &when, &phases, digest]);
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use trainyard_model::{
        facts::Facts,
        manifest::Manifest,
        plan::Generation,
        plugin_info::{PluginInfo, Settings},
    };

    use super::*;
    use crate::plan::report::Relations;

    fn plugin(manifest: &str) -> Arc<PluginInfo> {
        let manifest = Manifest::parse(manifest.as_bytes()).unwrap();
        Arc::new(PluginInfo::new(manifest, "digest", Settings::built_in()).unwrap())
    }

    #[test]
    fn claims_include_pod_sets_that_num_nodes_sets() {
        let mpi = plugin(
            r#"{"name": "mpi", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "mlPolicy.mpi",
            "phases": ["transform"], "nodeSets": [{"podSet": "node"}, {"podSet": "launcher", "when": "/runs"}]}"#,
        );
        let generation = Generation::new([mpi]).unwrap();
        let with_claims = Relations::new(&generation, &Facts::default(), true);
        let all = lines(&with_claims.of_all(&[]));
        for line in [
            "mpi lets numNodes set pod-sets[node].count",
            "mpi lets numNodes set pod-sets[launcher].count if `/runs` of its configuration is true",
        ] {
            assert!(all.iter().any(|shown| shown == line), "{all:#?}");
        }
        let without = Relations::new(&generation, &Facts::default(), false);
        assert!(!lines(&without.of_all(&[])).concat().contains("numNodes"));
        let json = serde_json::to_value(with_claims.of_all(&[])).unwrap();
        let shown = json.pointer("/plugins/0/nodeSets/0/podSet");
        assert_eq!(shown.and_then(|name| name.as_str()), Some("node"));
    }

    #[test]
    fn possible_clashes_are_printed() {
        let writes = |name: &str, path: &str| {
            plugin(&format!(
                r#"{{"name": "{name}", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins",
                    "phases": ["transform"], "claims": {{"writes": ["{path}"]}}}}"#
            ))
        };
        let (a, b) = (
            writes("a", "labels[$config./label]"),
            writes("b", "labels[team]"),
        );
        let generation = Generation::new([a, b]).unwrap();
        let relations = Relations::new(&generation, &Facts::default(), false);
        let all = lines(&relations.of_all(&[]));
        assert!(
            all.iter().any(|line| line.starts_with(
                "possible clash: a writes `labels[$config./label]` and b writes `labels[team]`"
            )),
            "{all:?}"
        );
    }
}
