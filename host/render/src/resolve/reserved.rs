//! Checks env vars that plugins reserve (`reservedEnv`), and values that plugins replace.
//!
//! Reserved env vars in a TrainJob are errors, because they would have no effect and the user can remove them, unless the plugin sets the
//! same value. In a runtime they are warnings, because the user cannot change the runtime, and the reference runs such TrainJobs without a
//! message. So are mounts, because the path may be the plugin's by default only.

use std::collections::BTreeMap;

use trainyard_api::{FieldPath, TrainJob};
use trainyard_model::{
    claims::{Access, Variables, Verb},
    manifest::ReservedEnv,
    plugin_info::PluginId,
    record::{Change, Datum, Field, Owner, Record},
    session::{Committed, Session},
};

use crate::{
    journal::Journal,
    json::text,
    place::path_of,
    problem::{InputObject, Problem, Warning},
    select::Active,
};

/// The TrainJob's own env vars that plugins reserve, after the plugins ran.
#[derive(Default)]
pub(crate) struct OfTrainer {
    /// Those with another value than the plugin sets.
    pub(crate) problems: Vec<Problem>,
    /// Those with a value that the plugin keeps.
    pub(crate) warnings: Vec<Warning>,
}

/// Compares the TrainJob's own env vars with those that plugins set.
pub(crate) fn of_trainer(job: &TrainJob, active: &[Active], session: &Session) -> OfTrainer {
    let mut found = OfTrainer::default();
    let Some(trainer) = job
        .trainer
        .as_ref()
        .filter(|trainer| !trainer.env.is_empty())
    else {
        return found;
    };
    let path = FieldPath::of(["spec", "trainer", "env"]);
    let mut owners = BTreeMap::new();
    for Active { plugin, config, .. } in active {
        let reserved = plugin.manifest.reserved_env.iter();
        for name in reserved
            .filter(|some| some.applies(config))
            .flat_map(ReservedEnv::names)
        {
            owners.entry(name.as_str()).or_insert(plugin);
        }
    }
    for (at, var) in trainer.env.iter().enumerate() {
        let Some(plugin) = owners.get(var.name.as_str()) else {
            continue;
        };
        let path = path.index(at).field("name");
        if !is_same(session, &var.name) {
            found.problems.push(refused(path, &var.name, &plugin.id));
            continue;
        }
        let message = format!(
            "{} is also set by the plugin {}, which accepts this value; a value that it cannot use is refused",
            var.name, plugin.id
        );
        found.warnings.push(Warning {
            about: InputObject::TrainJob,
            field: Some(path.to_string()),
            message,
            plugin: None,
        });
    }
    found
}

/// Whether plugins keep the TrainJob's value of an env var.
fn is_same(session: &Session, name: &str) -> bool {
    let committed = session.committed().iter();
    let changes = committed.flat_map(|Committed { writes, .. }| writes.iter());
    let mut values = changes.filter_map(|write| {
        let change = &write.change;
        let old = change.old.as_ref()?;
        let is_train_jobs = change.entry.field == Field::Env
            && &*change.entry.key == name
            && old.owner == Owner::TrainJob;
        is_train_jobs.then(|| change.new.as_ref() == Some(&old.datum))
    });
    let first = values.next();
    first == Some(true) && values.all(|is_same| is_same)
}

/// Returns the problems of env vars that the TrainJob's patches set in containers where a plugin sets them.
pub(crate) fn of_patches(record: &Record, journal: &Journal, active: &[Active]) -> Vec<Problem> {
    let changes = journal.by_patches();
    let set: Vec<(&Change, &FieldPath)> = changes
        .filter(|(change, _)| change.entry.field == Field::Env && change.new.is_some())
        .collect();
    let mut problems = Vec::new();
    for Active { plugin, config, .. } in active {
        let reserved = set
            .iter()
            .filter(|(change, _)| plugin.reserves(&change.entry.key, config));
        let mut reserved = reserved.peekable();
        if reserved.peek().is_none() {
            continue;
        }
        let variables = Variables {
            job: record.job_name.clone(),
            config: config.clone(),
        };
        let mut access = Access::new(plugin.claims.clone(), variables, record);
        for (change, field) in reserved {
            let (scope, name) = (change.entry.scope, &change.entry.key);
            let is_written = access.find(record, Verb::Write, scope, Field::Env, Some(&**name));
            if is_written.is_some() {
                problems.push(refused(field.field("name"), name, &plugin.id));
            }
        }
    }
    problems
}

fn refused(path: FieldPath, name: &str, plugin: &PluginId) -> Problem {
    let message = format!("{name} is set by the plugin {plugin} and cannot be set here; remove it");
    Problem::job(path, message)
}

/// Returns warnings of the runtime's env vars, and of mounts of the runtime and of patches, that a plugin set to another value.
pub(crate) fn replaced_by_plugins(session: &Session) -> Vec<Warning> {
    let changes = session.committed().iter();
    let changes = changes.flat_map(|Committed { plugin, writes }| {
        writes.iter().map(move |write| (plugin, &write.change))
    });
    let warning = |(plugin, change): (&PluginId, &Change)| {
        let (old, new) = (change.old.as_ref()?, change.new.as_ref()?);
        if old.datum == *new {
            return None;
        }
        let message = match (change.entry.field, old.owner) {
            (Field::Env, Owner::Runtime) => {
                "has no effect, because a plugin sets another value; remove it from the runtime"
                    .to_owned()
            }
            (Field::Mounts, Owner::Runtime | Owner::Patch) => {
                let volume = |mount: &Datum| Some(text(mount.as_json()?, "name").to_owned());
                format!(
                    "mounts the volume `{}` at `{}`, which has no effect, because a plugin mounts `{}` there; use another path, or remove the mount",
                    volume(&old.datum)?,
                    change.entry.key,
                    volume(new)?,
                )
            }
            _ => return None,
        };
        let path = path_of(session.record(), &change.entry)?;
        Some(Warning {
            about: InputObject::Runtime,
            field: Some(FieldPath::of(["spec", "template"]).join(&path).to_string()),
            message,
            plugin: Some(plugin.clone()),
        })
    };
    changes.filter_map(warning).collect()
}
