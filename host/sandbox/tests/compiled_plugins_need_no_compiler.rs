//! A plugin that was compiled into a directory is loaded without a compiler, if only root and this user can write to its file. Otherwise
//! it is compiled again.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use trainyard_sandbox::{
    CompilerCommand, LoadLimits, LoadProblem, Loader, LoaderOptions, SetupError,
};

use crate::common::{call, env_of, good, load, loader, transform};

/// A directory with the good plugin, and its file.
fn filled() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("compiled");
    let loader = loader();
    let plugin = load(&loader, good()).unwrap();
    let name = loader.write_compiled(&plugin, &folder).unwrap();
    let file = folder.join(format!("{name}.cwasm"));
    (temporary, folder, file)
}

/// A loader that has no compiler.
fn without_compiler(folder: &Path) -> Result<Loader, SetupError> {
    Loader::new(LoaderOptions {
        compiler: CompilerCommand {
            program: "/no/compiler".into(),
            args: Vec::new(),
        },
        cache: None,
        compiled: Some(folder.to_owned()),
        limits: LoadLimits::default(),
        threads: 1,
    })
}

/// Whether the plugin is loaded from the directory, and works.
fn is_loaded(folder: &Path, bytes: Vec<u8>) -> bool {
    match load(&without_compiler(folder).unwrap(), bytes) {
        Ok(plugin) => {
            let called = call(&plugin).unwrap();
            assert_eq!(env_of(&called, "PET_NNODES").as_deref(), Some("four"));
            true
        }
        Err(LoadProblem::Compile { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn plugin_is_loaded_without_a_compiler() {
    let (_temporary, folder, file) = filled();
    assert!(is_loaded(&folder, good()));
    // The user of a container is another one than the one who built its image.
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
}

#[test]
fn other_plugins_are_compiled() {
    let (_temporary, folder, _) = filled();
    assert!(!is_loaded(&folder, transform("", "")));
}

#[test]
fn file_that_others_can_write_to_is_not_used() {
    let (_temporary, folder, file) = filled();
    for mode in [0o664, 0o646] {
        set_mode(&file, mode);
        assert!(!is_loaded(&folder, good()), "{mode:o}");
    }
    set_mode(&file, 0o444);
    assert!(is_loaded(&folder, good()));
}

#[test]
fn file_that_is_no_regular_file_is_not_used() {
    let (temporary, folder, file) = filled();
    let moved = temporary.path().join("moved");
    fs::rename(&file, &moved).unwrap();
    symlink(&moved, &file).unwrap();
    assert!(!is_loaded(&folder, good()));
}

#[test]
fn damaged_file_is_not_used() {
    let (_temporary, folder, file) = filled();
    let whole = fs::read(&file).unwrap();
    for length in [0, 10, whole.len() / 2] {
        fs::write(&file, whole.get(..length).unwrap()).unwrap();
        assert!(!is_loaded(&folder, good()), "{length} bytes");
    }
}

#[test]
fn directory_that_others_can_write_to_is_an_error() {
    let (temporary, folder, _) = filled();
    for mode in [0o775, 0o757] {
        set_mode(&folder, mode);
        let error = without_compiler(&folder).map(drop).unwrap_err().to_string();
        assert!(error.contains("others can write to it"), "{error}");
    }
    let missing = temporary.path().join("missing");
    let error = without_compiler(&missing).map(drop).unwrap_err();
    assert!(error.to_string().contains("missing: cannot be used"));
}
