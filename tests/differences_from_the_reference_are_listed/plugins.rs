//! The generators of inputs of the plugins that the reference has as well: `plugins/NAME/reference/inputs`, in which each module has a
//! constant `GENERATORS`.

// The modules use these as well.
use super::{compare, generated::Generator};

// A module for each plugin with such a folder, and `PLUGINS`: each with the folder.
include!(concat!(env!("OUT_DIR"), "/generators.rs"));
