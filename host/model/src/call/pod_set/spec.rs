//! What else of the pod spec a plugin may see or set.

use super::*;

impl Call {
    /// `pod-set.hostlist`
    pub fn pod_set_hostlist(&mut self, _: handle::PodSet) -> Result<String, Fault> {
        wrong("not written yet")
    }

    /// `pod-set.add-scheduling-gate`
    pub fn pod_set_add_scheduling_gate(&mut self, _: handle::PodSet, _: &str) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `pod-set.add-toleration`
    pub fn pod_set_add_toleration(
        &mut self,
        _: handle::PodSet,
        _: &str,
        _: &str,
    ) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `pod-set.add-affinity-term`
    pub fn pod_set_add_affinity_term(
        &mut self,
        _: handle::PodSet,
        _: &str,
        _: &str,
        _: &str,
    ) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `pod-set.dns-searches`
    pub fn pod_set_dns_searches(&mut self, _: handle::PodSet) -> Result<Vec<String>, Fault> {
        wrong("not written yet")
    }

    /// `pod-set.add-dns-search`
    pub fn pod_set_add_dns_search(&mut self, _: handle::PodSet, _: &str) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `pod-set.fs-group`
    pub fn pod_set_fs_group(&mut self, _: handle::PodSet) -> Result<Option<i64>, Fault> {
        wrong("not written yet")
    }

    /// `pod-set.set-fs-group`
    pub fn pod_set_set_fs_group(&mut self, _: handle::PodSet, _: i64) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `pod-set.raw`
    pub fn pod_set_raw(
        &mut self,
        _: handle::PodSet,
        _: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        wrong("not written yet")
    }

    /// `pod-set.set-raw`
    pub fn pod_set_set_raw(&mut self, _: handle::PodSet, _: &str, _: &str) -> Result<(), Fault> {
        wrong("not written yet")
    }
}
