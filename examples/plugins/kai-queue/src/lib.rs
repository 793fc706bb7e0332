//! Starts the pods of a TrainJob together or not at all, in a queue of the KAI scheduler. The plugin emits the PodGroup and makes the pods its
//! members, so KAI's podgrouper does not form another one, which would also wait for pods that are created later, such as those that
//! initializers precede.

mod config;

use trainyard_sdk::{
    Build, Check, Context, Failure, Gang, PodSet, Transform,
    json::{object, quoted},
};

use self::config::{ClusterConfig, QueueConfig};

/// The API of PodGroups.
const API: &str = "scheduling.run.ai/v2alpha2";
const POD_GROUP: &str = "PodGroup";
/// The PodGroup of the gang has the TrainJob's name.
const GANG: &str = "";
/// The PodGroup of the pods that do not start together with the gang.
const OTHERS: &str = "-others";
/// The annotation of the PodGroup's pods. Its value is the PodGroup's name.
const MEMBER: &str = "pod-group-name";
/// The annotation of pods that KAI's podgrouper leaves alone.
const SKIP: &str = "kai.scheduler/skip-podgrouper";
/// The API of queues.
const QUEUES: &str = "scheduling.run.ai/v2";

/// The plugin.
pub struct KaiQueue;

trainyard_sdk::plugin!(KaiQueue: transform, build, check; config = QueueConfig; operator_config = ClusterConfig);

impl Transform for KaiQueue {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let gang = ctx.gang()?;
        let scheduler = scheduler(ctx)?;
        ctx.because("only this scheduler reads the PodGroup");
        gang.default_scheduler(&scheduler);
        ctx.because("KAI starts the pods of this PodGroup together");
        gang.group().for_each(|set| join(ctx, set, GANG));
        ctx.because("KAI starts each of these pods alone, because they are not created together with the gang");
        others(&gang, &scheduler).for_each(|set| join(ctx, set, OTHERS));
        Ok(())
    }
}

impl Build for KaiQueue {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let gang = ctx.gang()?;
        let config = ctx.job().config_as::<QueueConfig>()?;
        let class = gang.pod_sets().iter().find_map(priority_class);
        emit(ctx, GANG, &config, gang.size(), class, config.topology());
        let others: Vec<_> = others(&gang, &scheduler(ctx)?).collect();
        if !others.is_empty() {
            let class = others.into_iter().find_map(priority_class);
            // Each of these pods may be anywhere.
            emit(ctx, OTHERS, &config, 1, class, None);
        }
        Ok(())
    }
}

impl Check for KaiQueue {
    fn check(ctx: &Context) {
        // Transform and build have refused a TrainJob for which one of these fails.
        let (Ok(gang), Ok(config), Ok(scheduler)) = (
            ctx.gang(),
            ctx.job().config_as::<QueueConfig>(),
            scheduler(ctx),
        ) else {
            return;
        };
        for set in gang.group() {
            let found = set.scheduler_name().unwrap_or_default();
            if found != scheduler {
                let message = format!(
                    "is `{found}`, but only `{scheduler}` reads the PodGroup of the plugin kai-queue; remove it, or set `schedulerName` in the operator's configuration of kai-queue"
                );
                ctx.error(&message, Some(&set.path("schedulerName")));
            }
        }
        // KAI does not schedule a PodGroup without a queue, so the TrainJob waits for it.
        ctx.lookups().get(QUEUES, "Queue", &config.queue);
    }
}

fn scheduler(ctx: &Context) -> Result<String, Failure> {
    let cluster = ctx.job().operator_config_as::<ClusterConfig>()?;
    Ok(cluster.scheduler_name)
}

/// Makes the pods members of a PodGroup.
fn join(ctx: &Context, set: &PodSet, suffix: &str) {
    let group = ctx.objects().name(API, POD_GROUP, suffix, None);
    set.join_by_annotation(ctx, MEMBER, &group);
    set.join_by_annotation(ctx, SKIP, "true");
}

/// Returns the pod sets outside of the gang's group that KAI schedules, too.
fn others<'g>(gang: &'g Gang<'_>, scheduler: &str) -> impl Iterator<Item = &'g PodSet> {
    let others = gang.others().iter();
    others.filter(move |set| set.scheduler_name().as_deref() == Some(scheduler))
}

fn priority_class(set: &PodSet) -> Option<String> {
    set.priority_class().filter(|class| !class.is_empty())
}

fn emit(
    ctx: &Context,
    suffix: &str,
    config: &QueueConfig,
    members: u32,
    class: Option<String>,
    topology: Option<String>,
) {
    let spec = [
        ("minMember", Some(members.to_string())),
        ("queue", Some(quoted(&config.queue))),
        ("priorityClassName", class.as_deref().map(quoted)),
        ("preemptibility", config.preemptibility()),
        ("topologyConstraint", topology),
    ];
    let spec = spec
        .into_iter()
        .filter_map(|(member, value)| Some((member, value?)));
    let group = ctx.objects().emit(API, POD_GROUP, suffix, None);
    // A scheduler that has counted the members must not see other counts.
    group.set_apply("while-suspended");
    group.set_body(&object([("spec", object(spec))]));
}
