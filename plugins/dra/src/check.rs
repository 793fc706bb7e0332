//! What a user may want to know of claims, once everything is in place.

use trainyard_sdk::{Context, PodSet};

use crate::{
    made::{API, TEMPLATE},
    uses,
};

/// Warns of what is no error and may still be a mistake.
pub(crate) fn check(ctx: &Context) {
    if !ctx.lookups().served(API, TEMPLATE) {
        return;
    }
    for set in ctx.info().pod_sets() {
        not_used(ctx, &set);
        shared(ctx, &set);
    }
    for set in ctx.info().nodes() {
        not_known(ctx, &set);
        if ctx.job().processes_per_node().is_none() {
            // Otherwise nobody looked at what the claims give.
            allocated_twice(ctx, &set);
        }
    }
}

/// A claim that no container uses: the devices are allocated for nothing.
fn not_used(ctx: &Context, set: &PodSet) {
    let containers = set.init_containers().into_iter().chain(set.containers());
    let containers: Vec<_> = containers.collect();
    for claim in set.resource_claims() {
        if !containers
            .iter()
            .any(|container| uses(container, &claim.name).is_some())
        {
            warn(
                ctx,
                set,
                &claim.name,
                "is used by no container: its devices are allocated for nothing",
            );
        }
    }
}

/// One claim by its name for several pods: they get the same devices, and run where these are.
fn shared(ctx: &Context, set: &PodSet) {
    for claim in set
        .resource_claims()
        .iter()
        .filter(|_| set.address_count() > 1)
    {
        if claim.resource_claim.is_some() {
            let pods = set.address_count();
            let message = format!(
                "is one ResourceClaim for {pods} pods, which share its devices and its node; a ResourceClaimTemplate gives each pod its own"
            );
            warn(ctx, set, &claim.name, &message);
        }
    }
}

fn warn(ctx: &Context, set: &PodSet, claim: &str, message: &str) {
    let set = set.name();
    let message = format!("the resource claim `{claim}` of replicated job `{set}` {message}");
    ctx.warn(&message, None);
}

/// Frameworks that have to know the number of processes can't be told.
fn not_known(ctx: &Context, set: &PodSet) {
    if ctx.job().processes_per_node().is_none() && set.accelerators().is_none() {
        let message = format!(
            "the devices of replicated job `{}` are known only once its pods are scheduled; give the number of processes, or each framework uses its own default",
            set.name()
        );
        ctx.warn(&message, Some("spec.trainer.numProcPerNode"));
    }
}

/// Accelerators from both ways of asking: each is allocated.
fn allocated_twice(ctx: &Context, set: &PodSet) {
    let devices = set.devices();
    let accelerators = || devices.iter().filter(|device| device.accelerator);
    let resource = accelerators().find(|device| device.source.starts_with("resource/"));
    let claim = accelerators().find(|device| device.source.starts_with("resource-claim/"));
    if let (Some(resource), Some(claim)) = (resource, claim) {
        let message = format!(
            "replicated job `{}` gets accelerators twice, by {} and by {}; the resource alone counts for the number of processes",
            set.name(),
            resource.source,
            claim.source
        );
        ctx.warn(&message, Some("spec.trainer.resourcesPerNode"));
    }
}
