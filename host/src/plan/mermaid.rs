//! A plan as a Mermaid flowchart.

use std::fmt::Write as _;

use trainyard_model::text::clean;

use super::{
    graph::{Graph, Link},
    report::PlanReport,
};
use crate::output::List;

/// The chart, whose texts are subgraphs.
pub(super) const CHART: List = List::of_texts("flowchart TB\n", "", "flowchart TB\n");

/// Returns the subgraph of one plan. `number` makes its node ids unique.
pub(super) fn text(report: &PlanReport<'_>, number: usize) -> String {
    let graph = Graph::of(report);
    let id = |node: usize| format!("n{number}p{node}");
    let unions = graph.unions();
    let title = quoted(&report.title());
    let mut out = format!("subgraph n{number}[{title}]\ndirection TB\n");
    let node = |at: usize| {
        let node = graph.nodes.get(at)?;
        let (name, version) = (encoded(node.name), encoded(node.version));
        Some(format!("{}[\"{name}<br/>{version}\"]\n", id(at)))
    };
    for (at, (union, members)) in unions.iter().enumerate() {
        let label = quoted(&format!("one of {union}"));
        let members: String = members.iter().filter_map(|at| node(*at)).collect();
        // Writing to a string cannot fail.
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

/// Returns a quoted label.
fn quoted(text: &str) -> String {
    format!("\"{}\"", encoded(text))
}

/// Encodes characters with a meaning in Mermaid, Markdown or HTML as named HTML entities. Mermaid's own codes (`#34;`) are not decoded in the
/// labels of links.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
        match entity(c) {
            // Writing to a string cannot fail.
            Some(name) => _ = write!(out, "&{name};"),
            None => out.push(c),
        }
    }
    out
}

/// Returns the HTML entity of a character with a meaning in a label.
const fn entity(c: char) -> Option<&'static str> {
    Some(match c {
        // Ends the label.
        '"' => "quot",
        // Begins markup, an entity, a code of Mermaid, a directive, a formula, Markdown.
        '<' => "lt",
        '>' => "gt",
        '&' => "amp",
        '#' => "num",
        '%' => "percnt",
        '$' => "dollar",
        '`' => "grave",
        '\\' => "bsol",
        // Begins the name of an icon in `fa:fa-car`.
        ':' => "colon",
        // Have a meaning outside of labels only.
        '{' => "lcub",
        '}' => "rcub",
        '|' => "vert",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_plain_text() {
        for (text, label) in [
            (
                "pod-sets[@trainer].env[PET_*]",
                "pod-sets[@trainer].env[PET_*]",
            ),
            (
                "\"]; click n0 \"javascript:x\"",
                "&quot;]; click n0 &quot;javascript&colon;x&quot;",
            ),
            (
                "<script>`%%{init}%%`</script>\nend",
                "&lt;script&gt;&grave;&percnt;&percnt;&lcub;init&rcub;&percnt;&percnt;&grave;&lt;/script&gt; end",
            ),
            (
                "a#quot;&lt;b\u{202e}",
                "a&num;quot;&amp;lt;b&bsol;u&lcub;202e&rcub;",
            ),
            (
                "$$x$$ fa:fa-car a|b",
                "&dollar;&dollar;x&dollar;&dollar; fa&colon;fa-car a&vert;b",
            ),
        ] {
            assert_eq!(encoded(text), label);
        }
    }
}
