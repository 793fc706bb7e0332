//! The names of volumes that plugins add.

use crate::{Failure, contract::PodSet};

impl PodSet {
    /// Checks that the pods have no volume with the name of one that the plugin is about to add. The host would end the call that adds it.
    ///
    /// Needs the claim to write `pod-sets[P].volumes[NAME]`.
    ///
    /// # Errors
    /// The runtime or a patch has such a volume.
    pub fn reserve_volume(&self, name: &str) -> Result<(), Failure> {
        if self.volume(name).is_none() {
            return Ok(());
        }
        let message =
            format!("the plugin adds a volume with the name `{name}`; rename the runtime's volume");
        let field = self.path(&format!("volumes[{name}].name"));
        Err(Failure::from(message).at(field))
    }
}
