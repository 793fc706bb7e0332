//! What differs in the plugins of the reference: `plugins/NAME/reference`, in which each module has a constant `PLUGIN`.

use serde_json::Value;

// The modules use these as well.
use super::{
    compare,
    generated::Generator,
    rows::{Row, row},
};

/// A plugin that the reference has as well.
pub(crate) struct Plugin {
    /// The rows of its divergences.md.
    pub(crate) rows: &'static [Row],
    pub(crate) generators: &'static [Generator],
    /// Replaces the text of an object of either side by what it does, if texts with one effect differ.
    pub(crate) effect: Option<fn(&mut Value)>,
}

impl Plugin {
    pub(crate) const NONE: Self = Self {
        rows: &[],
        generators: &[],
        effect: None,
    };
}

// A module for each plugin with such a folder, and `PLUGINS`: each with the folder.
include!(concat!(env!("OUT_DIR"), "/reference.rs"));
