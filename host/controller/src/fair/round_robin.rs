//! The order in which namespaces take turns.

use std::{
    collections::{HashMap, VecDeque},
    num::NonZeroUsize,
    sync::Arc,
};

/// Waiting items by namespace. Namespaces take turns, and each has at most its share of items in progress.
#[derive(Debug)]
pub(crate) struct RoundRobin<T> {
    share: NonZeroUsize,
    waiting: HashMap<Arc<str>, VecDeque<T>>,
    /// The namespaces with a waiting item and room in their share, in the order of their turns.
    order: VecDeque<Arc<str>>,
    in_progress: HashMap<Arc<str>, usize>,
    len: usize,
}

impl<T> RoundRobin<T> {
    /// Returns an empty schedule in which each namespace may have `share` items in progress.
    pub(crate) fn new(share: NonZeroUsize) -> Self {
        Self {
            share,
            waiting: HashMap::new(),
            order: VecDeque::new(),
            in_progress: HashMap::new(),
            len: 0,
        }
    }

    /// Adds an item behind the others of its namespace.
    pub(crate) fn push(&mut self, namespace: &Arc<str>, item: T) {
        self.len += 1;
        let waiting = self.waiting.entry(Arc::clone(namespace)).or_default();
        waiting.push_back(item);
        if waiting.len() == 1 && self.has_room(namespace) {
            self.order.push_back(Arc::clone(namespace));
        }
    }

    /// Takes the first item of the namespace whose turn it is. It is in progress until [`Self::done`].
    pub(crate) fn take(&mut self) -> Option<(Arc<str>, T)> {
        self.take_if(|_| true)
    }

    /// Takes that item if it meets the condition.
    pub(crate) fn take_if(&mut self, is_met: impl FnOnce(&T) -> bool) -> Option<(Arc<str>, T)> {
        let first = self.waiting.get(self.order.front()?)?.front()?;
        if !is_met(first) {
            return None;
        }
        let namespace = self.order.pop_front()?;
        let waiting = self.waiting.get_mut(&namespace)?;
        let item = waiting.pop_front()?;
        let is_last = waiting.is_empty();
        if is_last {
            self.waiting.remove(&namespace);
        }
        self.len -= 1;
        *self.in_progress.entry(Arc::clone(&namespace)).or_default() += 1;
        if !is_last && self.has_room(&namespace) {
            self.order.push_back(Arc::clone(&namespace));
        }
        Some((namespace, item))
    }

    /// Removes the waiting items of the namespace that do not meet the condition. It keeps its turn for the others.
    pub(crate) fn retain(&mut self, namespace: &Arc<str>, is_kept: impl FnMut(&T) -> bool) {
        let Some(waiting) = self.waiting.get_mut(namespace) else {
            return;
        };
        let before = waiting.len();
        waiting.retain(is_kept);
        self.len -= before - waiting.len();
        if waiting.is_empty() {
            self.waiting.remove(namespace);
            self.order.retain(|it| it != namespace);
        }
    }

    /// Takes the last item of the namespace with the most waiting items; `None` if that would leave it fewer than `namespace` has.
    pub(crate) fn take_last_of_another(&mut self, namespace: &Arc<str>) -> Option<T> {
        let own = self.waiting.get(namespace).map_or(0, VecDeque::len);
        let longest = self.waiting.values_mut().max_by_key(|items| items.len())?;
        if longest.len() <= own.max(1) {
            return None;
        }
        self.len -= 1;
        longest.pop_back()
    }

    /// Ends an item of the namespace that was in progress.
    pub(crate) fn done(&mut self, namespace: &Arc<str>) {
        let had_room = self.has_room(namespace);
        if let Some(count) = self.in_progress.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.in_progress.remove(namespace);
            }
        }
        if !had_room && self.waiting.contains_key(namespace) {
            self.order.push_back(Arc::clone(namespace));
        }
    }

    /// Returns how many items wait, including those whose namespace has no room in its share.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns how many items are in progress.
    pub(crate) fn in_progress(&self) -> usize {
        self.in_progress.values().sum()
    }

    fn has_room(&self, namespace: &Arc<str>) -> bool {
        let in_progress = self.in_progress.get(namespace).copied();
        in_progress.unwrap_or(0) < self.share.get()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn round_robin(share: usize) -> RoundRobin<u32> {
        RoundRobin::new(NonZeroUsize::new(share).unwrap())
    }

    fn take(turns: &mut RoundRobin<u32>) -> Option<(String, u32)> {
        let (namespace, item) = turns.take()?;
        Some((namespace.to_string(), item))
    }

    #[test]
    fn namespaces_with_a_full_share_are_passed_over() {
        let (busy, quiet) = (Arc::from("busy"), Arc::from("quiet"));
        let mut turns = round_robin(2);
        (1..=4).for_each(|item| turns.push(&busy, item));
        turns.push(&quiet, 9);
        assert_eq!(take(&mut turns), Some(("busy".to_owned(), 1)));
        assert_eq!(take(&mut turns), Some(("quiet".to_owned(), 9)));
        assert_eq!(take(&mut turns), Some(("busy".to_owned(), 2)));
        assert_eq!((take(&mut turns), turns.len()), (None, 2));
        turns.push(&busy, 5);
        assert_eq!(take(&mut turns), None);
        turns.done(&busy);
        assert_eq!(take(&mut turns), Some(("busy".to_owned(), 3)));
        assert_eq!(take(&mut turns), None);
        turns.done(&busy);
        turns.done(&busy);
        turns.done(&quiet);
        let rest = [take(&mut turns), take(&mut turns), take(&mut turns)];
        let expected = [4, 5].map(|item| Some(("busy".to_owned(), item)));
        assert_eq!(rest[..2], expected);
        assert_eq!((&rest[2], turns.len()), (&None, 0));
    }

    #[test]
    fn nothing_is_kept_of_a_namespace_that_is_done() {
        let one = Arc::from("one");
        let mut turns = round_robin(1);
        turns.push(&one, 1);
        turns.take().unwrap();
        turns.done(&one);
        assert!(turns.waiting.is_empty() && turns.in_progress.is_empty());
        assert!(turns.order.is_empty());
    }
}
