//! The macros that make handles and values of the tables in `contract/`, for both targets. In a component a method calls the
//! host's import; natively it calls the host's record, by the same names and with the same checks.

/// Makes a handle of its methods: each with its name in the contract, and the host's method with what is passed on.
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
            // An instance lives for one call: giving a handle back would be a crossing for nothing.
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

            /// What another method borrows of it.
            #[cfg(target_family = "wasm")]
            #[allow(dead_code)]
            pub(crate) fn lend(&self) -> &crate::contract::raw::$handle {
                &self.0
            }

            /// What another method borrows of it.
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

/// Makes values of their fields.
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
