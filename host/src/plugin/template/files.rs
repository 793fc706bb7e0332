//! The files of the templates: `kind` has the plugin of each kind in each language, and `language` what the plugins of a language share.

/// A file: its path in the plugin, and its text.
pub(super) type File = (&'static str, &'static str);

/// The text of a file in `host/templates`.
macro_rules! text {
    ($path:expr) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/", $path))
    };
}

/// Files in a folder of `host/templates`, by their paths in the plugin.
macro_rules! files {
    ($folder:literal: $($path:literal),*) => {
        &[$(($path, text!(concat!($folder, "/", $path)))),*]
    };
}

pub(super) use {files, text};
