//! A folder that keeps plugins is freed of those that nothing needs, and keeps the others with their signatures.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use trainyard_oci::{
    Digest, PluginName, Progress, Reference, Requirement, Signers, discard_others, stored_file,
};

use crate::{
    common::signing::{Key, signers},
    common::{HOST, Net, Registry, WASM, client, push},
};

const HOUR: Duration = Duration::from_secs(3_600);

fn count(folder: &Path) -> usize {
    fs::read_dir(folder.join("blobs/sha256")).unwrap().count()
}

fn policy(key: &Key, plugins: &[&str], repository: &str) -> Signers {
    signers(
        &[("acme", key, plugins, Some(repository))],
        &["r.example.com/free/*"],
    )
}

#[tokio::test]
async fn plugins_without_a_kept_file_are_removed_with_their_signatures() {
    let net = Net::with([(HOST, Registry::default())]);
    let key = Key::new();
    let (client, folder) = (client(&net), tempfile::tempdir().unwrap());
    let policy = policy(&key, &["x"], "r.example.com/team/*");
    let requirement = Requirement {
        signers: &policy,
        plugin: PluginName::Custom("x"),
    };
    let mut pinned = Vec::new();
    for name in ["one", "two"] {
        let reference = format!("r.example.com/team/{name}:1.0");
        let digest = push(&net, &reference, name).await;
        key.sign_in(net.registry(HOST), &format!("team/{name}"), &digest);
        let by_digest: Reference = format!("r.example.com/team/{name}@{digest}")
            .parse()
            .unwrap();
        let stored =
            client.store_verified(&by_digest, folder.path(), &requirement, &Progress::NONE);
        stored.await.unwrap();
        pinned.push(by_digest);
    }
    let digest = |name: &str| Digest::of(&[WASM, name.as_bytes()].concat());
    let keep = BTreeSet::from([digest("two").to_string()]);
    let before = count(folder.path());
    // What was just written may be about to be needed.
    let removed = discard_others(folder.path(), &keep, HOUR).await;
    assert_eq!((removed.unwrap(), count(folder.path())), (0, before));
    let removed = discard_others(folder.path(), &keep, Duration::ZERO).await;
    assert_eq!(removed.unwrap(), 1);
    assert!(count(folder.path()) < before);
    net.take_down(HOST);
    let stored = client.pull_stored(&pinned[0], folder.path(), &requirement);
    assert!(stored.await.is_err());
    let stored = client.pull_stored(&pinned[1], folder.path(), &requirement);
    assert_eq!(stored.await.unwrap().signed.signer(), Some("acme"));
    assert!(stored_file(folder.path(), &digest("one"), 1 << 20).is_err());
    let file = stored_file(folder.path(), &digest("two"), 1 << 20);
    assert_eq!(file.unwrap(), [WASM, b"two"].concat());
    // A folder that does not exist yet has nothing to remove.
    let missing = folder.path().join("missing");
    assert_eq!(discard_others(&missing, &keep, HOUR).await.unwrap(), 0);
}

#[test]
fn repositories_are_allowed_by_name_alone() {
    let key = Key::new();
    let listed = policy(&key, &["x", "torch"], "r.example.com/team/*");
    let custom = PluginName::Custom("x");
    for (plugin, repository, expected) in [
        (custom, "r.example.com/team/x", true),
        (custom, "r.example.com/teams/x", false),
        (custom, "evil.example.com/team/x", false),
        (custom, "r.example.com.evil.net/team/x", false),
        (PluginName::Custom("y"), "r.example.com/team/x", false),
        (PluginName::Custom("y"), "r.example.com/free/x", true),
        (PluginName::BuiltIn("torch"), "r.example.com/team/x", true),
        // What replaces a built-in plugin is always signed.
        (PluginName::BuiltIn("mpi"), "r.example.com/free/x", false),
    ] {
        assert_eq!(
            listed.allow(plugin, repository),
            expected,
            "{plugin:?} {repository}"
        );
    }
}

/// A folder may be shared with others, who put files there, or a link in the place of it.
#[tokio::test]
async fn files_that_are_not_plugins_stay() {
    let net = Net::with([(HOST, Registry::default())]);
    let (client, folder) = (client(&net), tempfile::tempdir().unwrap());
    let policy = policy(&Key::new(), &["x"], "r.example.com/team/*");
    let requirement = Requirement {
        signers: &policy,
        plugin: PluginName::Custom("x"),
    };
    let digest = push(&net, "r.example.com/free/one:1.0", "one").await;
    let reference: Reference = format!("r.example.com/free/one@{digest}").parse().unwrap();
    let stored = client.store_verified(&reference, folder.path(), &requirement, &Progress::NONE);
    stored.await.unwrap();
    let blobs = folder.path().join("blobs/sha256");
    fs::write(blobs.join("important.db"), "1").unwrap();
    fs::create_dir(blobs.join("more")).unwrap();
    let none = BTreeSet::new();
    let removed = discard_others(folder.path(), &none, Duration::ZERO).await;
    assert_eq!((removed.unwrap(), count(folder.path())), (1, 2));

    let stored = client.store_verified(&reference, folder.path(), &requirement, &Progress::NONE);
    stored.await.unwrap();
    let elsewhere = folder.path().join("precious");
    fs::rename(&blobs, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &blobs).unwrap();
    let before = count(folder.path());
    let refused = discard_others(folder.path(), &none, Duration::ZERO).await;
    assert!(refused.is_err());
    assert_eq!(count(folder.path()), before);
}
