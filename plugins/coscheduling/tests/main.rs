//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod pods_are_scheduled_together;
