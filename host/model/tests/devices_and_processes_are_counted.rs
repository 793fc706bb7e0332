//! The processes of a node are the explicit number, else its accelerators, else its whole CPUs.

use serde_json::{Value, json};
use trainyard_model::record::{Accelerators, Datum, Field, Fields, PodSet, Record};

/// A pod set with these requests and limits of its node container, and these devices.
fn record(requests: Value, limits: Value, devices: Value) -> Record {
    let mut fields = Fields::default();
    for (field, amounts) in [(Field::Requests, requests), (Field::Limits, limits)] {
        for (resource, amount) in amounts.as_object().unwrap() {
            fields.load(field, resource, amount.as_str().unwrap().into());
        }
    }
    let mut node = PodSet::new("node");
    for (source, device) in devices.as_object().unwrap() {
        let device = Datum::from(device.clone());
        node.fields.load(Field::Devices, source, device);
    }
    let mut record = Record::default();
    record.pod_sets.push(node);
    record.load_container(0, Field::Containers, "node", fields);
    record
}

#[test]
fn processes_follow_accelerators_and_then_cpus() {
    let none = || json!({});
    for (requests, limits, devices, accelerators, processes) in [
        (none(), none(), none(), Some(0), Some(1)),
        (json!({"cpu": "2500m"}), none(), none(), Some(0), Some(3)),
        (none(), json!({"cpu": "6"}), none(), Some(0), Some(6)),
        (
            json!({"cpu": "2"}),
            json!({"cpu": "6"}),
            none(),
            Some(0),
            Some(2),
        ),
        (json!({"cpu": "0"}), none(), none(), Some(0), Some(1)),
        (
            json!({"cpu": "2", "nvidia.com/gpu": "0", "example.com/nic": "5"}),
            none(),
            none(),
            Some(0),
            Some(2),
        ),
        // What a device plugin advertises and what claims request may be the same devices.
        (
            json!({"cpu": "2"}),
            json!({"nvidia.com/gpu": "8"}),
            json!({"claim": {"count": 4, "accelerator": true}}),
            Some(8),
            Some(8),
        ),
        (
            json!({"cpu": "2"}),
            none(),
            json!({"a": {"count": 4, "accelerator": true}, "b": {"count": 1, "accelerator": true}, "nic": {"count": 9}}),
            Some(5),
            Some(5),
        ),
        (
            json!({"cpu": "2"}),
            none(),
            json!({"nic": {"count": 9, "accelerator": false}}),
            Some(0),
            Some(2),
        ),
        (
            json!({"cpu": "2"}),
            none(),
            json!({"claim": {"accelerator": true}}),
            None,
            None,
        ),
        (
            json!({"cpu": "2", "nvidia.com/gpumem": "1000"}),
            none(),
            none(),
            None,
            None,
        ),
    ] {
        let record = record(requests, limits, devices);
        let (node, known) = (record.node_container(0), Accelerators::default());
        let case = format!("{record:?}");
        assert_eq!(record.accelerators(0, node, &known), accelerators, "{case}");
        assert_eq!(record.processes(0, node, None, &known), processes, "{case}");
        assert_eq!(record.processes(0, node, Some(7), &known), Some(7));
    }
    let without = record(none(), none(), none());
    let processes = without.processes(0, None, None, &Accelerators::default());
    assert_eq!(processes, Some(1));
}
