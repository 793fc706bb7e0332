#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::*;

const FIRST: usize = 0;
const SIDECAR: usize = 1;
const SECOND: usize = 2;
const MAINS: [usize; 2] = [3, 4];

fn now() -> Time {
    Time(Timestamp::from_second(1_700_000_000).unwrap())
}

fn pod() -> Vec<Record> {
    let pod = json!({"spec": {
        "initContainers": [
            {"name": "first"}, {"name": "beside", "restartPolicy": "Always"}, {"name": "second"},
        ],
        "containers": [{"name": "node"}, {"name": "other"}],
    }});
    records(&serde_json::from_value(pod).unwrap())
}

fn run(records: &mut [Record], positions: impl IntoIterator<Item = usize>) {
    for position in positions {
        records[position].state = State::Running { since: now() };
        records[position].has_started = true;
    }
}

fn end(records: &mut [Record], position: usize, code: i32, policy: &str) -> bool {
    let exit = Exit {
        code,
        since: now(),
        until: now(),
    };
    exited(records, position, exit, policy, false)
}

fn start(positions: &[usize]) -> Next {
    Next {
        start: positions.to_vec(),
        ..Next::default()
    }
}

/// Returns a pod whose main containers run.
fn running() -> Vec<Record> {
    let mut records = pod();
    for init in [FIRST, SECOND] {
        run(&mut records, [init]);
        end(&mut records, init, 0, "Never");
    }
    run(&mut records, [SIDECAR, MAINS[0], MAINS[1]]);
    records
}

#[test]
fn init_containers_run_one_after_another_and_sidecars_beside_them() {
    let mut records = pod();
    assert_eq!(next(&records, false), start(&[FIRST]));
    run(&mut records, [FIRST]);
    assert_eq!(next(&records, false), Next::default());
    assert!(!end(&mut records, FIRST, 0, "OnFailure"));
    assert_eq!(next(&records, false), start(&[SIDECAR]));
    run(&mut records, [SIDECAR]);
    records[SIDECAR].has_started = false;
    assert_eq!(
        next(&records, false),
        Next::default(),
        "the sidecar has not started"
    );
    records[SIDECAR].has_started = true;
    assert_eq!(next(&records, false), start(&[SECOND]));
    run(&mut records, [SECOND]);
    end(&mut records, SECOND, 0, "OnFailure");
    assert_eq!(next(&records, false), start(&MAINS));
}

#[test]
fn failed_init_container_is_retried_or_fails_the_pod() {
    let mut records = pod();
    run(&mut records, [FIRST]);
    assert!(end(&mut records, FIRST, 1, "OnFailure"));
    assert_eq!(
        next(&records, false),
        Next::default(),
        "it waits for its restart"
    );
    let mut records = pod();
    run(&mut records, [FIRST, SIDECAR]);
    assert!(!end(&mut records, FIRST, 1, "Never"));
    let stop = Next {
        stop: vec![SIDECAR],
        ..Next::default()
    };
    assert_eq!(next(&records, false), stop);
    end(&mut records, SIDECAR, 143, "Never");
    assert!(next(&records, false).has_ended && !succeeded(&records));
}

#[test]
fn containers_are_restarted_by_the_policy_of_the_pod() {
    for (policy, code, restarts) in [
        ("Never", 0, false),
        ("Never", 1, false),
        ("OnFailure", 0, false),
        ("OnFailure", 1, true),
        ("Always", 0, true),
        ("Always", 1, true),
    ] {
        let mut records = running();
        let restarted = end(&mut records, MAINS[0], code, policy);
        assert_eq!(restarted, restarts, "{policy} {code}");
        assert_eq!(records[MAINS[0]].restarts, i32::from(restarts));
        assert!(
            end(&mut records, SIDECAR, code, policy),
            "a sidecar always restarts"
        );
    }
}

#[test]
fn pod_ends_after_its_containers_and_then_its_sidecars() {
    for code in [0, 3] {
        let mut records = running();
        end(&mut records, MAINS[0], 0, "Never");
        assert_eq!(next(&records, false), Next::default());
        end(&mut records, MAINS[1], code, "Never");
        let stop = Next {
            stop: vec![SIDECAR],
            ..Next::default()
        };
        assert_eq!(next(&records, false), stop);
        assert!(!end(&mut records, SIDECAR, 143, "Never"));
        assert!(next(&records, false).has_ended);
        assert_eq!(succeeded(&records), code == 0);
    }
}

#[test]
fn deleted_pod_stops_all_its_containers_and_restarts_none() {
    let mut records = running();
    assert_eq!(next(&records, true).stop, [SIDECAR, MAINS[0], MAINS[1]]);
    let exit = Exit {
        code: 143,
        since: now(),
        until: now(),
    };
    for position in [SIDECAR, MAINS[0], MAINS[1]] {
        assert!(!exited(
            &mut records,
            position,
            exit.clone(),
            "Always",
            true
        ));
    }
    assert!(next(&records, true).has_ended && !succeeded(&records));
    assert!(next(&pod(), true).has_ended, "nothing was started");
}
