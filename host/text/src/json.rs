//! Searching JSON.

use serde_json::{Map, Value};

/// The most members whose names are compared one after the other.
const FEW: usize = 16;

/// Returns a member of an object, like [`Value::get`]. Most objects have a few members, and comparing a name with theirs takes less time than
/// hashing it.
#[must_use]
pub fn get<'v>(of: &'v Value, name: &str) -> Option<&'v Value> {
    match of {
        Value::Object(members) if members.len() <= FEW => {
            let mut members = members.iter();
            members.find(|(found, _)| *found == name).map(|(_, v)| v)
        }
        of => of.get(name),
    }
}

/// Returns a member of an object, like [`Map::get_mut`], and finds it in the same way.
pub fn get_mut<'v>(of: &'v mut Map<String, Value>, name: &str) -> Option<&'v mut Value> {
    if of.len() > FEW {
        return of.get_mut(name);
    }
    let mut members = of.iter_mut();
    members.find(|(found, _)| *found == name).map(|(_, v)| v)
}

/// Returns the value at the path `keys`. Unlike [`Value::pointer`], it does not allocate.
#[must_use]
pub fn get_at<'v>(of: &'v Value, keys: &[&str]) -> Option<&'v Value> {
    keys.iter().try_fold(of, |of, key| get(of, key))
}

/// Returns the value at a JSON pointer, like [`Value::pointer`]. A pointer without escapes and positions takes no allocation.
#[must_use]
pub fn pointer<'v>(of: &'v Value, pointer: &str) -> Option<&'v Value> {
    if pointer.as_bytes().contains(&b'~') {
        return of.pointer(pointer);
    }
    let mut steps = pointer.split('/');
    if steps.next() != Some("") {
        return None;
    }
    steps.try_fold(of, |of, step| match of {
        Value::Object(_) => get(of, step),
        other => other.pointer(&format!("/{step}")),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_found_in_objects_of_any_size() {
        for size in [0, 1, FEW, FEW + 1, FEW * 4] {
            let members = (0..size).map(|at| (at.to_string(), json!({ "at": at })));
            let object = Value::Object(members.collect());
            for at in 0..=size {
                let key = at.to_string();
                assert_eq!(get(&object, &key), object.get(&key), "{key} of {size}");
                let mut members = object.as_object().cloned().unwrap();
                let found = get_mut(&mut members, &key).cloned();
                assert_eq!(found.as_ref(), object.get(&key));
            }
            let last = size.saturating_sub(1);
            let found = get_at(&object, &[&last.to_string(), "at"]);
            assert_eq!(found, (size > 0).then(|| json!(last)).as_ref());
        }
        assert_eq!(get(&json!(["a"]), "a"), None);
    }

    #[test]
    fn pointers_find_the_same_as_those_of_serde() {
        let value = json!({"a": [{"b": 1}], "": {"": 2}, "c/d": {"e~": 3}, "0": 4});
        for at in [
            "",
            "/",
            "//",
            "/a",
            "/a/",
            "/a/0",
            "/a/00",
            "/a/+0",
            "/a/0/b",
            "/a/1",
            "/a/b",
            "a",
            "a/0",
            "/c~1d/e~0",
            "/c/d",
            "/0",
            "/0/0",
            "/x",
        ] {
            assert_eq!(pointer(&value, at), value.pointer(at), "{at}");
        }
    }
}
