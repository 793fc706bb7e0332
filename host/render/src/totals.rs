//! Limits of what the plugins of one TrainJob add in total. Each container costs time when the JobSet is rendered, and each object in every
//! reconcile, whichever plugin added it.

use std::collections::BTreeMap;

use trainyard_model::{
    limits::Limits,
    pipeline::Stage,
    plugin_info::PluginId,
    record::{Field, Owner},
    session::Session,
};

use crate::problem::Problem;

/// Checks the containers that plugins added to the record.
///
/// # Errors
/// If there are more than the largest limit of a plugin.
pub(crate) fn check_containers(session: &Session, plan: &[Stage<'_>]) -> Result<(), Vec<Problem>> {
    let (record, base) = (session.record(), session.base());
    let mut added: BTreeMap<&PluginId, u64> = BTreeMap::new();
    for (set, position) in record.pod_sets.iter().zip(0u32..) {
        let base = base.pod_set(position);
        for list in [Field::InitContainers, Field::Containers] {
            for entry in set.fields.all(list).iter() {
                let is_new = base.is_none_or(|base| base.fields.get(list, &entry.key).is_none());
                let stage = plan
                    .iter()
                    .find(|stage| entry.owner == Owner::Plugin(stage.rank));
                if let Some(stage) = stage.filter(|_| is_new) {
                    *added.entry(&stage.plugin.info().id).or_default() += 1;
                }
            }
        }
    }
    check_total("containers", &added, most(plan, |limits| limits.containers))
}

/// Checks the objects that plugins emitted.
///
/// # Errors
/// If there are more than the largest limit of a plugin.
pub(crate) fn check_objects(session: &Session, plan: &[Stage<'_>]) -> Result<(), Vec<Problem>> {
    let mut added: BTreeMap<&PluginId, u64> = BTreeMap::new();
    for emitted in session.emitted() {
        *added.entry(&emitted.plugin).or_default() += 1;
    }
    check_total("objects", &added, most(plan, |limits| limits.objects))
}

/// Returns the largest limit of a plugin, because an operator who raises the limit of one plugin expects its TrainJobs to use it.
fn most(plan: &[Stage<'_>], limit: impl Fn(&Limits) -> u64) -> u64 {
    let limits = plan
        .iter()
        .map(|stage| &stage.plugin.info().settings.limits);
    limits.map(limit).max().unwrap_or_default()
}

fn check_total(
    what: &str,
    added: &BTreeMap<&PluginId, u64>,
    most: u64,
) -> Result<(), Vec<Problem>> {
    let all: u64 = added.values().sum();
    if all <= most {
        return Ok(());
    }
    let each: Vec<_> = added
        .iter()
        .map(|(plugin, count)| format!("{plugin}: {count}"))
        .collect();
    Err(vec![Problem::Invariant {
        place: what.to_owned(),
        message: format!(
            "the plugins of this TrainJob add {all} in total ({}), but at most {most} are allowed; exclude one of them, or raise `limits.{what}` of one in its PolicyPlugin",
            each.join(", ")
        ),
    }])
}
