//! The built-in plugins as native plugins, for tests and benchmarks. `build.rs` finds them by listing `plugins/`.

use trainyard_sdk::PluginParts;

/// A built-in plugin: its directory and its native form.
pub type BuiltInParts = (&'static str, &'static PluginParts);

include!(concat!(env!("OUT_DIR"), "/built_ins.rs"));
