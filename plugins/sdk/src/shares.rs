//! Shares of accelerators.

use crate::contract::PodSet;

impl PodSet {
    /// Returns whether all that the node container has of accelerators are shares of one, such as `nvidia.com/gpumem`. Their amounts
    /// are memory or cores, so that [`PodSet::accelerators`] is not known; one process can use them.
    ///
    /// Needs the same claims as [`PodSet::devices`].
    #[must_use]
    pub fn has_shares_alone(&self) -> bool {
        let devices = self.devices();
        let mut unknown = devices
            .iter()
            .filter(|one| one.accelerator && one.count.is_none())
            .peekable();
        unknown.peek().is_some() && unknown.all(|one| one.source.starts_with("resource/"))
    }
}
