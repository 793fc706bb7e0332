//! One feature set for the whole workspace: all of it stands in Cargo.toml.
