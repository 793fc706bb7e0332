//! The text output: each object, what the rows mean, and a summary that fits one screen.

use serde_json::Value;

use super::{
    objects::{ComparedWith, Effect, Finding, NamedReport, Outcome},
    report::DiffReport,
    rows::{Meaning, RowReport},
};
use crate::{
    field_changes::shown,
    output::{Table, counted},
};

/// The most findings of one row that are printed for an object. JSON has all of them.
const MOST_OF_ROW: usize = 3;

/// The most rows of the summary.
const MOST_ROWS: usize = 20;

/// Returns the lines.
pub(super) fn lines(report: &DiffReport, only_summary: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if !only_summary {
        let with_findings = report.objects.iter();
        let with_findings = with_findings.filter(|object| !object.report.findings.is_empty());
        for object in with_findings {
            lines.push(title(object));
            lines.extend(findings(object));
            lines.push(String::new());
        }
        for row in &report.rows {
            if let Some(meaning) = &row.meaning {
                lines.extend(meanings(&row.id, meaning));
                lines.push(String::new());
            }
        }
    }
    lines.extend(summary(report));
    lines
}

fn title(object: &NamedReport) -> String {
    let place = object
        .namespace
        .as_ref()
        .map(|namespace| format!("{namespace}/"));
    let name = format!(
        "{} {}{}",
        object.kind,
        place.unwrap_or_default(),
        object.name
    );
    if !object.is_train_job() {
        return name;
    }
    let state = object.report.state.map(|state| format!("{state}, "));
    let with = match &object.report.compared_with {
        ComparedWith::JobSet => {
            "compared with the objects that the Kubeflow Trainer made".to_owned()
        }
        ComparedWith::Nothing => "has no JobSet to compare with".to_owned(),
        ComparedWith::Trainyard => {
            "rendered by Trainyard, so there is nothing to compare with".to_owned()
        }
        ComparedWith::Unknown => "it is not known which controller made its JobSet".to_owned(),
        ComparedWith::OtherManager(manager) => {
            format!("managed by {manager}, which creates its objects")
        }
    };
    format!("{name} ({}{with})", state.unwrap_or_default())
}

fn findings(object: &NamedReport) -> Vec<String> {
    let mut lines = Vec::new();
    let all = &object.report.findings;
    // Those of one row stand together, in the order in which the rows are found first.
    let mut groups: Vec<(&[String], Effect, Vec<&Finding>)> = Vec::new();
    for finding in all {
        let rows = finding.rows.as_slice();
        match groups
            .iter_mut()
            .find(|(of, effect, _)| *of == rows && *effect == finding.effect)
        {
            Some((.., group)) => group.push(finding),
            None => groups.push((rows, finding.effect, vec![finding])),
        }
    }
    for (rows, effect, group) in groups {
        let rows = match rows {
            [] if matches!(effect, Effect::Warns | Effect::NotCompared) => String::new(),
            [] => "(no row) ".to_owned(),
            rows => format!("{} ", rows.join(", ")),
        };
        let head = format!("  {:<12}  {rows}", effect.text());
        // What no row lists, and warnings, are each printed.
        let most = match effect {
            Effect::Differs if !rows.starts_with('(') => MOST_OF_ROW,
            _ => usize::MAX,
        };
        for finding in group.iter().take(most) {
            lines.push(format!("{head}{}", detail(finding)).trim_end().to_owned());
        }
        let more = group.len().saturating_sub(most);
        if more > 0 {
            lines.push(format!("{head}and {}", counted(more, "more field")));
        }
    }
    lines
}

fn detail(finding: &Finding) -> String {
    let parts = [&finding.object, &finding.field];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    let place = parts.cloned().collect::<Vec<_>>().join(": ");
    let values = finding.reference.is_some() || finding.trainyard.is_some();
    let what = match values {
        true => format!(
            "{} with the Kubeflow Trainer, {} with Trainyard",
            value(finding.reference.as_ref()),
            value(finding.trainyard.as_ref())
        ),
        false => finding.message.clone(),
    };
    match (place.is_empty(), what.is_empty()) {
        (true, _) => what,
        (_, true) => place,
        _ => format!("{place}: {what}"),
    }
}

/// The most characters of a value.
const LONGEST_VALUE: usize = 120;

fn value(value: Option<&Value>) -> String {
    let text = shown(value);
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn meanings(id: &str, meaning: &Meaning) -> Vec<String> {
    let line = |what: &str, text: &str| format!("  {what:<18}{text}");
    let kueue = match meaning.kueue {
        true => "sees the difference (docs/kueue.md)",
        false => "does not see it",
    };
    vec![
        format!("row {id} ({})", meaning.page),
        line("Kubeflow Trainer:", &meaning.reference),
        line("Trainyard:", &meaning.trainyard),
        line("why:", &meaning.why),
        line(
            "what to do:",
            meaning
                .what_to_do
                .unwrap_or("Nothing, if what Trainyard does is what you want."),
        ),
        line("Kueue:", kueue),
    ]
}

fn summary(report: &DiffReport) -> Vec<String> {
    let mut lines = Vec::new();
    if !report.rows.is_empty() {
        let mut table = Table::new(&["row", "effect", "TrainJobs", "runtimes", "with Trainyard"]);
        for row in report.rows.iter().take(MOST_ROWS) {
            table.row([
                name(row),
                row.effect.text(),
                &row.train_jobs.to_string(),
                &row.runtimes.to_string(),
                &short(row),
            ]);
        }
        lines.extend(table.lines());
        let more = report.rows.len().saturating_sub(MOST_ROWS);
        if more > 0 {
            lines.push(format!(
                "and {}; -o json has all of them",
                counted(more, "more row")
            ));
        }
        lines.push(String::new());
    }
    let gaps = report.not_read.iter();
    lines.extend(gaps.map(|gap| format!("not compared: {gap}")));
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    let (jobs, runtimes): (Vec<_>, Vec<_>) = report
        .objects
        .iter()
        .partition(|object| object.is_train_job());
    lines.push(format!(
        "{}: {}; {}: {}",
        counted(jobs.len(), "TrainJob"),
        outcomes(&jobs),
        counted(runtimes.len(), "runtime"),
        outcomes(&runtimes),
    ));
    let compared = |with: &ComparedWith| {
        let mut of = jobs.iter().map(|job| &job.report.compared_with);
        of.by_ref().filter(|it| *it == with).count()
    };
    lines.push(format!(
        "compared with objects of the Kubeflow Trainer: {}; by what they use, because they have none: {}; rendered by Trainyard: {}",
        compared(&ComparedWith::JobSet),
        compared(&ComparedWith::Nothing),
        compared(&ComparedWith::Trainyard),
    ));
    lines
}

fn name(row: &RowReport) -> &str {
    if row.id.is_empty() {
        "(no row)"
    } else {
        &row.id
    }
}

/// Returns the beginning of what Trainyard does, for one line.
fn short(row: &RowReport) -> String {
    const LONGEST: usize = 60;
    let Some(meaning) = &row.meaning else {
        let what = match row.effect {
            Effect::Fails => "refused, although no row lists it; please report it",
            Effect::NotCompared => "not known, because it could not be compared",
            _ => "differs, although no row lists it; please report it",
        };
        return what.to_owned();
    };
    let text = &meaning.trainyard;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => {
            let start = text.get(..end).unwrap_or_default();
            let start = start.rsplit_once(' ').map_or(start, |(start, _)| start);
            format!("{start} ...")
        }
        None => text.clone(),
    }
}

/// Counts the outcomes of objects.
fn outcomes(objects: &[&NamedReport]) -> String {
    let count = |outcome: Outcome| {
        let of = objects
            .iter()
            .filter(|object| object.report.outcome == outcome);
        of.count()
    };
    let parts = [
        (count(Outcome::Fails), "would fail"),
        (count(Outcome::Unlisted), "differ without a row"),
        (count(Outcome::NotCompared), "could not be compared"),
        (count(Outcome::Listed), "differ or may differ as listed"),
        (count(Outcome::Same), "do not differ"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match parts.is_empty() {
        true => "none".to_owned(),
        false => parts.join(", "),
    }
}
