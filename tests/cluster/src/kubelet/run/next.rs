//! The next actions for the containers of a pod. They depend only on what the containers did, so each order of events can be tested.

use k8s_openapi::{
    api::core::v1::{Container, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};

use crate::kubelet::step::is_sidecar;

/// When a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Before the others, until it succeeds.
    Init,
    /// From before the others until after them.
    Sidecar,
    /// After the init containers.
    Main,
}

/// The exit of a container.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) since: Time,
    pub(super) until: Time,
}

/// The state of a container.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// It is not started, for a reason. It can be if it is due.
    Waiting {
        reason: &'static str,
        message: Option<String>,
        is_due: bool,
    },
    Running {
        since: Time,
    },
    /// It is not started again.
    Ended(Exit),
}

/// What is known of a container.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) spec: Container,
    pub(super) role: Role,
    pub(super) state: State,
    pub(super) last: Option<Exit>,
    pub(super) restarts: i32,
    pub(super) has_started: bool,
    pub(super) is_ready: bool,
}

impl Record {
    fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    fn is_due(&self) -> bool {
        matches!(self.state, State::Waiting { is_due: true, .. })
    }

    fn exit(&self) -> Option<&Exit> {
        match &self.state {
            State::Ended(exit) => Some(exit),
            _ => None,
        }
    }
}

/// Returns the records of a pod whose containers were not started.
pub(super) fn records(pod: &Pod) -> Vec<Record> {
    let spec = pod.spec.clone().unwrap_or_default();
    let role = |container: &Container| match is_sidecar(container) {
        true => Role::Sidecar,
        false => Role::Init,
    };
    let inits = spec.init_containers.unwrap_or_default();
    let inits = inits.into_iter().map(|spec| (role(&spec), spec));
    let mains = spec.containers.into_iter().map(|spec| (Role::Main, spec));
    let record = |(role, spec): (Role, Container)| Record {
        spec,
        role,
        state: State::Waiting {
            reason: "PodInitializing",
            message: None,
            is_due: true,
        },
        last: None,
        restarts: 0,
        has_started: false,
        is_ready: false,
    };
    inits.chain(mains).map(record).collect()
}

/// What is to be done, by the positions of containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) start: Vec<usize>,
    pub(super) stop: Vec<usize>,
    /// Whether the pod has ended.
    pub(super) has_ended: bool,
}

/// Returns what is to be done.
pub(super) fn next(records: &[Record], is_deleted: bool) -> Next {
    if is_deleted || is_over(records) {
        let stop: Vec<_> = positions(records, Record::is_running).collect();
        return Next {
            has_ended: stop.is_empty(),
            stop,
            ..Next::default()
        };
    }
    for (position, record) in records.iter().enumerate() {
        let holds_up_others = match record.role {
            Role::Main => break,
            Role::Init => record.exit().is_none(),
            // A sidecar that waits for a restart does not.
            Role::Sidecar => !record.has_started && record.restarts == 0,
        };
        if record.is_due() {
            return Next {
                start: vec![position],
                ..Next::default()
            };
        }
        if holds_up_others {
            return Next::default();
        }
    }
    let is_due = |record: &Record| record.role == Role::Main && record.is_due();
    Next {
        start: positions(records, is_due).collect(),
        ..Next::default()
    }
}

/// Returns whether only sidecars are left: an init container failed, or all others have ended.
fn is_over(records: &[Record]) -> bool {
    let failed =
        |record: &Record| record.role == Role::Init && record.exit().is_some_and(|it| it.code != 0);
    let mut mains = records.iter().filter(|record| record.role == Role::Main);
    records.iter().any(failed) || mains.all(|record| record.exit().is_some())
}

fn positions(records: &[Record], which: impl Fn(&Record) -> bool) -> impl Iterator<Item = usize> {
    let all = records.iter().enumerate();
    all.filter_map(move |(position, record)| which(record).then_some(position))
}

/// Notes the exit of a container. Returns whether it is to be restarted.
pub(super) fn exited(
    records: &mut [Record],
    position: usize,
    exit: Exit,
    policy: &str,
    is_deleted: bool,
) -> bool {
    let is_over = is_deleted || is_over(records);
    let Some(record) = records.get_mut(position) else {
        return false;
    };
    let restarts = !is_over
        && match (record.role, policy) {
            (Role::Sidecar, _) => true,
            (Role::Init, "Never") => false,
            (Role::Init, _) => exit.code != 0,
            (Role::Main, "Never") => false,
            (Role::Main, "OnFailure") => exit.code != 0,
            (Role::Main, _) => true,
        };
    // Like a terminated init container, which is ready if it succeeded.
    record.is_ready = record.role == Role::Init && exit.code == 0;
    record.has_started = false;
    if restarts {
        record.restarts += 1;
        record.last = Some(exit);
        record.state = State::Waiting {
            reason: "CrashLoopBackOff",
            message: None,
            is_due: false,
        };
    } else {
        record.state = State::Ended(exit);
    }
    restarts
}

/// Returns whether the pod succeeded, if it has ended.
pub(super) fn succeeded(records: &[Record]) -> bool {
    let counted = records.iter().filter(|record| record.role != Role::Sidecar);
    counted
        .into_iter()
        .all(|record| record.exit().is_some_and(|exit| exit.code == 0))
}

#[cfg(test)]
#[path = "next_tests.rs"]
mod tests;
