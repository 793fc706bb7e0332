//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod errors_have_lines_and_suggestions;
mod files_are_read_strictly;
