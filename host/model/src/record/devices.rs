//! Accelerators, and the number of processes per node.

use std::sync::Arc;

use super::{ContainerId, Datum, EntryScope, Field, Fields, Record};
use crate::{quantity::Quantity, value::Devices};

/// The extended resources that are accelerators. The operator's list replaces the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accelerators(Arc<[Box<str>]>);

impl Accelerators {
    /// The names; a trailing `*` matches any ending.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }
}

impl Default for Accelerators {
    /// The resource names of the vendors' device plugins, and of device classes of GPUs (DRAExtendedResource, KEP-5004). Shares of
    /// a device (`nvidia.com/gpumem`) are not accelerators.
    fn default() -> Self {
        Self::new([
            "nvidia.com/gpu",
            "nvidia.com/gpu.shared",
            "nvidia.com/mig-*",
            "amd.com/gpu",
            "gpu.intel.com/i915",
            "gpu.intel.com/xe",
            "habana.ai/gaudi",
            "google.com/tpu",
            "aws.amazon.com/neuron",
            "aws.amazon.com/neuroncore",
            "aws.amazon.com/neurondevice",
            "huawei.com/Ascend*",
            "cambricon.com/mlu",
            "mthreads.com/gpu",
            "metax-tech.com/gpu",
            "iluvatar.com/gpu",
            "hygon.com/dcu",
            "deviceclass.resource.kubernetes.io/gpu*",
        ])
    }
}

impl Accelerators {
    /// Returns accelerators with these names; a trailing `*` matches any ending.
    pub fn new<S: Into<Box<str>>>(names: impl IntoIterator<Item = S>) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }

    /// All resources that are counted, also as shares of a device; a trailing `*` matches any ending.
    pub fn counted(&self) -> impl Iterator<Item = &str> {
        self.names().chain(SHARES)
    }

    /// Whether the resource is an accelerator.
    #[must_use]
    pub fn contains(&self, resource: &str) -> bool {
        self.0.iter().any(|name| match name.strip_suffix('*') {
            Some(prefix) => resource.starts_with(prefix),
            None => **name == *resource,
        })
    }
}

/// The prefix of the sources of the host's devices, which the name of an extended resource follows.
pub const DEVICE_OF_RESOURCE: &str = "resource/";

/// Shares of a device's memory or cores, which request a part of a device from schedulers of shared devices. On their own they mean that
/// there is a device, but not how many.
pub const SHARES: [&str; 8] = [
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-cores",
    "aliyun.com/gpu-mem",
    "tencent.com/vcuda-core",
    "tencent.com/vcuda-memory",
];

/// The extended resources of a container that are accelerators and not 0. If there are none, shares of a device, whose number is not
/// known.
fn extended_resources(fields: &Fields, accelerators: &Accelerators) -> Vec<Devices> {
    let (requests, limits) = (fields.all(Field::Requests), fields.all(Field::Limits));
    let only_limits = limits
        .iter()
        .filter(|limit| requests.get(&*limit.key).is_none());
    let (mut devices, mut shares) = (Vec::new(), Vec::new());
    for entry in requests.iter().chain(only_limits) {
        let is_share = SHARES.contains(&&*entry.key);
        if !is_share && !accelerators.contains(&entry.key) {
            continue;
        }
        let amount = entry
            .datum
            .as_text()
            .and_then(Quantity::parse)
            .and_then(Quantity::ceil);
        let count = amount.and_then(|n| u32::try_from(n).ok());
        if count == Some(0) {
            continue;
        }
        let list = if is_share { &mut shares } else { &mut devices };
        list.push(Devices {
            source: [DEVICE_OF_RESOURCE, &entry.key].concat(),
            count: count.filter(|_| !is_share),
            accelerator: true,
        });
    }
    if devices.is_empty() { shares } else { devices }
}

impl Record {
    /// The amount of a resource in a node container: its request, else its limit.
    fn node_request(&self, node: Option<ContainerId>, resource: &str) -> Option<&str> {
        let id = node?;
        let fields = self.fields(EntryScope::Container(id))?;
        let entry = fields
            .get(Field::Requests, resource)
            .or_else(|| fields.get(Field::Limits, resource))?;
        entry.datum.as_text()
    }

    /// The devices of a pod set's node container: extended resources that are accelerators and not 0, then what plugins
    /// put. `node` is that container, or `None` if there is none or the plugin that asks may not see it.
    #[must_use]
    pub fn devices(
        &self,
        pod_set: u32,
        node: Option<ContainerId>,
        accelerators: &Accelerators,
    ) -> Vec<Devices> {
        let fields = node.and_then(|id| self.fields(EntryScope::Container(id)));
        let mut out =
            fields.map_or_else(Vec::new, |fields| extended_resources(fields, accelerators));
        let put = self
            .pod_set(pod_set)
            .into_iter()
            .flat_map(|p| p.fields.all(Field::Devices).iter());
        out.extend(put.filter_map(|entry| {
            match &entry.datum {
                Datum::Json(value) => Some(Devices {
                    source: entry.key.to_string(),
                    count: value
                        .get("count")
                        .and_then(serde_json::Value::as_u64)
                        .and_then(|n| u32::try_from(n).ok()),
                    accelerator: value
                        .get("accelerator")
                        .and_then(serde_json::Value::as_bool)
                        .unwrap_or(false),
                }),
                _ => None,
            }
        }));
        out
    }

    /// The number of accelerators of the node container: of its extended resources or, without such resources, of its claims. `None`
    /// if the number is not known.
    #[must_use]
    pub fn accelerators(
        &self,
        pod_set: u32,
        node: Option<ContainerId>,
        accelerators: &Accelerators,
    ) -> Option<u32> {
        let devices = self.devices(pod_set, node, accelerators);
        let sum = |resources: bool| {
            devices
                .iter()
                .filter(|d| d.accelerator && d.source.starts_with(DEVICE_OF_RESOURCE) == resources)
                .try_fold(0u32, |sum, d| Some(sum.saturating_add(d.count?)))
        };
        match sum(true) {
            Some(0) => sum(false),
            other => other,
        }
    }

    /// The number of processes per node: the explicit number, else accelerators, else whole CPUs, at least 1 (W24, W25).
    #[must_use]
    pub fn processes(
        &self,
        pod_set: u32,
        node: Option<ContainerId>,
        explicit: Option<u32>,
        accelerators: &Accelerators,
    ) -> Option<u32> {
        if explicit.is_some() {
            return explicit;
        }
        match self.accelerators(pod_set, node, accelerators)? {
            0 => Some(self.whole_cpus(node)),
            n => Some(n),
        }
    }

    /// The number of CPUs of the node container, rounded up, at least 1.
    fn whole_cpus(&self, node: Option<ContainerId>) -> u32 {
        let cpu = self
            .node_request(node, "cpu")
            .and_then(Quantity::parse)
            .and_then(Quantity::ceil);
        cpu.and_then(|n| u32::try_from(n).ok()).unwrap_or(1).max(1)
    }
}
