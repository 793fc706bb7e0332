//! Plugins of a few operations each, with few different keys, so their claims, node sets, lookups, devices and resource claims overlap.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use trainyard_api::Object;
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    lookup::{LookupAnswer, LookupKey, Lookups, ObjectKey, Requester},
    plugin::Phase,
    value::{Devices, Mount, PodResourceClaim, ResourceClaimUse},
};

use super::{Scripted, input, pod_set};

/// An operation of a plugin, with the claims that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    SetLabel(u8),
    SetLabelOfConfig(u8),
    CopyLabel(u8),
    AddContainer(u8, u8),
    AddInitContainer(u8),
    SetEnvEverywhere(u8),
    SetEnvOfBase(u8),
    CountContainers,
    SetNodes(u8),
    CountNodes,
    PutDevices(u8),
    CountDevices,
    CountProcesses,
    PutResourceClaim(u8),
    UseResourceClaim(u8),
    ListResourceClaims,
    SetRequest(u8),
    SumRequests,
    Lookup(u8),
    ListLookups,
    AddToleration(u8),
    Keep,
    Mount(u8),
    Emit(u8),
    Warn,
    Complain,
    Fail,
}

const MOUNTS: [&str; 3] = ["/m", "/m/", "/n"];
const CONTAINERS: [&str; 4] = ["node", "side", "x0", "x1"];
const RESOURCES: [&str; 2] = ["cpu", "memory"];
/// The pod sets that `numNodes` may count.
const POD_SETS: [&str; 2] = ["node", "extra"];

const INFO: handle::Info = handle::Info(0);

impl Act {
    /// The number of kinds.
    pub const KINDS: usize = 27;

    /// Returns the name of its kind.
    pub fn kind(self) -> String {
        let text = format!("{self:?}");
        text.split('(').next().unwrap_or_default().to_owned()
    }

    fn any() -> impl Strategy<Value = Self> {
        let key = || 0u8..2;
        let of = |act: fn(u8) -> Self| key().prop_map(act);
        prop_oneof![
            2 => of(Self::SetLabel),
            1 => of(Self::SetLabelOfConfig),
            2 => of(Self::CopyLabel),
            3 => (key(), key()).prop_map(|(name, env)| Self::AddContainer(name, env)),
            1 => of(Self::AddInitContainer),
            3 => of(Self::SetEnvEverywhere),
            2 => of(Self::SetEnvOfBase),
            1 => Just(Self::CountContainers),
            1 => of(Self::SetNodes),
            1 => Just(Self::CountNodes),
            2 => of(Self::PutDevices),
            1 => Just(Self::CountDevices),
            1 => Just(Self::CountProcesses),
            2 => of(Self::PutResourceClaim),
            2 => of(Self::UseResourceClaim),
            1 => Just(Self::ListResourceClaims),
            2 => of(Self::SetRequest),
            2 => Just(Self::SumRequests),
            2 => of(Self::Lookup),
            1 => Just(Self::ListLookups),
            1 => of(Self::AddToleration),
            1 => Just(Self::Keep),
            1 => (0u8..3).prop_map(Self::Mount),
            1 => of(Self::Emit),
            1 => Just(Self::Warn),
            1 => Just(Self::Complain),
            1 => Just(Self::Fail),
        ]
    }

    fn claims(self, of: &str) -> Vec<(&'static str, String)> {
        let trainer = |path: &str| format!("pod-sets[@trainer].{path}");
        let all = |path: &str| format!("pod-sets[*].{path}");
        let annotates = || ("writes", format!("annotations[of-{of}]"));
        let devices = || {
            vec![
                ("reads", trainer("devices[*]")),
                ("reads", trainer("containers[node].requests[cpu]")),
                ("reads", trainer("containers[node].limits[cpu]")),
                annotates(),
            ]
        };
        match self {
            Self::SetLabel(key) => vec![("writes", format!("labels[l{key}]"))],
            Self::SetLabelOfConfig(_) => vec![("writes", "labels[$config./label]".to_owned())],
            Self::CopyLabel(key) => vec![("reads", format!("labels[l{key}]")), annotates()],
            Self::AddContainer(name, _) => {
                vec![("creates", trainer(&format!("containers[x{name}]")))]
            }
            Self::AddInitContainer(name) => {
                vec![("creates", trainer(&format!("init-containers[i{name}]")))]
            }
            Self::SetEnvEverywhere(key) => {
                vec![("writes", trainer(&format!("containers[*].env[E{key}]")))]
            }
            Self::SetEnvOfBase(key) => {
                vec![("writes", trainer(&format!("containers[@base].env[E{key}]")))]
            }
            Self::CountContainers => vec![("reads", trainer("containers[#]")), annotates()],
            Self::CountNodes => vec![annotates()],
            Self::PutDevices(key) => {
                vec![(
                    "writes",
                    trainer(&format!("devices[resource-claim/c{key}]")),
                )]
            }
            Self::CountDevices | Self::CountProcesses => devices(),
            Self::PutResourceClaim(key) => {
                vec![("writes", all(&format!("resource-claims[c{key}]")))]
            }
            Self::UseResourceClaim(key) => vec![
                (
                    "writes",
                    all(&format!("containers[@base].resource-claims[c{key}]")),
                ),
                ("reads", all("resource-claims[*]")),
            ],
            Self::ListResourceClaims => vec![("reads", all("resource-claims[*]")), annotates()],
            Self::SetRequest(key) => {
                let resource = RESOURCES[usize::from(key)];
                vec![(
                    "writes",
                    all(&format!("containers[node].requests[{resource}]")),
                )]
            }
            Self::SumRequests => vec![
                ("reads", all("containers[*].requests[*]")),
                ("reads", all("containers[*].limits[*]")),
                ("reads", all("init-containers[*].requests[*]")),
                ("reads", all("init-containers[*].limits[*]")),
                ("reads", all("init-containers[*].restart-policy")),
                ("reads", all("raw[*]")),
                ("reads", "lookups[v1/LimitRange/*]".to_owned()),
                annotates(),
            ],
            Self::Lookup(key) => {
                vec![
                    ("reads", format!("lookups[v1/ConfigMap/m{key}]")),
                    annotates(),
                ]
            }
            Self::ListLookups => vec![("reads", "lookups[v1/ConfigMap/*]".to_owned()), annotates()],
            Self::AddToleration(key) => vec![("writes", all(&format!("tolerations[t{key}]")))],
            Self::Mount(at) => {
                let path = MOUNTS[usize::from(at)];
                vec![
                    ("writes", trainer(&format!("volumes[{of}]"))),
                    ("writes", trainer(&format!("containers[*].mounts[{path}]"))),
                ]
            }
            Self::Emit(suffix) => vec![("writes", format!("objects[v1/ConfigMap/-s{suffix}]"))],
            Self::SetNodes(_) | Self::Keep | Self::Warn | Self::Complain | Self::Fail => Vec::new(),
        }
    }

    fn run(self, of: &str, phase: Phase, call: &mut Call) -> Result<(), Fault> {
        match phase {
            Phase::Transform => self.transform(of, call),
            Phase::Build => match self {
                Self::Emit(suffix) => {
                    let suffix = format!("-s{suffix}");
                    let object =
                        call.objects_emit(handle::Objects(0), "v1", "ConfigMap", &suffix, None)?;
                    call.object_append(object, "of", of)
                }
                _ => Ok(()),
            },
            Phase::Check => match self {
                Self::Warn => call.context_warn(Call::CONTEXT, &format!("{of} warns"), None),
                Self::Complain => call.context_error(Call::CONTEXT, &format!("{of} errs"), None),
                Self::Keep => {
                    let kept = call.context_kept(Call::CONTEXT, "text")?;
                    call.context_warn(Call::CONTEXT, &format!("{of} kept {kept:?}"), None)
                }
                _ => Ok(()),
            },
        }
    }

    /// Performs the operation. What it reads is written to an annotation of the plugin.
    fn transform(self, of: &str, call: &mut Call) -> Result<(), Fault> {
        let Some(found) = self.find(call)? else {
            return self.write(of, call);
        };
        let annotation = format!("of-{of}");
        let before = call.info_annotation(INFO, &annotation)?.unwrap_or_default();
        call.info_set_annotation(INFO, &annotation, &format!("{before}{found};"))
    }

    fn write(self, of: &str, call: &mut Call) -> Result<(), Fault> {
        let set = pod_set(call, "node")?;
        match self {
            Self::SetLabel(key) => call.info_set_label(INFO, &format!("l{key}"), of),
            Self::SetLabelOfConfig(_) => {
                let config = call.job_config(handle::Job(0))?;
                let label = call.document_text(config, "/label")?.unwrap_or_default();
                call.info_set_label(INFO, &label, of)
            }
            Self::AddContainer(name, env) => {
                let added = call.pod_set_add_container(set, &format!("x{name}"), "image")?;
                call.container_set_request(added, "cpu", "1500m")?;
                call.container_put_env(added, &format!("E{env}"), of)
            }
            Self::AddInitContainer(name) => {
                let added = call.pod_set_add_init_container(set, &format!("i{name}"), "image")?;
                call.container_set_limit(added, "memory", "3Gi")?;
                call.container_set_restart_policy(added, "Always")?;
                call.container_place_first(added)
            }
            Self::SetEnvEverywhere(key) | Self::SetEnvOfBase(key) => {
                for name in CONTAINERS {
                    if let Some(container) = call.pod_set_container(set, name)? {
                        call.container_put_env(container, &format!("E{key}"), of)?;
                    }
                }
                Ok(())
            }
            Self::PutDevices(key) => {
                let devices = Devices {
                    source: format!("resource-claim/c{key}"),
                    count: Some(u32::from(key) + 2),
                    accelerator: true,
                };
                call.pod_set_put_devices(set, &devices)
            }
            Self::PutResourceClaim(key) => {
                let claim = PodResourceClaim {
                    name: format!("c{key}"),
                    resource_claim: Some(of.to_owned()),
                    resource_claim_template: None,
                };
                call.pod_set_put_resource_claim(set, &claim)
            }
            Self::UseResourceClaim(key) => {
                let name = format!("c{key}");
                let claims = call.pod_set_resource_claims(set)?;
                let node = call.pod_set_container(set, "node")?.unwrap();
                if !claims.iter().any(|claim| claim.name == name) {
                    return Ok(());
                }
                let one = ResourceClaimUse {
                    name,
                    request: None,
                };
                call.container_put_resource_claim_use(node, &one)
            }
            Self::SetRequest(key) => {
                let node = call.pod_set_container(set, "node")?.unwrap();
                let resource = RESOURCES[usize::from(key)];
                let amount = format!("1{}", of.trim_start_matches('p'));
                call.container_set_request(node, resource, &amount)
            }
            Self::AddToleration(key) => {
                let toleration = json!({"key": of, "operator": "Exists"}).to_string();
                call.pod_set_add_toleration(set, &format!("t{key}"), &toleration)
            }
            Self::Keep => {
                let text = format!("{of} in transform");
                call.context_keep(Call::CONTEXT, "text", &text)
            }
            Self::Mount(at) => {
                call.pod_set_put_empty_dir(set, of, None, None)?;
                let node = call.pod_set_container(set, "node")?.unwrap();
                let mount = Mount {
                    volume: of.to_owned(),
                    path: MOUNTS[usize::from(at)].to_owned(),
                    ..Mount::default()
                };
                call.container_put_mount(node, &mount)
            }
            Self::Warn => call.context_warn(Call::CONTEXT, &format!("{of} warns"), None),
            Self::Complain => call.context_error(Call::CONTEXT, &format!("{of} errs"), None),
            Self::Fail => Err(Fault::Argument(format!("{of} fails"))),
            _ => Ok(()),
        }
    }

    /// Returns what it reads, if it is a read.
    fn find(self, call: &mut Call) -> Result<Option<String>, Fault> {
        let set = pod_set(call, "node")?;
        let found = match self {
            Self::CopyLabel(key) => format!("{:?}", call.info_label(INFO, &format!("l{key}"))?),
            Self::CountContainers => format!("{}", call.pod_set_containers(set)?.len()),
            Self::CountNodes => {
                let nodes = call.info_nodes(INFO)?.into_iter();
                let counts: Result<Vec<_>, Fault> = nodes
                    .map(|set| Ok((call.pod_set_name(set)?, call.pod_set_count(set)?)))
                    .collect();
                format!("{:?}", counts?)
            }
            Self::CountDevices => format!("{:?}", call.pod_set_devices(set)?),
            Self::CountProcesses => format!("{:?}", call.pod_set_processes(set)?),
            Self::ListResourceClaims => format!("{:?}", call.pod_set_resource_claims(set)?),
            Self::SumRequests => {
                let gang = POD_SETS.map(str::to_owned);
                let members = call.info_gang_members(INFO, &gang)?;
                format!("{members} {:?}", call.info_gang_requests(INFO, &gang)?)
            }
            Self::Lookup(key) => {
                let name = format!("m{key}");
                let map = call.lookups_get(handle::Lookups(0), "v1", "ConfigMap", &name)?;
                let text = map.map(|map| call.document_text(map, "/data/key"));
                format!("{:?}", text.transpose()?)
            }
            Self::ListLookups => {
                let all = call.lookups_all(handle::Lookups(0), "v1", "ConfigMap")?;
                format!("{}", all.len())
            }
            _ => return Ok(None),
        };
        Ok(Some(found))
    }
}

/// A plugin with its operations.
#[derive(Clone)]
pub struct Acting {
    pub plugin: Scripted,
    pub acts: Vec<Act>,
}

impl std::fmt::Debug for Acting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { plugin, acts } = self;
        write!(f, "{} after {:?}: {acts:?}", plugin.name, plugin.after)
    }
}

/// Plugins of some operations each. Some declare an order.
pub fn acting() -> impl Strategy<Value = Vec<Acting>> {
    let acts = prop::collection::vec(Act::any(), 1..4);
    let plugins = prop::collection::vec((acts, prop::option::weighted(0.3, 0usize..4)), 2..5);
    plugins.prop_map(|plugins| {
        let count = plugins.len();
        let each = plugins.into_iter().enumerate();
        each.map(|(at, (acts, after))| {
            let after = after.filter(|after| *after != at && *after < count);
            acting_as(at, acts, after)
        })
        .collect()
    })
}

fn acting_as(at: usize, acts: Vec<Act>, after: Option<usize>) -> Acting {
    let name = |at: usize| format!("p{at}");
    let mut claims: Vec<_> = acts.iter().flat_map(|act| act.claims(&name(at))).collect();
    claims.sort_unstable();
    claims.dedup();
    let claims: Vec<_> = claims
        .iter()
        .map(|(list, path)| (*list, path.as_str()))
        .collect();
    let (of, does) = (name(at), acts.clone());
    let mut plugin = Scripted::new(&name(at), &claims, move |phase, call| {
        does.iter().try_for_each(|act| act.run(&of, phase, call))
    });
    plugin.after = after.map(name).into_iter().collect();
    let mut labels = acts.iter().filter_map(|act| match act {
        Act::SetLabelOfConfig(key) => Some(format!("l{key}")),
        _ => None,
    });
    if let Some(label) = labels.next_back() {
        plugin.config_schema =
            json!({"properties": {"label": {"type": "string", "default": label}}});
    }
    let mut node_sets = acts.iter().filter_map(|act| match act {
        Act::SetNodes(key) => Some(json!([{"podSet": POD_SETS[usize::from(*key)]}])),
        _ => None,
    });
    if let Some(node_sets) = node_sets.next_back() {
        plugin.node_sets = node_sets;
    }
    Acting { plugin, acts }
}

/// A TrainJob of three nodes, and a runtime with these plugins and a second pod set.
pub fn two_pod_sets(plugins: &[Scripted]) -> String {
    let extra = "      replicatedJobs:\n      - name: extra\n        template: {spec: {template: {spec: {containers: [{name: node, image: extra:1}]}}}}\n";
    let limits = "image: base:1\n                  resources: {limits: {cpu: 2}}\n";
    input(plugins)
        .replace("      replicatedJobs:\n", extra)
        .replace("image: base:1\n", limits)
        .replace("trainer: {env:", "trainer: {numNodes: 3, env:")
}

/// The answers to lookups: one of two ConfigMaps, the list of both, and a LimitRange.
pub fn known() -> Arc<Lookups> {
    let text = r#"
{apiVersion: v1, kind: ConfigMap, metadata: {name: m0}, data: {key: of-m0}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: m1}, data: {key: of-m1}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: range}, spec: {limits: [{type: Container, defaultRequest: {memory: 1Gi}}]}}
"#;
    let inputs = trainyard_api::Inputs::read_text("known.yaml", text);
    let value = |object: Object| Arc::new(object.value);
    let mut objects: Vec<_> = inputs.objects.into_iter().map(value).collect();
    let asker = Requester {
        name: "job",
        uid: None,
    };
    let all = |kind: &str| LookupKey::All {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
    };
    let mut known = Lookups::default();
    let range = objects.pop().unwrap();
    known.insert(all("LimitRange"), LookupAnswer::all(vec![range], asker));
    let first = LookupKey::Object(ObjectKey::new("v1", "ConfigMap", "m0"));
    known.insert(first, LookupAnswer::Object(objects[0].clone()));
    known.insert(all("ConfigMap"), LookupAnswer::all(objects, asker));
    Arc::new(known)
}
