//! Paths below a JobSet's spec, by the names of list items or by their positions.

use serde_json::Value;
use trainyard_api::{FieldPath, path::Segment};

use super::table::{Child, JOB_SET_SPEC, Node, PLAIN};

/// The path with names in place of positions, as far as items have names.
pub(crate) fn by_names(spec: &Value, path: &FieldPath) -> FieldPath {
    walk(spec, path, |items, segment, key| {
        let Segment::Index(at) = segment else {
            return None;
        };
        let item = items.get(*at)?;
        Some((Segment::Key(text(item.get(key)?)), item))
    })
}

/// The path with positions in place of names, as far as the value has such items: what is nearest to it.
pub(crate) fn by_positions(spec: &Value, path: &FieldPath) -> FieldPath {
    walk(spec, path, |items, segment, key| {
        let Segment::Key(name) = segment else {
            return None;
        };
        let named = |item: &Value| item.get(key).is_some_and(|value| text(value) == *name);
        let at = items.iter().position(named)?;
        Some((Segment::Index(at), items.get(at)?))
    })
}

/// The text by which an item's key stands in a path.
pub(super) fn text(key: &Value) -> String {
    key.as_str().map_or_else(|| key.to_string(), str::to_owned)
}

type Item<'v> = Option<(Segment, &'v Value)>;

fn walk<'v>(
    spec: &'v Value,
    path: &FieldPath,
    item: impl Fn(&'v [Value], &Segment, &str) -> Item<'v>,
) -> FieldPath {
    let mut out = Vec::new();
    let (mut value, mut node): (&Value, &'static Node) = (spec, &JOB_SET_SPEC);
    let mut list: Option<(&str, &'static Node)> = None;
    for segment in path.segments() {
        let (step, below) = match (segment, value, list.take()) {
            (segment, Value::Array(items), Some((key, below))) => {
                let Some((step, found)) = item(items, segment, key) else {
                    break;
                };
                node = below;
                (step, Some(found))
            }
            (Segment::Field(field), _, _) => {
                match node.child(field) {
                    Child::Object(below) => node = below,
                    Child::Map => node = &PLAIN,
                    Child::List(key, below) => list = Some((key, below)),
                }
                (segment.clone(), value.get(field))
            }
            (Segment::Key(key), _, _) => (segment.clone(), value.get(key)),
            (Segment::Index(at), _, _) => (segment.clone(), value.get(*at)),
        };
        let Some(below) = below else { break };
        out.push(step);
        value = below;
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_positions_are_two_spellings_of_one_path() {
        let spec = json!({"replicatedJobs": [{"name": "a"}, {"name": "node", "template": {"spec": {"template": {
            "metadata": {"labels": {"x.io/y": "z"}},
            "spec": {"containers": [{"name": "node", "volumeMounts": [{"mountPath": "/d"}], "args": ["x", "y"]}]},
        }}}}]});
        let node = FieldPath::root().field("replicatedJobs");
        let pod = |path: FieldPath| path.field("template").field("spec").field("template");
        let (named, placed) = (pod(node.key("node")), pod(node.index(1)));
        let container = |path: &FieldPath, container: fn(FieldPath) -> FieldPath| {
            container(path.field("spec").field("containers"))
        };
        let cases = [
            (
                container(&named, |p| p.key("node").field("volumeMounts").key("/d")),
                container(&placed, |p| p.index(0).field("volumeMounts").index(0)),
            ),
            (
                container(&named, |p| p.key("node").field("args").index(1)),
                container(&placed, |p| p.index(0).field("args").index(1)),
            ),
            (
                named.field("metadata").field("labels").key("x.io/y"),
                placed.field("metadata").field("labels").key("x.io/y"),
            ),
        ];
        for (named, placed) in cases {
            assert_eq!(by_positions(&spec, &named), placed);
            assert_eq!(by_names(&spec, &placed), named);
        }
        let missing = named.field("spec").field("containers").key("other");
        assert_eq!(
            by_positions(&spec, &missing),
            placed.field("spec").field("containers")
        );
    }
}
