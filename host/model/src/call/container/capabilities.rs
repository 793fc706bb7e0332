//! Linux capabilities of a container.

use super::*;

impl Call {
    /// `container.capabilities`
    pub fn container_capabilities(
        &mut self,
        handle: handle::Container,
    ) -> Result<Vec<String>, Fault> {
        let target = self.container_target(handle)?;
        self.may_read(target, Field::Capabilities, None)?;
        let all = self.container(handle)?.fields.all(Field::Capabilities);
        let names = all.iter().map(|entry| entry.key.to_string()).collect();
        self.give_all(names)
    }

    /// `container.add-capability`
    pub fn container_add_capability(
        &mut self,
        handle: handle::Container,
        name: &str,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        if !is_capability(name) {
            return wrong("the name is not a Linux capability without `CAP_`, such as `IPC_LOCK`");
        }
        self.add(target, Field::Capabilities, name, name.into())
    }
}
