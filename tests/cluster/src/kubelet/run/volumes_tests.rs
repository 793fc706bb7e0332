#![allow(clippy::unwrap_used, clippy::panic)]

use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::kubelet::run::facts::Objects;

const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 244, 0, 7));

fn of(volume: Value) -> Result<Contents, Problem> {
    let mut objects = Objects::default();
    let map = json!({"data": {"hosts": "a\nb\n"}, "binaryData": {"blob": "AP8="}});
    let map = serde_json::from_value(map).unwrap();
    objects.config_maps.insert("hosts".to_owned(), map);
    let secret = json!({"data": {"private": "c2VjcmV0", "public": "cHVi"}});
    let secret = serde_json::from_value(secret).unwrap();
    objects.secrets.insert("keys".to_owned(), secret);
    objects.tokens.insert("api".to_owned(), "token".to_owned());
    let pod = json!({
        "metadata": {"name": "pod", "labels": {"a": "1", "b": "2"}},
        "spec": {"containers": [{"name": "node", "resources": {"limits": {"cpu": "2"}}}]},
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let facts = Facts {
        pod: &pod,
        pod_ip: IP,
        host_ip: IP,
        objects: &objects,
    };
    let mut volume = volume;
    volume
        .as_object_mut()
        .unwrap()
        .insert("name".to_owned(), json!("volume"));
    contents(&serde_json::from_value(volume).unwrap(), &facts)
}

/// Returns the path, the data and the mode of each file.
fn files(volume: Value) -> Vec<(String, String, u32)> {
    let Contents::Files(files) = of(volume).unwrap() else {
        panic!("no files");
    };
    let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
    let files = files.into_iter();
    files
        .map(|file| (file.path, text(&file.data), file.mode))
        .collect()
}

fn file(path: &str, data: &str, mode: u32) -> (String, String, u32) {
    (path.to_owned(), data.to_owned(), mode)
}

#[test]
fn all_keys_of_a_config_map_are_files() {
    let found = files(json!({"configMap": {"name": "hosts", "defaultMode": 0o444}}));
    let expected = [
        file("hosts", "a\nb\n", 0o444),
        file("blob", "\0\u{fffd}", 0o444),
    ];
    assert_eq!(found, expected);
}

#[test]
fn items_of_a_secret_have_their_own_paths_and_modes() {
    let items = json!([
        {"key": "private", "path": "ssh/id_rsa", "mode": 0o600},
        {"key": "public", "path": "id_rsa.pub"},
    ]);
    let found = files(json!({"secret": {"secretName": "keys", "items": items}}));
    let expected = [
        file("ssh/id_rsa", "secret", 0o600),
        file("id_rsa.pub", "pub", 0o644),
    ];
    assert_eq!(found, expected);
}

#[test]
fn sources_of_a_projected_volume_share_a_folder() {
    let labels = json!({"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}});
    let cpu = json!({"containerName": "node", "resource": "limits.cpu"});
    let cpu = json!({"path": "cpu", "resourceFieldRef": cpu});
    let found = files(json!({"projected": {"defaultMode": 0o400, "sources": [
        {"secret": {"name": "keys", "items": [{"key": "public", "path": "key"}]}},
        {"downwardAPI": {"items": [labels, cpu]}},
        {"serviceAccountToken": {"audience": "api", "path": "token"}},
        {"configMap": {"name": "none", "optional": true}},
    ]}}));
    let expected = [
        file("key", "pub", 0o400),
        file("labels", "a=\"1\"\nb=\"2\"", 0o400),
        file("cpu", "2", 0o400),
        file("token", "token", 0o400),
    ];
    assert_eq!(found, expected);
}

#[test]
fn missing_objects_of_volumes_are_waited_for_and_other_kinds_are_refused() {
    let missing = |volume| matches!(of(volume), Err(Problem::Missing(_)));
    assert!(missing(json!({"secret": {"secretName": "none"}})));
    let items = json!([{"key": "none", "path": "none"}]);
    assert!(missing(
        json!({"configMap": {"name": "hosts", "items": items}})
    ));
    assert_eq!(
        of(json!({"configMap": {"name": "hosts", "items": items, "optional": true}})),
        Ok(Contents::Files(Vec::new()))
    );
    let refused = of(json!({"nfs": {"server": "a", "path": "/"}}));
    assert!(
        matches!(refused, Err(Problem::Unsupported(_))),
        "{refused:?}"
    );
}

#[test]
fn files_are_written_with_their_modes() {
    let folder = tempfile::tempdir().unwrap();
    let of = |path: &str, mode| VolumeFile {
        path: path.to_owned(),
        data: b"x".to_vec(),
        mode,
    };
    let contents = Contents::Files(vec![of("a/key", 0o600), of("b", 0o644)]);
    write(&contents, folder.path(), None).unwrap();
    let mode = |path: &str| {
        let found = fs::metadata(folder.path().join(path)).unwrap();
        found.permissions().mode() & 0o7777
    };
    assert_eq!((mode("a/key"), mode("b")), (0o600, 0o644));
    // Only root can give files to another group.
    if chown(folder.path(), None, Some(2000)).is_ok() {
        let given = folder.path().join("given");
        write(&contents, &given, Some(2000)).unwrap();
        assert_eq!((mode("given/a/key"), mode("given/b")), (0o640, 0o644));
        assert_eq!(mode("given"), 0o2777);
    }
}
