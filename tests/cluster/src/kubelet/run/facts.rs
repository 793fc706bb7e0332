//! What the fields of a pod's spec refer to: the pod itself, its node, and ConfigMaps, Secrets and tokens.

use std::{collections::BTreeMap, net::IpAddr};

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, Node, ObjectFieldSelector, Pod, ResourceFieldSelector, Secret,
};
use kube::ResourceExt as _;
use trainyard_model::quantity::Quantity;

use super::problem::Problem;

/// The objects that a pod refers to, as far as they exist.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pub(super) config_maps: BTreeMap<String, ConfigMap>,
    pub(super) secrets: BTreeMap<String, Secret>,
    /// Tokens of the pod's ServiceAccount, by audience.
    pub(super) tokens: BTreeMap<String, String>,
    pub(super) node: Node,
}

/// Everything that the spec of a pod refers to.
pub(super) struct Facts<'a> {
    pub(super) pod: &'a Pod,
    /// The pod's address, also before its status has it.
    pub(super) pod_ip: IpAddr,
    /// The address of its node.
    pub(super) host_ip: IpAddr,
    pub(super) objects: &'a Objects,
}

impl Facts<'_> {
    /// Returns the value of a `fieldRef`.
    pub(super) fn field(&self, of: &ObjectFieldSelector) -> Result<String, Problem> {
        let (pod, path) = (self.pod, of.field_path.as_str());
        let spec = pod.spec.clone().unwrap_or_default();
        Ok(match path {
            "metadata.name" => pod.name_any(),
            "metadata.namespace" => pod.namespace().unwrap_or_default(),
            "metadata.uid" => pod.uid().unwrap_or_default(),
            "metadata.labels" => lines(pod.labels()),
            "metadata.annotations" => lines(pod.annotations()),
            "spec.nodeName" => spec.node_name.unwrap_or_default(),
            "spec.serviceAccountName" => spec.service_account_name.unwrap_or_default(),
            "status.podIP" | "status.podIPs" => self.pod_ip.to_string(),
            "status.hostIP" | "status.hostIPs" => self.host_ip.to_string(),
            _ => {
                let of_key = |prefix: &str, map: &BTreeMap<String, String>| {
                    let key = path.strip_prefix(prefix)?.strip_suffix("']")?;
                    Some(map.get(key).cloned().unwrap_or_default())
                };
                let value = of_key("metadata.labels['", pod.labels())
                    .or_else(|| of_key("metadata.annotations['", pod.annotations()));
                let unknown = || {
                    Problem::Unsupported(format!("the fake kubelet does not know the field {path}"))
                };
                value.ok_or_else(unknown)?
            }
        })
    }

    /// Returns the value of a `resourceFieldRef`, in units of its divisor, rounded up.
    pub(super) fn resource(
        &self,
        of: &ResourceFieldSelector,
        container: &Container,
    ) -> Result<String, Problem> {
        let refused = |what: &str| {
            Problem::Unsupported(format!("the resource field {:?} {what}", of.resource))
        };
        let (kind, resource) = of
            .resource
            .split_once('.')
            .ok_or_else(|| refused("is neither limits.NAME nor requests.NAME"))?;
        let resources = container.resources.clone().unwrap_or_default();
        let allocatable = || {
            let status = self.objects.node.status.as_ref();
            status.and_then(|status| status.allocatable.clone())
        };
        let given = |map: Option<BTreeMap<String, _>>| map.and_then(|mut map| map.remove(resource));
        let value = match kind {
            // A container without a limit can use what the node has.
            "limits" => given(resources.limits).or_else(|| given(allocatable())),
            _ => given(resources.requests),
        };
        let milli = |quantity: &str| {
            let parsed = Quantity::parse(quantity).and_then(Quantity::milli);
            parsed.ok_or_else(|| refused("has a value that is not a quantity"))
        };
        let value = value.map_or(Ok(0), |value| milli(&value.0))?;
        let divisor = of.divisor.as_ref().map_or(Ok(0), |value| milli(&value.0))?;
        let divisor = if divisor == 0 { 1000 } else { divisor };
        let units = (value.saturating_add(divisor - 1)).div_euclid(divisor);
        Ok(units.to_string())
    }
}

/// Formats labels or annotations as a file of the downward API.
fn lines(map: &BTreeMap<String, String>) -> String {
    let lines: Vec<_> = map.iter().map(|(k, v)| format!("{k}={v:?}")).collect();
    lines.join("\n")
}
