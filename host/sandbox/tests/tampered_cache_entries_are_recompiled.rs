//! An entry of the compiled cache is used only if this host wrote it; otherwise the plugin is recompiled, and a line is logged. Plugins
//! also work without a trusted cache.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use trainyard_sandbox::{
    CachePaths, CompilerCommand, LoadLimits, LoadProblem, Loader, LoaderOptions,
};

use crate::common::{call, env_of, good, load, loader_with, transform};

struct Place {
    _folder: tempfile::TempDir,
    paths: CachePaths,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = CachePaths {
            folder: folder.path().join("cache"),
            key: folder.path().join("state/cache.key"),
        };
        Self {
            _folder: folder,
            paths,
        }
    }

    /// A loader that compiles.
    fn loader(&self) -> Loader {
        loader_with(LoadLimits::default(), Some(self.paths.clone()))
    }

    /// Whether the plugin is loaded from the cache: no compiler exists.
    fn is_cached(&self, bytes: Vec<u8>) -> bool {
        let loader = Loader::new(LoaderOptions {
            compiler: CompilerCommand {
                program: "/no/compiler".into(),
                args: Vec::new(),
            },
            cache: Some(self.paths.clone()),
            compiled: None,
            limits: LoadLimits::default(),
            threads: 1,
        })
        .unwrap();
        match load(&loader, bytes) {
            Ok(plugin) => {
                call(&plugin).unwrap();
                true
            }
            Err(LoadProblem::Compile { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    }

    fn entries(&self) -> Vec<PathBuf> {
        let mut entries: Vec<_> = fs::read_dir(&self.paths.folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        entries.sort();
        entries
    }

    /// A place with the good plugin in the cache, and the path of its entry.
    fn filled() -> (Self, PathBuf) {
        let place = Self::new();
        load(&place.loader(), good()).map(drop).unwrap();
        let [entry] = &place.entries()[..] else {
            panic!("one entry");
        };
        let entry = entry.clone();
        (place, entry)
    }

    /// The entry is not used; the plugin is compiled again, and cached again.
    fn recovers(&self) {
        assert!(!self.is_cached(good()));
        let plugin = load(&self.loader(), good()).unwrap();
        assert_eq!(
            env_of(&call(&plugin).unwrap(), "PET_NNODES").as_deref(),
            Some("four")
        );
        assert!(self.is_cached(good()));
    }
}

#[test]
fn valid_entry_is_used() {
    let (place, _) = Place::filled();
    assert!(place.is_cached(good()));
}

#[test]
fn entry_with_a_changed_byte_is_recompiled() {
    let (place, entry) = Place::filled();
    let whole = fs::read(&entry).unwrap();
    for at in [0, 100, whole.len() / 2, whole.len() - 40, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&entry, &changed).unwrap();
        assert!(!place.is_cached(good()), "byte {at}");
    }
    place.recovers();
}

#[test]
fn truncated_or_empty_entry_is_recompiled() {
    let (place, entry) = Place::filled();
    let whole = fs::read(&entry).unwrap();
    for length in [0, 10, 32, whole.len() / 2, whole.len() - 1] {
        fs::write(&entry, &whole[..length]).unwrap();
        assert!(!place.is_cached(good()), "{length} bytes");
    }
    place.recovers();
}

#[test]
fn entry_of_another_plugin_is_recompiled() {
    let (place, entry) = Place::filled();
    load(&place.loader(), transform("", "unreachable"))
        .map(drop)
        .unwrap();
    let other = place.entries().into_iter().find(|e| *e != entry).unwrap();
    fs::copy(other, &entry).unwrap();
    place.recovers();
}

#[test]
fn entry_signed_with_another_key_is_recompiled() {
    let (place, entry) = Place::filled();
    let (_other, theirs) = Place::filled();
    fs::copy(theirs, &entry).unwrap();
    place.recovers();
}

#[test]
fn entry_that_is_not_a_file_is_recompiled() {
    let (place, entry) = Place::filled();
    fs::remove_file(&entry).unwrap();
    symlink("/dev/zero", &entry).unwrap();
    place.recovers();
    fs::remove_file(&entry).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&entry)
            .status()
            .unwrap()
            .success()
    );
    place.recovers();
}

#[test]
fn key_readable_by_others_is_replaced() {
    let (place, _) = Place::filled();
    let before = fs::read(&place.paths.key).unwrap();
    let mode = |mode| {
        fs::set_permissions(&place.paths.key, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o644);
    place.recovers();
    assert_ne!(fs::read(&place.paths.key).unwrap(), before);
    assert_eq!(
        fs::metadata(&place.paths.key).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn corrupt_key_is_replaced() {
    let (place, _) = Place::filled();
    fs::write(&place.paths.key, b"short").unwrap();
    place.recovers();
}

#[test]
fn key_inside_the_cache_is_not_used() {
    let mut place = Place::new();
    place.paths.key = place.paths.folder.join("cache.key");
    load(&place.loader(), good()).map(drop).unwrap();
    assert!(!place.is_cached(good()));
}

#[test]
fn folder_writable_by_others_is_not_used() {
    let (place, _) = Place::filled();
    let state = place.paths.key.parent().unwrap();
    fs::set_permissions(state, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(!place.is_cached(good()));
    load(&place.loader(), good()).map(drop).unwrap();
    fs::set_permissions(state, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(place.is_cached(good()));
}

#[test]
fn missing_cache_is_tolerated() {
    let mut place = Place::new();
    place.paths.folder = "/dev/null/cache".into();
    load(&place.loader(), good()).map(drop).unwrap();
    let place = Place::new();
    let loader = place.loader();
    fs::remove_dir_all(&place.paths.folder).unwrap();
    load(&loader, good()).map(drop).unwrap();
}

#[test]
fn concurrent_processes_share_one_key() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| load(&place.loader(), good()).map(drop).unwrap());
        }
    });
    assert!(place.is_cached(good()));
    assert_eq!(place.entries().len(), 1, "{:?}", place.entries());
}

#[test]
fn recompiling_is_logged() {
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (place, entry) = Place::filled();
    fs::write(&entry, b"changed").unwrap();
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // For all threads: a line that another test met without a subscriber would be off here.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    load(&place.loader(), good()).map(drop).unwrap();
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let path = entry.display().to_string();
    let line = text
        .lines()
        .find(|line| line.contains(&path))
        .unwrap_or_default();
    assert!(
        line.contains("WARN")
            && line.contains("not written with the current key")
            && line.contains("compiling it again"),
        "{text}"
    );
}

#[test]
fn least_recently_used_entries_are_evicted() {
    let (place, entry) = Place::filled();
    let size = fs::metadata(&entry).unwrap().len();
    let limits = |cache_bytes| LoadLimits {
        cache_bytes,
        ..LoadLimits::default()
    };
    let other = || transform("(func)", "");
    let loader = |limit| loader_with(limits(limit), Some(place.paths.clone()));
    // Room for one and a half.
    load(&loader(size * 3 / 2), other()).map(drop).unwrap();
    assert_eq!(place.entries().len(), 1);
    assert!(place.is_cached(other()) && !place.is_cached(good()));
    // Room for none: the other one stays, and the plugin works all the same.
    let plugin = load(&loader(size / 2), good()).unwrap();
    call(&plugin).unwrap();
    assert!(place.is_cached(other()) && place.entries().len() == 1);
}
