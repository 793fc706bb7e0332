//! Lists of type set and map, which are equal in any order.

use cel::{
    ExecutionError,
    common::{
        traits::{Adder, Container, Indexer, Iterable, Sizer, Zeroer},
        types::{CelList, LIST_TYPE, Type},
        value::{CowVal, Val},
    },
};

/// A list of type set or map. `==` ignores its order.
#[derive(Clone, Debug)]
pub(super) struct KeyedList<'v>(pub(super) CelList<'v>);

impl Val for KeyedList<'_> {
    fn get_type(&self) -> &Type {
        &LIST_TYPE
    }

    fn cel_type() -> &'static Type {
        &LIST_TYPE
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        self.0.as_adder()
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.0.as_container()
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        self.0.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.0.as_sizer()
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        self.0.as_zeroer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(iterable) = other.as_iterable() else {
            return false;
        };
        let mine = self.0.inner();
        let mut theirs = iterable.iter();
        let mut size = 0;
        // Neither list has duplicates, so lists of the same length are equal if each item is found.
        while let Some(item) = theirs.next() {
            let same_place = mine.get(size).is_some_and(|mine| mine.equals(item));
            if !same_place && !mine.iter().any(|mine| mine.equals(item)) {
                return false;
            }
            size += 1;
        }
        size == mine.len()
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(self.clone())
    }
}

impl Indexer for KeyedList<'_> {
    fn get<'b, 'w>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        Indexer::get(&self.0, index)
    }

    fn steal<'w>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'w>, ExecutionError>
    where
        Self: 'w,
    {
        Indexer::get(&*self, index).map(CowVal::into_owned)
    }
}
