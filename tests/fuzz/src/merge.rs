//! Merges of any two specs of JobSets: lists with a merge key are merged like objects by that key, and everything else as JSON Merge Patch
//! (RFC 7386) says. With the reference, the result is also its result, in the same order.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use trainyard_api::merge::{Child, JOB_SET_SPEC, Node, fix, strategic};
use trainyard_schema::documents::Kind;

use crate::{cases::plain, generator::Generator, reference::Reference};

static SPEC: LazyLock<Value> = LazyLock::new(|| {
    let runtime = Kind::ClusterTrainingRuntime.schema().unwrap();
    let spec = runtime.pointer("/properties/spec/properties/template/properties/spec");
    spec.unwrap().clone()
});

static REFERENCE: LazyLock<Option<Reference>> = LazyLock::new(|| Reference::start("merge"));

/// Checks the merge of two specs, the second of which often has parts of the first.
pub fn check(bytes: &[u8]) -> bool {
    let mut generator = Generator::new(bytes);
    let mut base = generator.value(&SPEC);
    let mut patch = generator.changed(&base, &SPEC);
    if !base.is_object() || !patch.is_object() {
        return false;
    }
    // An API server stores no nulls, and the patch is read by a type that drops empty lists.
    drop_nothing(&mut base);
    drop_nothing(&mut patch);
    let merged = strategic(&base, &patch);
    let spec = Child::Object(&JOB_SET_SPEC);
    let (Some(mut expected), Some(patches)) = (by_key(&base, spec), by_key(&patch, spec)) else {
        return false;
    };
    let merged = merged.unwrap();
    if let Some(reference) = &*REFERENCE {
        let answer = reference.ask(&json!({"base": base, "patch": patch}));
        // It has none for values that are not of its type.
        if let Some(theirs) = answer.get("merged") {
            assert_eq!(plain(&merged), plain(theirs), "{base} with {patch}");
        }
    }
    json_patch::merge(&mut expected, &patches);
    assert_eq!(by_key(&merged, spec), Some(expected), "{base} with {patch}");
    let again = strategic(&merged, &patch).unwrap();
    assert_eq!(again, merged, "{base} with {patch}");
    drop(fix(&base, &patch, merged));
    true
}

/// Removes nulls, empty lists, and finalizers, which a patch cannot have and Kubernetes merges as a set.
fn drop_nothing(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_nothing);
            map.retain(|field, value| {
                !value.is_null() && *value != json!([]) && field != "finalizers"
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nothing),
        _ => {}
    }
}

/// The value with an object of the items in place of each list that has a merge key. `None` if such a list is not a list, or if one of its
/// keys is missing, occurs twice or is neither a string nor a number.
fn by_key(value: &Value, child: Child) -> Option<Value> {
    let entries = |node: &'static Node, value: &Map<String, Value>| {
        let entries = value.iter();
        let entries =
            entries.map(|(name, value)| Some((name.clone(), by_key(value, node.child(name))?)));
        entries.collect::<Option<Value>>()
    };
    match (child, value) {
        (Child::Object(node), Value::Object(value)) => entries(node, value),
        (Child::List(key, node), Value::Array(items)) => {
            let mut all = Map::new();
            for item in items {
                let key = item.get(key)?;
                let key = (key.is_string() || key.is_number()).then(|| key.to_string())?;
                let item = by_key(item, Child::Object(node))?;
                all.insert(key, item).is_none().then_some(())?;
            }
            Some(all.into())
        }
        (Child::List(..), _) => None,
        _ => Some(value.clone()),
    }
}
