//! If the plugins of one namespace block their threads, TrainJobs of other namespaces are still suspended and created, and the process stops
//! on request.

use std::sync::{Arc, Condvar, Mutex};

use serde_json::json;
use trainyard_controller::metrics::Metrics;
use trainyard_model::plugin::Plugin;

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
    plugin::plugin,
};

/// Calls that last until the test ends them.
#[derive(Default)]
struct Gate {
    /// How many calls have begun, and whether they may end.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    /// Waits until the gate is opened.
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        let _open = self.changed.wait_while(state, |(_, open)| !*open).unwrap();
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    fn began(&self) -> usize {
        self.state.lock().unwrap().0
    }
}

/// A plugin whose calls do not end before the gate is opened.
fn slow(gate: &Arc<Gate>) -> Arc<dyn Plugin> {
    let gate = gate.clone();
    plugin("slow", &[], move |_| {
        gate.pass();
        Ok(())
    })
}

/// Starts a controller in a cluster with a running TrainJob of the namespace `other`, and slow ones of other namespaces.
async fn crowded(gate: &Arc<Gate>, namespaces: &[&str]) -> (Cluster, Controller) {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    cluster.put(runtime("slow", &["slow"]));
    cluster.put(job("other", "runs", "plain", false));
    let plugin = slow(gate);
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(&cluster, metrics, |_| vec![plugin]).await;
    cluster
        .until("the TrainJob of `other` runs", |cluster| {
            cluster.get("jobsets", "other", "runs").is_some()
        })
        .await;
    for namespace in namespaces {
        for number in 0..40 {
            cluster.put(job(namespace, &format!("job-{number}"), "slow", false));
        }
    }
    (cluster, controller)
}

async fn is_suspended(cluster: &Cluster) {
    cluster.merge(
        "trainjobs",
        "other",
        "runs",
        &json!({"spec": {"suspend": true}}),
    );
    let suspended = |cluster: &Cluster| {
        let job_set = cluster.get("jobsets", "other", "runs");
        job_set.is_some_and(|it| it["spec"]["suspend"] == true)
    };
    cluster
        .until("the JobSet of `other` is suspended", suspended)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_train_jobs_do_not_delay_another_namespace() {
    let gate = Arc::new(Gate::default());
    let (cluster, controller) = crowded(&gate, &["slow"]).await;
    // As many as one namespace may take.
    cluster
        .until("two calls have begun", |_| gate.began() == 2)
        .await;
    is_suspended(&cluster).await;
    cluster.put(job("other", "comes", "plain", false));
    let made = |cluster: &Cluster| cluster.get("jobsets", "other", "comes").is_some();
    cluster
        .until("another TrainJob of `other` is made", made)
        .await;
    assert_eq!(gate.began(), 2);
    gate.open();
    let all = |cluster: &Cluster| cluster.all("jobsets").len() == 42;
    cluster.until("the slow ones are made as well", all).await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_train_job_is_suspended_while_all_threads_are_busy() {
    let gate = Arc::new(Gate::default());
    let (cluster, controller) = crowded(&gate, &["slow-1", "slow-2", "slow-3"]).await;
    cluster
        .until("all threads are taken", |_| gate.began() == 3)
        .await;
    is_suspended(&cluster).await;
    // The process ends although its threads do not.
    controller.stop().await;
    assert_eq!(gate.began(), 3);
    gate.open();
}
