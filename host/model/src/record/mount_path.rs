//! Comparison of mount paths.

use std::borrow::Cow;

/// A mount path in its canonical form. The kubelet prepends `/` to a relative path, and the container runtime cleans it, so `/dev/shm/`,
/// `//dev/shm` and `/dev/./shm` are all `/dev/shm`.
#[must_use]
pub(super) fn clean_path(path: &str) -> Cow<'_, str> {
    let is_clean = path.starts_with('/')
        && (path == "/"
            || path
                .split('/')
                .skip(1)
                .all(|part| !matches!(part, "" | "." | "..")));
    if is_clean {
        return path.into();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/")).into()
}

/// The canonical form of a prefix of mount paths. Its last part may be incomplete, and is not changed.
#[must_use]
pub(super) fn clean_prefix(prefix: &str) -> Cow<'_, str> {
    match prefix.rsplit_once('/') {
        None => prefix.into(),
        Some((above, last)) => match clean_path(above) {
            root if &*root == "/" => format!("/{last}").into(),
            above => format!("{above}/{last}").into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_mean_one_place_are_one() {
        for (path, clean) in [
            ("/dev/shm", "/dev/shm"),
            ("/dev/shm/", "/dev/shm"),
            ("//dev///shm", "/dev/shm"),
            ("/dev/./shm/.", "/dev/shm"),
            ("dev/shm", "/dev/shm"),
            ("/a/../dev/shm", "/dev/shm"),
            ("/../..", "/"),
            ("/", "/"),
            ("", "/"),
            ("/..data/x...", "/..data/x..."),
        ] {
            assert_eq!(clean_path(path), clean, "{path}");
            assert_eq!(clean_path(clean), clean);
        }
        assert!(matches!(clean_path("/dev/shm"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_prefix_means_the_clean_paths_that_begin_so() {
        for (prefix, clean) in [
            ("/p0/", "/p0/"),
            ("/p0//", "/p0/"),
            ("/a/./b/x", "/a/b/x"),
            ("/x/../etc/", "/etc/"),
            ("//", "/"),
            ("/", "/"),
            ("", ""),
            ("/a/..", "/a/.."),
        ] {
            assert_eq!(clean_prefix(prefix), clean, "{prefix}");
        }
    }
}
