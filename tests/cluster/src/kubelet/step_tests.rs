#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::net::Ipv4Addr;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

const RUN: Result<Fate, UnknownFate> = Ok(Fate::Hold);

fn here() -> Here {
    Here {
        now: Time(Timestamp::from_second(1_700_000_000).unwrap()),
        pod_ip: IpAddr::V4(Ipv4Addr::new(10, 244, 0, 1)),
    }
}

fn pod(policy: &str, phase: &str) -> Pod {
    let pod = json!({
        "metadata": {"name": "pod", "namespace": "test"},
        "spec": {
            "nodeName": "node-0",
            "restartPolicy": policy,
            "initContainers": [
                {"name": "first", "image": "a"},
                {"name": "beside", "image": "b", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "node", "image": "c"}],
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "True"}],
        },
    });
    serde_json::from_value(pod).unwrap()
}

/// Returns the pod after all steps with this fate, and the delay of the last step.
fn after(mut pod: Pod, fates: &[Fate]) -> (Value, Duration) {
    let mut waited = Duration::ZERO;
    for fate in fates {
        match next(&pod, Ok(*fate), &here()).unwrap() {
            Step::Write(status, after) => {
                pod.status = Some(*status);
                waited = after;
            }
            Step::Delete => panic!("deleted"),
        }
    }
    (serde_json::to_value(pod.status).unwrap(), waited)
}

fn condition<'a>(status: &'a Value, name: &str) -> &'a str {
    let conditions = status["conditions"].as_array().unwrap();
    let of_name = |condition: &&Value| condition["type"] == name;
    let mut found = conditions.iter().filter(of_name);
    let condition = found.next().unwrap();
    assert!(found.next().is_none(), "{name} twice");
    condition["status"].as_str().unwrap()
}

#[test]
fn bound_pod_runs_and_becomes_ready() {
    let (status, _) = after(pod("Never", "Pending"), &[Fate::Succeed]);
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["podIP"], "10.244.0.1");
    for name in ["PodScheduled", "Initialized", "Ready", "ContainersReady"] {
        assert_eq!(condition(&status, name), "True");
    }
    let container = &status["containerStatuses"][0];
    assert_eq!(
        (&container["name"], &container["ready"]),
        (&json!("node"), &json!(true))
    );
    assert!(container["state"]["running"].is_object(), "{container}");
    let [first, beside] = [0, 1].map(|at| &status["initContainerStatuses"][at]["state"]);
    assert_eq!(first["terminated"]["exitCode"], 0);
    assert!(beside["running"].is_object(), "{beside}");
}

#[test]
fn unscheduled_held_and_finished_pods_are_ignored() {
    let mut unbound = pod("Never", "Pending");
    unbound.spec.as_mut().unwrap().node_name = None;
    assert_eq!(next(&unbound, RUN, &here()), None);
    assert_eq!(next(&pod("Never", "Running"), RUN, &here()), None);
    for phase in ["Succeeded", "Failed"] {
        let fate = Ok(Fate::Fail(1));
        assert_eq!(next(&pod("OnFailure", phase), fate, &here()), None);
    }
}

#[test]
fn pod_ends_according_to_its_fate() {
    let (status, _) = after(pod("OnFailure", "Pending"), &[Fate::Succeed, Fate::Succeed]);
    assert_eq!(status["phase"], "Succeeded");
    let ended = &status["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(
        (&ended["exitCode"], &ended["reason"]),
        (&json!(0), &json!("Completed"))
    );
    let (status, _) = after(pod("Never", "Running"), &[Fate::Fail(7)]);
    assert_eq!(status["phase"], "Failed");
    assert_eq!(condition(&status, "Ready"), "False");
    let ended = &status["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 7);
}

#[test]
fn restarting_pod_backs_off_and_keeps_its_restart_count() {
    let fail = [Fate::Hold, Fate::Fail(7), Fate::Fail(7), Fate::Fail(7)];
    let (status, waited) = after(pod("OnFailure", "Pending"), &fail);
    assert_eq!(status["phase"], "Running");
    assert_eq!(waited, FIRST_BACK_OFF * 4);
    let container = &status["containerStatuses"][0];
    assert_eq!(container["restartCount"], 3);
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 7);
    assert!(container["state"]["running"].is_object(), "{container}");
    let mut fates = fail.to_vec();
    fates.push(Fate::Succeed);
    let (status, _) = after(pod("OnFailure", "Pending"), &fates);
    assert_eq!(status["phase"], "Succeeded");
    assert_eq!(status["containerStatuses"][0]["restartCount"], 3);
    let many = [Fate::Fail(1); 40];
    let (_, waited) = after(pod("OnFailure", "Pending"), &many);
    assert_eq!(waited, LAST_BACK_OFF);
}

#[test]
fn deleted_pod_terminates_before_it_is_removed() {
    let mut deleted = pod("OnFailure", "Running");
    deleted.metadata.deletion_timestamp = Some(here().now);
    deleted.metadata.deletion_grace_period_seconds = Some(30);
    let Some(Step::Write(status, _)) = next(&deleted, RUN, &here()) else {
        panic!("it does not end");
    };
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    let ended = serde_json::to_value(&status).unwrap();
    let ended = &ended["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 143);
    deleted.status = Some(*status);
    assert_eq!(next(&deleted, RUN, &here()), Some(Step::Delete));
    // It waits for a finalizer of another controller.
    deleted.metadata.deletion_grace_period_seconds = Some(0);
    assert_eq!(next(&deleted, RUN, &here()), None);
}
