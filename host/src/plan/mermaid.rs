//! A plan as a Mermaid flowchart.

use std::fmt::Write as _;

use trainyard_model::text::clean;

use super::{
    graph::{Graph, Link},
    report::PlanReport,
};
use crate::output::List;

/// The chart of a run: what is added are its parts.
pub(super) const CHART: List = List::of_texts("flowchart TB\n", "", "flowchart TB\n");

/// The part of one plan; `number` keeps its nodes apart from those of the others.
pub(super) fn text(report: &PlanReport<'_>, number: usize) -> String {
    let graph = Graph::of(report);
    let id = |node: usize| format!("n{number}p{node}");
    let unions = graph.unions();
    let mut out = format!("subgraph n{number}[{}]\n", quoted(&report.title()));
    let node = |at: usize| {
        let node = graph.nodes.get(at)?;
        let (name, version) = (encoded(node.name), encoded(node.version));
        Some(format!("{}[\"{name}<br/>{version}\"]\n", id(at)))
    };
    for (at, (union, members)) in unions.iter().enumerate() {
        let label = quoted(&format!("one of {union}"));
        let members: String = members.iter().filter_map(|at| node(*at)).collect();
        // Writing to a text does not fail.
        let _ = write!(out, "subgraph n{number}u{at}[{label}]\n{members}end\n");
    }
    let is_alone = |at: &usize| !unions.values().any(|members| members.contains(at));
    let alone = (0..graph.nodes.len()).filter(is_alone);
    out.extend(alone.filter_map(node));
    let line = |link: &Link, arrow: &str, label: &str| {
        let (from, to) = (id(link.from), id(link.to));
        format!("{from} {arrow}|{}| {to}\n", quoted(label))
    };
    for link in &graph.edges {
        let declared = link.is_declared.then(|| "declared".to_owned());
        let labels: Vec<_> = declared.into_iter().chain(link.labels.clone()).collect();
        out.push_str(&line(link, "-->", &labels.join("; ")));
    }
    for link in &graph.clashes {
        let label = format!("possible clash: {}", link.labels.join("; "));
        out.push_str(&line(link, "-.-", &label));
    }
    out.push_str("end\n");
    out
}

/// A label in quotes, which shows the very text.
fn quoted(text: &str) -> String {
    format!("\"{}\"", encoded(text))
}

/// The text in a quoted label: whatever Mermaid, Markdown or HTML may read as more than text stands there by its number.
fn encoded(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | ',' | ':' | '/' | '-');
    let mut out = String::new();
    for c in clean(text).chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_nothing_but_text() {
        for (text, label) in [
            ("env[PET_*]", "env#91;PET#95;#42;#93;"),
            (
                "\"]; click n0 \"javascript:x\"",
                "#34;#93;#59; click n0 #34;javascript:x#34;",
            ),
            (
                "<script>`%%{init}%%`</script>\nend",
                "#60;script#62;#96;#37;#37;#123;init#125;#37;#37;#96;#60;/script#62; end",
            ),
            ("a#quot;b\u{202e}", "a#35;quot#59;b#92;u#123;202e#125;"),
        ] {
            assert_eq!(encoded(text), label);
        }
    }
}
