//! The languages of new plugins, and what the plugins of a language share.

use clap::ValueEnum;

use super::files::{File, files, text};

/// The language of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::plugin) enum Language {
    /// A crate with the SDK, which has a mock host for tests.
    Rust,
    /// A source file for Zig's C compiler or clang. `bindings/guest.h` has the contract.
    C,
    /// A Go module. Its package `policy` has the contract.
    Go,
    /// A module for componentize-js.
    #[value(name = "javascript")]
    Javascript,
    /// A module for componentize-py.
    Python,
}

/// What the plugins of a language share.
pub(in crate::plugin) struct Shared {
    /// Files in which words in capitals stand for what differs between plugins.
    pub(super) filled: &'static [File],
    /// Files that are copied.
    pub(super) copied: &'static [File],
    /// The part of the README on the plugin's files and tools.
    pub(super) change: &'static str,
    /// The steps of the workflow before those of every plugin.
    pub(super) setup: &'static str,
    /// The command that installs the tools that building needs in the plugin's folder, if there are such tools.
    pub(in crate::plugin) install: Option<&'static str>,
    /// The command that runs the unit tests, once the plugin was built.
    pub(in crate::plugin) test: &'static str,
}

static RUST: Shared = Shared {
    filled: &[],
    copied: &[(".gitignore", text!("rust/gitignore"))],
    change: text!("rust/change.md"),
    setup: text!("rust/setup.yaml"),
    install: None,
    test: "cargo test",
};
static C: Shared = Shared {
    filled: files!("c": "build.sh", "test.sh"),
    copied: &[
        (".gitignore", text!("c/gitignore")),
        ("test.h", text!("c/test.h")),
    ],
    change: text!("c/change.md"),
    setup: text!("c/setup.yaml"),
    install: None,
    test: "./test.sh",
};
static GO: Shared = Shared {
    filled: files!("go": "build.sh"),
    copied: &[
        (".gitignore", text!("go/gitignore")),
        ("go.mod", text!("go/go.mod")),
        ("policy/abi_wasip1.go", text!("go/policy/abi_wasip1.go")),
        ("policy/build/build.go", text!("go/policy/build/build.go")),
        (
            "policy/build/build_wasip1.go",
            text!("go/policy/build/build_wasip1.go"),
        ),
        ("policy/check/check.go", text!("go/policy/check/check.go")),
        (
            "policy/check/check_wasip1.go",
            text!("go/policy/check/check_wasip1.go"),
        ),
        ("policy/context.go", text!("go/policy/context.go")),
        (
            "policy/context_wasip1.go",
            text!("go/policy/context_wasip1.go"),
        ),
        ("policy/job.go", text!("go/policy/job.go")),
        ("policy/job_wasip1.go", text!("go/policy/job_wasip1.go")),
        ("policy/lookups.go", text!("go/policy/lookups.go")),
        (
            "policy/lookups_wasip1.go",
            text!("go/policy/lookups_wasip1.go"),
        ),
        ("policy/objects.go", text!("go/policy/objects.go")),
        (
            "policy/objects_wasip1.go",
            text!("go/policy/objects_wasip1.go"),
        ),
        ("policy/pod_set_info.go", text!("go/policy/pod_set_info.go")),
        (
            "policy/pod_set_info_wasip1.go",
            text!("go/policy/pod_set_info_wasip1.go"),
        ),
        ("policy/policy.go", text!("go/policy/policy.go")),
        (
            "policy/transform/transform.go",
            text!("go/policy/transform/transform.go"),
        ),
        (
            "policy/transform/transform_wasip1.go",
            text!("go/policy/transform/transform_wasip1.go"),
        ),
        ("policy/types.go", text!("go/policy/types.go")),
        ("policy/types_wasip1.go", text!("go/policy/types_wasip1.go")),
    ],
    change: text!("go/change.md"),
    setup: text!("go/setup.yaml"),
    install: None,
    test: "go test ./...",
};
static JAVASCRIPT: Shared = Shared {
    filled: files!("javascript": "build.sh"),
    copied: &[
        (".gitignore", text!("javascript/gitignore")),
        ("build.mjs", text!("javascript/build.mjs")),
        ("package.json", text!("javascript/package.json")),
    ],
    change: text!("javascript/change.md"),
    setup: text!("javascript/setup.yaml"),
    install: Some("npm install"),
    test: "npm test",
};
static PYTHON: Shared = Shared {
    filled: files!("python": "build.sh"),
    copied: &[
        (".gitignore", text!("python/gitignore")),
        ("requirements.txt", text!("python/requirements.txt")),
    ],
    change: text!("python/change.md"),
    setup: text!("python/setup.yaml"),
    install: Some("pip install -r requirements.txt"),
    test: "python3 -m unittest",
};

impl Language {
    pub(in crate::plugin) const fn shared(self) -> &'static Shared {
        match self {
            Self::Rust => &RUST,
            Self::C => &C,
            Self::Go => &GO,
            Self::Javascript => &JAVASCRIPT,
            Self::Python => &PYTHON,
        }
    }
}
