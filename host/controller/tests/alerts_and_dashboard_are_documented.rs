//! The alerts and the dashboard of the chart, and the alerts and symptoms in deploy/README.md, name metrics, labels and reasons that
//! docs/metrics.md describes.

use std::collections::{BTreeMap, BTreeSet};

/// Returns the cells of the rows of tables, with `\|` as it is shown.
fn cells(text: &str) -> Vec<Vec<String>> {
    const BAR: &str = "\u{1}";
    let text = text.replace(r"\|", BAR);
    let rows = text.lines().filter_map(|line| line.strip_prefix('|'));
    let cells = |row: &str| {
        let cells = row.split('|');
        cells.map(|cell| cell.trim().replace(BAR, "|")).collect()
    };
    rows.map(cells).collect()
}

/// Returns the metrics that a PromQL expression names, each with the labels that it names in braces or groups by.
fn metrics_of(expression: &str) -> BTreeMap<String, BTreeSet<String>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut metrics = BTreeMap::<String, BTreeSet<String>>::new();
    let mut everywhere = BTreeSet::new();
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        rest = &rest[start..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let of_a_program = [
            "trainyard_",
            "controller_runtime_",
            "workqueue_",
            "process_",
            "go_",
        ];
        if word == "by" {
            let (labels, after) = rest.trim_start_matches([' ', '(']).split_once(')').unwrap();
            everywhere.extend(labels.split(", ").map(str::to_owned));
            rest = after;
        } else if of_a_program.iter().any(|start| word.starts_with(start)) {
            let labels = metrics.entry(word.to_owned()).or_default();
            if let Some(braces) = rest.strip_prefix('{') {
                let (selectors, after) = braces.split_once('}').unwrap();
                let names = selectors
                    .split(',')
                    .map(|one| one.trim().split(['=', '!']).next());
                labels.extend(names.map(|name| name.unwrap().to_owned()));
                rest = after;
            }
        } else if let Some(after) = rest.strip_prefix('"') {
            rest = after.split_once('"').unwrap().1;
        }
    }
    for labels in metrics.values_mut() {
        labels.extend(everywhere.iter().cloned());
    }
    metrics
}

/// Checks that docs/metrics.md describes each metric of an expression, with its labels.
fn is_described(expression: &str, page: &str) {
    let named = metrics_of(expression);
    assert!(!named.is_empty(), "{expression}");
    for (metric, mut labels) in named {
        let histogram = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| metric.strip_suffix(end));
        let metric = histogram.unwrap_or(&metric);
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let mut described = rows.filter_map(|row| row.split('`').next());
        let row = described
            .find(|row| row.split('{').next() == Some(metric))
            .unwrap_or_else(|| panic!("{metric} is not described: {expression}"));
        // Prometheus adds `job`, and a histogram has `le`.
        labels.retain(|label| label != "job" && (histogram.is_none() || label != "le"));
        let (_, known) = row.split_once('{').unwrap_or_default();
        let known: BTreeSet<_> = known
            .trim_end_matches('}')
            .split(',')
            .map(str::to_owned)
            .collect();
        assert!(
            labels.is_subset(&known),
            "{metric} has {known:?}: {expression}"
        );
    }
}

/// The alerts of the chart are those in deploy/README.md, with metrics and labels that docs/metrics.md describes.
#[test]
fn alerts_are_documented() {
    let page = include_str!("../../../docs/metrics.md");
    let manual = include_str!("../../../deploy/README.md");
    let (_, manual) = manual.split_once("\n## Alerts\n").unwrap();
    let (manual, _) = manual.split_once("\n## Troubleshooting\n").unwrap();
    let alerts = include_str!("../../../charts/trainyard/files/alerts.yaml");
    let alerts = trainyard_api::yaml::read(alerts).remove(0).unwrap().value;
    let rules = alerts["groups"][0]["rules"].as_array().unwrap();
    let mut expected = BTreeSet::new();
    for rule in rules {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        is_described(text("expr"), page);
        assert_eq!(
            rule["annotations"]["runbook_url"],
            "deploy/README.md#alerts"
        );
        expected.insert([
            format!("`{}`", text("alert")),
            format!("`{}`", text("expr")),
            text("for").to_owned(),
        ]);
    }
    let documented = cells(manual).into_iter().skip(2).map(|row| {
        let duration = row[2].replace(" minutes", "m").replace(" minute", "m");
        [row[0].clone(), row[1].clone(), duration]
    });
    assert_eq!(documented.collect::<BTreeSet<_>>(), expected);
}

/// Returns the labels that a legend shows.
fn labels_of(legend: &str) -> BTreeSet<String> {
    let labels = legend.split("{{").skip(1);
    labels
        .map(|rest| rest.split("}}").next().unwrap().to_owned())
        .collect()
}

/// Each query of the dashboard has metrics and labels that docs/metrics.md describes, and its legend shows labels by which it is grouped. It selects the
/// controller's series, because other controllers have metrics of the same names.
#[test]
fn queries_of_the_dashboard_are_documented() {
    let page = include_str!("../../../docs/metrics.md");
    let dashboard = include_str!("../../../charts/trainyard/files/dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let mut queries = 0;
    let mut seen = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            is_described(expression, page);
            let metrics = metrics_of(expression);
            let selects = expression.matches(r#"{job=~"$job""#).count();
            assert_eq!(selects, metrics.len(), "{expression}");
            let legend = labels_of(target["legendFormat"].as_str().unwrap());
            if expression.contains("by (") {
                let grouped = metrics.values().flatten().cloned().collect();
                assert!(legend.is_subset(&grouped), "{expression}: {legend:?}");
            } else if expression.starts_with("sum(") || expression.starts_with("(sum(") {
                assert!(legend.is_empty(), "{expression}: {legend:?}");
            }
            seen.extend(metrics.into_keys());
            queries += 1;
        }
    }
    assert!(queries > 20 && seen.len() > 15, "{queries}: {seen:?}");
}

/// The symptoms in deploy/README.md name reasons that docs/metrics.md describes.
#[test]
fn reasons_in_the_manual_exist() {
    let page = include_str!("../../../docs/metrics.md");
    let manual = include_str!("../../../deploy/README.md");
    let (_, symptoms) = manual.split_once("\n## Troubleshooting\n").unwrap();
    let in_first_column = |text: &str| {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
        rows.filter_map(|row| row.split(" | ").next().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let mut reasons = BTreeSet::new();
    for row in in_first_column(symptoms) {
        let quoted = row.split('`').skip(1).step_by(2);
        let is_reason = |word: &&str| {
            word.starts_with(|c: char| c.is_ascii_uppercase())
                && word.chars().all(char::is_alphanumeric)
        };
        // A kind of the API, not a reason.
        let named = quoted.filter(is_reason);
        reasons.extend(
            named
                .filter(|word| *word != "ClusterTrainingRuntime")
                .map(str::to_owned),
        );
    }
    assert!(reasons.len() > 10, "{reasons:?}");
    for reason in reasons {
        assert!(page.contains(&format!("`{reason}`")), "{reason}");
    }
}
