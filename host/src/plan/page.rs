//! A plan as a page to look at, which needs nothing but itself.
//!
//! What comes from manifests and input is escaped by `maud` wherever it stands, and the page's policy allows neither scripts nor
//! anything from elsewhere.

use maud::{Markup, html};
use trainyard_model::{claims::Verb, text::clean_to};

use super::{
    graph::Graph,
    matrix::{Cell, Matrix},
    report::{Clash, GrantsReport, PlanReport, PluginReport},
    svg,
};
use crate::output::List;

macro_rules! open {
    () => {
        concat!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            "<meta name=\"color-scheme\" content=\"light dark\">\n",
            "<title>Trainyard plan</title>\n<style>\n",
            include_str!("page.css"),
            "</style>\n</head>\n<body>\n<main>\n",
        )
    };
}

macro_rules! close {
    () => {
        concat!(
            "<footer>Made by trainyard ",
            env!("CARGO_PKG_VERSION"),
            ".</footer>\n</main>\n</body>\n</html>\n"
        )
    };
}

/// The page of a run: what is added are its sections.
pub(super) const PAGE: List = List::of_texts(
    open!(),
    close!(),
    concat!(open!(), "<p>There is no plan.</p>\n", close!()),
);

/// The section of one plan; `number` keeps its names apart from those of the others.
pub(super) fn section(report: &PlanReport<'_>, number: usize) -> String {
    let prefix = format!("s{number}-");
    let graph = Graph::of(report);
    let page = html! {
        section {
            h1 { "Plan: " (report.title()) }
            p class="digest" { "Digest " code { (report.digest) } }
            (orders(report))
            @if !report.plugins.is_empty() {
                figure {
                    div class="scroll" tabindex="0" role="region" aria-label="Graph of the order" { (svg::draw(&graph, &prefix)) }
                    figcaption {
                        "A plugin runs after those above it that a line leads from. The number of a line is that of its reason below. "
                        "A thick line is a declared order, a dashed one a possible clash."
                    }
                }
                (reasons(report, &graph, &prefix))
                (clashes(report, &graph, &prefix))
                (plugins(report))
                (claims(report))
                (grants(report))
            }
            (set_by_the_operator(report))
        }
    };
    let page = page.into_string();
    let lines = page.lines().map(|line| clean_to(line, usize::MAX) + "\n");
    lines.collect()
}

fn orders(report: &PlanReport<'_>) -> Markup {
    html! {
        h2 { "Order" }
        @for order in &report.orders {
            @if order.is_empty() {
                p { "No plugin is active." }
            } @else {
                ol class="order" {
                    @for slot in order {
                        li { (slot.join(" | ")) }
                    }
                }
            }
        }
    }
}

fn reasons(report: &PlanReport<'_>, graph: &Graph<'_>, prefix: &str) -> Markup {
    let name = |node: usize| graph.nodes.get(node).map_or("", |node| node.name);
    let why = |link: &super::graph::Link| {
        let of_link = |reason: &&super::report::Reason| {
            reason.first == name(link.from) && reason.then == name(link.to)
        };
        let reasons = report.because.iter().filter(of_link);
        reasons.cloned().collect::<Vec<_>>()
    };
    html! {
        h2 { "Why in this order" }
        @if graph.edges.is_empty() {
            p { "No plugin depends on another; ties go by name." }
        } @else {
            div class="scroll" {
                table {
                    thead { tr { th { "#" } th { "runs first" } th { "runs after it" } th { "because" } } }
                    tbody {
                        @for (at, link) in graph.edges.iter().enumerate() {
                            @let (id, text) = svg::number(false, at);
                            tr id={ (prefix) (id) } {
                                td class="number" { (text) }
                                td { (name(link.from)) }
                                td { (name(link.to)) }
                                td {
                                    @for reason in why(link) {
                                        @match (&reason.touch, &reason.path) {
                                            (Some(touch), Some(path)) => {
                                                p { "the first " (touch) "s what the second touches at " code { (path) } }
                                            }
                                            _ => p { "a manifest or the policy file declares it" },
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn clashes(report: &PlanReport<'_>, graph: &Graph<'_>, prefix: &str) -> Markup {
    let name = |node: usize| graph.nodes.get(node).map_or("", |node| node.name);
    let of_link = |link: &super::graph::Link| {
        let is_of_link =
            |clash: &&Clash| clash.first == name(link.from) && clash.second == name(link.to);
        let clashes = report.possible_clashes.iter().filter(is_of_link);
        clashes.cloned().collect::<Vec<_>>()
    };
    html! {
        h2 { "Possible clashes" }
        @if graph.clashes.is_empty() {
            p { "None: no two plugins write one place, whatever a TrainJob holds." }
        } @else {
            p { "Both plugins write these. A TrainJob whose own values make the two claims one place is refused, and no other." }
            div class="scroll" {
                table {
                    thead { tr { th { "#" } th { "plugin" } th { "writes" } th { "plugin" } th { "writes" } } }
                    tbody {
                        @for (at, link) in graph.clashes.iter().enumerate() {
                            @let (id, text) = svg::number(true, at);
                            @for (of, clash) in of_link(link).iter().enumerate() {
                                tr id=[(of == 0).then(|| format!("{prefix}{id}"))] {
                                    td class="number" { (text) }
                                    td { (clash.first) }
                                    td { code { (clash.first_claim) } }
                                    td { (clash.second) }
                                    td { code { (clash.second_claim) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn plugins(report: &PlanReport<'_>) -> Markup {
    html! {
        h2 { "Plugins" }
        div class="scroll" {
            table {
                thead { tr { th { "plugin" } th { "version" } th { "active when" } th { "phases" } th { "digest" } } }
                tbody {
                    @for plugin in &report.plugins {
                        tr {
                            th scope="row" { (plugin.name) }
                            td { (plugin.version) }
                            td { code { (plugin.active_when) } }
                            td { (plugin.phases.join(", ")) }
                            td { code class="hash" { (plugin.digest) } }
                        }
                    }
                }
            }
        }
    }
}

fn claims(report: &PlanReport<'_>) -> Markup {
    let matrix = Matrix::of(report);
    html! {
        h2 { "Claims" }
        p {
            span class="cell" { "read" } " " span class="cell create" { "create" } " " span class="cell write" { "write" }
            " is claimed by this path, "
            span class="cell meets" { "read" }
            " by another path of the plugin that means some of the same places. A write includes reading."
        }
        div class="scroll" tabindex="0" role="region" aria-label="Claims by path and plugin" {
            table class="matrix" {
                thead {
                    tr {
                        th { "path" }
                        @for plugin in &report.plugins { th scope="col" { span { (plugin.name) } } }
                    }
                }
                tbody {
                    @for (path, cells) in matrix.rows() {
                        tr {
                            th scope="row" { code { (path) } }
                            @for cell in cells { td { (shown(*cell)) } }
                        }
                    }
                    @for (at, plugin) in report.plugins.iter().enumerate() {
                        @for set in plugin.node_sets {
                            tr {
                                th scope="row" { code { (set) } }
                                @for other in 0..report.plugins.len() {
                                    td { @if other == at { span class="cell write" { "numNodes" } } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn shown(cell: Cell) -> Markup {
    let class = |touch: Verb| match touch {
        Verb::Read => "",
        Verb::Create => " create",
        Verb::Write => " write",
    };
    html! {
        @match cell {
            Cell::Empty => {},
            Cell::Claims(touch) => span class={ "cell" (class(touch)) } { (touch) },
            Cell::Meets(touch) => span class={ "cell meets" (class(touch)) } { (touch) },
        }
    }
}

fn grants(report: &PlanReport<'_>) -> Markup {
    html! {
        h2 { "Grants" }
        div class="scroll" {
            table {
                thead { tr { th { "plugin" } th { "may do beyond the default" } } }
                tbody {
                    @for plugin in &report.plugins {
                        tr { th scope="row" { (plugin.name) } td { (granted(plugin)) } }
                    }
                }
            }
        }
    }
}

fn granted(plugin: &PluginReport<'_>) -> Markup {
    html! {
        @match &plugin.grants {
            None => {},
            Some(GrantsReport::AsClaimed(_)) => "all that it claims (a built-in plugin)",
            Some(GrantsReport::Paths(paths)) if paths.is_empty() => "nothing",
            Some(GrantsReport::Paths(paths)) => @for path in paths { p { code { (path) } } },
        }
    }
}

fn set_by_the_operator(report: &PlanReport<'_>) -> Markup {
    html! {
        @if !report.excluded.is_empty() || !report.disabled.is_empty() {
            h2 { "Set by the policy file" }
            ul {
                @for [a, b] in &report.excluded {
                    li { strong { (a) } " and " strong { (b) } " are never active together." }
                }
                @for name in report.disabled {
                    li { strong { (name) } " is disabled." }
                }
            }
        }
    }
}
