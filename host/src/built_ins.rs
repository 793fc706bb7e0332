//! The built-in plugins, as components that `build.rs` builds.

/// A built-in plugin.
pub(crate) struct BuiltIn {
    /// The name of its directory, which is the plugin's name.
    pub(crate) name: &'static str,
    pub(crate) component: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/built_ins.rs"));
