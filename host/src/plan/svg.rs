//! Draws the graph of a plan as SVG, styled by the page.

use maud::{Markup, html};

use super::{
    graph::{Graph, Link},
    layout::{self, LABEL, Layout, NODE, Route},
};

/// The maximum number of characters of a name in a node. The tooltip has the whole name.
const NAME: usize = 18;

/// Draws the graph. Lines have the numbers of the rows `#PREFIXeN` (reasons for the order) and `#PREFIXcN` (possible clashes).
pub(super) fn draw(graph: &Graph<'_>, prefix: &str) -> Markup {
    let layout = layout::layout(graph);
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    let size = format!("0 0 {width} {height}");
    let title = format!("{prefix}graph");
    html! {
        svg class="graph" viewBox=(size) width=(width) height=(height) role="img" aria-labelledby=(title) {
            title id=(title) { "The order of the plugins, from top to bottom" }
            defs {
                marker id={ (prefix) "arrow" } viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse" {
                    path class="head" d="M0 0L10 5L0 10z" {}
                }
            }
            (frames(&layout, false))
            (lines(&graph.edges, &layout.edges, prefix, "edge"))
            (lines(&graph.clashes, &layout.clashes, prefix, "clash"))
            (frames(&layout, true))
            (nodes(graph, &layout))
            (badges(graph, &graph.edges, &layout.edges, prefix, "edge"))
            (badges(graph, &graph.clashes, &layout.clashes, prefix, "clash"))
        }
    }
}

/// Draws the frames, or their labels, which are drawn above the lines.
fn frames(layout: &Layout, labels: bool) -> Markup {
    html! {
        @for frame in &layout.frames {
            g class="frame" {
                @if labels {
                    text x=(frame.x + 14.0) y=(frame.y + LABEL - 3.0) { "one of " (frame.union) }
                } @else {
                    rect x=(frame.x) y=(frame.y) width=(frame.width) height=(frame.height) rx="10" {}
                }
            }
        }
    }
}

fn nodes(graph: &Graph<'_>, layout: &Layout) -> Markup {
    html! {
        @for (at, node) in graph.nodes.iter().enumerate() {
            @if let Some((x, y)) = layout.nodes.get(&at) {
                g class="node" {
                    title { (node.name) " " (node.version) }
                    rect x=(x) y=(y) width=(NODE.0) height=(NODE.1) rx="8" {}
                    text class="name" x=(x + NODE.0 / 2.0) y=(y + 23.0) { (cut(node.name)) }
                    text class="version" x=(x + NODE.0 / 2.0) y=(y + 42.0) { (cut(node.version)) }
                }
            }
        }
    }
}

fn lines(links: &[Link], routes: &[Route], prefix: &str, class: &str) -> Markup {
    let arrow = format!("url(#{prefix}arrow)");
    html! {
        @for (link, route) in links.iter().zip(routes) {
            @let is_edge = class == "edge";
            path class={ (class) @if link.is_declared { " declared" } } d=(path(route))
                marker-end=[(is_edge && !route.is_up).then_some(&arrow)]
                marker-start=[(is_edge && route.is_up).then_some(&arrow)] {}
        }
    }
}

fn badges(
    graph: &Graph<'_>,
    links: &[Link],
    routes: &[Route],
    prefix: &str,
    class: &str,
) -> Markup {
    let name = |node: usize| graph.nodes.get(node).map_or("", |node| node.name);
    html! {
        @for (at, (link, route)) in links.iter().zip(routes).enumerate() {
            @let (x, y) = route.badge;
            @let (id, text) = number(class == "clash", at);
            a href={ "#" (prefix) (id) } {
                title {
                    (name(link.from)) ", " (name(link.to)) ": "
                    @if link.is_declared { "declared " }
                    (link.labels.join("; "))
                }
                g class={ "badge of-" (class) } {
                    rect x=(x - 11.0) y=(y - 9.0) width="22" height="18" rx="9" {}
                    text x=(x) y=(y + 4.0) { (text) }
                }
            }
        }
    }
}

/// Returns the id of a row, and the number of the row and its line.
pub(super) fn number(is_clash: bool, at: usize) -> (String, String) {
    let kind = if is_clash { "c" } else { "e" };
    let text = if is_clash {
        format!("c{}", at + 1)
    } else {
        format!("{}", at + 1)
    };
    (format!("{kind}{}", at + 1), text)
}

/// Returns the path of a line, which is curved between layers and straight within them.
fn path(route: &Route) -> String {
    let mut points = route.points.iter();
    let Some((x, y)) = points.next() else {
        return String::new();
    };
    let mut text = format!("M{x:.1} {y:.1}");
    let (mut x, mut y) = (*x, *y);
    for (to_x, to_y) in points {
        let bend = if (y - to_y).abs() < 1.0 {
            // Between nodes of one layer, the line curves below both.
            y + 40.0
        } else {
            f64::midpoint(y, *to_y)
        };
        text += &format!("C{x:.1} {bend:.1} {to_x:.1} {bend:.1} {to_x:.1} {to_y:.1}");
        (x, y) = (*to_x, *to_y);
    }
    text
}

fn cut(text: &str) -> String {
    trainyard_model::text::clean_to(text, NAME)
}
