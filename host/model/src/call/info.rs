//! `pod-set-info.info`.

use serde_json::json;

use super::{Call, Fault, Numbered, Target, context::BASE_INFO};
use crate::{
    contract::handle,
    names::JOB_SET_NAME,
    record::{EntryScope, Field, PodSet},
};

impl Call {
    pub(super) fn info_target(handle: handle::Info) -> Target {
        Target {
            scope: EntryScope::Job,
            base: handle == BASE_INFO,
        }
    }

    fn pod_sets_where(
        &mut self,
        handle: handle::Info,
        wanted: impl Fn(&PodSet) -> bool,
    ) -> Result<Vec<handle::PodSet>, Fault> {
        let base = Self::info_target(handle).base;
        let sets = self.record_of(base).pod_sets.iter().zip(0u32..);
        let handles = sets
            .filter(|(set, _)| wanted(set))
            .map(|(_, at)| handle::PodSet::numbered(at, base))
            .collect();
        self.give_handles(handles)
    }

    /// `info.selector`
    pub fn info_selector(&mut self, _: handle::Info) -> Result<String, Fault> {
        let labels = json!({JOB_SET_NAME: &*self.inputs.job.name});
        self.give(&json!({ "matchLabels": labels }).to_string())
    }

    /// `info.pod-sets`
    pub fn info_pod_sets(&mut self, handle: handle::Info) -> Result<Vec<handle::PodSet>, Fault> {
        self.pod_sets_where(handle, |_| true)
    }

    /// `info.pod-set`
    pub fn info_pod_set(
        &mut self,
        handle: handle::Info,
        name: &str,
    ) -> Result<Option<handle::PodSet>, Fault> {
        self.meter.text(name)?;
        let base = Self::info_target(handle).base;
        let found = self
            .record_of(base)
            .pod_set_named(name)
            .map(|at| handle::PodSet::numbered(at, base));
        self.give_some_handle(found)
    }

    /// `info.with-ancestor`
    pub fn info_with_ancestor(
        &mut self,
        handle: handle::Info,
        ancestor: &str,
    ) -> Result<Vec<handle::PodSet>, Fault> {
        self.meter.text(ancestor)?;
        self.pod_sets_where(handle, |set| set.ancestor.as_deref() == Some(ancestor))
    }

    /// `info.nodes`
    pub fn info_nodes(&mut self, handle: handle::Info) -> Result<Vec<handle::PodSet>, Fault> {
        self.pod_sets_where(handle, |set| set.counts_nodes)
    }

    /// `info.label`
    pub fn info_label(&mut self, handle: handle::Info, key: &str) -> Result<Option<String>, Fault> {
        self.read_text(Self::info_target(handle), Field::Labels, key)
    }

    /// `info.annotation`
    pub fn info_annotation(
        &mut self,
        handle: handle::Info,
        key: &str,
    ) -> Result<Option<String>, Fault> {
        self.read_text(Self::info_target(handle), Field::Annotations, key)
    }

    /// `info.set-label`
    pub fn info_set_label(
        &mut self,
        handle: handle::Info,
        key: &str,
        value: &str,
    ) -> Result<(), Fault> {
        self.set_text(Self::info_target(handle), Field::Labels, key, value)
    }

    /// `info.set-annotation`
    pub fn info_set_annotation(
        &mut self,
        handle: handle::Info,
        key: &str,
        value: &str,
    ) -> Result<(), Fault> {
        self.set_text(Self::info_target(handle), Field::Annotations, key, value)
    }

    /// `info.subdomain`
    pub fn info_subdomain(&mut self, _: handle::Info) -> Result<String, Fault> {
        let subdomain = self.record.subdomain.clone();
        self.give(&subdomain)
    }

    /// `info.cluster-domain`
    pub fn info_cluster_domain(&mut self, _: handle::Info) -> Result<String, Fault> {
        let domain = self.record.cluster_domain.clone();
        self.give(&domain)
    }

    /// `info.has-host-names`
    pub const fn info_has_host_names(&mut self, _: handle::Info) -> Result<bool, Fault> {
        Ok(self.record.has_host_names)
    }
}
