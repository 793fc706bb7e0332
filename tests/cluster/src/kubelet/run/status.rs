//! The status of a pod whose containers run.

use std::net::IpAddr;

use k8s_openapi::{
    api::core::v1::{
        ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, HostIP, PodIP, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::next::{Exit, Record, Role, State, succeeded};
use crate::kubelet::step::set_condition;

/// What a status says besides the containers.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) now: Time,
    pub(super) pod_ip: Option<IpAddr>,
    pub(super) host_ip: IpAddr,
    pub(super) has_ended: bool,
}

/// Returns the status after `before`, whose conditions of others are kept.
pub(super) fn status(records: &[Record], mut before: PodStatus, about: &About) -> PodStatus {
    let of = |is_wanted: fn(Role) -> bool| {
        let wanted = records.iter().filter(move |record| is_wanted(record.role));
        wanted.map(container).collect::<Vec<_>>()
    };
    let mains: Vec<_> = records.iter().filter(|it| it.role == Role::Main).collect();
    let inits = of(|role| role != Role::Main);
    let is_initialized = mains.iter().any(|record| has_run(record));
    before.phase = Some(phase(records, is_initialized, about.has_ended).to_owned());
    before.start_time.get_or_insert_with(|| about.now.clone());
    before.host_ip = Some(about.host_ip.to_string());
    before.host_ips = Some(vec![HostIP {
        ip: about.host_ip.to_string(),
    }]);
    if let Some(ip) = about.pod_ip {
        before.pod_ip = Some(ip.to_string());
        before.pod_ips = Some(vec![PodIP { ip: ip.to_string() }]);
    }
    before.container_statuses = Some(of(|role| role == Role::Main));
    before.init_container_statuses = (!inits.is_empty()).then_some(inits);
    let are_ready = !about.has_ended && mains.iter().all(|record| record.is_ready);
    for (name, is_so) in [
        (
            "PodReadyToStartContainers",
            about.pod_ip.is_some() && !about.has_ended,
        ),
        ("Initialized", is_initialized),
        ("Ready", are_ready),
        ("ContainersReady", are_ready),
    ] {
        condition(&mut before, name, is_so, about);
    }
    before
}

fn condition(status: &mut PodStatus, name: &str, is_so: bool, about: &About) {
    let state = if is_so { "True" } else { "False" };
    let is_same = |it: &k8s_openapi::api::core::v1::PodCondition| {
        it.type_ == name && it.status == state && !about.has_ended
    };
    if status.conditions.iter().flatten().any(is_same) {
        return;
    }
    let reason = match (is_so, about.has_ended, status.phase.as_deref()) {
        (true, ..) => None,
        (_, true, Some("Succeeded")) => Some("PodCompleted"),
        (_, true, _) => Some("PodFailed"),
        _ => Some("ContainersNotReady"),
    };
    let now = crate::kubelet::step::Here {
        now: about.now.clone(),
        pod_ip: about.host_ip,
    };
    set_condition(status, name, state, reason, &now);
}

fn phase(records: &[Record], is_initialized: bool, has_ended: bool) -> &'static str {
    match (has_ended, is_initialized) {
        (true, _) if succeeded(records) => "Succeeded",
        (true, _) => "Failed",
        (false, true) => "Running",
        (false, false) => "Pending",
    }
}

fn has_run(record: &Record) -> bool {
    !matches!(record.state, State::Waiting { .. }) || record.last.is_some()
}

fn container(record: &Record) -> ContainerStatus {
    let image = record.spec.image.clone().unwrap_or_default();
    ContainerStatus {
        name: record.spec.name.clone(),
        image_id: format!("this-machine://{image}"),
        image,
        ready: record.is_ready,
        started: Some(record.has_started),
        restart_count: record.restarts,
        state: Some(state(&record.state)),
        last_state: record.last.as_ref().map(terminated),
        ..ContainerStatus::default()
    }
}

fn state(state: &State) -> ContainerState {
    match state {
        State::Waiting {
            reason, message, ..
        } => ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some((*reason).to_owned()),
                message: message.clone(),
            }),
            ..ContainerState::default()
        },
        State::Running { since } => ContainerState {
            running: Some(ContainerStateRunning {
                started_at: Some(since.clone()),
            }),
            ..ContainerState::default()
        },
        State::Ended(exit) => terminated(exit),
    }
}

fn terminated(exit: &Exit) -> ContainerState {
    let reason = if exit.code == 0 { "Completed" } else { "Error" };
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: exit.code,
            reason: Some(reason.to_owned()),
            started_at: Some(exit.since.clone()),
            finished_at: Some(exit.until.clone()),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::net::Ipv4Addr;

    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::kubelet::run::next::{exited, records};

    const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 244, 0, 7));

    fn now() -> Time {
        Time(Timestamp::from_second(1_700_000_000).unwrap())
    }

    fn pod() -> Vec<Record> {
        let pod = json!({"spec": {
            "initContainers": [{"name": "first", "image": "a"}],
            "containers": [{"name": "node", "image": "b"}],
        }});
        records(&serde_json::from_value(pod).unwrap())
    }

    fn run(records: &mut [Record], position: usize) {
        records[position].state = State::Running { since: now() };
        records[position].is_ready = true;
    }

    fn end(records: &mut [Record], position: usize, code: i32, policy: &str) {
        let exit = Exit {
            code,
            since: now(),
            until: now(),
        };
        exited(records, position, exit, policy, false);
    }

    fn of(records: &[Record], has_ended: bool) -> Value {
        let scheduled = json!({"conditions": [{"type": "PodScheduled", "status": "True"}]});
        let before = serde_json::from_value(scheduled).unwrap();
        let about = About {
            now: now(),
            pod_ip: Some(IP),
            host_ip: IP,
            has_ended,
        };
        serde_json::to_value(status(records, before, &about)).unwrap()
    }

    fn conditions(status: &Value) -> Vec<(&str, &str)> {
        let all = status["conditions"].as_array().unwrap().iter();
        all.map(|it| (it["type"].as_str().unwrap(), it["status"].as_str().unwrap()))
            .collect()
    }

    #[test]
    fn pod_is_pending_until_a_main_container_has_started() {
        let mut records = pod();
        let status = of(&records, false);
        assert_eq!(
            (&status["phase"], &status["podIP"]),
            (&json!("Pending"), &json!("10.244.0.7"))
        );
        let waiting = &status["containerStatuses"][0]["state"]["waiting"];
        assert_eq!(waiting["reason"], "PodInitializing");
        run(&mut records, 0);
        end(&mut records, 0, 0, "Never");
        assert_eq!(of(&records, false)["phase"], "Pending");
        run(&mut records, 1);
        let status = of(&records, false);
        assert_eq!(status["phase"], "Running");
        let expected = [
            "PodScheduled",
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
        ];
        assert_eq!(conditions(&status), expected.map(|name| (name, "True")));
        let init = &status["initContainerStatuses"][0];
        assert_eq!(
            (&init["ready"], &init["state"]["terminated"]["exitCode"]),
            (&json!(true), &json!(0))
        );
    }

    #[test]
    fn ended_pod_reports_the_exit_codes_of_its_containers() {
        for (code, phase, reason) in [(0, "Succeeded", "Completed"), (7, "Failed", "Error")] {
            let mut records = pod();
            end(&mut records, 0, 0, "Never");
            run(&mut records, 1);
            end(&mut records, 1, code, "Never");
            let status = of(&records, true);
            assert_eq!(status["phase"], phase);
            let ended = &status["containerStatuses"][0]["state"]["terminated"];
            assert_eq!(
                (&ended["exitCode"], &ended["reason"]),
                (&json!(code), &json!(reason))
            );
            let ready = conditions(&status)
                .into_iter()
                .find(|(name, _)| *name == "Ready");
            assert_eq!(ready, Some(("Ready", "False")));
        }
    }

    #[test]
    fn restarting_container_reports_its_last_exit() {
        let mut records = pod();
        end(&mut records, 0, 0, "Never");
        run(&mut records, 1);
        end(&mut records, 1, 7, "OnFailure");
        let status = of(&records, false);
        assert_eq!(status["phase"], "Running");
        let container = &status["containerStatuses"][0];
        assert_eq!(container["restartCount"], 1);
        assert_eq!(container["state"]["waiting"]["reason"], "CrashLoopBackOff");
        assert_eq!(container["lastState"]["terminated"]["exitCode"], 7);
    }
}
