//! Merges of any two specs of JobSets: lists with a merge key are merged like objects by that key, and everything else as JSON Merge Patch
//! (RFC 7386) says. With the reference, the result is also its result, in the same order.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use trainyard_api::merge::{Child, JOB_SET_SPEC, fix, strategic};
use trainyard_schema::documents::Kind;

use crate::{generator::Generator, reference::Reference};

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
    // An API server stores no nulls, and the patch is read by a type that drops empty lists.
    drop_nothing(&mut base);
    drop_nothing(&mut patch);
    let merged = strategic(&base, &patch);
    if let Some(reference) = &*REFERENCE {
        let answer = reference.ask(&json!({"base": base, "patch": patch}));
        match (&merged, answer.get("merged")) {
            (Ok(ours), Some(theirs)) => assert_eq!(ours, theirs, "{base} with {patch}"),
            (Err(_), None) => {}
            (Ok(_), None) => assert!(is_of_the_type(&answer), "{answer}: {base} with {patch}"),
            (Err(error), Some(_)) => panic!("{error}: {base} with {patch}"),
        }
    }
    let spec = Child::Object(&JOB_SET_SPEC);
    let (Some(mut expected), Some(patches)) = (by_key(&base, spec), by_key(&patch, spec)) else {
        return false;
    };
    let merged = merged.unwrap();
    json_patch::merge(&mut expected, &patches);
    assert_eq!(by_key(&merged, spec), Some(expected), "{base} with {patch}");
    let again = strategic(&merged, &patch).unwrap();
    assert_eq!(again, merged, "{base} with {patch}");
    fix(&base, &patch, merged);
    true
}

/// Whether the reference refuses a field that its type does not have.
fn is_of_the_type(answer: &Value) -> bool {
    let error = answer["error"].as_str().unwrap();
    error.contains("unable to find api field in struct")
}

/// Removes nulls and empty lists.
fn drop_nothing(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_nothing);
            map.retain(|_, value| !value.is_null() && *value != json!([]));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nothing),
        _ => {}
    }
}

/// The value with an object of the items in place of each list that has a merge key. `None` if such a list is not a list, or if one of its
/// keys is missing or occurs twice.
fn by_key(value: &Value, child: Child) -> Option<Value> {
    let entries = |node: &'static trainyard_api::merge::Node, value: &Map<String, Value>| {
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
                let key = item.get(key)?.to_string();
                let item = by_key(item, Child::Object(node))?;
                all.insert(key, item).is_none().then_some(())?;
            }
            Some(all.into())
        }
        (Child::List(..), _) => None,
        _ => Some(value.clone()),
    }
}
