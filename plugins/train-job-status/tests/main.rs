//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod pods_of_the_trainer_can_report;
