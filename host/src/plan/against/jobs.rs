//! What a change would mean for TrainJobs and runtimes.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use trainyard_model::{deadline::Deadline, names::without_digests, text::clean};
use trainyard_render::{InputJob, Rendered, RenderedObject, Renderer, Stopped};

use super::AddedRemoved;
use crate::{
    args::InputArgs,
    field_changes::{FieldChange, Found, changes, objects_of, shown, who_set},
    input::{self, Admission},
    load::LoadedPlugins,
    output::Progress,
    report::ErrorList,
};

/// What the change would mean for a TrainJob, or for a runtime that no TrainJob of the input names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobImpact {
    /// The TrainJob or the runtime.
    name: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// How the two results differ.
#[derive(Serialize)]
#[serde(
    tag = "outcome",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum Outcome {
    /// Both have the same fields and warnings.
    Same,
    /// Fields or warnings differ.
    Differs {
        fields: Vec<ChangedField>,
        warnings: AddedRemoved<String>,
    },
    /// Only the result after the change is a refusal.
    Refused { errors: Vec<String> },
    /// Only the result now is a refusal.
    Accepted,
    /// Both are refusals.
    RefusedAlready {
        errors: Vec<String>,
        /// Whether the errors would be others.
        #[serde(rename = "otherErrors")]
        has_other: bool,
    },
}

/// A field that would change.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangedField {
    object: String,
    path: String,
    now: Option<Value>,
    then: Option<Value>,
    /// What would set the field, or what sets it now if nothing would.
    #[serde(skip_serializing_if = "Option::is_none")]
    set_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Renders the TrainJobs of the input now and after the change, and for each runtime without a TrainJob that is accepted now one that only
/// names it. Also returns the errors of the input itself.
pub(super) fn compare(
    args: &InputArgs,
    input: Admission,
    now: &LoadedPlugins,
    then: &Renderer,
) -> Result<(Vec<JobImpact>, ErrorList), ErrorList> {
    let Admission {
        mut objects,
        failure,
        ..
    } = input;
    objects.extend(input::stand_ins(&objects, args.namespace())?);
    let (mut catalog, mut failure) = input::catalog(objects, failure);
    catalog.jobs.retain(input::is_ours);
    let progress = Progress::new("rendering", catalog.jobs.len());
    let (mut impacts, mut covered) = (Vec::new(), BTreeSet::new());
    let missing = catalog.without_runtime.iter();
    missing.for_each(|missing| failure.add(missing));
    let one = |job: &InputJob| {
        let render = |renderer| catalog.render(job, renderer, &Deadline::after(args.limit.timeout));
        let outcome = Outcome::between(&render(&now.renderer), &render(then), job);
        progress.step();
        outcome
    };
    let done = now.run_in_order(&catalog.jobs, one, |job, outcome| {
        let runtime = job.runtime_location().to_string();
        match outcome {
            Ok(Ok(outcome)) if input::is_stand_in(job) => {
                // A runtime need not be able to run a TrainJob that only names it.
                let is_refused = matches!(
                    outcome,
                    Outcome::RefusedAlready {
                        has_other: false,
                        ..
                    }
                );
                if !is_refused && !covered.contains(&runtime) {
                    impacts.push(JobImpact::new(job, outcome));
                }
            }
            Ok(Ok(outcome)) => {
                if !matches!(outcome, Outcome::RefusedAlready { .. }) {
                    covered.insert(runtime);
                }
                impacts.push(JobImpact::new(job, outcome));
            }
            Ok(Err(overdue)) => failure.absorb(overdue),
            Err(panicked) => failure.add(format!("{}: {panicked}", name(job))),
        }
        Ok(())
    });
    progress.finish();
    done?;
    Ok((impacts, failure))
}

fn name(job: &InputJob) -> String {
    let reference = &job.train_job.runtime_ref;
    match input::is_stand_in(job) {
        true => format!("{} {}", reference.kind, reference.name),
        false => format!("TrainJob {}/{}", job.namespace, job.train_job.metadata.name),
    }
}

impl JobImpact {
    fn new(job: &InputJob, outcome: Outcome) -> Self {
        Self {
            name: name(job),
            outcome,
        }
    }

    /// Whether the change breaks the TrainJob or the runtime.
    pub(super) const fn is_broken(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::Refused { .. }
                | Outcome::RefusedAlready {
                    has_other: true,
                    ..
                }
        )
    }
}

impl Outcome {
    fn between(
        now: &Result<Rendered, Stopped>,
        then: &Result<Rendered, Stopped>,
        job: &InputJob,
    ) -> Result<Self, ErrorList> {
        let errors =
            |stopped| input::errors_of(job, stopped).map(|error| clean(&error.to_string()));
        let results = [now.as_ref().err(), then.as_ref().err()];
        for stopped in results.into_iter().flatten() {
            if stopped
                .problems()
                .iter()
                .any(|problem| problem.is_transient())
            {
                return Err(errors(stopped).collect());
            }
        }
        Ok(match (now, then) {
            (Ok(now), Ok(then)) => Self::of_renderings(now, then),
            (Ok(_), Err(stopped)) => Self::Refused {
                errors: errors(stopped).collect(),
            },
            (Err(_), Ok(_)) => Self::Accepted,
            (Err(before), Err(stopped)) => {
                let before = errors(before).map(|error| without_digests(&error));
                let errors: Vec<_> = errors(stopped).collect();
                let has_other = !before.eq(errors.iter().map(|error| without_digests(error)));
                Self::RefusedAlready { errors, has_other }
            }
        })
    }

    fn of_renderings(now: &Rendered, then: &Rendered) -> Self {
        let before: Vec<&Value> = now.all_objects().collect();
        let after: Vec<Found<'_>> = objects_of(then).collect();
        let fields = changes(&before, &after).into_iter();
        let fields: Vec<_> = fields
            .map(|change| ChangedField::new(change, now))
            .chain(applied(now, then))
            .collect();
        // Their texts may have the digest of the plugin.
        let texts = |rendered: &Rendered| {
            let warnings = rendered.warnings.iter();
            let texts = warnings.map(|warning| clean(&without_digests(&warning.to_string())));
            texts.collect::<Vec<_>>()
        };
        let warnings = AddedRemoved::between(texts(now), texts(then));
        match fields.is_empty() && warnings.is_empty() {
            true => Self::Same,
            false => Self::Differs { fields, warnings },
        }
    }
}

/// Returns the objects that would be applied at other times.
fn applied(now: &Rendered, then: &Rendered) -> Vec<ChangedField> {
    let id = |object: &RenderedObject| (object.kind.clone(), object.name.clone());
    let pairs = then.objects.iter().filter_map(|after| {
        let mut before = now.objects.iter();
        let before = before.find(|before| id(before) == id(after))?;
        (before.apply != after.apply).then_some((before, after))
    });
    let changed = pairs.map(|(before, after)| ChangedField {
        object: format!("{} {}", after.kind.kind(), after.name.as_str()),
        path: String::new(),
        now: Some(before.apply.name().into()),
        then: Some(after.apply.name().into()),
        set_by: Some(format!("{} {}", after.plugin.name, after.plugin.version)),
        reason: Some("when it is applied".to_owned()),
    });
    changed.collect()
}

impl ChangedField {
    fn new(change: FieldChange, now: &Rendered) -> Self {
        let FieldChange {
            object,
            path,
            expected,
            found,
            mut set_by,
            mut reason,
        } = change;
        if found.is_none()
            && let Ok(path) = path.parse()
        {
            (set_by, reason) = who_set(&path, now);
        }
        Self {
            object,
            path,
            now: expected,
            then: found,
            set_by,
            reason,
        }
    }

    fn push_lines(&self, out: &mut Vec<String>) {
        let path = match self.path.as_str() {
            "" => String::new(),
            path => format!(": {path}"),
        };
        out.push(format!("    {}{path}", self.object));
        out.push(format!("      now:    {}", shown(self.now.as_ref())));
        out.push(format!("      then:   {}", shown(self.then.as_ref())));
        let because = self.reason.as_ref().map(|reason| format!(" ({reason})"));
        let because = because.unwrap_or_default();
        let set_by = self.set_by.iter();
        out.extend(set_by.map(|by| format!("      set by: {by}{because}")));
    }
}

/// Adds a paragraph with a line for each TrainJob and runtime, and lines for what would change.
pub(super) fn push_lines(jobs: Option<&[JobImpact]>, out: &mut Vec<String>) {
    let Some(jobs) = jobs else { return };
    let same = jobs
        .iter()
        .filter(|job| matches!(job.outcome, Outcome::Same))
        .count();
    out.push(String::new());
    out.push(format!(
        "{same} of {} TrainJobs and runtimes would render the same",
        jobs.len()
    ));
    for JobImpact { name, outcome } in jobs {
        match outcome {
            Outcome::Same => {}
            Outcome::Differs { fields, warnings } => {
                out.push(format!("  {name} would change:"));
                fields.iter().for_each(|field| field.push_lines(out));
                let added = warnings
                    .added
                    .iter()
                    .map(|one| format!("    + warning: {one}"));
                let removed = warnings
                    .removed
                    .iter()
                    .map(|one| format!("    - warning: {one}"));
                out.extend(added.chain(removed));
            }
            Outcome::Refused { errors } => {
                out.push(format!("  {name} would be refused:"));
                out.extend(errors.iter().map(|error| format!("    {error}")));
            }
            Outcome::Accepted => {
                out.push(format!("  {name} is refused now, and would be accepted"))
            }
            Outcome::RefusedAlready { errors, has_other } => {
                let why = if *has_other {
                    ", with other errors"
                } else {
                    ""
                };
                out.push(format!("  {name} is refused now, and would still be{why}:"));
                out.extend(errors.iter().map(|error| format!("    {error}")));
            }
        }
    }
}
