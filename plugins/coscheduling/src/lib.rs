//! The coscheduling policy: kube-scheduler with the plugin of that name starts the pods of a PodGroup together or not at all. This plugin
//! emits the PodGroup of the pods that start together, and labels them and those that follow them.

use trainyard_sdk::{Build, Config, Context, Failure, Transform, json::object};

/// The API of PodGroups.
const API: &str = "scheduling.x-k8s.io/v1alpha1";
const POD_GROUP: &str = "PodGroup";
/// The PodGroup has the TrainJob's name.
const SUFFIX: &str = "";
/// The label of the group's pods. Its value is the PodGroup's name.
const LABEL: &str = "scheduling.x-k8s.io/pod-group";

/// The coscheduling policy.
pub struct Coscheduling;

trainyard_sdk::plugin!(Coscheduling: transform, build; config = CoschedulingConfig; operator_config = SchedulerConfig);

/// `podGroupPolicy.coscheduling`.
#[derive(Config, Debug)]
struct CoschedulingConfig {
    /// How long the scheduler waits until it can schedule all pods, in seconds. 0 is the scheduler's own default.
    #[config(default = 60, minimum = 0)]
    schedule_timeout_seconds: i32,
}

/// The operator's configuration.
#[derive(Config, Debug)]
struct SchedulerConfig {
    /// The scheduler of the group's pods for which the runtime sets none, such as `scheduler-plugins-scheduler`.
    #[config(min_length = 1, max_length = 253)]
    scheduler_name: Option<String>,
}

impl Transform for Coscheduling {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let gang = ctx.gang()?;
        let group = ctx.objects().name(API, POD_GROUP, SUFFIX, None);
        ctx.because("the scheduler starts all pods of this PodGroup together");
        for set in gang.pod_sets() {
            set.join_by_label(ctx, LABEL, &group);
        }
        ctx.because("the resources of this PodGroup include those of this pod");
        for set in gang.followers() {
            set.join_by_label(ctx, LABEL, &group);
        }
        ctx.because("the scheduler would count this pod in the PodGroup, although it is not created together with the others");
        for set in gang.others() {
            set.leave_by_label(ctx, LABEL);
        }
        let operator = ctx.job().operator_config_as::<SchedulerConfig>()?;
        let scheduler = operator.scheduler_name.as_deref();
        if let Some(scheduler) = scheduler {
            ctx.because("`schedulerName` in the operator's configuration of coscheduling");
            gang.default_scheduler(scheduler);
        }
        gang.warn_of_scheduler(ctx, "coscheduling", scheduler);
        Ok(())
    }
}

impl Build for Coscheduling {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let gang = ctx.gang()?;
        let config = ctx.job().config_as::<CoschedulingConfig>()?;
        let group = ctx.objects().emit(API, POD_GROUP, SUFFIX, None);
        // A scheduler that has counted the members must not see other counts.
        group.set_apply("while-suspended");
        let spec = object([
            ("minMember", gang.size().to_string()),
            ("minResources", gang.requests_json()),
            (
                "scheduleTimeoutSeconds",
                config.schedule_timeout_seconds.to_string(),
            ),
        ]);
        group.set_body(&object([("spec", spec)]));
        Ok(())
    }
}
