//! The devices of the node container's claims.

use trainyard_sdk::{
    Container, Context, Devices, Failure, NODE, PodResourceClaim, PodSet, names::is_dns_subdomain,
};

use crate::{
    config::{DeviceKind, DraConfig},
    count::{self, Counted},
    made::{API, TEMPLATE},
    refuse, used_at,
    wish::{Source, Wish},
};

/// The kind of existing claims.
const CLAIM: &str = "ResourceClaim";

/// Records the devices of a pod set, and reports claims that cannot be counted.
pub(crate) fn note(ctx: &Context, set: &PodSet, wishes: &[Wish], config: &DraConfig) {
    let Some(node) = set.container(NODE) else {
        return;
    };
    ctx.because("the devices of the claims that the node container uses");
    for counted in of_node(ctx, set, &node, wishes, config) {
        match counted {
            Ok(used) => put(set, &used.claim.name, used.requests),
            Err(problem) => refuse(ctx, &problem),
        }
    }
}

fn put(set: &PodSet, claim: &str, requests: Option<Vec<Counted>>) {
    let source = format!("resource-claim/{claim}");
    match requests {
        None => set.put_devices(&Devices {
            source,
            count: None,
            accelerator: true,
        }),
        Some(requests) => {
            for counted in requests {
                set.put_devices(&Devices {
                    source: format!("{source}/{}", counted.request),
                    count: counted.count,
                    accelerator: counted.kind == DeviceKind::Accelerator,
                });
            }
        }
    }
}

/// A claim that the node container uses.
pub(crate) struct Used {
    pub(crate) claim: PodResourceClaim,
    /// The requests that it uses. `None` if the number of processes is set, so that the TrainJob does not wait for the claim's object.
    pub(crate) requests: Option<Vec<Counted>>,
    /// False if all of its devices were already counted, for another claim of the pod.
    pub(crate) is_first: bool,
}

/// The claims that the node container uses, or why they cannot be counted. If two claims of the pod refer to the same ResourceClaim, its
/// devices are counted once.
pub(crate) fn of_node(
    ctx: &Context,
    set: &PodSet,
    node: &Container,
    wishes: &[Wish],
    config: &DraConfig,
) -> Vec<Result<Used, Failure>> {
    let claims = set.resource_claims();
    let mut out = Vec::new();
    let mut shared = Vec::new();
    for one in node.resource_claim_uses() {
        let Some(claim) = claims.iter().find(|claim| claim.name == one.name) else {
            continue;
        };
        let requests = match requests(ctx, set, claim, wishes, config) {
            Ok(Some(requests)) => count::used(&one, &requests).map(Some).map_err(|problem| {
                let message = format!("container `{NODE}` {problem}");
                Failure::from(message).at(used_at(ctx, set, node, &one.name))
            }),
            other => other,
        };
        out.push(requests.map(|mut requests| {
            let mut is_first = true;
            if let (Some(object), Some(requests)) = (&claim.resource_claim, &mut requests) {
                requests.retain(|counted| {
                    let key = (object.clone(), counted.request.clone());
                    let is_new = !shared.contains(&key);
                    is_first &= is_new;
                    shared.push(key);
                    is_new
                });
            }
            Used {
                claim: claim.clone(),
                requests,
                is_first,
            }
        }));
    }
    out
}

/// The devices of a claim's requests. `None` if the number of processes is set.
fn requests(
    ctx: &Context,
    set: &PodSet,
    claim: &PodResourceClaim,
    wishes: &[Wish],
    config: &DraConfig,
) -> Result<Option<Vec<Counted>>, Failure> {
    let wish = wishes.iter().find(|wish| wish.name == claim.name);
    if let Some(Source::Made(policy)) = wish.map(|wish| &wish.source) {
        return Ok(Some(vec![Counted {
            request: policy.request.clone(),
            count: Some(policy.count),
            kind: config.kind(&policy.class),
            classes: vec![policy.class.clone()],
        }]));
    }
    let (kind, name, at) = match (&claim.resource_claim_template, &claim.resource_claim) {
        (Some(name), None) => (TEMPLATE, name, "/spec/spec"),
        (None, Some(name)) => (CLAIM, name, "/spec"),
        // `wire` refuses these.
        _ => return Ok(Some(Vec::new())),
    };
    let problem = |message: String| {
        let place = wish.map_or_else(|| claim_path(set, &claim.name), |wish| wish.path.clone());
        Failure::from(message).at(place)
    };
    if !is_dns_subdomain(name) {
        return Err(problem(format!("`{name}` is not a valid name of a {kind}")));
    }
    if ctx.job().processes_per_node().is_some() {
        return Ok(None);
    }
    match ctx.lookups().get(API, kind, name) {
        None => Ok(Some(Vec::new())),
        Some(object) => count::requests(&object, at, config)
            .map(Some)
            .map_err(|message| problem(format!("{kind} `{name}`: {message}"))),
    }
}

/// The path of a resource claim of the pods in the runtime.
pub(crate) fn claim_path(set: &PodSet, claim: &str) -> String {
    set.path(&format!("resourceClaims[{claim}]"))
}
