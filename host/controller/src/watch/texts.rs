//! The limit on the texts that are held for each namespace.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use super::state::{Namespaced, State};

/// The most bytes of text of one kind that are held for a namespace. 20,000 TrainJobs of 3 KB fit.
pub(super) const MOST_TEXT: usize = 64 << 20;

/// The texts that are held of the objects of one kind.
#[derive(Debug)]
pub(super) struct Texts<K> {
    /// The bytes of each namespace that has any.
    pub(super) held: HashMap<Option<Arc<str>>, usize>,
    /// The bytes of each object whose text was left out.
    pub(super) left_out: HashMap<K, usize>,
}

impl<K> Default for Texts<K> {
    fn default() -> Self {
        Self {
            held: HashMap::new(),
            left_out: HashMap::new(),
        }
    }
}

impl<K: Eq + Hash + Clone + Namespaced> Texts<K> {
    /// Counts the text of an object that was forgotten before, or leaves it out if its namespace has too much text. Cluster-scoped objects
    /// belong to the platform, and have no limit.
    pub(super) fn hold(&mut self, key: &K, state: &mut impl State) {
        let bytes = state.text_bytes();
        if bytes == 0 {
            return;
        }
        let namespace = key.namespace();
        let held = self.held.entry(namespace.cloned()).or_default();
        if namespace.is_some() && *held + bytes > MOST_TEXT {
            state.leave_text_out(format!(
                "its {bytes} bytes are not held in memory, because objects of this kind in the namespace would have more than {} MiB; delete some of them, or make them smaller",
                MOST_TEXT >> 20
            ));
            self.left_out.insert(key.clone(), bytes);
        } else {
            *held += bytes;
        }
    }

    /// Forgets an object, of which that many bytes were held.
    pub(super) fn forget(&mut self, key: &K, bytes: usize) {
        self.left_out.remove(key);
        let namespace = key.namespace().cloned();
        if let Some(held) = self.held.get_mut(&namespace) {
            *held = held.saturating_sub(bytes);
            if *held == 0 {
                self.held.remove(&namespace);
            }
        }
    }

    /// Whether the text of an object that was left out has room now.
    pub(super) fn has_room_again(&self) -> bool {
        self.left_out.iter().any(|(key, bytes)| {
            let held = self.held.get(&key.namespace().cloned()).copied();
            held.unwrap_or(0) + bytes <= MOST_TEXT
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{queue::NamespacedName, watch::Store};

    #[derive(Debug)]
    struct Text {
        version: u64,
        held: Result<usize, String>,
    }

    impl State for Text {
        fn version(&self) -> u64 {
            self.version
        }

        fn text_bytes(&self) -> usize {
            *self.held.as_ref().unwrap_or(&0)
        }

        fn leave_text_out(&mut self, why: String) {
            self.held = Err(why);
        }
    }

    fn key(namespace: &str, number: usize) -> NamespacedName {
        NamespacedName::new(namespace, number.to_string())
    }

    const BYTES: usize = 1 << 20;

    #[test]
    fn a_namespace_that_has_too_much_text_does_not_affect_others() {
        let store = Store::default();
        let put = |namespace: &str, number: usize, version: u64| {
            let held = Ok(BYTES);
            store.put(key(namespace, number), Text { version, held })
        };
        for number in 0..1_000 {
            put("full", number, 1);
        }
        let is_held = |key: &NamespacedName| store.get(key).unwrap().held.is_ok();
        let held = |namespace: &str| {
            let all = store.text_bytes().into_iter();
            let mut of = all.filter(|(of, _)| of.as_deref() == Some(namespace));
            of.next().map_or(0, |(_, bytes)| bytes)
        };
        assert_eq!((held("full"), store.len()), (MOST_TEXT, 1_000));
        assert!(is_held(&key("full", 63)) && !is_held(&key("full", 64)));
        put("other", 0, 1);
        assert!(is_held(&key("other", 0)));

        // Once there is room, an object that is listed again is held.
        assert!(!store.has_room_again());
        store.remove(&key("full", 0), 2);
        assert!(store.has_room_again());
        assert!(put("full", 64, 1) && is_held(&key("full", 64)));
        assert!(!store.has_room_again() && !put("full", 64, 1));
        put("full", 1, 2);
        assert_eq!(held("full"), MOST_TEXT);
        for number in 0..1_000 {
            store.remove(&key("full", number), 3);
        }
        assert_eq!((held("full"), held("other")), (0, BYTES));
    }
}
