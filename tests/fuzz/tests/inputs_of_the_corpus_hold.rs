//! What the fuzzers check holds for every input in `corpus`, which includes each input that they have found to break it.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use trainyard_fuzz::{CHECKS, documents};

/// The most bytes of the corpus, which is in each clone.
const MOST_BYTES: u64 = 300 << 10;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The inputs of a check, with their paths.
fn inputs(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(folder("corpus").join(name)).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn checks_hold_for_every_input_of_the_corpus() {
    let mut broken = Vec::new();
    for (name, check) in CHECKS {
        let mut accepted = 0;
        let inputs = inputs(name);
        for (path, bytes) in &inputs {
            match catch_unwind(AssertUnwindSafe(|| check(bytes))) {
                Ok(is_accepted) => accepted += usize::from(is_accepted),
                Err(_) => broken.push(path.clone()),
            }
        }
        assert!(
            accepted > 0 && accepted < inputs.len(),
            "{name}: {accepted} of {} are accepted",
            inputs.len()
        );
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_check_has_a_fuzzer_and_a_small_corpus() {
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    let count = |name: &str| fs::read_dir(folder(name)).unwrap().count();
    assert_eq!(
        (count("targets"), count("corpus")),
        (CHECKS.len(), CHECKS.len())
    );
    let mut bytes = 0;
    for (name, _) in CHECKS {
        let target = fs::read_to_string(folder("targets").join(format!("{name}.rs"))).unwrap();
        assert!(
            target.contains(&format!("trainyard_fuzz::{name}::check(bytes)")),
            "{name}"
        );
        assert!(
            manifest.contains(&format!(
                "name = \"fuzz-{name}\"\npath = \"targets/{name}.rs\""
            )),
            "{name}"
        );
        bytes += inputs(name)
            .iter()
            .map(|(_, bytes)| bytes.len() as u64)
            .sum::<u64>();
    }
    assert!(bytes <= MOST_BYTES, "the corpus has {bytes} bytes");
}

#[test]
fn each_reader_of_documents_accepts_an_input() {
    let inputs = inputs("documents");
    for (kind, _) in documents::READERS {
        let of_kind = || {
            inputs
                .iter()
                .filter(|(_, bytes)| bytes.first() == Some(kind))
        };
        let accepted = of_kind()
            .filter(|(_, bytes)| documents::check(bytes))
            .count();
        assert!(
            accepted > 0,
            "{}: none of {}",
            char::from(*kind),
            of_kind().count()
        );
    }
}
