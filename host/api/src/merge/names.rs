//! Paths in a JobSet, by the names of list items or by their positions.

use std::{
    cell::RefCell,
    collections::{HashMap, hash_map::Entry},
};

use serde_json::{Map, Value};

use super::table::{Child, Node, PLAIN};
use crate::{FieldPath, fields::value_at, path::Segment};

/// How a path identifies the items of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Names,
    Positions,
}

/// Returns the path with names instead of positions, for items that exist and have names.
#[must_use]
pub fn by_names(value: &Value, node: &'static Node, path: &FieldPath) -> FieldPath {
    Names::new(value, node).by_names(path)
}

/// Returns the path with positions instead of names; the path of the nearest parent if the value does not exist. A member can be
/// written as `.name` or `[name]`, an item as its position or name, and a port as `80` or `80/TCP`.
#[must_use]
pub fn by_positions(value: &Value, node: &'static Node, path: &FieldPath) -> FieldPath {
    Names::new(value, node).by_positions(path)
}

/// Converts many paths of one value. The names in a list are indexed when the first path goes through the list.
pub struct Names<'v> {
    value: &'v Value,
    node: &'static Node,
    /// The positions of the names of a list, by the list's address.
    lists: RefCell<HashMap<*const Value, HashMap<String, usize>>>,
}

impl<'v> Names<'v> {
    /// Converts paths of a value, which `node` describes.
    #[must_use]
    pub fn new(value: &'v Value, node: &'static Node) -> Self {
        let lists = RefCell::default();
        Self { value, node, lists }
    }

    /// See [`by_names`].
    #[must_use]
    pub fn by_names(&self, path: &FieldPath) -> FieldPath {
        self.walk(path, Spelling::Names)
    }

    /// See [`by_positions`].
    #[must_use]
    pub fn by_positions(&self, path: &FieldPath) -> FieldPath {
        self.walk(path, Spelling::Positions)
    }

    /// Returns the value at a path, in either spelling. `None` if it does not exist.
    #[must_use]
    pub fn value(&self, path: &FieldPath) -> Option<&'v Value> {
        let placed = self.by_positions(path);
        if placed.segments().len() < path.segments().len() {
            return None;
        }
        value_at(self.value, placed.segments())
    }

    fn walk(&self, path: &FieldPath, spelling: Spelling) -> FieldPath {
        let mut out = Vec::new();
        let (mut value, mut here) = (self.value, Child::Object(self.node));
        for segment in path.segments() {
            let found = match value {
                Value::Array(items) => self.item(items, here, segment, spelling),
                Value::Object(members) => member(members, here, segment),
                _ => None,
            };
            let Some((step, below)) = found else { break };
            here = match (here, &step) {
                (Child::Object(node), Segment::Field(name)) => node.child(name),
                (Child::List(_, node), Segment::Index(_) | Segment::Key(_)) => Child::Object(node),
                _ => Child::Object(&PLAIN),
            };
            out.push(step);
            value = below;
        }
        out.into_iter().collect()
    }

    /// Converts a step into a list.
    fn item(
        &self,
        items: &'v [Value],
        here: Child,
        segment: &Segment,
        spelling: Spelling,
    ) -> Option<(Segment, &'v Value)> {
        let key = match here {
            Child::List(key, _) => Some(key),
            _ => None,
        };
        let at = self.position(items, key, segment)?;
        let value = items.get(at)?;
        let name = key.and_then(|key| Some(text(value.get(key)?)));
        let name = match protocol(value).filter(|_| key == Some(PORT)) {
            Some(protocol) if protocol != "TCP" => name.map(|name| format!("{name}/{protocol}")),
            _ => name,
        };
        let step = match (spelling, name) {
            (Spelling::Names, Some(name)) => Segment::Key(name),
            _ => Segment::Index(at),
        };
        Some((step, value))
    }

    /// Finds the item of a step, by its position or else by its name.
    fn position(&self, items: &[Value], key: Option<&str>, segment: &Segment) -> Option<usize> {
        let name = match segment {
            Segment::Index(at) if *at < items.len() => return Some(*at),
            Segment::Index(_) if items.iter().any(Value::is_string) => return None,
            Segment::Index(_) | Segment::Key(_) => segment.text(),
            Segment::Field(_) => return None,
        };
        let mut lists = self.lists.borrow_mut();
        let names = lists
            .entry(items.as_ptr())
            .or_insert_with(|| names_of(items, key.unwrap_or("name")));
        names.get(&*name).copied()
    }
}

/// The key of a container's ports.
const PORT: &str = "containerPort";

/// The first positions of the names in a list. A port also has a name with its protocol, and its number alone is the TCP port's if there
/// is one. A string is its own name.
fn names_of(items: &[Value], key: &str) -> HashMap<String, usize> {
    let mut names = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let plain = || item.as_str().map(str::to_owned);
        let Some(name) = item.get(key).map(text).or_else(plain) else {
            continue;
        };
        if key == PORT {
            let protocol = protocol(item).unwrap_or("TCP");
            let with_protocol = names.entry(format!("{name}/{protocol}"));
            if protocol == "TCP" && matches!(with_protocol, Entry::Vacant(_)) {
                with_protocol.or_insert(at);
                names.insert(name, at);
                continue;
            }
            with_protocol.or_insert(at);
        }
        names.entry(name).or_insert(at);
    }
    names
}

/// Formats an item's key for a path.
pub(super) fn text(key: &Value) -> String {
    key.as_str().map_or_else(|| key.to_string(), str::to_owned)
}

/// Converts a step into an object.
fn member<'v>(
    members: &'v Map<String, Value>,
    here: Child,
    segment: &Segment,
) -> Option<(Segment, &'v Value)> {
    let (name, value) = members.get_key_value(&*segment.text())?;
    let step = match here {
        Child::Map => Segment::Key(name.clone()),
        _ => Segment::Field(name.clone()),
    };
    Some((step, value))
}

fn protocol(port: &Value) -> Option<&str> {
    port.get("protocol")?.as_str()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::merge::{JOB_SET, JOB_SET_SPEC};

    fn pods(spec: Value) -> Value {
        json!({"replicatedJobs": [{"name": "a"}, {"name": "node", "template": {"spec": {"template": spec}}}]})
    }

    #[test]
    fn names_and_positions_are_two_spellings_of_one_path() {
        let spec = pods(json!({
            "metadata": {"labels": {"x.io/y": "z"}},
            "spec": {"containers": [{"name": "node", "volumeMounts": [{"mountPath": "/d"}], "args": ["x", "y"]}]},
        }));
        for below in [
            (
                "spec.containers[node].volumeMounts[/d]",
                "spec.containers[0].volumeMounts[0]",
            ),
            (
                "spec.containers[node].args[1]",
                "spec.containers[0].args[1]",
            ),
            ("metadata.labels[x.io/y]", "metadata.labels[x.io/y]"),
        ] {
            let named: FieldPath =
                format!("replicatedJobs[node].template.spec.template.{}", below.0)
                    .parse()
                    .unwrap();
            let placed: FieldPath = format!("replicatedJobs[1].template.spec.template.{}", below.1)
                .parse()
                .unwrap();
            for path in [&named, &placed] {
                assert_eq!(by_positions(&spec, &JOB_SET_SPEC, path), placed);
                assert_eq!(by_names(&spec, &JOB_SET_SPEC, path), named);
            }
        }
    }

    #[test]
    fn what_is_not_there_ends_at_its_nearest_parent() {
        let job_set = json!({"spec": pods(json!({"spec": {"containers": [{"name": "node", "args": ["2"]}]}}))});
        let pod = "spec.replicatedJobs[1].template.spec.template.spec";
        for (path, nearest) in [
            ("containers[other].image", "containers"),
            ("containers[1]", "containers"),
            ("containers.node", "containers"),
            ("containers[node].name.x", "containers[0].name"),
            ("containers[node].args[2]", "containers[0].args"),
        ] {
            let path = format!("{pod}.{path}").parse().unwrap();
            let found = by_positions(&job_set, &JOB_SET, &path);
            assert_eq!(found.to_string(), format!("{pod}.{nearest}"));
            assert_eq!(Names::new(&job_set, &JOB_SET).value(&path), None);
        }
        let name = format!("{pod}.containers[node].name").parse().unwrap();
        assert_eq!(
            Names::new(&job_set, &JOB_SET).value(&name),
            Some(&json!("node"))
        );
    }

    #[test]
    fn ports_and_uses_of_claims_are_found_by_key() {
        let spec = pods(json!({"spec": {"containers": [{
            "name": "node",
            "ports": [
                {"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80}, {"containerPort": 80, "protocol": "SCTP"},
                {"containerPort": 4, "protocol": "TCP"},
            ],
            "resources": {"claims": [{"name": "gpu"}], "requests": {"memory": "1Gi"}},
        }]}}));
        let container = "replicatedJobs[1].template.spec.template.spec.containers[0]";
        for (path, wanted) in [
            ("ports[80]", "ports[1]"),
            ("ports[80/TCP]", "ports[1]"),
            ("ports[80/UDP].protocol", "ports[0].protocol"),
            ("ports[4]", "ports[3]"),
            ("resources.claims[gpu]", "resources.claims[0]"),
            ("resources.requests.memory", "resources.requests[memory]"),
        ] {
            let path = format!("{container}.{path}").parse().unwrap();
            let found = by_positions(&spec, &JOB_SET_SPEC, &path);
            assert_eq!(found.to_string(), format!("{container}.{wanted}"));
        }
        for (at, wanted) in [(0, "[80/UDP]"), (1, "[80]"), (2, "[80/SCTP]"), (3, "[4]")] {
            let path = format!("{container}.ports[{at}]").parse().unwrap();
            let found = by_names(&spec, &JOB_SET_SPEC, &path);
            assert!(
                found.to_string().ends_with(&format!("ports{wanted}")),
                "{found}"
            );
        }
    }
}
