//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod plugins_are_complete;
