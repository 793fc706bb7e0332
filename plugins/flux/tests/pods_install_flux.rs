//! Pods get Flux, its configuration and its certificate, readable by their user.

use serde_json::{Value, json};
use trainyard_sdk::mock::{MockContainer, MockPodSet};

use crate::common::{INSTALLER, NODE, job, of_node, outcome};

#[test]
fn init_container_installs_flux() {
    let outcome = outcome(of_node(|c| c));
    assert_eq!(
        outcome.value(&format!("{INSTALLER}.image")),
        Some(json!(
            "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy"
        ))
    );
    assert_eq!(
        outcome.value(&format!("{INSTALLER}.command")),
        Some(json!(["/bin/bash", "/etc/flux-config/init.sh"]))
    );
    let mounts =
        |container: &str, path: &str| outcome.value(&format!("{container}.mounts[{path}]"));
    let mount = |volume: &str, path: &str| Some(json!({"name": volume, "mountPath": path}));
    let read_only = |volume: &str, path: &str| {
        Some(json!({"name": volume, "mountPath": path, "readOnly": true}))
    };
    for (path, volume) in [
        ("/mnt/flux", "flux-install"),
        ("/opt/software", "spack-install"),
        ("/dev/shm", "shared-memory"),
    ] {
        assert_eq!(mounts(NODE, path), mount(volume, path));
    }
    assert_eq!(mounts(NODE, "/curve"), read_only("flux-curve", "/curve"));
    assert_eq!(
        mounts(INSTALLER, "/mnt/flux"),
        mount("flux-install", "/mnt/flux")
    );
    for container in [NODE, INSTALLER] {
        assert_eq!(
            mounts(container, "/etc/flux-config"),
            read_only("flux-config", "/etc/flux-config")
        );
    }
    let volume = |name: &str| {
        outcome
            .value(&format!("pod-sets[node].volumes[{name}]"))
            .unwrap()
    };
    assert_eq!(
        volume("flux-curve")["secret"],
        json!({"secretName": "lammps-flux-curve", "defaultMode": 0o400})
    );
    assert_eq!(
        volume("flux-config")["configMap"],
        json!({"name": "lammps-flux-entrypoint", "defaultMode": 0o755})
    );
}

#[test]
fn image_of_the_train_job_takes_precedence_over_the_runtimes() {
    let image = |set: fn(MockPodSet) -> MockPodSet, node: fn(MockContainer) -> MockContainer| {
        outcome(job(set, node)).value(&format!("{INSTALLER}.image"))
    };
    let own = |set: MockPodSet| {
        set.init_container("flux-installer", |c| {
            c.image("own:1").command(&["old"]).args(&["x"])
        })
    };
    let runtimes = |c: MockContainer| c.env("FLUX_VIEW_IMAGE", "runtime:1");
    let both = |c: MockContainer| {
        c.env("FLUX_VIEW_IMAGE", "runtime:1")
            .train_job_env("FLUX_VIEW_IMAGE", "job:1")
    };
    assert_eq!(image(|set| set, runtimes), Some(json!("runtime:1")));
    assert_eq!(image(|set| set, both), Some(json!("job:1")));
    // The runtime's init container keeps its image, and does the plugin's work.
    assert_eq!(image(own, runtimes), None);
    assert_eq!(image(own, both), Some(json!("job:1")));
    let outcome = outcome(job(own, |c| c));
    let writes = outcome.writes();
    let of_installer = |field: &str| {
        let path = format!("{INSTALLER}.{field}");
        writes
            .iter()
            .find(|(written, _)| *written == path)
            .map(|(_, value)| value.clone())
    };
    assert_eq!(
        of_installer("command"),
        Some(Some(json!(["/bin/bash", "/etc/flux-config/init.sh"])))
    );
    assert_eq!(of_installer("args"), Some(None));
}

/// The value of a field of the installer as the plugin sets it.
fn of_installer(
    set: fn(MockPodSet) -> MockPodSet,
    node: fn(MockContainer) -> MockContainer,
    field: &str,
) -> Option<Value> {
    outcome(job(set, node)).value(&format!("{INSTALLER}.{field}"))
}

#[test]
fn default_image_is_for_the_architecture_of_the_pods() {
    let found = |set: fn(MockPodSet) -> MockPodSet, node: fn(MockContainer) -> MockContainer| {
        let outcome = outcome(job(set, node));
        let image = outcome.value(&format!("{INSTALLER}.image")).unwrap();
        let placed = outcome.value("pod-sets[node].node-selector[kubernetes.io/arch]");
        (image.as_str().unwrap().to_owned(), placed)
    };
    let (image, placed) = found(|set| set, |c| c);
    assert!(image.ends_with(":tag-jammy"), "{image}");
    assert_eq!(placed, Some(json!("amd64")));
    let (image, placed) = found(
        |set| set.node_selector("kubernetes.io/arch", "arm64"),
        |c| c,
    );
    assert!(image.ends_with(":arm-jammy"), "{image}");
    assert_eq!(placed, None, "the runtime's selector is kept");
    // An image of the user's can be for several architectures.
    let (image, placed) = found(|set| set, |c| c.env("FLUX_VIEW_IMAGE", "own:1"));
    assert_eq!((&*image, placed), ("own:1", None));
}

#[test]
fn installer_is_restricted_as_the_node_container() {
    let restricted = |c: MockContainer| {
        c.raw("securityContext/allowPrivilegeEscalation", json!(false))
            .raw("securityContext/runAsUser", json!(1001))
            .raw(
                "securityContext/seccompProfile",
                json!({"type": "RuntimeDefault"}),
            )
            .raw("securityContext/capabilities/drop", json!(["ALL"]))
            .capability("NET_BIND_SERVICE")
            .raw("securityContext/privileged", json!(true))
    };
    let raw = |name: &str| format!("raw[securityContext/{name}]");
    for (name, value) in [
        ("allowPrivilegeEscalation", Some(json!(false))),
        ("runAsUser", Some(json!(1001))),
        ("seccompProfile", Some(json!({"type": "RuntimeDefault"}))),
        ("capabilities/drop", Some(json!(["ALL"]))),
        ("privileged", None),
    ] {
        assert_eq!(
            of_installer(|set| set, restricted, &raw(name)),
            value,
            "{name}"
        );
        assert_eq!(of_installer(|set| set, |c| c, &raw(name)), None, "{name}");
        // The runtime's own security context is kept as a whole.
        let own = |set: MockPodSet| {
            set.init_container("flux-installer", |c| {
                c.raw("securityContext/runAsGroup", json!(7))
            })
        };
        assert_eq!(of_installer(own, restricted, &raw(name)), None, "{name}");
        let capable =
            |set: MockPodSet| set.init_container("flux-installer", |c| c.capability("CHOWN"));
        let found = of_installer(capable, restricted, &raw(name));
        assert_eq!(found, None, "{name}");
        // One without a security context is restricted.
        let without_context =
            |set: MockPodSet| set.init_container("flux-installer", |c| c.request("cpu", "1"));
        assert_eq!(
            of_installer(without_context, restricted, &raw(name)),
            value,
            "{name}"
        );
    }
}

#[test]
fn installer_has_the_resources_of_the_node_container() {
    let node = |c: MockContainer| {
        c.request("cpu", "4")
            .limit("memory", "8Gi")
            .limit("nvidia.com/gpu", "4")
    };
    for (field, value) in [
        ("requests[cpu]", Some(json!("4"))),
        ("limits[cpu]", None),
        ("limits[memory]", Some(json!("8Gi"))),
        ("limits[nvidia.com/gpu]", None),
    ] {
        assert_eq!(of_installer(|set| set, node, field), value, "{field}");
        assert_eq!(of_installer(|set| set, |c| c, field), None, "{field}");
        let own: [fn(MockPodSet) -> MockPodSet; 2] = [
            |set| set.init_container("flux-installer", |c| c.request("cpu", "100m")),
            |set| set.init_container("flux-installer", |c| c.limit("cpu", "1")),
        ];
        for own in own {
            let found = of_installer(own, node, field);
            assert_eq!(found, None, "{field}: the runtime's stay");
        }
        let plain = |set: MockPodSet| set.init_container("flux-installer", |c| c);
        assert_eq!(of_installer(plain, node, field), value, "{field}");
    }
}

#[test]
fn shared_memory_is_writable_and_limited() {
    let size = |node: fn(MockContainer) -> MockContainer| {
        let outcome = outcome(of_node(node));
        let volume = outcome.value("pod-sets[node].volumes[shared-memory]");
        volume.map(|volume| volume["emptyDir"].clone())
    };
    let of = |limit: &str| Some(json!({"medium": "Memory", "sizeLimit": limit}));
    assert_eq!(size(|c| c), of("8Gi"));
    assert_eq!(size(|c| c.request("memory", "4Gi")), of("4Gi"));
    assert_eq!(
        size(|c| c.request("memory", "4Gi").limit("memory", "6Gi")),
        of("6Gi")
    );
    assert_eq!(
        size(|c| c.mount("data", "/dev/shm/")),
        None,
        "the runtime mounts its own"
    );
}

#[test]
fn non_root_user_can_read_the_certificate() {
    let group = |set: fn(MockPodSet) -> MockPodSet, node: fn(MockContainer) -> MockContainer| {
        outcome(job(set, node)).value("pod-sets[node].fs-group")
    };
    let user = |set: MockPodSet| set.raw("securityContext/runAsUser", json!(1001));
    assert_eq!(group(|set| set, |c| c), None);
    assert_eq!(group(user, |c| c), Some(json!(1001)));
    assert_eq!(
        group(user, |c| c.raw("securityContext/runAsUser", json!(0))),
        None
    );
    assert_eq!(
        group(|set| set, |c| c.raw("securityContext/runAsUser", json!(7))),
        Some(json!(7))
    );
    assert_eq!(
        group(user, |c| c.raw("securityContext/runAsGroup", json!(9))),
        Some(json!(9))
    );
    assert_eq!(
        group(
            |set| set.raw("securityContext/runAsNonRoot", json!(true)),
            |c| c
        ),
        Some(json!(1000))
    );
    let given = |set: MockPodSet| {
        set.raw("securityContext/runAsUser", json!(1001))
            .fs_group(5)
    };
    assert_eq!(group(given, |c| c), None, "the runtime's group stays");
}

#[test]
fn nodes_prefer_separate_machines() {
    let term = |count: u32| {
        outcome(job(|set| set.count(count), |c| c)).value("pod-sets[node].affinity-terms[flux]")
    };
    assert_eq!(term(1), None);
    let labels = json!({"jobset.sigs.k8s.io/jobset-name": "lammps", "jobset.sigs.k8s.io/replicatedjob-name": "node"});
    let term = term(2).unwrap();
    let preferred: &Value =
        &term["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(
        *preferred,
        json!([{"weight": 100, "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels},
        }}])
    );
}

#[test]
fn command_is_kept_unchanged() {
    let words = |node: fn(MockContainer) -> MockContainer| {
        let outcome = outcome(of_node(node));
        assert_eq!(
            outcome.value(&format!("{NODE}.command")),
            Some(json!(["/bin/bash", "/etc/flux-config/entrypoint.sh"]))
        );
        outcome.value(&format!("{NODE}.args")).unwrap()
    };
    assert_eq!(words(|c| c), json!(["lmp", "-in", "in file"]));
    assert_eq!(
        words(|c| c.args(&["a b"])),
        json!(["lmp", "-in", "in file", "a b"])
    );
    assert_eq!(
        words(|c| c
            .train_job_command(&["python3", "-c", "print('x y')"])
            .train_job_args(&["", "*"])),
        json!(["python3", "-c", "print('x y')", "", "*"])
    );
}
