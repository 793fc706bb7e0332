//! A list whose values are found by key, in an order that is independent of the keys.

use std::{borrow::Borrow, collections::BTreeMap, fmt};

use super::Owner;

/// The most values of a short list, which is searched value by value. Most lists of a record are this short, and trees would cost more than
/// they save.
const SHORT: usize = 64;

/// A value of an [`Ordered`] list.
pub trait Keyed {
    /// The type of the key.
    type Key: Ord + Clone;

    /// Its key.
    fn key(&self) -> &Self::Key;
}

/// The position of a value: ordered by home, then by the order in which values were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    home: Owner,
    sequence: u64,
}

/// A list without duplicate keys. Finding, adding, replacing and removing a value take O(log n) comparisons.
#[derive(Clone)]
pub struct Ordered<T: Keyed> {
    /// The values of a short list, in order. Empty if the list is long.
    few: Vec<(Position, T)>,
    /// The values of a long list, and their positions by key. A list that was long remains so until it is empty.
    many: BTreeMap<Position, T>,
    positions: BTreeMap<T::Key, Position>,
    next_sequence: u64,
}

impl<T: Keyed> Ordered<T> {
    pub(super) const fn new() -> Self {
        Self {
            few: Vec::new(),
            many: BTreeMap::new(),
            positions: BTreeMap::new(),
            next_sequence: 0,
        }
    }

    /// Returns the values in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + Clone {
        let few = self.few.iter().map(|(_, value)| value);
        few.chain(self.many.values())
    }

    /// Returns the first value.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    /// Returns how many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&T>
    where
        T::Key: Borrow<Q>,
    {
        match self.positions.get(key) {
            Some(position) => self.many.get(position),
            None => self.found(key).map(|(_, value)| value),
        }
    }

    pub(super) fn position<Q: Ord + ?Sized>(&self, key: &Q) -> Option<Position>
    where
        T::Key: Borrow<Q>,
    {
        let position = self.positions.get(key);
        position
            .or_else(|| self.found(key).map(|(position, _)| position))
            .copied()
    }

    /// Returns the value of a key in a short list, with its position.
    fn found<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&(Position, T)>
    where
        T::Key: Borrow<Q>,
    {
        let mut few = self.few.iter();
        few.find(|(_, value)| value.key().borrow() == key)
    }

    pub(super) fn at_mut(&mut self, position: Position) -> Option<&mut T> {
        match self.place(position) {
            Ok(at) => self.few.get_mut(at).map(|(_, value)| value),
            Err(_) => self.many.get_mut(&position),
        }
    }

    /// Returns the place of a position in a short list, or the place where it belongs.
    fn place(&self, position: Position) -> Result<usize, usize> {
        self.few
            .binary_search_by_key(&position, |(position, _)| *position)
    }

    /// Adds a value with a new key, after the other values of its home.
    pub(super) fn push(&mut self, home: Owner, value: T) -> Position {
        let position = Position {
            home,
            sequence: self.next_sequence,
        };
        self.next_sequence += 1;
        self.put(position, value);
        position
    }

    /// Restores a value at its position.
    pub(super) fn put(&mut self, position: Position, value: T) {
        if self.many.is_empty() && self.few.len() < SHORT {
            let (Ok(at) | Err(at)) = self.place(position);
            self.few.insert(at, (position, value));
            return;
        }
        for (position, value) in self.few.drain(..).chain([(position, value)]) {
            self.positions.insert(value.key().clone(), position);
            self.many.insert(position, value);
        }
    }

    pub(super) fn remove(&mut self, position: Position) -> Option<T> {
        if let Ok(at) = self.place(position) {
            return Some(self.few.remove(at).1);
        }
        let value = self.many.remove(&position)?;
        self.positions.remove(value.key());
        Some(value)
    }
}

impl<T: Keyed + Clone> Ordered<T> {
    /// Returns the values as a vector.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        self.iter().cloned().collect()
    }
}

impl<T: Keyed + PartialEq> PartialEq for Ordered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Keyed + fmt::Debug> fmt::Debug for Ordered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{cell::Cell, cmp::Ordering};

    use super::*;

    thread_local! {
        static COMPARISONS: Cell<u64> = const { Cell::new(0) };
    }

    /// A key that counts how often it is compared.
    #[derive(Clone, Debug)]
    struct Counted(u64);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl Eq for Counted {}

    #[derive(Clone, Debug, PartialEq)]
    struct Value(Counted);

    impl Keyed for Value {
        type Key = Counted;

        fn key(&self) -> &Counted {
            &self.0
        }
    }

    /// How many keys are compared while something is done to a list of `size` values.
    fn comparisons(size: u64, act: impl Fn(&mut Ordered<Value>, u64)) -> u64 {
        let mut list = Ordered::new();
        for key in 0..size {
            list.push(Owner::Runtime, Value(Counted(key)));
        }
        COMPARISONS.set(0);
        (0..size).for_each(|key| act(&mut list, key));
        COMPARISONS.get()
    }

    #[test]
    fn comparisons_are_of_the_order_of_n_log_n() {
        type Act = fn(&mut Ordered<Value>, u64);
        let acts: [(&str, Act); 4] = [
            ("find", |list, key| {
                assert_eq!(list.get(&Counted(key)).unwrap().0.0, key);
            }),
            ("add in front of others", |list, key| {
                let key = Counted(u64::MAX - key);
                assert!(list.get(&key).is_none());
                list.push(Owner::Runtime, Value(key));
            }),
            ("remove", |list, key| {
                let position = list.position(&Counted(key)).unwrap();
                list.remove(position).unwrap();
            }),
            ("remove and put back", |list, key| {
                let position = list.position(&Counted(key)).unwrap();
                let value = list.remove(position).unwrap();
                list.put(position, value);
            }),
        ];
        for (what, act) in acts {
            for size in [1_000, 4_000, 16_000] {
                let found = comparisons(size, act);
                // A scan would take half a million, eight million, and 128 million.
                assert!(
                    found < 6 * size * u64::from(size.ilog2()),
                    "{what}, {size}: {found}"
                );
            }
        }
    }

    #[test]
    fn values_stand_by_home_and_then_as_they_were_added() {
        for size in [3, SHORT as u64 * 4] {
            let mut list = Ordered::new();
            let homes = [Owner::Plugin(1), Owner::Runtime, Owner::Plugin(0)];
            for home in homes {
                for key in 0..size {
                    let key = Counted(key + size * list.len() as u64);
                    list.push(home, Value(key));
                }
            }
            let before = list.clone();
            let wanted: Vec<_> = before.to_vec();
            let key = wanted.get(1).unwrap().key().clone();
            let position = list.position(&key).unwrap();
            let value = list.remove(position).unwrap();
            assert!(list.get(&key).is_none() && list.len() + 1 == before.len());
            assert_ne!(list, before);
            list.put(position, value.clone());
            assert_eq!(list, before);
            list.remove(position);
            list.push(Owner::Plugin(7), value.clone());
            assert_eq!(list.to_vec().last(), Some(&value));
            let positions = list.few.iter().map(|(position, _)| position);
            let homes: Vec<_> = positions
                .chain(list.many.keys())
                .map(|position| position.home)
                .collect();
            assert!(homes.is_sorted());
            assert_eq!(
                list.many.is_empty(),
                size == 3,
                "only short lists are vectors"
            );
        }
    }

    #[test]
    fn lists_are_shown_as_their_values() {
        let mut list = Ordered::new();
        assert!(list.is_empty());
        list.push(Owner::Runtime, Value(Counted(7)));
        assert!(!list.is_empty());
        assert_eq!(format!("{list:?}"), "[Value(Counted(7))]");
    }
}
