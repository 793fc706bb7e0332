//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod common;
mod each_implementation_is_told_in_its_own_words;
mod hosts_have_as_many_slots_as_processes;
mod mistakes_are_told_where_they_are;
mod pods_have_the_keys;
