//! The requests of a gang that a plugin sees match those of the JobSet's pods, including what LimitRanges and the RuntimeClass add.

use trainyard_model::{call::Call, contract::handle, deadline::Deadline, plugin::Phase};
use trainyard_render::{Rendered, Stopped};

use crate::common::{Scripted, catalog, input, pod_set, renderer};

/// Records the requests of the trainer's gang, as a plugin for a scheduler does.
fn gang() -> Scripted {
    let claims = [
        ("reads", "lookups[v1/LimitRange/*]"),
        ("reads", "lookups[node.k8s.io/v1/RuntimeClass/*]"),
        ("writes", "objects[v1/ConfigMap/-gang]"),
    ];
    Scripted::new("gang", &claims, |phase, call| {
        if phase != Phase::Build {
            return Ok(());
        }
        let info = call.context_info(Call::CONTEXT)?;
        let gang = ["node".to_owned()];
        let members = call.info_gang_members(info, &gang)?;
        let requests = call.info_gang_requests(info, &gang)?.into_iter();
        let requests = requests.map(|q| format!(" {}={}", q.resource, q.amount));
        let object = call.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-gang", None)?;
        let text = format!("{members}{}", requests.collect::<String>());
        call.object_append(object, "asks", &text)
    })
}

/// Adds a sidecar before all init containers.
fn helper() -> Scripted {
    let claims = [("creates", "pod-sets[node].init-containers[helper]")];
    Scripted::new("helper", &claims, |phase, call| {
        if phase != Phase::Transform {
            return Ok(());
        }
        let set = pod_set(call, "node")?;
        let helper = call.pod_set_add_init_container(set, "helper", "image")?;
        call.container_set_restart_policy(helper, "Always")?;
        call.container_set_request(helper, "cpu", "500m")?;
        call.container_place_first(helper)
    })
}

const NAMESPACE: &str = "
---
apiVersion: v1
kind: LimitRange
metadata: {name: range, namespace: default}
spec: {limits: [{type: Container, defaultRequest: {memory: 3Gi}}, {type: Pod, max: {cpu: 64}}]}
---
apiVersion: v1
kind: LimitRange
metadata: {name: range, namespace: other}
spec: {limits: [{type: Container, defaultRequest: {memory: 9Gi}}]}
";

const RUNTIME_CLASS: &str = "
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {cpu: 250m, memory: 160Mi}}
";

fn render(plugins: &[Scripted], beside: &str) -> Result<Rendered, Stopped> {
    let text = input(plugins)
        .replace("trainer: {env:", "trainer: {numNodes: 3, env:")
        .replace(
            "image: base:1\n",
            "image: base:1\n                  resources: {limits: {cpu: 4, nvidia.com/gpu: 8}}\n",
        )
        .replace(
            "{name: second, image: init:1}",
            "{name: second, image: init:1, resources: {requests: {cpu: 8, memory: 2Gi}}}",
        )
        .replace(
            "                initContainers:",
            "                runtimeClassName: kata\n                initContainers:",
        );
    let catalog = catalog(&(text + beside));
    let renderer = renderer(plugins).unwrap();
    catalog.render(&catalog.jobs[0], &renderer, &Deadline::none())
}

fn asked(plugins: &[Scripted], beside: &str) -> String {
    let rendered =
        render(plugins, beside).unwrap_or_else(|stopped| panic!("{:?}", stopped.lines()));
    let data = &rendered.objects[0].value["data"];
    data["asks"].as_str().unwrap().to_owned()
}

/// For each of the 3 pods: 8 CPUs of the init container `second`, which is more than the 4 of `node`; the default memory of each of the two
/// containers, which is more than `second` requests; and the overhead. The defaults of another namespace have no effect.
#[test]
fn requests_match_with_limit_ranges_and_runtime_class_overhead() {
    let beside = format!("{NAMESPACE}{RUNTIME_CLASS}");
    assert_eq!(
        asked(&[gang()], &beside),
        "3 cpu=24750m memory=18912Mi nvidia.com/gpu=24"
    );
    assert_eq!(
        asked(&[gang()], RUNTIME_CLASS),
        "3 cpu=24750m memory=6624Mi nvidia.com/gpu=24"
    );
}

/// The sidecar runs at the same time as `second`, and also requests the default of the LimitRange.
#[test]
fn requests_match_with_a_sidecar_placed_first_by_another_plugin() {
    let beside = format!("{NAMESPACE}{RUNTIME_CLASS}");
    assert_eq!(
        asked(&[gang(), helper()], &beside),
        "3 cpu=26250m memory=28128Mi nvidia.com/gpu=24"
    );
}

#[test]
fn missing_runtime_class_is_a_lookup() {
    let problems = render(&[gang()], NAMESPACE).unwrap_err().lines();
    let [problem] = &problems[..] else {
        panic!("{problems:?}")
    };
    assert!(
        problem.contains("RuntimeClass `kata` (node.k8s.io/v1)"),
        "{problem}"
    );
}
