//! The DRA policy: claims of Dynamic Resource Allocation (KEP-4381) reach the pods of the nodes and the containers that use them, and
//! their devices are counted, so that frameworks start as many processes.

mod check;
mod config;
mod count;
mod made;
mod wish;

use trainyard_sdk::{
    Build, Check, Container, Context, Devices, Failure, PodResourceClaim, PodSet, ResourceClaimUse,
    Transform, names::is_dns_subdomain,
};

use self::{
    config::DraConfig,
    count::Counted,
    made::{API, TEMPLATE},
    wish::{NODE, Source, Wish, Wishes},
};

/// The kind of claims that are there.
const CLAIM: &str = "ResourceClaim";

/// The DRA policy.
pub struct Dra;

trainyard_sdk::plugin!(Dra: transform, build, check; operator_config = DraConfig);

impl Transform for Dra {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let Wishes {
            list: wishes,
            problems,
        } = Wishes::read(ctx);
        for problem in problems {
            ctx.error(&problem.message, problem.field.as_deref());
        }
        if !ctx.lookups().served(API, TEMPLATE) {
            return not_served(ctx, &wishes);
        }
        let config = ctx.job().operator_config_as::<DraConfig>()?;
        exclude(ctx);
        for set in ctx.info().nodes() {
            for wish in &wishes {
                grant(ctx, &set, wish);
            }
        }
        for set in ctx.info().pod_sets() {
            wire(ctx, &set);
        }
        for set in ctx.info().nodes() {
            count_devices(ctx, &set, &wishes, &config);
        }
        Ok(())
    }
}

impl Build for Dra {
    fn build(ctx: &Context) -> Result<(), Failure> {
        if ctx.lookups().served(API, TEMPLATE) {
            for wish in Wishes::read(ctx).list {
                if let Source::Made(policy) = &wish.source {
                    policy.emit(ctx);
                }
            }
        }
        Ok(())
    }
}

impl Check for Dra {
    fn check(ctx: &Context) {
        check::check(ctx);
    }
}

/// Without the API there are no claims: what is asked for can't be had, and what the runtime has is the API server's to judge.
fn not_served(ctx: &Context, wishes: &[Wish]) -> Result<(), Failure> {
    let message =
        format!("the API server does not serve {API}, so that there are no resource claims");
    match wishes.first() {
        Some(wish) => Err(Failure::from(message).at(&*wish.path)),
        None => {
            ctx.warn(
                &format!("{message}: those of the pods stay as they are, and no device is counted"),
                None,
            );
            Ok(())
        }
    }
}

/// Takes out the claims that the TrainJob does without, with their uses.
fn exclude(ctx: &Context) {
    for name in wish::excluded(ctx) {
        let mut found = false;
        for set in ctx.info().pod_sets() {
            if set.resource_claims().iter().any(|claim| claim.name == name) {
                found = true;
                ctx.because("the TrainJob does without this claim");
                set.remove_resource_claim(&name);
                for container in containers(ctx, &set) {
                    container.remove_resource_claim_use(&name);
                }
            }
        }
        if !found {
            let message = format!("no pod has a resource claim `{name}`");
            ctx.error(&message, Some(&wish::excluded_path()));
        }
    }
}

/// Gives the pods of a node the claim that is asked for, in place of one of that name, and the containers the use of it.
fn grant(ctx: &Context, set: &PodSet, wish: &Wish) {
    let (claim, template) = match &wish.source {
        Source::Claim(name) => (Some(name.clone()), None),
        Source::Template(name) => (None, Some(name.clone())),
        Source::Made(policy) => (None, Some(policy.name(ctx))),
    };
    ctx.because(&format!("asked for by {}", wish.path));
    set.put_resource_claim(&PodResourceClaim {
        name: wish.name.clone(),
        resource_claim: claim,
        resource_claim_template: template,
    });
    for (at, name) in wish.containers.iter().enumerate() {
        match set.container(name) {
            Some(container) if uses(&container, &wish.name).is_none() => {
                container.put_resource_claim_use(&ResourceClaimUse {
                    name: wish.name.clone(),
                    request: None,
                });
            }
            Some(_) => {}
            None => {
                let message = format!("replicated job `{}` has no container `{name}`", set.name());
                ctx.error(
                    &message,
                    Some(&format!("{}.containerNames[{at}]", wish.path)),
                );
            }
        }
    }
}

/// Claims that no container uses are for the container that trains.
fn wire(ctx: &Context, set: &PodSet) {
    let containers: Vec<_> = containers(ctx, set)
        .into_iter()
        .map(|container| (container.resource_claim_uses(), container))
        .collect();
    let claims = set.resource_claims();
    for claim in &claims {
        let mut uses = containers.iter().flat_map(|(uses, _)| uses);
        let is_used = uses.any(|one| one.name == claim.name);
        if let (false, Some(node)) = (is_used, set.container(NODE)) {
            ctx.because("no container says that it uses this claim of the pods");
            node.put_resource_claim_use(&ResourceClaimUse {
                name: claim.name.clone(),
                request: None,
            });
        }
    }
    for (uses, container) in &containers {
        for one in uses {
            if !claims.iter().any(|claim| claim.name == one.name) {
                let message = format!(
                    "container `{}` of replicated job `{}` uses the resource claim `{}`, which its pods do not have",
                    container.name(),
                    set.name(),
                    one.name
                );
                ctx.error(&message, Some(&used_at(ctx, set, container, &one.name)));
            }
        }
    }
}

/// Where it is said that a container uses a claim: the TrainJob may say it of the trainer's.
fn used_at(ctx: &Context, set: &PodSet, container: &Container, claim: &str) -> String {
    let (set, name) = (set.name(), container.name());
    let spec = ctx.job().spec();
    let claims = "/trainer/resourcesPerNode/claims";
    for at in 0..spec.len(claims) {
        if name == NODE && spec.text(&format!("{claims}/{at}/name")).as_deref() == Some(claim) {
            return format!("spec.trainer.resourcesPerNode.claims[{at}]");
        }
    }
    let list = if container.is_init() {
        "initContainers"
    } else {
        "containers"
    };
    format!(
        "spec.template.spec.replicatedJobs[{set}].template.spec.template.spec.{list}[{name}].resources.claims"
    )
}

/// The containers of the pods, as the runtime and the TrainJob have them: what other plugins add uses no claims of theirs.
fn containers(ctx: &Context, set: &PodSet) -> Vec<Container> {
    let Some(base) = ctx.base().pod_set(&set.name()) else {
        return Vec::new();
    };
    let all = base.init_containers().into_iter().chain(base.containers());
    all.filter_map(|container| set.container(&container.name()))
        .collect()
}

/// What a container uses of a claim; none where it does not use it.
pub(crate) fn uses(container: &Container, claim: &str) -> Option<ResourceClaimUse> {
    let mut uses = container.resource_claim_uses().into_iter();
    uses.find(|one| one.name == claim)
}

/// Notes the devices that the node container gets of its claims.
fn count_devices(ctx: &Context, set: &PodSet, wishes: &[Wish], config: &DraConfig) {
    let Some(node) = set.container(NODE) else {
        return;
    };
    let claims = set.resource_claims();
    ctx.because("the devices of the claims that the node container uses");
    for one in node.resource_claim_uses() {
        let Some(claim) = claims.iter().find(|claim| claim.name == one.name) else {
            continue;
        };
        let source = format!("resource-claim/{}", claim.name);
        let Some(requests) = counted(ctx, set, claim, wishes, config) else {
            set.put_devices(&Devices {
                source,
                count: None,
                accelerator: true,
            });
            continue;
        };
        for counted in requests.iter().filter(|counted| is_used(&one, counted)) {
            set.put_devices(&Devices {
                source: format!("{source}/{}", counted.request),
                count: counted.count,
                accelerator: counted.accelerator,
            });
        }
    }
}

/// Whether the use of a claim means the request; `REQUEST/ALTERNATIVE` names one of a request's alternatives.
fn is_used(one: &ResourceClaimUse, counted: &Counted) -> bool {
    let request = one
        .request
        .as_deref()
        .map(|request| request.split('/').next().unwrap_or(request));
    request.is_none_or(|request| request == counted.request)
}

/// What the requests of a claim give; none where the number of processes is given, so that no TrainJob waits for the object that
/// says it.
fn counted(
    ctx: &Context,
    set: &PodSet,
    claim: &PodResourceClaim,
    wishes: &[Wish],
    config: &DraConfig,
) -> Option<Vec<Counted>> {
    let made = wishes.iter().find(|wish| wish.name == claim.name);
    if let Some(Source::Made(policy)) = made.map(|wish| &wish.source) {
        return Some(vec![Counted {
            request: policy.request.clone(),
            count: Some(policy.count),
            accelerator: config.is_accelerator(&policy.class),
        }]);
    }
    let (kind, name, at) = match (&claim.resource_claim_template, &claim.resource_claim) {
        (Some(name), _) => (TEMPLATE, name, "/spec/spec"),
        (None, Some(name)) => (CLAIM, name, "/spec"),
        (None, None) => return Some(Vec::new()),
    };
    if ctx.job().processes_per_node().is_some() {
        return None;
    }
    let place = || match made {
        Some(wish) => wish.path.clone(),
        None => format!(
            "spec.template.spec.replicatedJobs[{}].template.spec.template.spec.resourceClaims[{}]",
            set.name(),
            claim.name
        ),
    };
    if !is_dns_subdomain(name) {
        ctx.error(&format!("`{name}` is no name of a {kind}"), Some(&place()));
        return Some(Vec::new());
    }
    let Some(object) = ctx.lookups().get(API, kind, name) else {
        return Some(Vec::new());
    };
    Some(
        count::requests(&object, at, config).unwrap_or_else(|problem| {
            ctx.error(&format!("{kind} `{name}`: {problem}"), Some(&place()));
            Vec::new()
        }),
    )
}
