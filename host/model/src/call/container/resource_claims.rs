//! A container's uses of its pod's resource claims.

use super::*;
use crate::{names::is_dns_label, value::ResourceClaimUse};

impl Call {
    /// `container.resource-claim-uses`
    pub fn container_resource_claim_uses(
        &mut self,
        handle: handle::Container,
    ) -> Result<Vec<ResourceClaimUse>, Fault> {
        let uses: Vec<_> = self
            .fragments(handle, Field::ResourceClaimUses)?
            .iter()
            .filter_map(|value| resource_claim_use(value))
            .collect();
        let bytes = |one: &ResourceClaimUse| {
            one.name.len() + one.request.as_ref().map_or(0, String::len) + 16
        };
        self.meter.add_bytes(uses.iter().map(bytes).sum())?;
        Ok(uses)
    }

    /// `container.put-resource-claim-use`
    pub fn container_put_resource_claim_use(
        &mut self,
        handle: handle::Container,
        claim: &ResourceClaimUse,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        if !is_dns_label(&claim.name) {
            return wrong("the name must be a DNS label: at most 63 of a-z, 0-9 and `-`");
        }
        let mut object = Map::new();
        object.insert("name".to_owned(), claim.name.as_str().into());
        if let Some(request) = &claim.request {
            self.meter.text(request)?;
            object.insert("request".to_owned(), request.as_str().into());
        }
        let value = Value::Object(object);
        self.set(
            target,
            Field::ResourceClaimUses,
            &claim.name,
            Some(value.into()),
        )
    }

    /// `container.remove-resource-claim-use`
    pub fn container_remove_resource_claim_use(
        &mut self,
        handle: handle::Container,
        name: &str,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.set(target, Field::ResourceClaimUses, name, None)
    }
}

fn resource_claim_use(value: &Value) -> Option<ResourceClaimUse> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(ResourceClaimUse {
        name: text("name")?,
        request: text("request"),
    })
}
