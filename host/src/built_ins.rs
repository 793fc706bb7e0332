//! The plugins that are part of this program, as components; `build.rs` makes them.

/// A plugin that is part of this program.
pub(crate) struct BuiltIn {
    /// The name of its folder.
    pub(crate) name: &'static str,
    /// The component.
    pub(crate) component: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/built_ins.rs"));
