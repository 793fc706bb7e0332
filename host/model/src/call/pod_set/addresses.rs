//! DNS names of a pod set's pods, and the labels that select them.

use std::fmt::Write as _;

use serde_json::json;

use super::*;
use crate::names::{JOB_SET_NAME, REPLICATED_JOB_NAME};

impl Call {
    /// `pod-set.selector`
    pub fn pod_set_selector(&mut self, handle: handle::PodSet) -> Result<String, Fault> {
        let (job, set) = (&self.inputs.job.name, &self.pod_set(handle)?.name);
        let labels = json!({JOB_SET_NAME: &**job, REPLICATED_JOB_NAME: &**set});
        self.give(&json!({ "matchLabels": labels }).to_string())
    }

    /// `pod-set.address`
    pub fn pod_set_address(
        &mut self,
        handle: handle::PodSet,
        job_index: u32,
        pod_index: u32,
    ) -> Result<String, Fault> {
        let (_, at) = self.pod_set_target(handle)?;
        match self.record.address(at, job_index, pod_index) {
            Some(address) => self.give(&address),
            None => wrong(format!("job {job_index} has no pod {pod_index}")),
        }
    }

    /// `pod-set.address-count`
    pub fn pod_set_address_count(&mut self, handle: handle::PodSet) -> Result<u32, Fault> {
        let (_, at) = self.pod_set_target(handle)?;
        Ok(self
            .record
            .pod_set(at)
            .map_or(0, crate::record::PodSet::pods))
    }

    /// `pod-set.addresses`
    pub fn pod_set_addresses(
        &mut self,
        handle: handle::PodSet,
        start: u32,
        max: u32,
    ) -> Result<Vec<String>, Fault> {
        let mut out = Vec::new();
        self.each_address(handle, start, max, 8, |address| out.push(address))?;
        self.give_all(out)
    }

    /// `pod-set.joined-addresses`
    pub fn pod_set_joined_addresses(
        &mut self,
        handle: handle::PodSet,
        start: u32,
        max: u32,
        separator: &str,
    ) -> Result<String, Fault> {
        self.meter.text(separator)?;
        let mut out = String::new();
        self.each_address(handle, start, max, separator.len(), |address| {
            if !out.is_empty() {
                out.push_str(separator);
            }
            out.push_str(&address);
        })?;
        self.meter.text(&out)?;
        Ok(out)
    }

    /// Returns up to `max` addresses beginning at number `start`, each charged with `more` additional bytes. Fails before it builds more
    /// than the meter allows.
    fn each_address(
        &mut self,
        handle: handle::PodSet,
        start: u32,
        max: u32,
        more: usize,
        mut give: impl FnMut(String),
    ) -> Result<(), Fault> {
        let (_, at) = self.pod_set_target(handle)?;
        let Some(set) = self.record.pod_set(at) else {
            return Ok(());
        };
        let (count, end) = (set.count.max(1), start.saturating_add(max).min(set.pods()));
        let prefix = format!("{}-{}-", self.record.job_name, set.name);
        let each = prefix.len() + self.record.subdomain.len() + 4;
        let whole = each.saturating_add(more);
        self.meter
            .clone()
            .add_bytes(whole.saturating_mul(end.saturating_sub(start) as usize))?;
        for pod in start..end {
            let mut address = String::with_capacity(each + 8);
            let _ = write!(
                address,
                "{prefix}{}-{}.{}",
                pod / count,
                pod % count,
                self.record.subdomain
            );
            give(address);
        }
        Ok(())
    }
}
