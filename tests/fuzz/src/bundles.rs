//! Bundles: an archive is refused with an error, or has exactly the files that its index lists. What is accepted is written so that it reads
//! back as the same.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tar::{Builder, EntryType, Header};
use trainyard_bundle::{Bundle, archive, job_file};
use trainyard_model::{limits::Limits, names::sha256_digest};

use crate::{check_text, generator::Generator};

const INDEX: &str = "bundle.json";

/// Names of files, some of which a bundle can have.
const NAMES: [&str; 10] = [
    "plugins/other.wasm",
    "trainjobs/000/runtime.json",
    "trainjobs/9999/lookups.json",
    "cluster/events.json",
    "cluster/a/../b",
    "../outside",
    "trainjobs/000/other.json",
    "plugins/A.wasm",
    INDEX,
    "",
];

const KINDS: &[u8; 12] = b"01234567LKxS";

/// A file of an archive.
struct File {
    name: String,
    kind: EntryType,
    /// Its size in its header.
    bytes: u64,
    content: Vec<u8>,
}

impl File {
    fn new(name: impl Into<String>, content: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            kind: EntryType::Regular,
            bytes: content.len() as u64,
            content,
        }
    }
}

/// Checks the bytes of an archive after a `b`, or a bundle with a few changes.
pub fn check(bytes: &[u8]) -> bool {
    if let Some(archive) = bytes.strip_prefix(b"b") {
        return read(archive).is_some();
    }
    let mut generator = Generator::new(bytes);
    let (mut files, mut index) = recorded(&mut generator);
    let mut is_changed = false;
    for _ in 0..generator.below(4) {
        is_changed = true;
        match generator.below(4) {
            0 => change(&mut generator, &mut files),
            _ => generator.change(&mut index),
        }
    }
    files.insert(0, File::new(INDEX, index.to_string().into_bytes()));
    if generator.byte() >= 0xf0 {
        is_changed = true;
        change(&mut generator, &mut files);
    }
    let mut bytes = archive_of(&files);
    if generator.byte() >= 0xf0 {
        is_changed = true;
        bytes.truncate(512 * generator.below(16) + generator.below(256));
    }
    let found = read(&bytes);
    if let Some(found) = &found {
        let expected = files.into_iter().skip(1).map(|mut file| {
            file.content.truncate(file.bytes as usize);
            (file.name, file.content)
        });
        let expected: BTreeMap<_, _> = expected.collect();
        assert_eq!(*found, expected);
    }
    assert!(is_changed || found.is_some(), "{index}");
    found.is_some()
}

/// The files of a bundle and its index.
fn recorded(generator: &mut Generator<'_>) -> (Vec<File>, Value) {
    let mut files = Vec::new();
    let mut add = |generator: &mut Generator<'_>, name: String| {
        files.push(File::new(
            &name,
            generator.anything(2).to_string().into_bytes(),
        ));
        name
    };
    let train_jobs: Value = (0..=generator.below(3))
        .map(|number| {
            json!({
                "namespace": "default", "name": format!("job-{number}"), "from": "files", "plan": "sha256:0",
                "trainJob": add(generator, job_file(number, "trainjob.json")),
                "runtime": add(generator, job_file(number, "runtime.json")),
                "lookups": add(generator, job_file(number, "lookups.json")),
                "output": add(generator, job_file(number, "output.json")),
            })
        })
        .collect();
    let plugins: Value = ["torch", "mpi"][..generator.below(3)]
        .iter()
        .map(|name| {
            json!({
                "file": add(generator, format!("plugins/{name}.wasm")), "name": name, "version": "0.1.0",
                "grants": ["pod-sets[*].containers[*].command"], "limits": Limits::default(),
                "config": generator.anything(2), "after": [], "before": ["other"], "excludes": [],
            })
        })
        .collect();
    if generator.byte() & 1 == 1 {
        add(generator, "cluster/events.json".to_owned());
    }
    let listed = |file: &File| {
        let entry = json!({"bytes": file.bytes, "digest": sha256_digest(&file.content)});
        (file.name.clone(), entry)
    };
    let listed: Map<_, _> = files.iter().map(listed).collect();
    let index = json!({
        "form": 1, "trainyard": {"version": "0.1.0", "build": "0"}, "plugins": plugins, "trainJobs": train_jobs, "files": listed,
        "cluster": {"domain": "cluster.local", "accelerators": ["nvidia.com/gpu"], "facts": {"a": "b"}},
    });
    (files, index)
}

/// Changes a file, or adds or removes one.
fn change(generator: &mut Generator<'_>, files: &mut Vec<File>) {
    let at = generator.below(files.len());
    let name = NAMES[generator.below(NAMES.len())];
    let Some(file) = files.get_mut(at) else {
        return;
    };
    match generator.below(8) {
        0 => _ = files.remove(at),
        1 => files.insert(at, File::new(name, b"{}".to_vec())),
        2 => file.name = name.to_owned(),
        3 => file.name = generator.word(),
        4 => file.kind = EntryType::new(KINDS[generator.below(KINDS.len())]),
        5 => file.bytes = u64::from(generator.byte()) << generator.below(40),
        6 => file.content = generator.word().into_bytes(),
        _ => file.content.push(generator.byte()),
    }
}

fn archive_of(files: &[File]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for file in files {
        let mut header = Header::new_ustar();
        // `set_path` refuses some of these names.
        let name = file.name.as_bytes();
        let name = &name[..name.len().min(100)];
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(file.kind);
        header.set_size(file.bytes);
        header.set_cksum();
        archive.append(&header, &*file.content).unwrap();
    }
    archive.into_inner().unwrap()
}

/// Returns the files of the bundle that the bytes are; `None` if they are refused.
fn read(bytes: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let parse = |bytes: &[u8]| {
        let bundle = Bundle::parse("fuzz.tar".to_owned(), bytes);
        bundle.map_err(|error| error.to_string())
    };
    let mut bundle = parse(bytes).map_err(|error| check_text(&error)).ok()?;
    let index = bundle.index.clone();
    drop(index.cluster.facts());
    index
        .plugins
        .iter()
        .for_each(|plugin| drop(plugin.settings()));
    let mut take = |name: &String| {
        let content = bundle.take(name).unwrap();
        assert_eq!(sha256_digest(&content), bundle.digest(name), "{name}");
        if let Err(error) = bundle.json(name, &content) {
            check_text(&error.to_string());
        }
        (name.clone(), content)
    };
    let files: BTreeMap<_, _> = index.files.keys().map(&mut take).collect();
    let written = archive(index.clone(), &files).unwrap();
    let again = parse(&written).unwrap_or_else(|error| panic!("{error}: {index:?}"));
    assert_eq!(again.index, index);
    Some(files)
}
