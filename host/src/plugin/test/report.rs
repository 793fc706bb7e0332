//! The report of `plugin test`.

use std::collections::BTreeMap;

use serde::Serialize;
use trainyard_model::{
    claims::{ClaimScope, Verb},
    plugin_info::PluginInfo,
};

use super::{
    TestedRendering,
    expected::{DifferenceKind, FileDifference},
};
use crate::{
    field_changes::{FieldChange, shown},
    output::counted,
    plugin::cases::Reach,
    report::ErrorList,
    runtimes::shipped,
};

/// The result of testing a plugin.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TestReport {
    plugin: String,
    version: String,
    cases: usize,
    /// The number of TrainJobs that were rendered, each with one runtime.
    rendered: usize,
    /// The number of TrainJobs that were refused, each with one runtime.
    refused: usize,
    /// Whether the expected files were written.
    updated: bool,
    /// The renderings that differ from their expected files; before they were written, if they were.
    differences: Vec<RenderingDifference>,
    skipped: Vec<SkippedRuntimes>,
    untouched: Vec<Untouched>,
}

/// A rendering that differs from its expected files.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RenderingDifference {
    case: String,
    /// The shipped runtime. `None` for the runtimes of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<&'static str>,
    files: Vec<FileDifference>,
}

/// Shipped runtimes that a TrainJob was not rendered with.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SkippedRuntimes {
    case: String,
    train_job: String,
    runtimes: Vec<&'static str>,
    reason: String,
}

/// What the plugin never wrote to.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Untouched {
    /// The shipped runtimes, or the runtimes of a case.
    runtimes: Vec<String>,
    never_wrote_to: Vec<String>,
}

impl TestReport {
    pub(super) fn new(
        plugin: &PluginInfo,
        cases: usize,
        tested: Vec<TestedRendering>,
        updated: bool,
    ) -> Self {
        let mut report = Self {
            plugin: plugin.id.name.to_string(),
            version: plugin.id.version.to_string(),
            cases,
            rendered: tested.iter().map(|one| one.rendered).sum(),
            refused: tested.iter().map(|one| one.refused).sum(),
            updated,
            differences: Vec::new(),
            skipped: Vec::new(),
            untouched: Vec::new(),
        };
        let mut skipped: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut reached: BTreeMap<(bool, String), Reach> = BTreeMap::new();
        for one in tested {
            for job in one.skipped {
                let key = (one.case.clone(), job.train_job, job.reason);
                skipped.entry(key).or_default().extend(one.runtime);
            }
            let runtime = match one.runtime {
                Some(name) => (true, name.to_owned()),
                None => (false, format!("case {}", one.case)),
            };
            reached.entry(runtime).or_default().absorb(one.reach);
            let files = one.comparison.differences;
            if !files.is_empty() {
                report.differences.push(RenderingDifference {
                    case: one.case,
                    runtime: one.runtime,
                    files,
                });
            }
        }
        let skipped = skipped.into_iter();
        report.skipped = skipped
            .map(|((case, train_job, reason), runtimes)| SkippedRuntimes {
                case,
                train_job,
                runtimes,
                reason,
            })
            .collect();
        report.untouched = untouched(reached, writes_to_containers(plugin));
        report
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("plugin {} {}", self.plugin, self.version)];
        if !self.updated {
            for difference in &self.differences {
                difference.push_lines(&mut lines);
            }
        }
        section(&mut lines, "skipped", &self.skipped, |skipped| {
            let (case, job) = (&skipped.case, &skipped.train_job);
            let runtimes = match skipped.runtimes.len() == shipped().len() {
                true => "every shipped runtime".to_owned(),
                false => skipped.runtimes.join(", "),
            };
            format!("{case}, TrainJob {job} with {runtimes}: {}", skipped.reason)
        });
        let never = format!("{} never wrote to", self.plugin);
        section(&mut lines, &never, &self.untouched, |one| {
            let (runtimes, places) = (one.runtimes.join(", "), one.never_wrote_to.join(", "));
            format!("{runtimes}: {places}")
        });
        let (cases, renderings) = (self.cases, self.rendered + self.refused);
        lines.push(String::new());
        lines.push(format!(
            "{}, {} ({} refused): {}",
            counted(cases, "case"),
            counted(renderings, "rendering"),
            self.refused,
            match (self.differences.len(), self.updated) {
                (0, _) => "all as expected".to_owned(),
                (some, true) => format!("{some} updated"),
                (some, false) => format!("{some} not as expected"),
            }
        ));
        lines
    }

    /// Fails if a rendering is not as expected.
    pub(super) fn result(&self) -> Result<(), ErrorList> {
        if self.rendered + self.refused == 0 {
            return Err(ErrorList::from_iter([format!(
                "plugin {}: no TrainJob of a case was rendered; standard output has the reasons; add a case with a runtime of its own",
                self.plugin
            )]));
        }
        if self.updated || self.differences.is_empty() {
            return Ok(());
        }
        let count = counted(self.differences.len(), "rendering");
        Err(ErrorList::from_iter([format!(
            "plugin {}: {count} not as expected; standard output has the differences; if they are intended, run the command again with --update",
            self.plugin
        )]))
    }
}

/// Whether a plugin claims to write to containers that it does not add.
fn writes_to_containers(plugin: &PluginInfo) -> bool {
    let mut claims = plugin.manifest.claims.iter();
    claims.any(|(verb, path)| {
        verb == Verb::Write && matches!(path.scope, ClaimScope::Container { .. })
    })
}

/// Groups runtimes with the same untouched places.
fn untouched(reached: BTreeMap<(bool, String), Reach>, with_containers: bool) -> Vec<Untouched> {
    let mut groups: Vec<Untouched> = Vec::new();
    for ((_, runtime), reach) in reached {
        let never_wrote_to = reach.untouched(with_containers);
        if never_wrote_to.is_empty() {
            continue;
        }
        let mut same = groups.iter_mut();
        match same.find(|group| group.never_wrote_to == never_wrote_to) {
            Some(group) => group.runtimes.push(runtime),
            None => groups.push(Untouched {
                runtimes: vec![runtime],
                never_wrote_to,
            }),
        }
    }
    groups
}

/// Adds a heading with a line for each item, if there are any.
fn section<T>(lines: &mut Vec<String>, title: &str, items: &[T], line: impl Fn(&T) -> String) {
    if !items.is_empty() {
        lines.extend([String::new(), format!("{title}:")]);
        lines.extend(items.iter().map(|item| format!("  {}", line(item))));
    }
}

impl RenderingDifference {
    fn push_lines(&self, lines: &mut Vec<String>) {
        let on = match self.runtime {
            Some(runtime) => format!("with {runtime}"),
            None => "with its own runtimes".to_owned(),
        };
        lines.extend([String::new(), format!("case {} {on}:", self.case)]);
        for file in &self.files {
            file.push_lines(lines);
        }
    }
}

impl FileDifference {
    fn push_lines(&self, lines: &mut Vec<String>) {
        let file = &self.file;
        match &self.kind {
            DifferenceKind::Missing => lines.push(format!(
                "  {file}: does not exist; run the command again with --update to write it"
            )),
            DifferenceKind::NotExpected => lines.push(format!(
                "  {file}: exists, but the rendering has no such result; --update removes it"
            )),
            DifferenceKind::Unreadable { problem } => lines.push(format!(
                "  {file}: {problem}; correct it, or run the command again with --update"
            )),
            DifferenceKind::Fields { fields } => {
                lines.push(format!("  {file}:"));
                fields.iter().for_each(|field| field.push_lines(lines));
            }
            DifferenceKind::Lines { expected, found } => {
                lines.push(format!("  {file}:"));
                lines.extend(expected.iter().map(|line| format!("    expected: {line}")));
                lines.extend(found.iter().map(|line| format!("    found:    {line}")));
            }
        }
    }
}

impl FieldChange {
    fn push_lines(&self, lines: &mut Vec<String>) {
        lines.push(match self.path.as_str() {
            "" => format!("    {}", self.object),
            path => format!("    {}: {path}", self.object),
        });
        lines.push(format!("      expected: {}", shown(self.expected.as_ref())));
        lines.push(format!("      found:    {}", shown(self.found.as_ref())));
        let because = self.reason.iter().map(|reason| format!(" ({reason})"));
        let because: String = because.collect();
        match &self.set_by {
            Some(by) => lines.push(format!("      set by:   {by}{because}")),
            None if !because.is_empty() => lines.push(format!("      note:    {because}")),
            None => {}
        }
    }
}
