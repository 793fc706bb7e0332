//! Metadata and scheduling of a pod set's pods.

use super::*;

impl Call {
    /// `pod-set.pod-label`
    pub fn pod_set_pod_label(
        &mut self,
        handle: handle::PodSet,
        key: &str,
    ) -> Result<Option<String>, Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.read_text(target, Field::PodLabels, key)
    }

    /// `pod-set.set-pod-label`
    pub fn pod_set_set_pod_label(
        &mut self,
        handle: handle::PodSet,
        key: &str,
        value: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.set_text(target, Field::PodLabels, key, value)
    }

    /// `pod-set.remove-pod-label`
    pub fn pod_set_remove_pod_label(
        &mut self,
        handle: handle::PodSet,
        key: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.set(target, Field::PodLabels, key, None)
    }

    /// `pod-set.pod-annotation`
    pub fn pod_set_pod_annotation(
        &mut self,
        handle: handle::PodSet,
        key: &str,
    ) -> Result<Option<String>, Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.read_text(target, Field::PodAnnotations, key)
    }

    /// `pod-set.set-pod-annotation`
    pub fn pod_set_set_pod_annotation(
        &mut self,
        handle: handle::PodSet,
        key: &str,
        value: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.set_text(target, Field::PodAnnotations, key, value)
    }

    /// `pod-set.remove-pod-annotation`
    pub fn pod_set_remove_pod_annotation(
        &mut self,
        handle: handle::PodSet,
        key: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.set(target, Field::PodAnnotations, key, None)
    }

    /// `pod-set.node-selector`
    pub fn pod_set_node_selector(
        &mut self,
        handle: handle::PodSet,
        key: &str,
    ) -> Result<Option<String>, Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.read_text(target, Field::NodeSelector, key)
    }

    /// `pod-set.put-node-selector`
    pub fn pod_set_put_node_selector(
        &mut self,
        handle: handle::PodSet,
        key: &str,
        value: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.set_text(target, Field::NodeSelector, key, value)
    }

    /// `pod-set.priority-class`
    pub fn pod_set_priority_class(
        &mut self,
        handle: handle::PodSet,
    ) -> Result<Option<String>, Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.read_text(target, Field::PriorityClass, "")
    }

    /// `pod-set.set-priority-class`
    pub fn pod_set_set_priority_class(
        &mut self,
        handle: handle::PodSet,
        name: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.set_text(target, Field::PriorityClass, "", name)
    }

    /// `pod-set.scheduler-name`
    pub fn pod_set_scheduler_name(
        &mut self,
        handle: handle::PodSet,
    ) -> Result<Option<String>, Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.read_text(target, Field::SchedulerName, "")
    }

    /// `pod-set.set-scheduler-name`
    pub fn pod_set_set_scheduler_name(
        &mut self,
        handle: handle::PodSet,
        name: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.set_text(target, Field::SchedulerName, "", name)
    }
}
