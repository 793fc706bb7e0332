//! What differs in the plugins of the reference: `plugins/NAME/reference`, in which each module has a constant `PLUGIN`.

use serde_json::Value;

// The modules use these as well.
use crate::rows::{Row, row};

/// A plugin that differs from the reference's.
pub struct Plugin {
    /// The rows of its divergences.md.
    pub rows: &'static [Row],
    /// Replaces the text of an object of either side by what it does, if texts with one effect differ.
    pub effect: Option<fn(&mut Value)>,
}

// A module for each plugin with such a folder, and `PLUGINS`: each with the folder.
include!(concat!(env!("OUT_DIR"), "/plugins.rs"));
