//! Conflicts between two patches.

use serde_json::{Map, Value};

use super::{
    drop_empty,
    positions::Positions,
    table::{Child, Node, PLAIN, RUNTIME_PATCH},
};
use crate::FieldPath;

/// One field that two patches set to different values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The field in the one.
    pub(crate) one: FieldPath,
    /// The field in the other.
    pub(crate) other: FieldPath,
}

/// Returns the fields that two `trainingRuntimeSpec`s set to different values, of which a merge would lose one. Items of lists are
/// compared as they are merged. If the two set different members of a union, the conflict is the whole object. At most `most` are
/// returned.
pub(crate) fn conflicts(one: &Value, other: &Value, most: usize) -> Vec<Conflict> {
    if most == 0 {
        return Vec::new();
    }
    let [mut one, mut other] = [one, other].map(Value::clone);
    [&mut one, &mut other].into_iter().for_each(drop_empty);
    let mut found = Found {
        conflicts: Vec::new(),
        most,
    };
    let root = Conflict {
        one: FieldPath::root(),
        other: FieldPath::root(),
    };
    compare(&one, &other, &RUNTIME_PATCH, root, &mut found);
    found.conflicts
}

/// The conflicts found so far.
struct Found {
    conflicts: Vec<Conflict>,
    most: usize,
}

impl Found {
    fn push(&mut self, conflict: Conflict) {
        if !self.is_full() {
            self.conflicts.push(conflict);
        }
    }

    fn is_full(&self) -> bool {
        self.conflicts.len() >= self.most
    }
}

impl Conflict {
    fn below(&self, step: impl Fn(&FieldPath) -> FieldPath) -> Self {
        Self {
            one: step(&self.one),
            other: step(&self.other),
        }
    }
}

fn compare(one: &Value, other: &Value, node: &'static Node, at: Conflict, found: &mut Found) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let (given, there) = (node.alternatives(one), node.alternatives(other));
            let shared = given
                .iter()
                .any(|field| other.get(*field).is_some_and(|v| !v.is_null()));
            if !given.is_empty() && !there.is_empty() && !shared {
                found.push(at);
            } else {
                fields(one, other, node, &at, found);
            }
        }
        _ if one != other => found.push(at),
        _ => {}
    }
}

fn fields(
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    node: &'static Node,
    at: &Conflict,
    found: &mut Found,
) {
    for (name, value) in one {
        let Some(there) = other.get(name) else {
            continue;
        };
        if found.is_full() {
            return;
        }
        let at = at.below(|path| path.field(name));
        match (node.child(name), value, there) {
            (Child::Map, Value::Object(value), Value::Object(there)) => {
                for (key, value) in value {
                    if there.get(key).is_some_and(|there| there != value) {
                        found.push(at.below(|path| path.key(key)));
                    }
                }
            }
            (Child::List(key, node), Value::Array(value), Value::Array(there))
                if keyed(value, key) && keyed(there, key) =>
            {
                items(value, there, (key, node), &at, found);
            }
            (Child::Object(node), ..) => compare(value, there, node, at, found),
            _ => compare(value, there, &PLAIN, at, found),
        }
    }
}

fn items(
    one: &[Value],
    other: &[Value],
    (key, node): (&str, &'static Node),
    at: &Conflict,
    found: &mut Found,
) {
    let places = Positions::of(other, key);
    for (here, item) in one.iter().enumerate() {
        let Some(behind) = places.get(item.get(key)) else {
            continue;
        };
        let at = Conflict {
            one: at.one.index(here),
            other: at.other.index(behind),
        };
        if let Some(there) = other.get(behind) {
            compare(item, there, node, at, found);
        }
    }
}

/// Returns whether each item of a list has its key; the schema refuses other lists.
fn keyed(list: &[Value], key: &str) -> bool {
    list.iter().all(|item| item.get(key).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The places in the first patch where two pod specs differ, below the pod spec.
    fn differing(one: Value, other: Value) -> Vec<String> {
        let patch = |pod: &Value| json!({"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]}}});
        let pod = "template.spec.replicatedJobs[0].template.spec.template.spec.";
        conflicts(&patch(&one), &patch(&other), 8)
            .iter()
            .map(|conflict| conflict.one.to_string().replace(pod, ""))
            .collect()
    }

    #[test]
    fn items_are_told_apart_as_they_are_merged() {
        let container = |fields: Value| json!({"containers": [fields]});
        let port = |number: u16, name: &str| {
            container(json!({"name": "node", "ports": [{"containerPort": number, "name": name}]}))
        };
        assert_eq!(
            differing(port(80, "a"), port(80, "b")),
            ["containers[0].ports[0].name"]
        );
        assert!(differing(port(80, "a"), port(81, "a")).is_empty());
        let alias =
            |ip: &str, host: &str| json!({"hostAliases": [{"ip": ip, "hostnames": [host]}]});
        assert!(differing(alias("10.0.0.1", "a"), alias("10.0.0.2", "b")).is_empty());
        assert_eq!(
            differing(alias("10.0.0.1", "a"), alias("10.0.0.1", "b")),
            ["hostAliases[0].hostnames"]
        );
    }

    /// The schema refuses such lists, but later.
    #[test]
    fn lists_without_their_key_differ_as_a_whole() {
        let named = json!({"containers": [{"name": "node", "image": "a"}]});
        let unnamed = json!({"containers": [{"image": "b"}]});
        assert_eq!(differing(named.clone(), unnamed.clone()), ["containers"]);
        assert_eq!(differing(unnamed, named), ["containers"]);
    }

    #[test]
    fn two_sources_differ_as_a_whole() {
        let env = |fields: Value| json!({"containers": [{"name": "node", "env": [fields]}]});
        let value = env(json!({"name": "A", "value": "x"}));
        let secret =
            env(json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}));
        let field = env(json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}));
        assert_eq!(differing(value, secret.clone()), ["containers[0].env[0]"]);
        assert_eq!(differing(secret, field), ["containers[0].env[0].valueFrom"]);
        let volume = |source: Value| json!({"volumes": [source]});
        assert!(
            differing(
                volume(json!({"name": "v"})),
                volume(json!({"name": "v", "emptyDir": {}}))
            )
            .is_empty()
        );
    }

    #[test]
    fn nulls_and_empty_lists_say_nothing() {
        assert!(
            differing(
                json!({"tolerations": [], "affinity": null}),
                json!({"tolerations": [{"key": "a"}], "affinity": {}})
            )
            .is_empty()
        );
        assert_eq!(
            differing(
                json!({"tolerations": [{"key": "b"}]}),
                json!({"tolerations": [{"key": "a"}]})
            ),
            ["tolerations"]
        );
    }
}
