//! Copies the labels for billing from the TrainJob to every pod.

use trainyard_sdk::{Context, Failure, Transform};

/// The label of the team.
const TEAM: &str = "example.com/team";
/// The annotation of the cost center.
const COST_CENTER: &str = "example.com/cost-center";

/// The plugin.
pub struct Team;

trainyard_sdk::plugin!(Team: transform);

impl Transform for Team {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let job = ctx.job();
        let team = job.label(TEAM).unwrap_or_else(|| job.namespace());
        let cost_center = job.annotation(COST_CENTER);
        ctx.because("the TrainJob's team");
        ctx.info().set_label(TEAM, &team);
        for pod_set in ctx.info().pod_sets() {
            pod_set.set_pod_label(TEAM, &team);
            if let Some(cost_center) = &cost_center {
                pod_set.set_pod_annotation(COST_CENTER, cost_center);
            }
        }
        Ok(())
    }
}
