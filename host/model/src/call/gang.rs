//! What a gang of pods is and asks for, as the scheduler counts it.

use super::{Call, Fault, wrong};
use crate::{contract::handle, value::Quantity};

impl Call {
    /// `info.gang-members`
    pub fn info_gang_members(&mut self, _: handle::Info, _: &[String]) -> Result<u32, Fault> {
        wrong("not written yet")
    }

    /// `info.gang-requests`
    pub fn info_gang_requests(
        &mut self,
        _: handle::Info,
        _: &[String],
    ) -> Result<Vec<Quantity>, Fault> {
        wrong("not written yet")
    }

    /// `pod-set.pod-requests`
    pub fn pod_set_pod_requests(&mut self, _: handle::PodSet) -> Result<Vec<Quantity>, Fault> {
        wrong("not written yet")
    }
}
