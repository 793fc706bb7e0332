//! The environment that cargo runs in: that of the user, without what an outer cargo put there.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

/// What an outer cargo sets for a build script or a test, or a user for builds of the host: none of it is meant for the
/// guest, and some of it would change the guest's bytes.
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

/// Variables of cargo that say how crates are fetched: these stay.
const FETCHING: &[&str] = &[
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
];

/// A command that runs `program` without the variables that would leak into the guest.
pub(crate) fn clean_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if leaks(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// Where cargo keeps what it fetches.
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
    fn an_outer_cargo_leaves_nothing_behind() {
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
            assert!(
                leaks(OsStr::new(name)),
                "{name} must not reach the guest's build"
            );
        }
    }

    #[test]
    fn what_says_how_crates_are_fetched_stays() {
        for name in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_HTTP_PROXY",
            "HOME",
            "PATH",
            "RUSTUP_HOME",
        ] {
            assert!(
                !leaks(OsStr::new(name)),
                "{name} must reach the guest's build"
            );
        }
    }
}
