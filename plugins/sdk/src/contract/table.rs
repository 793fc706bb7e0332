//! The macros that define handles and values from the tables in `contract/`, for both targets. In a component, a method calls the
//! host's import. Natively, it calls the host's record, with the same names and checks.

/// Defines a handle from its methods, each with its name in the contract, and the host's method with its arguments.
macro_rules! handles {
    (
        $(#[$doc:meta])*
        $handle:ident {
            $($(#[$method_doc:meta])* fn $method:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $name:literal $call:ident($($pass:expr),*);)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $handle(
            // An instance lives for one call: dropping a handle would be a call to the host without effect.
            std::mem::ManuallyDrop<crate::contract::raw::$handle>,
        );

        impl $handle {
            $(
                $(#[$method_doc])*
                pub fn $method(&self $(, $arg: $ty)*) $(-> $ret)? {
                    #[cfg(target_family = "wasm")]
                    return crate::give::Give::give(self.0.$method($($pass),*));
                    #[cfg(not(target_family = "wasm"))]
                    crate::give::Give::give(crate::call::with_call($name, |call| call.$call(*self.0 $(, $pass)*)))
                }
            )*

            /// Borrows the handle for another method.
            #[cfg(target_family = "wasm")]
            #[allow(dead_code)]
            pub(crate) fn lend(&self) -> &crate::contract::raw::$handle {
                &self.0
            }

            /// Borrows the handle for another method.
            #[cfg(not(target_family = "wasm"))]
            #[allow(dead_code)]
            pub(crate) fn lend(&self) -> crate::contract::raw::$handle {
                *self.0
            }
        }

        impl crate::give::Give<$handle> for crate::contract::raw::$handle {
            fn give(self) -> $handle {
                $handle(std::mem::ManuallyDrop::new(self))
            }
        }
    };
}

/// Defines values from their fields.
macro_rules! records {
    ($($(#[$doc:meta])* $record:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $record {
            $($(#[$field_doc])* pub $field: $ty,)+
        }

        impl From<$record> for crate::contract::raw::$record {
            fn from(record: $record) -> Self {
                Self { $($field: record.$field,)+ }
            }
        }

        impl crate::give::Give<$record> for crate::contract::raw::$record {
            fn give(self) -> $record {
                $record { $($field: self.$field,)+ }
            }
        }
    )+};
}
