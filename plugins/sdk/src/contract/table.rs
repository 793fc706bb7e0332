//! The macros that define handles and values from the tables in `contract/`, for both targets. In a component, a method calls the
//! host's import. Natively, it calls the host's record, with the same names and checks.

/// Calls a method of the contract through a handle.
macro_rules! cross {
    ($handle:expr, $method:ident, $name:literal, $call:ident($($pass:expr),*)) => {{
        #[cfg(target_family = "wasm")]
        let value = $handle.raw.$method($($pass),*);
        #[cfg(not(target_family = "wasm"))]
        let value = crate::call::with_call($name, |call| call.$call(*$handle.raw $(, $pass)*));
        crate::give::Give::give(value)
    }};
}

/// Defines a handle from its methods, each with its name in the contract, and the host's method with its arguments. Methods with the same
/// result during a whole call stand apart, because the handle calls the host once for each: `lent` ones return handles, `kept` ones values.
macro_rules! handles {
    (
        $(#[$doc:meta])*
        $handle:ident {
            $(lent {
                $($(#[$lent_doc:meta])* fn $lent:ident() -> $lent_ty:ty = $lent_name:literal $lent_call:ident();)*
            })?
            $(kept {
                $($(#[$kept_doc:meta])* fn $kept:ident() -> $kept_ty:ty = $kept_name:literal $kept_call:ident();)*
            })?
            $($(#[$method_doc:meta])* fn $method:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $name:literal $call:ident($($pass:expr),*);)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $handle {
            // An instance lives for one call: dropping a handle would be a call to the host without effect.
            raw: std::mem::ManuallyDrop<crate::contract::raw::$handle>,
            $($($lent: std::cell::OnceCell<$lent_ty>,)*)?
            $($($kept: std::cell::OnceCell<$kept_ty>,)*)?
        }

        impl $handle {
            $($(
                $(#[$lent_doc])*
                pub fn $lent(&self) -> &$lent_ty {
                    self.$lent.get_or_init(|| cross!(self, $lent, $lent_name, $lent_call()))
                }
            )*)?
            $($(
                $(#[$kept_doc])*
                pub fn $kept(&self) -> $kept_ty {
                    Clone::clone(self.$kept.get_or_init(|| cross!(self, $kept, $kept_name, $kept_call())))
                }
            )*)?
            $(
                $(#[$method_doc])*
                pub fn $method(&self $(, $arg: $ty)*) $(-> $ret)? {
                    cross!(self, $method, $name, $call($($pass),*))
                }
            )*

            /// Borrows the handle for another method.
            #[cfg(target_family = "wasm")]
            #[allow(dead_code)]
            pub(crate) fn lend(&self) -> &crate::contract::raw::$handle {
                &self.raw
            }

            /// Borrows the handle for another method.
            #[cfg(not(target_family = "wasm"))]
            #[allow(dead_code)]
            pub(crate) fn lend(&self) -> crate::contract::raw::$handle {
                *self.raw
            }
        }

        impl crate::give::Give<$handle> for crate::contract::raw::$handle {
            fn give(self) -> $handle {
                $handle {
                    raw: std::mem::ManuallyDrop::new(self),
                    $($($lent: std::cell::OnceCell::new(),)*)?
                    $($($kept: std::cell::OnceCell::new(),)*)?
                }
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
