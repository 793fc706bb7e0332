//! Conversion of what a method of the host returns into what an author gets.

/// What the host gives, as an author gets it.
pub(crate) trait Give<T> {
    /// Converts it.
    fn give(self) -> T;
}

macro_rules! give_as_is {
    ($($type:ty),+) => { $(impl Give<$type> for $type { fn give(self) -> $type { self } })+ };
}
give_as_is!((), bool, u8, u16, u32, u64, i32, i64, String);

impl<T, U: Give<T>> Give<Option<T>> for Option<U> {
    fn give(self) -> Option<T> {
        self.map(Give::give)
    }
}

impl<T, U: Give<T>> Give<Vec<T>> for Vec<U> {
    fn give(self) -> Vec<T> {
        self.into_iter().map(Give::give).collect()
    }
}
