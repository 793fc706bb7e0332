//! The Volcano policy: the batch scheduler Volcano starts the pods of a PodGroup together or not at all. This plugin emits the PodGroup of
//! the pods that start together, with its queue, priority and network topology, and annotates them and those that follow them.

mod config;
mod priority;

use trainyard_sdk::{
    Build, Check, Context, Failure, Gang, Transform,
    json::{object, quoted},
    names::{DNS_SUBDOMAIN, is_dns_subdomain},
};

use self::{
    config::{SchedulerConfig, VolcanoConfig},
    priority::Classes,
};

/// The API of PodGroups.
const API: &str = "scheduling.volcano.sh/v1beta1";
const POD_GROUP: &str = "PodGroup";
/// The PodGroup has the TrainJob's name.
const SUFFIX: &str = "";
/// The annotation of the group's pods. Its value is the PodGroup's name.
const ANNOTATION: &str = "scheduling.k8s.io/group-name";
/// The annotation of the JobSet with the name of the queue, and of pods outside of the group.
const QUEUE: &str = "scheduling.volcano.sh/queue-name";

/// The Volcano policy.
pub struct Volcano;

trainyard_sdk::plugin!(Volcano: transform, build, check; config = VolcanoConfig; operator_config = SchedulerConfig);

impl Transform for Volcano {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let gang = ctx.gang()?;
        let group = ctx.objects().name(API, POD_GROUP, SUFFIX, None);
        ctx.because("Volcano starts all pods of this PodGroup together");
        for set in gang.pod_sets() {
            set.join_by_annotation(ctx, ANNOTATION, &group);
        }
        ctx.because("the resources of this PodGroup include those of this pod");
        for set in gang.followers() {
            set.join_by_annotation(ctx, ANNOTATION, &group);
        }
        ctx.because("Volcano would count this pod in the PodGroup, although it is not created together with the others");
        for set in gang.others() {
            set.leave_by_annotation(ctx, ANNOTATION);
        }
        set_queue_of_others(ctx, &gang);
        let operator = ctx.job().operator_config_as::<SchedulerConfig>()?;
        let scheduler = operator.scheduler_name.as_deref();
        if let Some(scheduler) = scheduler {
            ctx.because("`schedulerName` in the operator's configuration of volcano");
            gang.default_scheduler(scheduler);
        }
        gang.warn_of_scheduler(ctx, "volcano", scheduler);
        Ok(())
    }
}

/// Sets the queue of the pods outside of the group, unless they have one. Volcano creates PodGroups for them, whose queue is that of the pod,
/// or else its default queue.
fn set_queue_of_others(ctx: &Context, gang: &Gang<'_>) {
    let Some(queue) = ctx.info().annotation(QUEUE) else {
        return;
    };
    ctx.because("Volcano creates another PodGroup for these pods, with this queue");
    for set in gang.others() {
        if set.pod_annotation(QUEUE).is_none() {
            set.set_pod_annotation(QUEUE, &queue);
        }
    }
}

impl Build for Volcano {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let gang = ctx.gang()?;
        let config = ctx.job().config_as::<VolcanoConfig>()?;
        let mut spec = vec![
            ("minMember", gang.size().to_string()),
            ("minResources", gang.requests_json()),
        ];
        if let Some(queue) = ctx.info().annotation(QUEUE) {
            spec.push(("queue", quoted(&queue)));
        }
        if let Some(class) = Classes::of(gang.pod_sets()).of_group() {
            spec.push(("priorityClassName", quoted(class)));
        }
        if let Some(topology) = config.network_topology {
            spec.push(("networkTopology", topology.json()));
        }
        let group = ctx.objects().emit(API, POD_GROUP, SUFFIX, None);
        // A scheduler that has counted the members must not see other counts.
        group.set_apply("while-suspended");
        group.set_body(&object([("spec", object(spec))]));
        Ok(())
    }
}

impl Check for Volcano {
    fn check(ctx: &Context) {
        check_queue(ctx);
        // Transform has refused a TrainJob without a gang.
        if let Ok(gang) = ctx.gang() {
            Classes::of(gang.pod_sets()).warn_of_several(ctx);
        }
        priority::require_classes(ctx);
    }
}

/// Refuses a queue that cannot exist. Volcano would never start the pods.
fn check_queue(ctx: &Context) {
    let Some(queue) = ctx.info().annotation(QUEUE) else {
        return;
    };
    let message = if queue.is_empty() {
        "must not be empty; remove it to use Volcano's default queue, or set it to the name of a queue".to_owned()
    } else if !is_dns_subdomain(&queue) {
        format!("must be the name of a queue: {DNS_SUBDOMAIN}; found `{queue}`")
    } else {
        return;
    };
    ctx.error(
        &message,
        Some(&format!("spec.template.metadata.annotations[{QUEUE}]")),
    );
}
