//! The tests of this crate, as one program.

mod bindings_are_what_wit_says;
