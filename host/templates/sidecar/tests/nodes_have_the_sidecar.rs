//! The pods of the nodes have the sidecar, and a volume that both containers mount.

#![allow(clippy::unwrap_used)]

use serde_json::json;
use trainyard_sdk::mock::{MockJob, MockPodSet};
use trainyard_template_sidecar::PLUGIN;

const IMAGE: &str = "registry.example.com/sidecar:1";

fn job() -> MockJob {
    let job = MockJob::new("bert").grants(&["pod-sets[@nodes].init-containers[sidecar]"]);
    job.pod_set("node", |set| {
        set.nodes(true)
            .container("node", |node| node.image("registry.example.com/train:1"))
    })
}

#[test]
fn both_containers_share_a_volume() {
    let job = job().config(json!({"image": IMAGE}));
    let outcome = job.transform(&PLUGIN).unwrap();
    let value = |path: &str| outcome.value(&format!("pod-sets[node].{path}"));
    assert_eq!(value("init-containers[sidecar].image"), Some(json!(IMAGE)));
    assert_eq!(
        value("init-containers[sidecar].restart-policy"),
        Some(json!("Always"))
    );
    for container in ["containers[node]", "init-containers[sidecar]"] {
        let mount = value(&format!("{container}.mounts[/var/run/sidecar]"));
        let volume = mount.and_then(|mount| mount.get("name").cloned());
        assert_eq!(volume, Some(json!("sidecar")));
    }
}

#[test]
fn the_image_is_required() {
    let error = job().transform(&PLUGIN).unwrap_err().to_string();
    assert!(error.contains("image"), "{error}");
}

#[test]
fn a_volume_of_the_runtime_is_refused() {
    let volume = |set: MockPodSet| {
        let set = set.volume("sidecar", json!({"emptyDir": {}}));
        set.nodes(true).container("node", |node| node)
    };
    let job = MockJob::new("bert").all_granted().pod_set("node", volume);
    let job = job.config(json!({"image": IMAGE}));
    let error = job.transform(&PLUGIN).unwrap_err().to_string();
    assert!(error.contains("volumes[sidecar].name"), "{error}");
}
