//! The process metrics of Prometheus' client library guidelines.

use std::fmt;

use procfs::{
    ProcResult,
    process::{LimitValue, Process},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

/// Reads the metrics at each scrape. Without `/proc` there are none.
#[derive(Debug)]
pub(super) struct ProcessMetrics;

struct Values {
    cpu_seconds: f64,
    resident_memory_bytes: u64,
    virtual_memory_bytes: u64,
    open_fds: u64,
    /// `None` if there is no limit.
    max_fds: Option<u64>,
    start_time_seconds: f64,
}

impl Values {
    fn read() -> ProcResult<Self> {
        let process = Process::myself()?;
        let stat = process.stat()?;
        let ticks = procfs::ticks_per_second() as f64;
        let max_fds = process.limits()?.max_open_files.soft_limit;
        Ok(Self {
            cpu_seconds: (stat.utime + stat.stime) as f64 / ticks,
            resident_memory_bytes: stat.rss * procfs::page_size(),
            virtual_memory_bytes: stat.vsize,
            open_fds: process.fd_count()? as u64,
            max_fds: match max_fds {
                LimitValue::Value(max) => Some(max),
                LimitValue::Unlimited => None,
            },
            start_time_seconds: procfs::boot_time_secs()? as f64 + stat.starttime as f64 / ticks,
        })
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Ok(values) = Values::read() else {
            return Ok(());
        };
        let mut put = |name: &str, help: &str, unit: Option<&Unit>, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, unit, metric.metric_type())?)
        };
        put(
            "process_cpu",
            "Processor time that the process has used, in user and system mode.",
            Some(&Unit::Seconds),
            &ConstCounter::new(values.cpu_seconds),
        )?;
        put(
            "process_resident_memory",
            "Memory of the process that is in RAM.",
            Some(&Unit::Bytes),
            &ConstGauge::new(values.resident_memory_bytes),
        )?;
        put(
            "process_virtual_memory",
            "Address space of the process.",
            Some(&Unit::Bytes),
            &ConstGauge::new(values.virtual_memory_bytes),
        )?;
        put(
            "process_open_fds",
            "File descriptors that are open.",
            None,
            &ConstGauge::new(values.open_fds),
        )?;
        if let Some(max_fds) = values.max_fds {
            put(
                "process_max_fds",
                "File descriptors that may be open.",
                None,
                &ConstGauge::new(max_fds),
            )?;
        }
        put(
            "process_start_time",
            "When the process started, since the Unix epoch.",
            Some(&Unit::Seconds),
            &ConstGauge::new(values.start_time_seconds),
        )
    }
}
