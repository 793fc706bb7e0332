//! The DRA policy: it adds claims of Dynamic Resource Allocation (KEP-4381) to the pods of the nodes and to the containers that use them,
//! and counts their devices, so that frameworks start the same number of processes.

mod check;
mod config;
mod count;
mod devices;
mod made;
mod wish;

use trainyard_sdk::{
    Build, Check, Container, Context, Failure, NODE, PodResourceClaim, PodSet, ResourceClaimUse,
    Transform, names::is_dns_label,
};

use self::{
    config::DraConfig,
    made::{API, TEMPLATE},
    wish::{Source, Wish, Wishes},
};

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
            refuse(ctx, &problem);
        }
        if !ctx.lookups().served(API, TEMPLATE) {
            return not_served(ctx, &wishes);
        }
        let config = ctx.job().operator_config_as::<DraConfig>()?;
        exclude(ctx);
        let nodes = ctx.info().nodes();
        if let (Some(wish), true) = (wishes.first(), nodes.is_empty()) {
            let message = "has no effect, because no replicated job of the runtime runs the nodes";
            return Err(Failure::from(message).at(&*wish.path));
        }
        for set in &nodes {
            for wish in &wishes {
                grant(ctx, set, wish);
            }
        }
        for set in ctx.info().pod_sets() {
            wire(ctx, &set);
        }
        for set in &nodes {
            devices::note(ctx, set, &wishes, &config);
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
        // Transform has refused an invalid configuration.
        if let Ok(config) = ctx.job().operator_config_as::<DraConfig>() {
            check::check(ctx, &config);
        }
    }
}

/// Refuses the TrainJob. The call continues, so that all errors are reported.
fn refuse(ctx: &Context, problem: &Failure) {
    ctx.error(&problem.message, problem.field.as_deref());
}

/// Without the API, requested claims are refused, and claims of the pods are left to the API server.
fn not_served(ctx: &Context, wishes: &[Wish]) -> Result<(), Failure> {
    let message = format!("the API server does not serve {API}, so there are no resource claims");
    match wishes.first() {
        Some(wish) => Err(Failure::from(message).at(&*wish.path)),
        None => {
            ctx.warn(
                &format!(
                    "{message}; the pods' own claims are left unchanged, and no devices are counted"
                ),
                None,
            );
            Ok(())
        }
    }
}

/// Removes the claims that the TrainJob excludes, with their uses.
fn exclude(ctx: &Context) {
    let excluded = wish::excluded(ctx);
    if excluded.is_empty() {
        return;
    }
    let of_runtime = Wishes::of_runtime(ctx).list;
    for name in excluded {
        let mut found = of_runtime.iter().any(|wish| wish.name == name);
        for set in ctx.info().pod_sets() {
            if set.resource_claims().iter().any(|claim| claim.name == name) {
                found = true;
                ctx.because("the TrainJob excludes this claim");
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

/// Adds a requested claim to the pods of a node, replacing one of that name, and its uses to the containers.
fn grant(ctx: &Context, set: &PodSet, wish: &Wish) {
    let (claim, template) = match &wish.source {
        Source::Claim(name) => (Some(name.clone()), None),
        Source::Template(name) => (None, Some(name.clone())),
        Source::Made(policy) => (None, Some(policy.name(ctx))),
    };
    let claim = PodResourceClaim {
        name: wish.name.clone(),
        resource_claim: claim,
        resource_claim_template: template,
    };
    ctx.because(&format!("requested by {}", wish.path));
    let claims = set.resource_claims();
    let before = claims.iter().find(|before| before.name == claim.name);
    if before.is_some_and(|before| *before != claim) {
        // The runtime's containers name requests of the runtime's claim, which the new one may not have.
        for container in containers(ctx, set) {
            if uses(&container, &wish.name).is_some_and(|one| one.request.is_some()) {
                container.put_resource_claim_use(&whole(&wish.name));
            }
        }
    }
    set.put_resource_claim(&claim);
    for (at, name) in wish.containers.iter().enumerate() {
        match set.container(name) {
            Some(container) if uses(&container, &wish.name).is_none() => {
                container.put_resource_claim_use(&whole(&wish.name));
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

/// A container's use of a whole claim.
fn whole(claim: &str) -> ResourceClaimUse {
    ResourceClaimUse {
        name: claim.to_owned(),
        request: None,
    }
}

/// Lets the node container use claims that no container uses, and checks all claims and uses.
fn wire(ctx: &Context, set: &PodSet) {
    let containers: Vec<_> = containers(ctx, set)
        .into_iter()
        .map(|container| (container.resource_claim_uses(), container))
        .collect();
    let claims = set.resource_claims();
    for claim in &claims {
        if !is_dns_label(&claim.name) {
            let message = "must have a name that is a DNS label: at most 63 of a-z, 0-9 and `-`";
            ctx.error(message, Some(&devices::claim_path(set, &claim.name)));
            continue;
        }
        let sources = [&claim.resource_claim, &claim.resource_claim_template];
        if sources.into_iter().flatten().count() != 1 {
            let message =
                "must have exactly one of `resourceClaimName` and `resourceClaimTemplateName`";
            ctx.error(message, Some(&devices::claim_path(set, &claim.name)));
        }
        let mut uses = containers.iter().flat_map(|(uses, _)| uses);
        let is_used = uses.any(|one| one.name == claim.name);
        if let (false, Some(node)) = (is_used, set.container(NODE)) {
            ctx.because("no container of the pods uses this claim");
            node.put_resource_claim_use(&whole(&claim.name));
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

/// The path of a container's use of a claim: in the TrainJob or in the runtime.
fn used_at(ctx: &Context, set: &PodSet, container: &Container, claim: &str) -> String {
    let spec = ctx.job().spec();
    let claims = "/trainer/resourcesPerNode/claims";
    for at in 0..spec.len(claims) {
        let name = spec.text(&format!("{claims}/{at}/name"));
        if container.name() == NODE && name.as_deref() == Some(claim) {
            return format!("spec.trainer.resourcesPerNode.claims[{at}]");
        }
    }
    set.path_in(container, "resources.claims")
}

/// The containers of the runtime, without those that other plugins add.
fn containers(ctx: &Context, set: &PodSet) -> Vec<Container> {
    let Some(base) = ctx.base_of(set) else {
        return Vec::new();
    };
    let all = base.init_containers().into_iter().chain(base.containers());
    all.filter_map(|container| set.container(&container.name()))
        .collect()
}

/// A container's use of a claim. `None` if it does not use it.
pub(crate) fn uses(container: &Container, claim: &str) -> Option<ResourceClaimUse> {
    let mut uses = container.resource_claim_uses().into_iter();
    uses.find(|one| one.name == claim)
}
