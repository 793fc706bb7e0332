//! A plan as a graph of plugins, with the reasons for their order and possible clashes.

use std::collections::BTreeMap;

use trainyard_model::manifest::Union;

use super::report::PlanReport;

/// The graph of a plan.
pub(super) struct Graph<'a> {
    /// The plugins, in order.
    pub(super) nodes: Vec<Node<'a>>,
    /// A link for each pair of plugins with a reason for its order.
    pub(super) edges: Vec<Link>,
    /// A link for each pair of plugins that may clash.
    pub(super) clashes: Vec<Link>,
}

/// A plugin.
pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    /// Its union, whose members are never active together.
    pub(super) union: Option<&'static str>,
}

/// A link between two nodes.
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Its reasons, one for each path.
    pub(super) labels: Vec<String>,
    /// Whether an order is declared.
    pub(super) is_declared: bool,
}

impl<'a> Graph<'a> {
    pub(super) fn of(report: &PlanReport<'a>) -> Self {
        let names: BTreeMap<&str, usize> = report
            .plugins
            .iter()
            .enumerate()
            .map(|(at, plugin)| (plugin.name, at))
            .collect();
        let node = |name: &String| names.get(name.as_str()).copied();
        let mut edges: BTreeMap<(usize, usize), Link> = BTreeMap::new();
        for reason in &report.because {
            let label = reason.path.clone();
            add_label(&mut edges, node(&reason.first), node(&reason.then), label);
        }
        let mut clashes = BTreeMap::new();
        for clash in &report.possible_clashes {
            let label = format!("{} / {}", clash.first_claim, clash.second_claim);
            add_label(
                &mut clashes,
                node(&clash.first),
                node(&clash.second),
                Some(label),
            );
        }
        Self {
            nodes: report
                .plugins
                .iter()
                .map(|plugin| Node {
                    name: plugin.name,
                    version: plugin.version,
                    union: plugin.active_when.union().map(Union::name),
                })
                .collect(),
            edges: edges.into_values().collect(),
            clashes: clashes.into_values().collect(),
        }
    }

    /// Returns the nodes of each union with more than one, by name.
    pub(super) fn unions(&self) -> BTreeMap<&'static str, Vec<usize>> {
        let mut unions: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(union) = node.union {
                unions.entry(union).or_default().push(at);
            }
        }
        unions.retain(|_, members| members.len() > 1);
        unions
    }
}

/// Adds a label to the link between two nodes. `None` marks its order as declared.
fn add_label(
    links: &mut BTreeMap<(usize, usize), Link>,
    from: Option<usize>,
    to: Option<usize>,
    label: Option<String>,
) {
    let (Some(from), Some(to)) = (from, to) else {
        return;
    };
    let link = links.entry((from, to)).or_insert_with(|| Link {
        from,
        to,
        labels: Vec::new(),
        is_declared: false,
    });
    match label {
        Some(label) => link.labels.push(label),
        None => link.is_declared = true,
    }
}
