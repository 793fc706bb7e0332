//! A plugin sees how many pods of a pod set run at once, and which other pod sets have to be ready before them. A gang for a scheduler depends on
//! both.

use serde_json::{Value, json};
use trainyard_model::{call::Call, contract::handle, deadline::Deadline, plugin::Phase};

use crate::common::{Scripted, catalog, renderer};

/// Records of each pod set the members of its gang, what they request in total, and what it waits for.
fn recorder() -> Scripted {
    let claims = [
        ("reads", "lookups[v1/LimitRange/*]"),
        ("reads", "lookups[node.k8s.io/v1/RuntimeClass/*]"),
        ("writes", "objects[v1/ConfigMap/-seen]"),
    ];
    Scripted::new("recorder", &claims, |phase, call| {
        if phase != Phase::Build {
            return Ok(());
        }
        let object = call.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-seen", None)?;
        let info = call.context_info(Call::CONTEXT)?;
        for set in call.info_pod_sets(info)? {
            let gang = [call.pod_set_name(set)?];
            let members = call.info_gang_members(info, &gang)?;
            let requests = call.info_gang_requests(info, &gang)?.into_iter();
            let requests = requests.map(|q| format!(" {}={}", q.resource, q.amount));
            let waits = call.pod_set_depends_on(set)?.into_iter();
            let waits = waits.map(|it| format!(" after {} {}", it.pod_set, it.status));
            let text = format!("{members}{}", requests.chain(waits).collect::<String>());
            let [name] = gang;
            call.object_append(object, &name, &text)?;
        }
        Ok(())
    })
}

/// Returns what is recorded of a JobSet with this spec, whose pods request one CPU each.
fn recorded(spec: &Value) -> Value {
    let template = json!({"spec": {"containers": [
        {"name": "node", "image": "image", "resources": {"limits": {"cpu": 1}}},
    ]}});
    let mut spec = spec.clone();
    for job in spec["replicatedJobs"].as_array_mut().unwrap() {
        job["template"]["spec"]["template"] = template.clone();
    }
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "runtime"},
        "spec": {"plugins": [{"name": "recorder"}], "template": {"spec": spec}},
    });
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "job"}, "spec": {"runtimeRef": {"name": "runtime"}},
    });
    let catalog = catalog(&format!("{runtime}\n---\n{job}\n"));
    let renderer = renderer(&[recorder()]).unwrap();
    let rendered = catalog.render(&catalog.jobs[0], &renderer, &Deadline::none());
    let rendered = rendered.unwrap_or_else(|stopped| panic!("{:?}", stopped.lines()));
    rendered.objects[0].value["data"].clone()
}

#[test]
fn members_are_the_pods_that_run_at_once_in_all_replicas() {
    for (counts, replicas, seen) in [
        (json!({}), json!(1), "1 cpu=1"),
        (json!({}), json!(3), "3 cpu=3"),
        (json!({"parallelism": 4}), json!(2), "8 cpu=8"),
        (
            json!({"parallelism": 4, "completions": 4}),
            json!(2),
            "8 cpu=8",
        ),
        // A Job creates no more pods than it has completions, and not all completions at once.
        (
            json!({"parallelism": 4, "completions": 3}),
            json!(2),
            "6 cpu=6",
        ),
        (
            json!({"parallelism": 2, "completions": 8}),
            json!(1),
            "2 cpu=2",
        ),
    ] {
        let job = json!({"name": "workers", "replicas": replicas, "template": {"spec": counts}});
        let recorded = recorded(&json!({"replicatedJobs": [job]}));
        assert_eq!(recorded["workers"], seen, "{counts} times {replicas}");
    }
}

#[test]
fn jobs_started_in_order_wait_for_the_one_before() {
    let jobs = json!([{"name": "data"}, {"name": "driver"}, {"name": "workers"}]);
    for (order, driver, workers) in [
        (
            "InOrder",
            "1 cpu=1 after data Ready",
            "1 cpu=1 after driver Ready",
        ),
        ("AnyOrder", "1 cpu=1", "1 cpu=1"),
    ] {
        let recorded = recorded(&json!({
            "startupPolicy": {"startupPolicyOrder": order}, "replicatedJobs": jobs,
        }));
        let wanted = json!({"data": "1 cpu=1", "driver": driver, "workers": workers});
        assert_eq!(recorded, wanted, "{order}");
    }
}

#[test]
fn declared_dependencies_are_shown_with_their_status() {
    let waits =
        json!([{"name": "data", "status": "Complete"}, {"name": "driver", "status": "Ready"}]);
    let recorded = recorded(&json!({"replicatedJobs": [
        {"name": "data"}, {"name": "driver"}, {"name": "workers", "dependsOn": waits},
    ]}));
    assert_eq!(
        recorded["workers"],
        "1 cpu=1 after data Complete after driver Ready"
    );
    assert_eq!(recorded["driver"], "1 cpu=1");
}
