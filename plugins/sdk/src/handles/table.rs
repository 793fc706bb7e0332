//! The macro that makes a handle of its table of methods.

macro_rules! handles {
    (
        $(#[$doc:meta])*
        $handle:ident = $interface:ident::$raw:ident {
            $($(#[$method_doc:meta])* fn $method:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $call:ident;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $handle(
            // An instance lives for one call: giving a handle back would be a crossing for nothing.
            #[cfg(target_family = "wasm")] ManuallyDrop<$interface::$raw>,
            #[cfg(not(target_family = "wasm"))] u32,
        );

        impl $handle {
            $(
                $(#[$method_doc])*
                pub fn $method(&self $(, $arg: $ty)*) $(-> $ret)? {
                    #[cfg(target_family = "wasm")]
                    return Give::give(self.0.$method($($arg),*));
                    #[cfg(not(target_family = "wasm"))]
                    Give::give(crate::native::with_call(
                        // `PodSet` and `pod_label` are `pod-set.pod-label` in the contract.
                        const_format::concatcp!(
                            const_format::map_ascii_case!(const_format::Case::Kebab, stringify!($raw)),
                            ".",
                            const_format::map_ascii_case!(const_format::Case::Kebab, stringify!($method)),
                        ),
                        |call| call.$call(self.0 $(, $arg)*),
                    ))
                }
            )+
        }

        #[cfg(target_family = "wasm")]
        impl From<$interface::$raw> for $handle {
            fn from(raw: $interface::$raw) -> Self {
                Self(ManuallyDrop::new(raw))
            }
        }

        #[cfg(target_family = "wasm")]
        impl Give<$handle> for $interface::$raw {
            fn give(self) -> $handle {
                self.into()
            }
        }

        #[cfg(target_family = "wasm")]
        impl Give<Option<$handle>> for Option<$interface::$raw> {
            fn give(self) -> Option<$handle> {
                self.map(Into::into)
            }
        }

        #[cfg(target_family = "wasm")]
        impl Give<Vec<$handle>> for Vec<$interface::$raw> {
            fn give(self) -> Vec<$handle> {
                self.into_iter().map(Into::into).collect()
            }
        }

        #[cfg(not(target_family = "wasm"))]
        impl Give<$handle> for u32 {
            fn give(self) -> $handle {
                $handle(self)
            }
        }

        #[cfg(not(target_family = "wasm"))]
        impl Give<Option<$handle>> for Option<u32> {
            fn give(self) -> Option<$handle> {
                self.map($handle)
            }
        }

        #[cfg(not(target_family = "wasm"))]
        impl Give<Vec<$handle>> for Vec<u32> {
            fn give(self) -> Vec<$handle> {
                self.into_iter().map($handle).collect()
            }
        }
    };
}
