//! The next step of a kubelet for a pod. It depends only on the pod and its fate, so missed or repeated events have no effect.

use std::{net::IpAddr, time::Duration};

use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
        ContainerStatus, Pod, PodCondition, PodIP, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::fate::{Fate, UnknownFate};

/// The exit code of a container that SIGTERM terminated.
const TERMINATED: i32 = 143;
/// The initial delay before a container is restarted. It doubles with each restart.
const FIRST_BACK_OFF: Duration = Duration::from_millis(100);
/// The maximum delay.
const LAST_BACK_OFF: Duration = Duration::from_secs(10);

/// The next action of a kubelet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Write this status after this delay.
    Write(Box<PodStatus>, Duration),
    /// Delete the terminated pod.
    Delete,
}

/// The time and the address in a status.
#[derive(Clone, Debug)]
pub(super) struct Here {
    pub(super) now: Time,
    pub(super) pod_ip: IpAddr,
}

/// Returns the next step; `None` if there is nothing to do.
pub(super) fn next(pod: &Pod, fate: Result<Fate, UnknownFate>, here: &Here) -> Option<Step> {
    let spec = pod.spec.as_ref()?;
    spec.node_name.as_ref()?;
    let status = pod.status.clone().unwrap_or_default();
    let phase = status.phase.as_deref().unwrap_or("Pending");
    let has_ended = matches!(phase, "Succeeded" | "Failed");
    let write = |status| Some(Step::Write(Box::new(status), Duration::ZERO));
    if pod.metadata.deletion_timestamp.is_some() {
        // Without a grace period, it is deleted already and waits for its finalizers.
        let is_deleted = pod.metadata.deletion_grace_period_seconds == Some(0);
        return match has_ended {
            true if is_deleted => None,
            true => Some(Step::Delete),
            false => write(ended(pod, status, TERMINATED, here)),
        };
    }
    if has_ended {
        return None;
    }
    if phase != "Running" {
        return write(running(pod, status, here));
    }
    match fate {
        // A pod whose containers run is not stepped through.
        Ok(Fate::Hold | Fate::Run) => None,
        Ok(Fate::Succeed) => exit(pod, status, 0, here),
        Ok(Fate::Fail(code)) => exit(pod, status, code, here),
        Err(unknown) => {
            let mut status = ended(pod, status, 1, here);
            status.reason = Some("UnknownFate".to_owned());
            status.message = Some(unknown.to_string());
            write(status)
        }
    }
}

/// Returns whether a pod is bound to a node, and has neither ended nor is to end.
pub(super) fn can_start(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    spec.is_some_and(|spec| spec.node_name.is_some())
        && pod.metadata.deletion_timestamp.is_none()
        && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Terminates the containers with this code. They are restarted if the pod's restart policy requires it.
fn exit(pod: &Pod, status: PodStatus, code: i32, here: &Here) -> Option<Step> {
    let policy = pod.spec.as_ref()?.restart_policy.as_deref();
    let starts_again = match policy.unwrap_or("Always") {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    };
    if !starts_again {
        let status = ended(pod, status, code, here);
        return Some(Step::Write(Box::new(status), Duration::ZERO));
    }
    let mut status = status;
    let restarts = restarted(&mut status, code, here);
    Some(Step::Write(Box::new(status), back_off(restarts)))
}

/// Returns the delay before a container is restarted that was restarted this often.
pub(super) fn back_off(restarts: u32) -> Duration {
    let back_off = FIRST_BACK_OFF.saturating_mul(2_u32.saturating_pow(restarts));
    back_off.min(LAST_BACK_OFF)
}

fn running(pod: &Pod, mut status: PodStatus, here: &Here) -> PodStatus {
    let (inits, containers) = containers(pod);
    let state = || running_state(here);
    status.phase = Some("Running".to_owned());
    status.start_time = Some(here.now.clone());
    status.pod_ip = Some(here.pod_ip.to_string());
    status.pod_ips = Some(vec![PodIP {
        ip: here.pod_ip.to_string(),
    }]);
    let container_statuses = containers.iter().map(|it| container(it, state(), true));
    status.container_statuses = Some(container_statuses.collect());
    let init_statuses = inits.iter().map(|it| {
        if is_sidecar(it) {
            container(it, state(), true)
        } else {
            container(it, terminated_state(0, here, None), true)
        }
    });
    status.init_container_statuses = Some(init_statuses.collect());
    for name in [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
    ] {
        set_condition(&mut status, name, "True", None, here);
    }
    status
}

fn ended(pod: &Pod, mut status: PodStatus, code: i32, here: &Here) -> PodStatus {
    let (inits, containers) = containers(pod);
    let started = status.start_time.clone();
    let end = |code| terminated_state(code, here, started.clone());
    let restarts = status.container_statuses.clone().unwrap_or_default();
    let container_statuses = containers.iter().map(|it| {
        let mut now = container(it, end(code), false);
        if let Some(before) = restarts.iter().find(|before| before.name == it.name) {
            now.restart_count = before.restart_count;
            now.last_state = before.last_state.clone();
        }
        now
    });
    status.container_statuses = Some(container_statuses.collect());
    let init_statuses = inits
        .iter()
        .map(|it| container(it, end(0), !is_sidecar(it)));
    status.init_container_statuses = Some(init_statuses.collect());
    let (phase, reason) = if code == 0 {
        ("Succeeded", "PodCompleted")
    } else {
        ("Failed", "PodFailed")
    };
    status.phase = Some(phase.to_owned());
    for name in ["Ready", "ContainersReady"] {
        set_condition(&mut status, name, "False", Some(reason), here);
    }
    status
}

/// Restarts each container. Returns how often the first one had been restarted before.
fn restarted(status: &mut PodStatus, code: i32, here: &Here) -> u32 {
    let mut before = 0;
    for container in status.container_statuses.iter_mut().flatten().rev() {
        let started = container
            .state
            .as_ref()
            .and_then(|state| state.running.as_ref()?.started_at.clone());
        before = u32::try_from(container.restart_count).unwrap_or_default();
        container.restart_count += 1;
        container.last_state = Some(terminated_state(code, here, started));
        container.state = Some(running_state(here));
    }
    before
}

fn containers(pod: &Pod) -> (&[Container], &[Container]) {
    let spec = pod.spec.as_ref();
    let inits = spec.and_then(|spec| spec.init_containers.as_deref());
    let containers = spec.map(|spec| spec.containers.as_slice());
    (inits.unwrap_or_default(), containers.unwrap_or_default())
}

pub(super) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn container(of: &Container, state: ContainerState, ready: bool) -> ContainerStatus {
    ContainerStatus {
        name: of.name.clone(),
        image: of.image.clone().unwrap_or_default(),
        ready,
        started: Some(state.running.is_some()),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

fn running_state(here: &Here) -> ContainerState {
    ContainerState {
        running: Some(ContainerStateRunning {
            started_at: Some(here.now.clone()),
        }),
        ..ContainerState::default()
    }
}

fn terminated_state(exit_code: i32, here: &Here, started: Option<Time>) -> ContainerState {
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code,
            reason: Some(reason.to_owned()),
            started_at: started.or_else(|| Some(here.now.clone())),
            finished_at: Some(here.now.clone()),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

pub(super) fn set_condition(
    status: &mut PodStatus,
    name: &str,
    state: &str,
    reason: Option<&str>,
    here: &Here,
) {
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != name);
    conditions.push(PodCondition {
        type_: name.to_owned(),
        status: state.to_owned(),
        reason: reason.map(str::to_owned),
        last_transition_time: Some(here.now.clone()),
        ..PodCondition::default()
    });
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
