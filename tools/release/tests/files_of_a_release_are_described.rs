//! Each file of a release has a line that says what it is, and its digest. The notes are those of the changelog.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;
use trainyard_release::{Contents, notes, sha256};

const CONTENTS: Contents<'_> = Contents {
    version: "1.2.3",
    commit: "c0ffee",
    image: "sha256:abc",
};

#[test]
fn each_file_has_a_digest_and_a_description() {
    let folder = tempdir().unwrap();
    let names = [
        "crds.yaml",
        "trainyard-1.2.3.tgz",
        "trainyard-image-1.2.3.tar",
        "trainyard-linux-amd64",
        "trainyard-linux-amd64.cdx.json",
    ];
    for name in names {
        fs::write(folder.path().join(name), name).unwrap();
    }
    let lines = CONTENTS.write(folder.path()).unwrap();
    // Writing them again finds the list, and is the same.
    assert_eq!(CONTENTS.write(folder.path()).unwrap(), lines);
    let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
    let sums = read("SHA256SUMS");
    let contents: Value = serde_json::from_str(&read("contents.json")).unwrap();
    assert_eq!(contents["image"]["digest"], "sha256:abc");
    let files = contents["files"].as_array().unwrap();
    assert_eq!(
        [lines.len(), sums.lines().count(), files.len()],
        [names.len(); 3]
    );
    for ((name, line), file) in names.into_iter().zip(lines).zip(files) {
        let digest = sha256(name.as_bytes());
        assert!(line.starts_with(name), "{line}");
        assert!(
            sums.contains(&format!("{}  {name}\n", &digest["sha256:".len()..])),
            "{sums}"
        );
        assert_eq!(
            [file["name"].as_str(), file["digest"].as_str()],
            [Some(name), Some(digest.as_str())]
        );
    }
    assert!(
        files[3]["what"] == "the program, static"
            && files[4]["what"]
                .as_str()
                .unwrap()
                .starts_with("software bill")
    );
}

#[test]
fn unknown_files_are_refused() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("core.1234"), "").unwrap();
    let error = CONTENTS.write(folder.path()).unwrap_err().to_string();
    assert!(
        error.starts_with("core.1234: is not a file of a release"),
        "{error}"
    );
}

#[test]
fn notes_are_a_section_of_the_changelog() {
    let changelog = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [1.2.3] - 2026-01-01\n\n- old\n\n## [1.2.2]\n\n- oldest\n";
    assert_eq!(
        notes(changelog, "1.2.3").unwrap(),
        "# Trainyard 1.2.3\n\n- old\n"
    );
    let unreleased = "# Trainyard 1.3.0, which is not released yet\n\n- new\n";
    assert_eq!(notes(changelog, "1.3.0").unwrap(), unreleased);
    let error = notes("# Changelog\n\n## [Unreleased]\n\n## [1.2.3]\n", "1.3.0").unwrap_err();
    assert!(error.to_string().contains("no section [1.3.0]"), "{error}");
}
