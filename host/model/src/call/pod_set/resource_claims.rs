//! Resource claims of a pod set's pods, and their devices.

use super::*;
use crate::{
    record::DEVICE_OF_RESOURCE,
    value::{Devices, PodResourceClaim},
};

impl Call {
    /// `pod-set.resource-claims`
    pub fn pod_set_resource_claims(
        &mut self,
        handle: handle::PodSet,
    ) -> Result<Vec<PodResourceClaim>, Fault> {
        let (target, at) = self.pod_set_target(handle)?;
        self.may_read_all(target, Field::ResourceClaims)?;
        let set = self.record_of(target.base).pod_set(at);
        let entries = set
            .into_iter()
            .flat_map(|set| set.fields.all(Field::ResourceClaims).iter());
        let claims: Vec<_> = entries
            .filter_map(|entry| Some(resource_claim(&entry.key, entry.datum.as_json()?)))
            .collect();
        let bytes = |claim: &PodResourceClaim| {
            let texts = [&claim.resource_claim, &claim.resource_claim_template];
            let texts = texts.into_iter().flatten().map(String::len);
            claim.name.len() + texts.sum::<usize>() + 24
        };
        self.meter.add_bytes(claims.iter().map(bytes).sum())?;
        Ok(claims)
    }

    /// `pod-set.put-resource-claim`
    pub fn pod_set_put_resource_claim(
        &mut self,
        handle: handle::PodSet,
        claim: &PodResourceClaim,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        if !is_dns_label(&claim.name) {
            return wrong(NO_LABEL);
        }
        let (member, object) = match (&claim.resource_claim, &claim.resource_claim_template) {
            (Some(name), None) => ("resourceClaimName", name),
            (None, Some(name)) => ("resourceClaimTemplateName", name),
            _ => {
                return wrong(
                    "the claim must name either a ResourceClaim or a ResourceClaimTemplate",
                );
            }
        };
        self.meter.text(object)?;
        let value: Value = [("name", claim.name.as_str()), (member, object)]
            .into_iter()
            .collect();
        self.set(
            target,
            Field::ResourceClaims,
            &claim.name,
            Some(value.into()),
        )
    }

    /// `pod-set.remove-resource-claim`
    pub fn pod_set_remove_resource_claim(
        &mut self,
        handle: handle::PodSet,
        name: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.set(target, Field::ResourceClaims, name, None)
    }

    /// `pod-set.put-devices`
    pub fn pod_set_put_devices(
        &mut self,
        handle: handle::PodSet,
        devices: &Devices,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        let source = &devices.source;
        if source.is_empty() || source.starts_with(DEVICE_OF_RESOURCE) {
            return wrong(format!(
                "the source must not be empty and must not begin with `{DEVICE_OF_RESOURCE}`"
            ));
        }
        let value = json!({ "count": devices.count, "accelerator": devices.accelerator });
        self.set(target, Field::Devices, source, Some(value.into()))
    }
}

/// A resource claim from its JSON in the record.
fn resource_claim(name: &str, value: &Value) -> PodResourceClaim {
    let text = |key: &str| {
        let text = value.get(key).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    PodResourceClaim {
        name: name.to_owned(),
        resource_claim: text("resourceClaimName"),
        resource_claim_template: text("resourceClaimTemplateName"),
    }
}
