//! A crate in any directory is built as a component, or the error says what to do. The crates of these tests contain the sections of the SDK's
//! macro, so only the build is tested.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use tempfile::TempDir;
use trainyard_componentize::{
    build::{self, BuildError, Built, Messages, Options},
    component::ComponentError,
    toolchain,
};

const SECTIONS: &str = r##"
    #[used]
    #[unsafe(link_section = "trainyard:manifest-json")]
    static FILE: [u8; 24] = *br#"{"activeWhen": "always"}"#;
    #[used]
    #[unsafe(link_section = "trainyard:manifest-parts")]
    static PARTS: [u8; 80] = *br#"{"name": "quiet", "version": "1.0.0", "contract": "1.0.0", "phases": ["check"]} "#;
"##;

const CODE: &str = r#"
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    #[unsafe(no_mangle)]
    pub extern "C" fn _initialize() {
        let calls = CALLS.fetch_add(1, Ordering::Relaxed);
        let names: Vec<String> = (0..calls).map(|call| call.to_string()).collect();
        assert!(names.len() < 3, "{names:?}");
    }
"#;

/// Errors are reported before cargo runs, which would fail on this crate.
#[test]
fn invalid_manifest_is_refused_before_compiling() {
    let broken = Crate::new("", "this does not compile");
    broken.write("manifest.json", r#"{"activeWhen": "always", "clams": {}}"#);
    let error = build::build(&broken.dir(), &Options::default()).unwrap_err();
    assert!(matches!(error, BuildError::Manifest { .. }), "{error}");
    let error = error.to_string();
    assert!(
        error.contains("manifest.json: ")
            && error.ends_with("`clams`: unknown field; did you mean `claims`?"),
        "{error}"
    );
}

#[test]
fn all_manifests_are_checked_before_the_first_crate_is_compiled() {
    let manifests = [
        r#"{"activeWhen": "always"}"#,
        r#"{"activeWhen": "always", "clams": {}}"#,
    ];
    let [first, second] = manifests.map(|manifest| {
        let broken = Crate::new("", "this does not compile");
        broken.write("manifest.json", manifest);
        broken
    });
    let error = build::build_all(&[first.dir(), second.dir()], &Options::default()).unwrap_err();
    assert!(
        matches!(&error, BuildError::Manifest { path, .. } if path.starts_with(second.dir())),
        "{error}"
    );
}

#[test]
fn crates_of_several_workspaces_are_built_in_their_order() {
    let crates = [Crate::plugin(), Crate::plugin()];
    crates[1].write(
        "src/lib.rs",
        &format!("{SECTIONS}{CODE}").replace(r#""version": "1.0.0""#, r#""version": "1.0.1""#),
    );
    let folders = crates.each_ref().map(Crate::dir);
    let built = one_at_a_time(|| build::build_all(&folders, &options())).unwrap();
    let versions = built.iter().map(|built| &*built.component.manifest.version);
    assert_eq!(versions.collect::<Vec<_>>(), ["1.0.0", "1.0.1"]);
    let alone = crates[1].build().unwrap();
    assert!(built[1].component == alone.component, "the bytes differ");
}

struct Crate(TempDir);

impl Crate {
    fn new(lib: &str, source: &str) -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        let manifest = format!(
            "[package]\nname = 'quiet'\nversion = '1.0.0'\nedition = '2024'\n[workspace]\n[lib]\n{lib}\n"
        );
        made.write("Cargo.toml", &manifest);
        made.write("src/lib.rs", source);
        made
    }

    fn plugin() -> Self {
        Self::new(
            "crate-type = ['cdylib', 'rlib']",
            &format!("{SECTIONS}{CODE}"),
        )
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn dir(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn build(&self) -> Result<Built, BuildError> {
        one_at_a_time(|| build::build(&self.dir(), &options()))
    }
}

fn options() -> Options {
    Options {
        target_dir: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guest")),
        messages: Messages::Keep,
        locked: false,
    }
}

/// Builds crates of one test at a time, because all crates share a target directory and the name of the module.
fn one_at_a_time<T>(build: impl FnOnce() -> T) -> T {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    build()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn component_contains_no_local_path() {
    let plugin = Crate::plugin();
    let built = plugin.build().unwrap();
    assert_eq!(built.component.manifest.name, "quiet");
    for file in ["Cargo.toml", "src/lib.rs"] {
        let file = plugin.dir().join(file);
        assert!(built.sources.contains(&file), "{:?}", built.sources);
    }

    let bytes = &built.component.bytes;
    assert!(
        contains(bytes, "src/lib.rs"),
        "panics contain their location, so the paths below would be found"
    );
    let home = std::env::home_dir().unwrap();
    for path in [
        plugin.dir(),
        home,
        built.toolchain.sysroot.join("lib/rustlib"),
    ] {
        assert!(
            !contains(bytes, path.to_str().unwrap()),
            "{} is in the component",
            path.display()
        );
    }
}

#[test]
fn same_crate_in_two_folders_gives_the_same_bytes() {
    let (one, other) = (
        Crate::plugin().build().unwrap(),
        Crate::plugin().build().unwrap(),
    );
    assert!(one.component == other.component, "the bytes differ");
}

#[test]
fn profile_and_rustflags_do_not_affect_the_build() {
    let plain = Crate::plugin().build().unwrap();
    let other = Crate::plugin();
    let manifest = std::fs::read_to_string(other.dir().join("Cargo.toml")).unwrap();
    let profile = "[profile.release]\nopt-level = 0\npanic = 'unwind'\nlto = 'off'\ndebug = true\ncodegen-units = 16\n";
    other.write("Cargo.toml", &format!("{manifest}{profile}"));
    other.write(
        ".cargo/config.toml",
        "[build]\nrustflags = ['-Copt-level=0', '-Cdebuginfo=2']\n",
    );
    assert!(
        plain.component == other.build().unwrap().component,
        "the bytes differ"
    );
}

#[test]
fn missing_crate_settings_are_named() {
    let library = Crate::new("", CODE).build().unwrap_err();
    assert!(matches!(library, BuildError::NotPlugin { .. }), "{library}");
    assert!(
        library
            .to_string()
            .contains(r#"crate-type = ["cdylib", "rlib"]"#),
        "{library}"
    );

    let no_macro = Crate::new("crate-type = ['cdylib']", CODE)
        .build()
        .unwrap_err();
    let BuildError::Component {
        error: ComponentError::NoManifest { .. },
        ..
    } = &no_macro
    else {
        panic!("{no_macro}")
    };
    assert!(
        no_macro.to_string().contains("trainyard_sdk::plugin!"),
        "{no_macro}"
    );
}

#[test]
fn folder_without_a_crate_is_reported() {
    let missing = build::build(Path::new("/no/such/folder"), &Options::default()).unwrap_err();
    assert!(matches!(missing, BuildError::NoCrate { .. }));
    assert!(missing.to_string().contains("/no/such/folder"), "{missing}");

    let workspace = Crate::plugin();
    workspace.write(
        "Cargo.toml",
        "[workspace]\nmembers = ['inner']\nresolver = '3'\n",
    );
    workspace.write(
        "inner/Cargo.toml",
        "[package]\nname = 'inner'\nversion = '1.0.0'\nedition = '2024'\n",
    );
    workspace.write("inner/src/lib.rs", "");
    let workspace = workspace.build().unwrap_err();
    assert!(
        matches!(workspace, BuildError::NoPackage { .. }),
        "{workspace}"
    );
}

#[test]
fn compiler_output_is_part_of_the_error() {
    let error = Crate::new(
        "crate-type = ['cdylib']",
        "pub fn broken() -> u32 { missing_thing }",
    )
    .build()
    .unwrap_err();
    let BuildError::Failed { output, .. } = &error else {
        panic!("{error}")
    };
    assert!(
        output.contains("missing_thing") && output.contains("src/lib.rs"),
        "{output}"
    );
}

#[test]
fn toolchain_is_found() {
    let toolchain = toolchain::find().unwrap();
    assert!(
        toolchain.cargo.is_file() && toolchain.rustc.is_file(),
        "{toolchain}"
    );
}
