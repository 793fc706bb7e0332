//! Generated ResourceClaimTemplates, so that a ClusterTrainingRuntime does not need one in each namespace.

use trainyard_sdk::{Context, json::quoted};

/// The API of Dynamic Resource Allocation.
pub(crate) const API: &str = "resource.k8s.io/v1";
/// The kind of the templates.
pub(crate) const TEMPLATE: &str = "ResourceClaimTemplate";

/// A template for a number of devices of one class.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The name of its request, which is that of the claim.
    pub(crate) request: String,
    /// The DeviceClass.
    pub(crate) class: String,
    /// The number of devices.
    pub(crate) count: u32,
    /// CEL expressions that a device must meet.
    pub(crate) selectors: Vec<String>,
}

impl Policy {
    /// The template's content.
    fn body(&self) -> String {
        let selectors: Vec<_> = self
            .selectors
            .iter()
            .map(|cel| format!(r#"{{"cel":{{"expression":{}}}}}"#, quoted(cel)))
            .collect();
        let selectors = match &*selectors {
            [] => String::new(),
            selectors => format!(r#","selectors":[{}]"#, selectors.join(",")),
        };
        let (request, class, count) = (quoted(&self.request), quoted(&self.class), self.count);
        format!(
            r#"{{"spec":{{"spec":{{"devices":{{"requests":[{{"name":{request},"exactly":{{"deviceClassName":{class},"allocationMode":"ExactCount","count":{count}{selectors}}}}}]}}}}}}}}"#
        )
    }

    fn suffix(&self) -> String {
        format!("-{}", self.request)
    }

    /// The template's name. It includes a hash of the content, because templates are immutable.
    pub(crate) fn name(&self, ctx: &Context) -> String {
        let content = self.body();
        ctx.objects()
            .name(API, TEMPLATE, &self.suffix(), Some(&content))
    }

    /// Emits the template.
    pub(crate) fn emit(&self, ctx: &Context) {
        let content = self.body();
        let object = ctx
            .objects()
            .emit(API, TEMPLATE, &self.suffix(), Some(&content));
        object.set_body(&content);
    }
}
