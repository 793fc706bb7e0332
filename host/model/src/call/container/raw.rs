//! Members of a container that have no method of their own.

use super::*;

impl Call {
    /// `container.raw`
    pub fn container_raw(
        &mut self,
        _: handle::Container,
        _: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        wrong("not written yet")
    }

    /// `container.set-raw`
    pub fn container_set_raw(
        &mut self,
        _: handle::Container,
        _: &str,
        _: &str,
    ) -> Result<(), Fault> {
        wrong("not written yet")
    }
}
