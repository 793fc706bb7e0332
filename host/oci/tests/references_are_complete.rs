//! A reference names its registry, and a tag or digest: nothing is guessed.

use trainyard_oci::{Digest, Location};

use crate::common::at;

fn error(text: &str) -> String {
    text.parse::<Location>().unwrap_err().to_string()
}

#[test]
fn references_are_read_and_printed_as_written() {
    let digest = Digest::of(b"");
    for text in [
        "r.example.com/x:1.0",
        "r.example.com:5000/team/sub/x:v1",
        "localhost/x:1",
        "docker.io/team/x:1.0",
        "oci:folder",
        "oci:/a/b:1.0",
        "oci:../a:r.example.com/team/x:1.0",
    ] {
        assert_eq!(at(text).to_string(), text);
        let pinned = at(text).pinned(&digest);
        assert_eq!(pinned, format!("{text}@{digest}"));
        assert_eq!(at(&pinned).to_string(), pinned);
        assert_eq!(at(&pinned).pinned(&digest), pinned);
    }
}

#[test]
fn errors_say_what_to_write_instead() {
    for (text, expected) in [
        (
            "team/x:1.0",
            "`team/x:1.0` does not name its registry; write it in front, such as registry.example.com/team/x:1.0",
        ),
        ("x.wasm", "does not name its registry"),
        (
            "r.example.com/x",
            "has neither a tag nor a digest; add `:TAG` or `@sha256:DIGITS`",
        ),
        ("r.example.com:5000/x", "has neither a tag nor a digest"),
        (
            "r.example.com/X:1.0",
            "is not a reference to a plugin in a registry",
        ),
        (
            "r.example.com/../x:1.0",
            "is not a reference to a plugin in a registry",
        ),
        (
            "https://r.example.com/x:1.0",
            "is not a reference to a plugin in a registry",
        ),
        (
            "r.example.com/x@sha256:abc",
            "is not a reference to a plugin in a registry",
        ),
        (
            "user:password@r.example.com/x:1.0",
            "is not a reference to a plugin in a registry",
        ),
        ("", "is not a reference to a plugin in a registry"),
        ("oci:", "does not name a folder"),
        ("oci::1.0", "does not name a folder"),
        (
            "oci:a@sha256:abc",
            "its digest is not `sha256:` with 64 hexadecimal digits",
        ),
    ] {
        let error = error(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
    let sha512 = format!("r.example.com/x@sha512:{}", "a".repeat(128));
    assert!(error(&sha512).contains("its digest is not `sha256:`"));
    let upper = format!("r.example.com/x@sha256:{}", "A".repeat(64));
    assert!(error(&upper).contains("its digest is not `sha256:`"));
}
