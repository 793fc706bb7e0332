//! What a plugin is for, and the plugin of each kind.

use clap::ValueEnum;

use super::{
    files::{File, files, text},
    language::Language,
};

/// What a plugin is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::plugin) enum Kind {
    /// How the processes of a framework find each other (`mlPolicy.plugin`).
    Framework,
    /// A batch scheduler that starts pods together (`podGroupPolicy.plugin`).
    Scheduler,
    /// Network devices and env vars of the nodes (`plugins`).
    Fabric,
    /// A container beside training (`plugins`).
    Sidecar,
}

/// The plugin of a kind.
pub(super) struct Plugin {
    /// The kind, as in the name of its folder.
    pub(super) kind: &'static str,
    /// Its phases, as `plugin wit` takes them.
    pub(super) phases: &'static str,
    pub(super) manifest: &'static str,
    /// The schema of its configuration, which the SDK derives in Rust.
    pub(super) schema: &'static str,
    /// The PolicyPlugin, if the plugin needs grants.
    pub(super) policy: Option<&'static str>,
    /// The cases, which are the same in each language.
    pub(super) cases: &'static [File],
    rust: &'static [File],
    c: &'static [File],
    go: &'static [File],
    javascript: &'static [File],
    python: &'static [File],
}

/// The plugin in a folder, with the test of its crate.
macro_rules! plugin {
    ($kind:literal, $phases:literal, $test:literal, $policy:expr) => {
        Plugin {
            kind: $kind,
            phases: $phases,
            manifest: text!(concat!($kind, "/manifest.json")),
            schema: text!(concat!($kind, "/config.schema.json")),
            policy: $policy,
            cases: files!($kind: "cases/basic/input.yaml", "cases/basic/expected.yaml"),
            rust: &[
                ("src/lib.rs", text!(concat!($kind, "/src/lib.rs"))),
                (concat!("tests/", $test, ".rs"), text!(concat!($kind, "/tests/", $test, ".rs"))),
            ],
            c: files!($kind: "plugin.c", "test.c"),
            go: files!($kind: "main.go", "main_test.go"),
            javascript: files!($kind: "plugin.js", "plugin.test.js"),
            python: files!($kind: "plugin.py", "test_plugin.py"),
        }
    };
}

static FRAMEWORK: Plugin = plugin!("framework", "transform", "nodes_find_each_other", None);
static SCHEDULER: Plugin = plugin!(
    "scheduler",
    "transform,build",
    "pods_are_scheduled_together",
    Some(text!("scheduler/policy.yaml"))
);
static FABRIC: Plugin = plugin!(
    "fabric",
    "transform",
    "nodes_with_accelerators_have_network_devices",
    Some(text!("fabric/policy.yaml"))
);
static SIDECAR: Plugin = plugin!(
    "sidecar",
    "transform",
    "nodes_have_the_sidecar",
    Some(text!("sidecar/policy.yaml"))
);

impl Kind {
    pub(super) const fn plugin(self) -> &'static Plugin {
        match self {
            Self::Framework => &FRAMEWORK,
            Self::Scheduler => &SCHEDULER,
            Self::Fabric => &FABRIC,
            Self::Sidecar => &SIDECAR,
        }
    }
}

impl Plugin {
    /// The source files in a language, with their tests.
    pub(super) const fn sources(&self, language: Language) -> &'static [File] {
        match language {
            Language::Rust => self.rust,
            Language::C => self.c,
            Language::Go => self.go,
            Language::Javascript => self.javascript,
            Language::Python => self.python,
        }
    }
}
