//! Routes the lines.

use std::collections::BTreeMap;

use super::{Chain, Layout, NODE, Page, RISE, Route};

impl Page {
    /// Returns the routes of the lines.
    pub(super) fn routes(
        &self,
        chains: &[Option<Chain>],
        tops: &[(f64, f64, f64)],
        layout: &Layout,
    ) -> Vec<Route> {
        let x = |item: Option<&usize>| item.and_then(|item| Some(self.items.get(*item)?.x));
        let mut ports = Ports::default();
        for chain in chains.iter().flatten() {
            let items = &chain.items;
            let (first, last) = (items.first(), items.last());
            ports.add((chain.ends.0, false), x(items.get(1).or(last)));
            ports.add((chain.ends.1, true), x(items.iter().nth_back(1).or(first)));
        }
        ports.sort();
        let mut badges: Vec<(f64, f64)> = Vec::new();
        let mut route = |chain: &Chain| {
            let items = &chain.items;
            let corner = |node| layout.nodes.get(&node).copied().unwrap_or_default();
            let (upper, lower) = (corner(chain.ends.0), corner(chain.ends.1));
            let is_beside = upper.1 >= lower.1;
            let from = ports.take((chain.ends.0, false), x(items.get(1).or(items.last())));
            let to = ports.take(
                (chain.ends.1, true),
                x(items.iter().nth_back(1).or(items.first())),
            );
            let mut points = vec![(upper.0 + from, upper.1 + NODE.1)];
            let bends = items.iter().skip(1).take(items.len().saturating_sub(2));
            for item in bends.filter_map(|item| self.items.get(*item)) {
                let (top, _, end) = tops.get(item.layer).copied().unwrap_or_default();
                points.extend([(item.x, top), (item.x, end)]);
            }
            // Between nodes of one layer, the line curves below both.
            let end = if is_beside { lower.1 + NODE.1 } else { lower.1 };
            points.push((lower.0 + to, end));
            let badge = badge(&points, &badges);
            badges.push(badge);
            Route {
                points,
                is_up: chain.is_up,
                badge,
            }
        };
        let chains = chains.iter();
        chains
            .map(|chain| chain.as_ref().map(&mut route).unwrap_or_default())
            .collect()
    }
}

/// The ends of lines at a side of a node, sorted by the direction of the lines.
#[derive(Default)]
struct Ports(BTreeMap<(usize, bool), Vec<(f64, bool)>>);

impl Ports {
    fn add(&mut self, side: (usize, bool), towards: Option<f64>) {
        let ports = self.0.entry(side).or_default();
        ports.push((towards.unwrap_or_default(), false));
    }

    fn sort(&mut self) {
        for ports in self.0.values_mut() {
            ports.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }

    /// Returns the next free port for a line in a direction, as the distance from the left side of the node.
    fn take(&mut self, side: (usize, bool), towards: Option<f64>) -> f64 {
        let towards = towards.unwrap_or_default();
        let Some(ports) = self.0.get_mut(&side) else {
            return NODE.0 / 2.0;
        };
        let count = ports.len() as f64;
        let free = |(_, (x, is_taken)): &(usize, &mut (f64, bool))| *x == towards && !*is_taken;
        let Some((at, port)) = ports.iter_mut().enumerate().find(free) else {
            return NODE.0 / 2.0;
        };
        port.1 = true;
        NODE.0 * (at as f64 + 1.0) / (count + 1.0)
    }
}

/// Returns the position of a line's number: on its first segment, away from other numbers.
fn badge(points: &[(f64, f64)], others: &[(f64, f64)]) -> (f64, f64) {
    const ROOM: f64 = 24.0;
    let mut ends = points.iter().copied();
    let (Some(a), Some(b)) = (ends.next(), ends.next()) else {
        return (0.0, 0.0);
    };
    let on = |t: f64| {
        // The curve of `svg::path`, whose ends are vertical.
        let bend = 3.0 * t * t - 2.0 * t * t * t;
        let hang = if a.1 == b.1 { 0.75 * RISE / 2.0 } else { 0.0 };
        let y = 1.5 * t * (1.0 - t) * (1.0 - t) + 1.5 * t * t * (1.0 - t) + t * t * t;
        (a.0 + (b.0 - a.0) * bend, a.1 + (b.1 - a.1) * y + hang)
    };
    let is_free = |place: &(f64, f64)| {
        let apart = |other: &(f64, f64)| (other.0 - place.0).hypot(other.1 - place.1) >= ROOM;
        others.iter().all(apart)
    };
    let places = [0.5, 0.35, 0.65, 0.22, 0.78].map(on);
    places.into_iter().find(is_free).unwrap_or(on(0.5))
}
