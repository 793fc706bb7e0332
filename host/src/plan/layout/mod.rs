//! Lays out a graph: plugins in layers, each below those that run before it; the members of a union side by side in a frame; and lines around
//! the nodes between their ends.
//!
//! The steps are those of Sugiyama's method: layers, bends where a line crosses a layer, then positions that shorten the lines.

mod blocks;
mod routes;

use std::collections::{BTreeMap, BTreeSet};

use self::blocks::{Block, block_of, blocks, ranks};
use super::graph::{Graph, Link};

/// The size of a node.
pub(super) const NODE: (f64, f64) = (150.0, 52.0);
/// The height of a frame's label.
pub(super) const LABEL: f64 = 22.0;
/// The padding of a frame.
const PAD: f64 = 14.0;
/// The gap between two items of a layer.
const GAP: f64 = 26.0;
/// The gap between two layers.
const RISE: f64 = 78.0;
/// The margin around the graph.
const MARGIN: f64 = 16.0;
/// Half the width of a line that crosses a layer.
const BEND: f64 = 8.0;
/// The width from which plugins without lines continue in another row.
const ROW: f64 = 800.0;
/// The number of passes that improve the positions.
const PASSES: usize = 24;
/// The number of first passes that also change the order within layers.
const ORDERING: usize = 12;

/// A graph on a page.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The upper left corner of each node.
    pub(super) nodes: BTreeMap<usize, (f64, f64)>,
    pub(super) frames: Vec<Frame>,
    /// In the order of the graph's edges.
    pub(super) edges: Vec<Route>,
    /// In the order of the graph's clashes.
    pub(super) clashes: Vec<Route>,
}

/// A frame around the members of a union.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) union: &'static str,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The route of a line, from its upper end to its lower end.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    pub(super) points: Vec<(f64, f64)>,
    /// Whether it points upwards.
    pub(super) is_up: bool,
    /// The position of its number.
    pub(super) badge: (f64, f64),
}

/// A block or a bend in its layer.
struct Item {
    layer: usize,
    half: f64,
    /// The center.
    x: f64,
    /// The items to align with, each with the preferred distance from its center.
    pulls: Vec<(usize, f64)>,
}

/// A line across layers.
struct Chain {
    /// The items, from the upper end to the lower end.
    items: Vec<usize>,
    /// The nodes at its ends.
    ends: (usize, usize),
    is_up: bool,
}

pub(super) fn layout(graph: &Graph<'_>) -> Layout {
    let blocks = blocks(graph);
    let block_of = block_of(&blocks);
    let ends = |link: &Link| Some((*block_of.get(&link.from)?, *block_of.get(&link.to)?));
    let ordered: BTreeSet<_> = graph.edges.iter().filter_map(ends).collect();
    let clashing = graph.clashes.iter().filter_map(ends);
    let linked: BTreeSet<_> = ordered.iter().copied().chain(clashing).collect();
    let is_linked = |block: &usize| linked.iter().any(|(a, b)| a == block || b == block);
    let (linked, alone): (Vec<_>, Vec<_>) = (0..blocks.len()).partition(is_linked);
    let mut page = Page::new(&blocks, &linked, &ranks(&linked, &ordered));
    let chains: Vec<_> = graph
        .edges
        .iter()
        .chain(&graph.clashes)
        .map(|link| page.chain(&blocks, ends(link), link))
        .collect();
    page.improve();
    let mut layout = Layout::default();
    let tops = page.stack(&blocks, &mut layout);
    page.rows(&blocks, &alone, &mut layout);
    let mut routes = page.routes(&chains, &tops, &layout);
    layout.clashes = routes.split_off(graph.edges.len());
    layout.edges = routes;
    layout
}

/// The items of the layers.
struct Page {
    items: Vec<Item>,
    /// The item of each block.
    of_block: BTreeMap<usize, usize>,
    layers: Vec<Vec<usize>>,
}

/// Neighbors without free space between them.
struct Group {
    /// The sum of the members' preferred positions, minus their distances from the first.
    wanted: f64,
    count: f64,
    /// The items, each with its distance from the first.
    members: Vec<(usize, f64)>,
}

impl Group {
    /// Returns the position of the first member.
    fn mean(&self) -> f64 {
        self.wanted / self.count
    }
}

impl Page {
    fn new(blocks: &[Block], linked: &[usize], ranks: &BTreeMap<usize, usize>) -> Self {
        let mut page = Self {
            items: Vec::new(),
            of_block: BTreeMap::new(),
            layers: Vec::new(),
        };
        for at in linked {
            if let (Some(block), Some(layer)) = (blocks.get(*at), ranks.get(at)) {
                let item = page.add(*layer, block.width() / 2.0);
                page.of_block.insert(*at, item);
            }
        }
        page
    }

    fn add(&mut self, layer: usize, half: f64) -> usize {
        let item = self.items.len();
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, Vec::new());
        }
        let others = self.layers.get_mut(layer);
        let x = others.as_ref().map_or(0.0, |others| others.len() as f64);
        others.into_iter().for_each(|others| others.push(item));
        self.items.push(Item {
            layer,
            half,
            x,
            pulls: Vec::new(),
        });
        item
    }

    fn layer_of(&self, item: usize) -> usize {
        self.items.get(item).map_or(0, |item| item.layer)
    }

    /// Adds the bends of a line.
    fn chain(
        &mut self,
        blocks: &[Block],
        ends: Option<(usize, usize)>,
        link: &Link,
    ) -> Option<Chain> {
        let (from, to) = ends?;
        let (a, b) = (*self.of_block.get(&from)?, *self.of_block.get(&to)?);
        let is_up = self.layer_of(a) > self.layer_of(b);
        let of = |item, block: usize, node| {
            let offset = blocks.get(block).map_or(0.0, |block| block.offset(node));
            (item, offset, node)
        };
        let (a, b) = (of(a, from, link.from), of(b, to, link.to));
        let (upper, lower) = if is_up { (b, a) } else { (a, b) };
        let bends = self.layer_of(upper.0) + 1..self.layer_of(lower.0);
        let bends: Vec<_> = bends.map(|layer| (self.add(layer, BEND), 0.0)).collect();
        let along: Vec<(usize, f64)> = std::iter::once((upper.0, upper.1))
            .chain(bends)
            .chain([(lower.0, lower.1)])
            .collect();
        for (one, other) in along.iter().zip(along.iter().skip(1)) {
            for (from, to) in [(one, other), (other, one)] {
                if let Some(item) = self.items.get_mut(from.0) {
                    item.pulls.push((to.0, to.1 - from.1));
                }
            }
        }
        Some(Chain {
            items: along.into_iter().map(|(item, _)| item).collect(),
            ends: (upper.2, lower.2),
            is_up,
        })
    }

    /// Moves linked items towards each other.
    fn improve(&mut self) {
        for pass in 0..PASSES {
            let layers = 0..self.layers.len();
            let layers: Vec<_> = if pass % 2 == 0 {
                layers.collect()
            } else {
                layers.rev().collect()
            };
            for layer in layers {
                let mut items = self.layers.get(layer).cloned().unwrap_or_default();
                if pass < ORDERING {
                    items.sort_by(|a, b| self.wanted(*a).total_cmp(&self.wanted(*b)));
                }
                self.place(&items);
                if let Some(layer) = self.layers.get_mut(layer) {
                    *layer = items;
                }
            }
        }
    }

    /// Returns the preferred position of an item.
    fn wanted(&self, item: usize) -> f64 {
        let Some(item) = self.items.get(item) else {
            return 0.0;
        };
        let pulls = item.pulls.iter();
        let places = pulls.filter_map(|(other, dx)| Some(self.items.get(*other)?.x + dx));
        let (sum, count) = places.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
        if count > 0.0 { sum / count } else { item.x }
    }

    /// Places the items of a layer in this order, as close as possible to their preferred positions. Neighbors that would overlap form a group at
    /// the mean of these.
    fn place(&mut self, items: &[usize]) {
        let mut groups: Vec<Group> = Vec::new();
        let mut before: Option<(f64, f64)> = None;
        for item in items {
            let half = self.items.get(*item).map_or(0.0, |item| item.half);
            let distance = before.map_or(0.0, |(distance, other)| distance + other + GAP + half);
            before = Some((distance, half));
            let mut group = Group {
                wanted: self.wanted(*item) - distance,
                count: 1.0,
                members: vec![(*item, distance)],
            };
            while let Some(last) = groups.pop_if(|last| last.mean() > group.mean()) {
                let members = last.members.into_iter().chain(group.members);
                group = Group {
                    wanted: last.wanted + group.wanted,
                    count: last.count + group.count,
                    members: members.collect(),
                };
            }
            groups.push(group);
        }
        for group in groups {
            let mean = group.mean();
            for (item, distance) in group.members {
                if let Some(item) = self.items.get_mut(item) {
                    item.x = mean + distance;
                }
            }
        }
    }

    /// Stacks the layers. Returns the top of each layer, the top of its nodes, and its bottom.
    fn stack(&mut self, blocks: &[Block], layout: &mut Layout) -> Vec<(f64, f64, f64)> {
        let left = self.items.iter().map(|item| item.x - item.half);
        let shift = MARGIN - left.fold(f64::INFINITY, f64::min);
        self.items.iter_mut().for_each(|item| item.x += shift);
        let right = self.items.iter().map(|item| item.x + item.half);
        layout.width = right.fold(0.0, f64::max) + MARGIN;
        layout.height = MARGIN;
        let mut tops = Vec::new();
        for layer in &self.layers {
            let has = |block: &Block, item: &usize| block.union.is_some() && layer.contains(item);
            let mut of_block = self.of_block.iter();
            let is_framed =
                of_block.any(|(block, item)| blocks.get(*block).is_some_and(|b| has(b, item)));
            let (above, below) = frame(is_framed);
            let top = layout.height;
            let end = top + above + NODE.1 + below;
            tops.push((top, top + above, end));
            layout.height = end + RISE;
        }
        if !self.layers.is_empty() {
            layout.height += MARGIN - RISE;
        }
        for (block, item) in &self.of_block {
            let (Some(block), Some(item)) = (blocks.get(*block), self.items.get(*item)) else {
                continue;
            };
            let top = tops.get(item.layer).map_or(0.0, |(_, top, _)| *top);
            place_block(block, item.x, top, layout);
        }
        tops
    }

    /// Places plugins without lines in rows below the others.
    fn rows(&self, blocks: &[Block], alone: &[usize], layout: &mut Layout) {
        let most = layout.width.max(ROW) - MARGIN;
        let mut blocks = alone.iter().filter_map(|at| blocks.get(*at)).peekable();
        if layout.height == 0.0 {
            layout.height = MARGIN;
        }
        while blocks.peek().is_some() {
            let mut row: Vec<&Block> = Vec::new();
            let mut x = MARGIN;
            while let Some(block) =
                blocks.next_if(|next| row.is_empty() || x + next.width() <= most)
            {
                x += block.width() + GAP;
                row.push(block);
            }
            let (above, below) = frame(row.iter().any(|block| block.union.is_some()));
            layout.width = layout.width.max(x - GAP + MARGIN);
            let top = layout.height + above;
            x = MARGIN;
            for block in row {
                place_block(block, x + block.width() / 2.0, top, layout);
                x += block.width() + GAP;
            }
            layout.height = top + NODE.1 + below + MARGIN;
        }
    }
}

/// Returns the heights of a frame above and below its nodes, if a row has one.
const fn frame(is_framed: bool) -> (f64, f64) {
    match is_framed {
        true => (LABEL + PAD, PAD),
        false => (0.0, 0.0),
    }
}

/// Places a block with its center at `x` and its nodes at `top`.
fn place_block(block: &Block, x: f64, top: f64, layout: &mut Layout) {
    for node in &block.members {
        let left = x + block.offset(*node) - NODE.0 / 2.0;
        layout.nodes.insert(*node, (left, top));
    }
    if let Some(union) = block.union {
        layout.frames.push(Frame {
            union,
            x: x - block.width() / 2.0,
            y: top - LABEL - PAD,
            width: block.width(),
            height: LABEL + NODE.1 + 2.0 * PAD,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::graph::Node;

    fn link(from: usize, to: usize) -> Link {
        Link {
            from,
            to,
            labels: vec!["labels[a]".to_owned()],
            is_declared: false,
        }
    }

    fn graph(unions: &[Option<&'static str>], edges: &[(usize, usize)]) -> Graph<'static> {
        let node = |union: &Option<&'static str>| Node {
            name: "a",
            version: "1.0.0",
            union: *union,
        };
        Graph {
            nodes: unions.iter().map(node).collect(),
            edges: edges.iter().map(|(from, to)| link(*from, *to)).collect(),
            clashes: Vec::new(),
        }
    }

    fn overlap(a: (f64, f64), b: (f64, f64)) -> bool {
        (a.0 - b.0).abs() < NODE.0 && (a.1 - b.1).abs() < NODE.1
    }

    fn is_readable(graph: &Graph<'_>) -> Layout {
        let layout = layout(graph);
        assert_eq!(layout.nodes.len(), graph.nodes.len());
        assert_eq!(layout.edges.len(), graph.edges.len());
        for (a, place) in &layout.nodes {
            let (x, y) = *place;
            assert!(x >= 0.0 && x + NODE.0 <= layout.width, "{a}: {place:?}");
            assert!(y >= 0.0 && y + NODE.1 <= layout.height, "{a}: {place:?}");
            for (b, other) in layout.nodes.iter().filter(|(b, _)| *b > a) {
                assert!(!overlap(*place, *other), "{a} and {b} overlap");
            }
        }
        layout
    }

    #[test]
    fn nodes_do_not_overlap_and_stand_below_those_that_run_before() {
        let edges = [
            (0, 1),
            (0, 2),
            (0, 3),
            (1, 4),
            (2, 4),
            (3, 4),
            (0, 4),
            (4, 6),
        ];
        let ml = Some("mlPolicy");
        let graph = graph(&[None, ml, ml, ml, None, None, None], &edges);
        let layout = is_readable(&graph);
        let y = |node| layout.nodes.get(&node).map(|(_, y)| *y);
        for (first, then) in edges {
            assert!(y(first) < y(then), "{first} and {then}");
        }
        assert!(y(1) == y(2) && y(2) == y(3));
        assert_eq!(layout.frames.len(), 1);
        assert!(layout.edges.iter().all(|route| !route.is_up));
    }

    #[test]
    fn as_many_plugins_as_a_generation_has_are_placed() {
        let edges: Vec<_> = (0..64)
            .flat_map(|a| (a + 1..64).map(move |b| (a, b)))
            .collect();
        is_readable(&graph(&[None; 64], &edges));
        is_readable(&graph(&[Some("mlPolicy"); 64], &[]));
        is_readable(&graph(&[None; 64], &[]));
        is_readable(&graph(&[], &[]));
    }

    #[test]
    fn what_runs_between_two_members_of_a_union_parts_them() {
        let ml = Some("mlPolicy");
        let layout = is_readable(&graph(&[ml, ml, ml, None], &[(0, 3), (3, 1)]));
        assert_eq!(layout.frames.len(), 2);
        assert!(layout.edges.iter().all(|route| !route.is_up));
    }

    #[test]
    fn what_seems_a_cycle_through_members_of_a_union_is_drawn() {
        let ml = Some("mlPolicy");
        let edges = [(0, 2), (2, 1), (1, 3), (3, 0)];
        let layout = is_readable(&graph(&[ml, ml, None, None], &edges));
        assert_eq!(layout.edges.iter().filter(|route| route.is_up).count(), 1);
    }
}
