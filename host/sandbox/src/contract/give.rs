use trainyard_model::contract::Handle;
use wasmtime::component::Resource;

/// Conversion of values of the model to values for the guest.
pub(super) trait Give<T> {
    /// Converts it.
    fn give(self) -> T;
}

macro_rules! give_as_is {
    ($($kind:ty),+) => { $(impl Give<$kind> for $kind { fn give(self) -> $kind { self } })+ };
}
give_as_is!(bool, u8, u16, u32, u64, i32, i64, String);

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

impl<H: Handle + 'static> Give<Resource<H>> for H {
    fn give(self) -> Resource<H> {
        Resource::new_own(self.number())
    }
}
