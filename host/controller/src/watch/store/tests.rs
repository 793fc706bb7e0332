#![allow(clippy::unwrap_used)]

use super::*;
use crate::queue::NamespacedName;

impl Namespaced for &'static str {
    fn namespace(&self) -> Option<&Arc<str>> {
        None
    }
}

#[derive(Debug, PartialEq)]
struct At(u64);

impl State for At {
    fn version(&self) -> u64 {
        self.0
    }
}

/// A list that was requested when nothing newer than `before` was known.
fn list(
    objects: Vec<(&'static str, u64)>,
    version: u64,
    before: u64,
) -> CompleteList<&'static str> {
    CompleteList {
        objects,
        version,
        before,
    }
}

#[test]
fn the_newer_version_wins() {
    let store = Store::default();
    assert!(store.put("a", At(5)));
    assert!(!store.put("a", At(4)));
    assert!(!store.put("a", At(5)));
    assert_eq!(*store.get(&"a").unwrap(), At(5));
    store.remove(&"a", 4);
    assert_eq!(store.len(), 1);
    store.remove(&"a", 6);
    assert!(store.is_empty());
}

#[test]
fn a_late_answer_does_not_restore_a_deleted_object() {
    let store = Store::default();
    store.put("deleted", At(5));
    store.put("not listed", At(5));
    store.remove(&"deleted", 7);
    store.remove_missing(&list(Vec::new(), 8, 7));
    assert!(!store.put("deleted", At(6)) && !store.put("not listed", At(6)));
    assert!(store.is_empty());
    // An object of the same name that was created since.
    assert!(store.put("deleted", At(9)) && store.put("not listed", At(9)));
}

#[test]
fn a_list_removes_missing_objects_and_keeps_newer_ones() {
    let store = Store::default();
    store.put("gone", At(1));
    store.put("stays", At(2));
    let before = store.newest();
    store.put("written since", At(9));
    assert!(!store.is_synced());
    let list = list(vec![("stays", 2), ("new", 4)], 4, before);
    assert_eq!(store.missing(&list), [("gone", At(1).into())]);
    assert_eq!(store.remove_missing(&list), ["gone"]);
    assert!(store.is_synced());
    assert_eq!(store.len(), 2);
}

#[test]
fn objects_deleted_without_a_watch_are_removed() {
    let store = Store::default();
    store.put("stays", At(2));
    store.put("gone", At(7));
    let listed = vec![("stays", 2)];
    assert_eq!(store.remove_missing(&list(listed, 8, 7)), ["gone"]);
    assert_eq!(store.remove_missing(&list(Vec::new(), 9, 8)), ["stays"]);
    assert!(store.is_empty());
}

#[test]
fn a_list_of_a_restored_state_is_noticed() {
    let store = Store::default();
    store.put("stays", At(2));
    store.put("changed", At(7));
    store.put("deleted", At(3));
    store.remove(&"deleted", 8);
    let objects = |changed, deleted: bool| {
        let known = vec![("stays", 2), ("changed", changed)];
        let restored = deleted.then_some(("deleted", 3));
        known.into_iter().chain(restored).collect()
    };
    let check = |list| {
        store
            .check(&list)
            .map_err(|error| (error.known, error.found))
    };
    // The list is older than what was known when it was requested.
    assert_eq!(check(list(objects(7, false), 7, 8)), Err((8, 7)));
    // The tool that restores a backup can raise the version of lists, but not those of objects.
    assert_eq!(check(list(objects(6, false), 1_000, 8)), Err((7, 6)));
    assert_eq!(check(list(objects(7, true), 1_000, 8)), Err((8, 3)));
    assert_eq!(check(list(objects(7, false), 8, 8)), Ok(()));
    // The answers to writes may be newer than a list that was requested before.
    store.put("changed", At(11));
    store.put("deleted", At(12));
    assert_eq!(check(list(objects(7, false), 10, 8)), Ok(()));
}

fn unreadable(version: u64) -> Read<At> {
    Err(UnreadableObject {
        version,
        uid: "u".into(),
        why: "spec: nested too deep".into(),
    })
}

#[test]
fn an_older_state_does_not_outlive_a_version_that_is_unreadable() {
    let store = Store::default();
    store.put("a", At(5));
    assert!(!store.put_read("a", unreadable(4)));
    assert!(store.get(&"a").is_some() && store.unreadable(&"a").is_none());
    assert!(store.put_read("a", unreadable(6)));
    assert!(store.get(&"a").is_none());
    assert_eq!(store.unreadable(&"a").unwrap().version(), 6);
    assert_eq!((store.newest(), store.count_unreadable()), (6, 1));
    assert_eq!(store.keys(), ["a"]);
    // A late answer is even older; a newer version is readable again.
    assert!(!store.put("a", At(5)) && store.put("a", At(7)));
    assert!(store.unreadable(&"a").is_none());
    assert_eq!(*store.get(&"a").unwrap(), At(7));
}

#[test]
fn an_unreadable_object_is_removed_like_any_other() {
    let store = Store::default();
    store.put_read("a", unreadable(2));
    store.put_read("b", unreadable(3));
    store.remove(&"a", 4);
    assert_eq!(store.keys(), ["b"]);
    assert!(store.missing(&list(Vec::new(), 5, 4)).is_empty());
    assert_eq!(store.remove_missing(&list(Vec::new(), 5, 4)), ["b"]);
    assert_eq!(store.count_unreadable(), 0);
    assert!(!store.put("a", At(3)));
}

#[test]
fn the_number_of_deletions_that_are_remembered_is_limited() {
    let store = Store::<NamespacedName, At>::default();
    for number in 0..MOST_DELETIONS + 1_000 {
        store.remove(&NamespacedName::new("a", number.to_string()), 5);
    }
    let objects = store.read();
    assert_eq!(objects.deleted.len(), MOST_DELETIONS);
    assert_eq!(objects.deletions.len(), MOST_DELETIONS);
}
