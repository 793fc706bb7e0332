//! Warnings about claims.

use trainyard_sdk::{Context, NODE, PodSet};

use crate::{
    config::{DeviceKind, DraConfig},
    devices::{self, Used, claim_path},
    made::{API, TEMPLATE},
    uses,
    wish::{MAX_DEVICES, Wishes},
};

/// Warns about possible mistakes.
pub(crate) fn check(ctx: &Context, config: &DraConfig) {
    if !ctx.lookups().served(API, TEMPLATE) {
        return;
    }
    for set in ctx.info().pod_sets() {
        not_used(ctx, &set);
        shared(ctx, &set);
    }
    if ctx.job().processes_per_node().is_some() {
        // Claims were not counted.
        return;
    }
    let wishes = Wishes::read(ctx).list;
    for set in ctx.info().nodes() {
        not_known(ctx, &set);
        allocated_twice(ctx, &set);
        if let Some(node) = set.container(NODE) {
            let counted = devices::of_node(ctx, &set, &node, &wishes, config);
            // Transform has refused claims that cannot be counted.
            let used: Vec<_> = counted.into_iter().filter_map(Result::ok).collect();
            no_accelerator(ctx, &set, &used);
            used.iter().for_each(|used| amount(ctx, &set, used));
        }
    }
}

/// Warns about claims that no container uses.
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
                "is not used by any container; remove it, because its devices are allocated anyway",
            );
        }
    }
}

/// Warns about a ResourceClaim that several pods share.
fn shared(ctx: &Context, set: &PodSet) {
    for claim in set
        .resource_claims()
        .iter()
        .filter(|_| set.address_count() > 1)
    {
        if claim.resource_claim.is_some() {
            let pods = set.address_count();
            let message = format!(
                "is one ResourceClaim for {pods} pods, so they share its devices and run on one node; use a ResourceClaimTemplate to give each pod its own"
            );
            warn(ctx, set, &claim.name, &message);
        }
    }
}

fn warn(ctx: &Context, set: &PodSet, claim: &str, message: &str) {
    let name = set.name();
    let message = format!("the resource claim `{claim}` of replicated job `{name}` {message}");
    ctx.warn(&message, Some(&claim_path(set, claim)));
}

/// Warns if the number of processes cannot be derived from devices.
fn not_known(ctx: &Context, set: &PodSet) {
    if set.accelerators().is_none() {
        let message = format!(
            "the number of devices of replicated job `{}` is known only after scheduling; set the number of processes, or the framework uses its own default",
            set.name()
        );
        ctx.warn(&message, Some("spec.trainer.numProcPerNode"));
    }
}

/// Warns about device classes of an unknown kind without accelerators, because the number of processes is then the number of CPUs.
fn no_accelerator(ctx: &Context, set: &PodSet, used: &[Used]) {
    if set.accelerators() != Some(0) {
        return;
    }
    let counted = used.iter().flat_map(|used| used.requests.iter().flatten());
    let unknown = counted.filter(|counted| counted.kind == DeviceKind::Unknown);
    let mut classes: Vec<_> = unknown.flat_map(|counted| &*counted.classes).collect();
    classes.sort();
    classes.dedup();
    if !classes.is_empty() {
        let classes: Vec<_> = classes
            .into_iter()
            .map(|class| format!("`{class}`"))
            .collect();
        let message = format!(
            "the devices of replicated job `{}` are of classes that are not known as accelerators ({}), so its number of CPUs is the number of processes; set the number of processes, or ask the operator to list the classes as accelerators",
            set.name(),
            classes.join(", ")
        );
        ctx.warn(&message, Some("spec.trainer.numProcPerNode"));
    }
}

/// Warns about a claim for no device, or for more than the scheduler allocates.
fn amount(ctx: &Context, set: &PodSet, used: &Used) {
    let Some(requests) = &used.requests else {
        return;
    };
    let name = &used.claim.name;
    let counts = requests.iter().filter_map(|counted| counted.count);
    let devices = counts.fold(0u32, u32::saturating_add);
    let message = if requests.is_empty() && used.is_first {
        format!("the resource claim `{name}` requests no device")
    } else if devices > MAX_DEVICES {
        format!(
            "the resource claim `{name}` requests {devices} devices; the scheduler allocates at most {MAX_DEVICES} for a claim, so the pods would never be scheduled"
        )
    } else {
        return;
    };
    ctx.warn(&message, Some(&claim_path(set, name)));
}

/// Warns about accelerators that are requested both as resources and by claims, because both are allocated.
fn allocated_twice(ctx: &Context, set: &PodSet) {
    let devices = set.devices();
    let accelerators = || devices.iter().filter(|device| device.accelerator);
    let resource = accelerators().find(|device| device.source.starts_with("resource/"));
    let claim = accelerators().find(|device| device.source.starts_with("resource-claim/"));
    if let (Some(resource), Some(claim)) = (resource, claim) {
        let message = format!(
            "replicated job `{}` requests accelerators twice, by {} and by {}; only the resource counts toward the number of processes",
            set.name(),
            resource.source,
            claim.source
        );
        ctx.warn(&message, Some("spec.trainer.resourcesPerNode"));
    }
}
