//! Groups plugins into blocks, and assigns blocks to layers.

use std::collections::{BTreeMap, BTreeSet};

use super::{NODE, PAD};
use crate::plan::graph::{Graph, Link};

/// A plugin, or the members of a union, that are placed as a unit.
pub(super) struct Block {
    pub(super) members: Vec<usize>,
    pub(super) union: Option<&'static str>,
}

impl Block {
    pub(super) fn width(&self) -> f64 {
        let members = self.members.len() as f64;
        let frame = if self.union.is_some() { 2.0 * PAD } else { 0.0 };
        members * NODE.0 + (members - 1.0) * PAD + frame
    }

    /// Returns the distance of a member's center from the block's center.
    pub(super) fn offset(&self, node: usize) -> f64 {
        let at = self.members.iter().position(|member| *member == node);
        let middle = (self.members.len() as f64 - 1.0) / 2.0;
        at.map_or(0.0, |at| (at as f64 - middle) * (NODE.0 + PAD))
    }
}

/// Returns the blocks of a graph. The members of a union share a block, unless another plugin runs between them. In that case, each block has
/// the members of one layer.
pub(super) fn blocks(graph: &Graph<'_>) -> Vec<Block> {
    let unions = graph.unions();
    let whole = blocks_of(
        graph,
        unions.iter().map(|(union, all)| (*union, all.clone())),
    );
    let of_block = block_of(&whole);
    let ends = |link: &Link| Some((*of_block.get(&link.from)?, *of_block.get(&link.to)?));
    let edges: BTreeSet<_> = graph.edges.iter().filter_map(ends).collect();
    let all: Vec<_> = (0..whole.len()).collect();
    let layers = ranks(&all, &edges);
    let leads_down = |(first, then): &(usize, usize)| layers.get(first) < layers.get(then);
    if edges.iter().all(leads_down) {
        return whole;
    }
    let nodes: Vec<_> = (0..graph.nodes.len()).collect();
    let edges = graph
        .edges
        .iter()
        .map(|link| (link.from, link.to))
        .collect();
    let layers = ranks(&nodes, &edges);
    let mut parts: BTreeMap<(&'static str, usize), Vec<usize>> = BTreeMap::new();
    for (union, members) in &unions {
        let is_linked = |node: &usize| edges.iter().any(|(a, b)| a == node || b == node);
        let layer = |node: &usize| layers.get(node).copied().unwrap_or_default();
        let (linked, free): (Vec<_>, Vec<_>) = members.iter().copied().partition(is_linked);
        let first = linked.iter().map(layer).min().unwrap_or_default();
        for node in linked {
            parts.entry((*union, layer(&node))).or_default().push(node);
        }
        parts.entry((*union, first)).or_default().extend(free);
    }
    blocks_of(
        graph,
        parts.into_iter().map(|((union, _), all)| (union, all)),
    )
}

/// Returns the block of each node.
pub(super) fn block_of(blocks: &[Block]) -> BTreeMap<usize, usize> {
    let blocks = blocks.iter().enumerate();
    let nodes = blocks.flat_map(|(at, block)| block.members.iter().map(move |node| (*node, at)));
    nodes.collect()
}

/// Returns these frames as blocks, and a block for each node outside of them.
fn blocks_of(
    graph: &Graph<'_>,
    framed: impl Iterator<Item = (&'static str, Vec<usize>)>,
) -> Vec<Block> {
    let framed = framed.map(|(union, members)| Block {
        members,
        union: Some(union),
    });
    let mut blocks: Vec<_> = framed.collect();
    let in_frame: BTreeSet<usize> = block_of(&blocks).into_keys().collect();
    let alone = (0..graph.nodes.len()).filter(|node| !in_frame.contains(node));
    blocks.extend(alone.map(|node| Block {
        members: vec![node],
        union: None,
    }));
    blocks.sort_by_key(|block| block.members.first().copied());
    blocks
}

/// Returns the layer of each block: below all blocks that run before it, and as close as possible to those that run after it. Members of a union
/// may form an apparent cycle, which is broken at the first remaining block.
pub(super) fn ranks(blocks: &[usize], edges: &BTreeSet<(usize, usize)>) -> BTreeMap<usize, usize> {
    let mut left: BTreeSet<usize> = blocks.iter().copied().collect();
    let mut ranks: BTreeMap<usize, usize> = BTreeMap::new();
    while let Some(first) = left.first().copied() {
        let is_free = |block: &usize| {
            let mut before = edges.iter().filter(|(_, then)| then == block);
            before.all(|(first, _)| first == block || !left.contains(first))
        };
        let next = left.iter().copied().find(is_free).unwrap_or(first);
        let above = edges.iter().filter(|(_, then)| *then == next);
        let above = above.filter_map(|(first, _)| ranks.get(first)).max();
        let rank = above.map_or(0, |above| above + 1);
        ranks.insert(next, rank);
        left.remove(&next);
    }
    let mut from_below: Vec<_> = ranks.iter().map(|(block, rank)| (*rank, *block)).collect();
    from_below.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    for (rank, block) in from_below {
        let below = edges.iter().filter(|(first, _)| *first == block);
        let below = below.filter_map(|(_, then)| ranks.get(then)).min();
        if let Some(below) = below.copied()
            && below > rank + 1
        {
            ranks.insert(block, below - 1);
        }
    }
    ranks
}
