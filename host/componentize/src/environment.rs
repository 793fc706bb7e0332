//! The environment of cargo: the user's, without the variables that an outer cargo sets.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

/// Variables that an outer cargo sets for build scripts and tests, or a user for builds of the host. They are not meant for plugins, and
/// some would change a plugin's bytes.
const LEAKS: &[&str] = &[
    "DEBUG",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "HOST",
    "LD_LIBRARY_PATH",
    "MAKEFLAGS",
    "MFLAGS",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUST_RECURSION_COUNT",
    "TARGET",
    "__CARGO_DEFAULT_LIB_METADATA",
];

/// Prefixes of cargo's variables that configure how crates are fetched. They are kept.
const FETCHING: &[&str] = &[
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
];

/// Returns a command that runs `program` without the variables that would affect a plugin.
pub(crate) fn clean_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if leaks(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns cargo's home directory, which holds the crates that it fetches.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    let set = std::env::var_os("CARGO_HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from);
    set.or_else(|| Some(std::env::home_dir()?.join(".cargo")))
}

fn leaks(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    if LEAKS.contains(&name) {
        return true;
    }
    let tools = [
        "CARGO",
        "RUSTC",
        "RUSTDOC",
        "RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
        "DEP_",
    ];
    tools.iter().any(|prefix| name.starts_with(prefix))
        && !FETCHING.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_an_outer_cargo_are_removed() {
        for name in [
            "CARGO",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_MANIFEST_DIR",
            "CARGO_TARGET_DIR",
            "CARGO_BUILD_TARGET",
            "CARGO_PROFILE_RELEASE_LTO",
            "RUSTC",
            "RUSTC_WRAPPER",
            "RUSTC_BOOTSTRAP",
            "RUSTFLAGS",
            "RUSTUP_TOOLCHAIN",
            "OUT_DIR",
            "TARGET",
        ] {
            assert!(leaks(OsStr::new(name)), "{name} must be removed");
        }
    }

    #[test]
    fn variables_for_fetching_are_kept() {
        for name in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_HTTP_PROXY",
            "HOME",
            "PATH",
            "RUSTUP_HOME",
        ] {
            assert!(!leaks(OsStr::new(name)), "{name} must be kept");
        }
    }
}
