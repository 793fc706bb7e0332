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
        let ports = Ports::new(self, chains);
        let mut badges: Vec<(f64, f64)> = Vec::new();
        let mut route = |line: usize, chain: &Chain| {
            let items = &chain.items;
            let corner = |node| layout.nodes.get(&node).copied().unwrap_or_default();
            let (upper, lower) = (corner(chain.ends.0), corner(chain.ends.1));
            let is_beside = upper.1 >= lower.1;
            let from = ports.of(line, (chain.ends.0, false));
            let to = ports.of(line, (chain.ends.1, true));
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
        let chains = chains.iter().enumerate();
        let routes = chains.map(|(line, chain)| Some(route(line, chain.as_ref()?)));
        routes.map(Option::unwrap_or_default).collect()
    }
}

/// The lines that end at the upper (`true`) or lower side of each node, from left to right by their direction.
struct Ports(BTreeMap<(usize, bool), Vec<(f64, usize)>>);

impl Ports {
    fn new(page: &Page, chains: &[Option<Chain>]) -> Self {
        let x = |item: Option<&usize>| {
            let item = item.and_then(|item| page.items.get(*item));
            item.map_or(0.0, |item| item.x)
        };
        let mut ports: BTreeMap<_, Vec<(f64, usize)>> = BTreeMap::new();
        for (line, chain) in chains.iter().enumerate() {
            let Some(Chain { items, ends, .. }) = chain else {
                continue;
            };
            let towards = [x(items.get(1)), x(items.iter().nth_back(1))];
            for (side, towards) in [(ends.0, false), (ends.1, true)].into_iter().zip(towards) {
                ports.entry(side).or_default().push((towards, line));
            }
        }
        for lines in ports.values_mut() {
            lines.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        Self(ports)
    }

    /// Returns where a line ends at a side, as the distance from the left side of the node.
    fn of(&self, line: usize, side: (usize, bool)) -> f64 {
        let lines = self.0.get(&side).map_or(&[][..], Vec::as_slice);
        let at = lines.iter().position(|(_, other)| *other == line);
        let gaps = lines.len() as f64 + 1.0;
        at.map_or(NODE.0 / 2.0, |at| NODE.0 * (at as f64 + 1.0) / gaps)
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
