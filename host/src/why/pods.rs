//! Why pods do not run.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::live_objects::{items, text};

/// The most groups of pods that are listed.
const GROUPS: usize = 5;

/// Pods that do not run for the same reason.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct PodGroup {
    /// The first of them.
    pub(super) pod: String,
    /// How many there are.
    pub(super) count: usize,
    /// Why they do not run.
    pub(super) why: String,
}

/// Returns how many pods are in each phase.
pub(super) fn phases(pods: &[Value]) -> BTreeMap<&str, usize> {
    let mut phases = BTreeMap::new();
    for pod in pods {
        let phase = text(pod, "/status/phase").unwrap_or("Pending");
        *phases.entry(phase).or_default() += 1;
    }
    phases
}

/// Whether there are pods, and all of them are pending.
pub(super) fn all_wait(pods: &[Value]) -> bool {
    let mut phases = phases(pods).into_keys();
    phases.next() == Some("Pending") && phases.next().is_none()
}

/// Returns the pods that do not run, by reason; the most frequent reasons first.
pub(super) fn groups(pods: &[Value]) -> Vec<PodGroup> {
    let mut by_reason = BTreeMap::<String, Vec<&str>>::new();
    for pod in pods {
        if let Some(why) = why(pod) {
            let name = text(pod, "/metadata/name").unwrap_or_default();
            by_reason.entry(why).or_default().push(name);
        }
    }
    let mut groups: Vec<_> = by_reason
        .into_iter()
        .map(|(why, pods)| PodGroup {
            pod: pods.first().copied().unwrap_or_default().to_owned(),
            count: pods.len(),
            why,
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups.truncate(GROUPS);
    groups
}

/// Returns why a pod does not run; `None` if it does, or has succeeded.
fn why(pod: &Value) -> Option<String> {
    let phase = text(pod, "/status/phase").unwrap_or("Pending");
    let gates: Vec<_> = items(pod, "/spec/schedulingGates")
        .filter_map(|gate| text(gate, "/name"))
        .collect();
    let unscheduled = || {
        let mut conditions = items(pod, "/status/conditions");
        conditions.find(|condition| {
            text(condition, "/type") == Some("PodScheduled")
                && text(condition, "/status") == Some("False")
        })
    };
    match phase {
        "Succeeded" => None,
        "Pending" if !gates.is_empty() => Some(format!(
            "waits for the removal of its scheduling gates: {}",
            gates.join(", ")
        )),
        "Pending" => {
            let scheduling = unscheduled().map(reason);
            let waiting = scheduling.or_else(|| container(pod, "waiting"));
            Some(waiting.unwrap_or_else(|| "is pending".to_owned()))
        }
        "Failed" => {
            let ended = container(pod, "terminated");
            Some(ended.unwrap_or_else(|| reason(pod.pointer("/status").unwrap_or(&Value::Null))))
        }
        _ => container(pod, "waiting"),
    }
}

/// Returns the reason of the first container that is in that state, with its exit code.
fn container(pod: &Value, state: &str) -> Option<String> {
    let init = items(pod, "/status/initContainerStatuses");
    let mut all = init.chain(items(pod, "/status/containerStatuses"));
    all.find_map(|status| {
        let state = status.pointer("/state")?.get(state)?;
        let code = state.get("exitCode").and_then(Value::as_i64);
        if code == Some(0) {
            return None;
        }
        let name = text(status, "/name").unwrap_or_default();
        let code = code.map(|code| format!(" (exit code {code})"));
        Some(format!(
            "container {name}: {}{}",
            reason(state),
            code.unwrap_or_default()
        ))
    })
}

/// Returns the reason and the message of a condition or a state.
fn reason(of: &Value) -> String {
    let reason = text(of, "/reason").unwrap_or("no reason");
    match text(of, "/message").filter(|message| !message.is_empty()) {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    }
}
