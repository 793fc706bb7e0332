//! The load of the process, read at each scrape: the queue and the asynchronous tasks.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

use super::{
    CONTROLLER,
    labels::{ControllerLabels, QueueLabels},
};
use crate::queue::Queue;

/// Reads the counters of the queue at each scrape.
#[derive(Debug)]
pub(super) struct QueueMetrics(pub(super) Queue);

impl Collector for QueueMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let labels = QueueLabels {
            name: CONTROLLER,
            controller: CONTROLLER,
        };
        let load = self.0.load();
        let gauge = |count| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        let mut put = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            let kind = metric.metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            metric.encode(family.encode_family(&labels)?)
        };
        put(
            "workqueue_depth",
            "TrainJobs that wait for a worker.",
            &gauge(load.waiting),
        )?;
        put(
            "workqueue_retries",
            "Reconciles that are retried after a failure.",
            &ConstCounter::new(self.0.retries()),
        )?;
        // Without an age, no TrainJob waits.
        let oldest = self.0.oldest().unwrap_or_default();
        let oldest = ConstGauge::new(oldest.as_secs_f64());
        oldest.encode(encoder.encode_descriptor(
            "trainyard_queue_oldest",
            "How long the TrainJob that waits longest has been waiting for a worker",
            Some(&Unit::Seconds),
            oldest.metric_type(),
        )?)?;
        let running = gauge(load.running);
        let mut family = encoder.encode_descriptor(
            "controller_runtime_active_workers",
            "TrainJobs that are being reconciled.",
            None,
            running.metric_type(),
        )?;
        running.encode(family.encode_family(&ControllerLabels {
            controller: CONTROLLER,
        })?)
    }
}

/// Reads the number of tasks at each scrape.
#[derive(Debug)]
pub(super) struct TaskMetrics;

impl Collector for TaskMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Scrapes are served by the runtime that has the tasks.
        let tasks = tokio::runtime::Handle::try_current()
            .map_or(0, |runtime| runtime.metrics().num_alive_tasks());
        let gauge = ConstGauge::new(i64::try_from(tasks).unwrap_or(i64::MAX));
        gauge.encode(encoder.encode_descriptor(
            "go_goroutines",
            "Asynchronous tasks of the process, under the name that dashboards of the reference read.",
            None,
            gauge.metric_type(),
        )?)
    }
}
