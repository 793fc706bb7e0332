//! Conversion of the values that the host returns into the SDK's types.

/// Conversion of a value of the host into a type of the SDK.
pub(crate) trait Give<T> {
    /// Converts the value.
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
