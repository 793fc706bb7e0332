//! The launcher and the nodes mount the keys where ssh and sshd expect them, and the launcher mounts the hostfile.

use serde_json::{Value, json};
use trainyard_plugin_mpi::PLUGIN;
use trainyard_sdk::mock::MockJob;

use crate::common::{LAUNCHER, NODE, gpus, job};

fn at(path: &str) -> MockJob {
    job(gpus).config(json!({"sshAuthMountPath": path}))
}

fn keys(mode: u32) -> Value {
    json!({
        "name": "mpi-ssh-auth",
        "secret": {
            "secretName": "llm-mpi-ssh-auth",
            "defaultMode": 0o400,
            "items": [
                {"key": "ssh-privatekey", "path": "id_rsa", "mode": mode},
                {"key": "ssh-publickey", "path": "id_rsa.pub", "mode": 0o644},
                {"key": "ssh-publickey", "path": "authorized_keys", "mode": 0o644},
            ],
        },
    })
}

#[test]
fn both_pod_sets_mount_the_keys() {
    let outcome = at("/home/mpiuser/.ssh").transform(&PLUGIN).unwrap();
    for set in ["node", "launcher"] {
        let volume = outcome.value(&format!("pod-sets[{set}].volumes[mpi-ssh-auth]"));
        assert_eq!(volume, Some(keys(0o640)));
    }
    for container in [LAUNCHER, NODE] {
        let path = format!("{container}.mounts[/home/mpiuser/.ssh]");
        let mount = json!({"name": "mpi-ssh-auth", "mountPath": "/home/mpiuser/.ssh"});
        assert_eq!(outcome.value(&path), Some(mount));
    }
}

#[test]
fn private_key_in_roots_home_is_readable_by_root_only() {
    let volume = |job: MockJob| {
        let outcome = job.transform(&PLUGIN).unwrap();
        outcome.value("pod-sets[launcher].volumes[mpi-ssh-auth]")
    };
    assert_eq!(volume(at("/root/.ssh")), Some(keys(0o600)));
    assert_eq!(volume(job(gpus)), Some(keys(0o600)));
    assert_eq!(volume(at("//root/.ssh")), Some(keys(0o600)));
    assert_eq!(volume(at("/a/../root/./.ssh")), Some(keys(0o600)));
    assert_eq!(volume(at("/rootless/.ssh")), Some(keys(0o640)));
    // Only what is below it.
    assert_eq!(volume(at("/root/")), Some(keys(0o640)));
    assert_eq!(volume(at("/root/../home/.ssh")), Some(keys(0o640)));
}

#[test]
fn only_the_launcher_mounts_the_hostfile() {
    let outcome = job(gpus).transform(&PLUGIN).unwrap();
    let volume = json!({
        "name": "mpi-hostfile",
        "configMap": {
            "name": "llm-mpi-hostfile",
            "items": [{"key": "hostfile", "path": "hostfile", "mode": 0o444}],
        },
    });
    let launcher = "pod-sets[launcher].volumes[mpi-hostfile]";
    assert_eq!(outcome.value(launcher), Some(volume));
    let mount = json!({"name": "mpi-hostfile", "mountPath": "/etc/mpi"});
    assert_eq!(
        outcome.value(&format!("{LAUNCHER}.mounts[/etc/mpi]")),
        Some(mount)
    );
    assert_eq!(outcome.value("pod-sets[node].volumes[mpi-hostfile]"), None);
}
