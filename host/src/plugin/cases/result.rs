//! The result of rendering a case.

use std::collections::BTreeMap;

use trainyard_api::yaml;
use trainyard_model::{
    names::without_digests,
    text::{MAX_LINE, clean_to},
};
use trainyard_render::Rendered;

use super::folder::{Case, OBJECTS, REFUSAL, WARNINGS};
use crate::report::ErrorList;

/// The result of rendering a case.
pub(in crate::plugin) struct Rendering<'c> {
    pub(in crate::plugin) case: &'c Case,
    /// The shipped runtime. `None` for the runtimes of the case.
    pub(in crate::plugin) runtime: Option<&'static str>,
    /// The TrainJobs that were rendered.
    pub(in crate::plugin) jobs: Vec<RenderedJob>,
    /// The number of TrainJobs that were refused.
    pub(in crate::plugin) refused: usize,
    /// The TrainJobs that the runtime cannot run, or for which it does not activate the plugin.
    pub(in crate::plugin) skipped: Vec<Skipped>,
    /// Why the host ended calls of the plugin.
    pub(in crate::plugin) ended: Vec<String>,
    /// Whether there is a result even if no TrainJob was rendered.
    pub(super) is_complete: bool,
    pub(in crate::plugin) warnings: Vec<String>,
    pub(super) errors: ErrorList,
}

/// A TrainJob that was rendered.
pub(in crate::plugin) struct RenderedJob {
    pub(in crate::plugin) rendered: Rendered,
    /// The warning about what the objects do not show.
    pub(super) unseen: Option<String>,
}

/// A TrainJob that was not rendered with a shipped runtime.
pub(in crate::plugin) struct Skipped {
    /// Its name.
    pub(in crate::plugin) train_job: String,
    pub(in crate::plugin) reason: String,
}

impl<'c> Rendering<'c> {
    pub(super) fn new(case: &'c Case, runtime: Option<&'static str>) -> Self {
        Self {
            case,
            runtime,
            jobs: Vec::new(),
            refused: 0,
            skipped: Vec::new(),
            ended: Vec::new(),
            is_complete: runtime.is_none(),
            warnings: Vec::new(),
            errors: ErrorList::default(),
        }
    }

    /// Returns what the expected files have to be, by name. Without digests, which change with each build.
    pub(in crate::plugin) fn files(&self) -> BTreeMap<&'static str, String> {
        let warnings = self.warnings.iter().map(String::as_str);
        let labelled = |level: &str, line: &str| format!("{level}: {line}\n");
        let warnings = warnings.map(|line| labelled("warning", line));
        if !self.errors.is_empty() {
            let errors = self.errors.lines().map(|line| labelled("error", &line));
            let text: String = warnings.chain(errors).collect();
            return BTreeMap::from([(REFUSAL, without_digests(&text))]);
        }
        if !self.is_complete && self.jobs.is_empty() {
            return BTreeMap::new();
        }
        let objects = self.jobs.iter().flat_map(|job| job.rendered.all_objects());
        let mut files = BTreeMap::from([(OBJECTS, yaml::write_documents(objects))]);
        let unseen = self.jobs.iter().filter_map(|job| job.unseen.as_deref());
        let unseen = unseen.map(|line| labelled("warning", line));
        let warnings: String = warnings.chain(unseen).collect();
        if !warnings.is_empty() {
            files.insert(WARNINGS, without_digests(&warnings));
        }
        files
    }

    pub(super) fn warn(&mut self, warning: impl ToString) {
        self.warnings.push(clean_to(&warning.to_string(), MAX_LINE));
    }

    /// Adds the result of one TrainJob.
    pub(super) fn absorb(&mut self, one: Self) {
        self.jobs.extend(one.jobs);
        self.refused += one.refused;
        self.skipped.extend(one.skipped);
        self.ended.extend(one.ended);
        self.warnings.extend(one.warnings);
        self.errors.absorb(one.errors);
    }
}
