//! Lets a batch scheduler start the pods of a TrainJob together or not at all. The scheduler reads a Group, which has the TrainJob's name,
//! and the label of the pods that belong to it.

use trainyard_sdk::{Build, Config, Context, Failure, Transform, json::object};

/// The API of the scheduler's object.
const API: &str = "scheduling.example.com/v1";
const KIND: &str = "Group";
/// The object has the TrainJob's name, without a suffix.
const SUFFIX: &str = "";
/// The label of the pods. Its value is the object's name.
const LABEL: &str = "scheduling.example.com/group";

/// `podGroupPolicy.plugin.config` of a runtime.
#[derive(Config, Debug)]
pub struct SchedulerConfig {
    /// The scheduler of the pods for which the runtime sets none.
    #[config(default = "batch-scheduler", min_length = 1)]
    pub scheduler_name: String,
    /// The queue in which the TrainJob waits.
    #[config(min_length = 1)]
    pub queue: Option<String>,
}

/// The plugin.
pub struct Scheduler;

trainyard_sdk::plugin!(Scheduler: transform, build; config = SchedulerConfig);

impl Transform for Scheduler {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<SchedulerConfig>()?;
        let gang = ctx.gang()?;
        let group = ctx.objects().name(API, KIND, SUFFIX, None);
        ctx.because("the scheduler starts all pods of this group together");
        for set in gang.group() {
            set.join_by_label(ctx, LABEL, &group);
        }
        ctx.because("`schedulerName` in the configuration of trainyard-template-scheduler");
        gang.default_scheduler(&config.scheduler_name);
        Ok(())
    }
}

impl Build for Scheduler {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<SchedulerConfig>()?;
        let gang = ctx.gang()?;
        let group = ctx.objects().emit(API, KIND, SUFFIX, None);
        // A scheduler that has counted the pods must not see another number.
        group.set_apply("while-suspended");
        group.report_while("phase/Pending", "the group waits in its queue");
        let queue = config.queue.as_deref().map(trainyard_sdk::json::quoted);
        let spec = [
            ("minMembers", Some(gang.size().to_string())),
            ("resources", Some(gang.requests_json())),
            ("queue", queue),
        ];
        let spec = spec
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)));
        group.set_body(&object([("spec", object(spec))]));
        Ok(())
    }
}
