//! A file that is not a plugin is refused with its name and the reason, and is never read beyond the size limit of a plugin.

use std::{
    fs,
    path::{Path, PathBuf},
};

use trainyard_model::limits::Limits;
use trainyard_sandbox::{LoadProblem, ScreenError};

use crate::common::{self, good, loader, settings};

fn refused(path: &Path) -> ScreenError {
    let loader = loader();
    let error = match loader.load_file(path, |_| settings(Limits::default())) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error,
    };
    assert!(
        error.to_string().starts_with(&path.display().to_string()),
        "{error}"
    );
    match *error.problem {
        LoadProblem::Screen(error) => error,
        other => panic!("{other}"),
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        common::keep(bytes);
        let path = self.0.path().join("plugin.wasm");
        fs::write(&path, bytes).unwrap();
        path
    }
}

#[test]
fn valid_file_is_loaded() {
    let path = Folder::new();
    loader()
        .load_file(&path.file(&good()), |_| settings(Limits::default()))
        .map(drop)
        .unwrap();
}

#[test]
fn empty_file_is_refused() {
    assert!(matches!(
        refused(&Folder::new().file(b"")),
        ScreenError::Empty
    ));
}

#[test]
fn missing_file_is_refused() {
    assert!(matches!(
        refused(Path::new("/no/such/plugin.wasm")),
        ScreenError::Read(_)
    ));
}

#[test]
fn folder_is_refused() {
    let folder = Folder::new();
    let error = refused(folder.0.path());
    assert!(
        matches!(error, ScreenError::NotAFile("a directory")),
        "{error}"
    );
}

#[test]
fn devices_are_refused() {
    for device in ["/dev/zero", "/dev/urandom", "/dev/null", "/dev/stdin"] {
        let error = refused(Path::new(device));
        assert!(
            matches!(error, ScreenError::NotAFile(_) | ScreenError::Empty),
            "{device}: {error}"
        );
    }
}

#[test]
fn pipe_without_a_writer_is_refused() {
    let folder = Folder::new();
    let path = folder.0.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    assert!(matches!(refused(&path), ScreenError::NotAFile(_)));
}

#[test]
fn huge_file_is_refused() {
    let folder = Folder::new();
    let path = folder.file(b"\0asm");
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert!(matches!(refused(&path), ScreenError::TooLarge(_)));
}

#[test]
fn truncated_file_is_refused() {
    let folder = Folder::new();
    let whole = good();
    for parts in 1..20 {
        let error = refused(&folder.file(&whole[..whole.len() * parts / 20]));
        assert!(
            matches!(error, ScreenError::Malformed(_) | ScreenError::Manifests(0)),
            "{error}"
        );
    }
    assert!(matches!(
        refused(&folder.file(&whole[..whole.len() - 1])),
        ScreenError::Malformed(_)
    ));
}

#[test]
fn other_formats_are_refused() {
    let folder = Folder::new();
    for bytes in [
        &b"hello"[..],
        b"\0asm\xff\0\0\0",
        b"(component)",
        b"PK\x03\x04",
    ] {
        let error = refused(&folder.file(bytes));
        assert!(matches!(error, ScreenError::Malformed(_)), "{error}");
    }
}

#[test]
fn core_module_is_refused() {
    let core = wat::parse_str("(module)").unwrap();
    let error = refused(&Folder::new().file(&core));
    assert!(matches!(error, ScreenError::CoreModule), "{error}");
    assert!(
        error.to_string().contains("trainyard plugin build"),
        "{error}"
    );
}

#[test]
fn native_code_is_refused() {
    let folder = Folder::new();
    let paths = trainyard_sandbox::CachePaths {
        folder: folder.0.path().join("cache"),
        key: folder.0.path().join("key"),
    };
    let caching = common::loader_with(
        trainyard_sandbox::LoadLimits::default(),
        Some(paths.clone()),
    );
    common::load(&caching, good()).map(drop).unwrap();
    let compiled = fs::read_dir(&paths.folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let error = refused(&compiled);
    assert!(matches!(error, ScreenError::NativeCode(_)), "{error}");
}

#[test]
fn expensive_functions_are_refused() {
    let locals = |n| format!("(func (local {}))", "i32 ".repeat(n));
    let load = |items: &str| refused(&Folder::new().file(&common::transform(items, "")));
    let error = load(&locals(5_000));
    assert!(
        matches!(error, ScreenError::TooMuch { what, .. } if what.contains("locals")),
        "{error}"
    );
    let error = load(&format!(
        "(func {})",
        "(drop (i32.const 1)) ".repeat(200_000)
    ));
    assert!(
        matches!(error, ScreenError::TooMuch { what, .. } if what.contains("bytes")),
        "{error}"
    );
    let error = load(&"(func) ".repeat(100_001));
    assert!(
        matches!(error, ScreenError::TooMuch { what, .. } if what.contains("functions")),
        "{error}"
    );
}

#[test]
fn too_many_modules_are_refused() {
    let mut component = good();
    for _ in 0..70 {
        component = common::with_section(component, 1, b"\0asm\x01\0\0\0");
    }
    let error = refused(&Folder::new().file(&component));
    assert!(
        matches!(error, ScreenError::TooMuch { what, .. } if what.contains("modules")),
        "{error}"
    );
}
