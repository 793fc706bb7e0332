//! `deploy/crds` is what the documents give, and small enough for a client-side apply. `UPDATE=1` writes the files anew.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::{fs, path::Path};

use trainyard_api::yaml;
use trainyard_schema::documents::Kind;

/// What all annotations of an object may have together; `kubectl apply` puts the whole object into one.
const MOST_ANNOTATION_BYTES: usize = 256 << 10;

#[test]
fn each_file_is_what_its_document_gives() {
    for kind in Kind::ALL {
        let crd = kind.crd().unwrap_or_else(|error| panic!("{error}"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../deploy/crds")
            .join(format!("{}.yaml", kind.plural()));
        let text = yaml::write(&crd);
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap();
        assert!(
            written == text,
            "{} is old: UPDATE=1 writes it anew",
            path.display()
        );
    }
}

#[test]
fn each_is_small_enough_for_a_client_side_apply() {
    for kind in Kind::ALL {
        let bytes = kind.crd().unwrap().to_string().len();
        assert!(
            bytes < MOST_ANNOTATION_BYTES * 3 / 4,
            "{}: {bytes}",
            kind.name()
        );
    }
}
