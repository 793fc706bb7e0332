//! The checks of `plugin conform`, and its report.

use clap::ValueEnum;
use serde::Serialize;
use trainyard_model::{contract, plugin_info::PluginInfo};

use super::runtimes::ShippedRuntimes;
use crate::{
    output::{Table, counted},
    report::ErrorList,
};

/// The most failures of a check that a report lists.
const MOST_FAILURES: usize = 10;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub(super) enum CheckName {
    Repeat,
    Orders,
    Runtimes,
    Scenarios,
    Nodes,
    Env,
    Mounts,
    Ports,
    Resources,
    Labels,
    Annotations,
    Scheduler,
    Warnings,
    Limits,
    Claims,
    Paths,
    Rebuild,
}

impl CheckName {
    /// The checks that values of users stay.
    pub(super) const OWN_VALUES: [Self; 7] = [
        Self::Env,
        Self::Mounts,
        Self::Ports,
        Self::Resources,
        Self::Labels,
        Self::Annotations,
        Self::Scheduler,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Orders => "orders",
            Self::Runtimes => "runtimes",
            Self::Scenarios => "scenarios",
            Self::Nodes => "nodes",
            Self::Env => "env",
            Self::Mounts => "mounts",
            Self::Ports => "ports",
            Self::Resources => "resources",
            Self::Labels => "labels",
            Self::Annotations => "annotations",
            Self::Scheduler => "scheduler",
            Self::Warnings => "warnings",
            Self::Limits => "limits",
            Self::Claims => "claims",
            Self::Paths => "paths",
            Self::Rebuild => "rebuild",
        }
    }

    /// What the plugin does if it passes.
    const fn promise(self) -> &'static str {
        match self {
            Self::Repeat => "gives the same bytes twice",
            Self::Orders => "gives the same bytes in up to 24 legal orders of the active plugins",
            Self::Runtimes => {
                "is never stopped by the host, with the runtimes of the cases and the shipped ones"
            }
            Self::Scenarios => {
                "nor with and without accelerators, for 1 and 1,000 nodes, beside other containers, after other pods, without DNS names, in gangs, with claims of devices, and without looked-up objects"
            }
            Self::Nodes => "writes to all nodes, or to none",
            Self::Env => "keeps env vars of users, or says why not",
            Self::Mounts => {
                "keeps volumes that users mount at the same path, such as /dev/shm, or that have the same name, or says why not"
            }
            Self::Ports => "keeps ports of users with the same number, or says why not",
            Self::Resources => "keeps requests and limits of users, or says why not",
            Self::Labels => "keeps labels of users on pods, or says why not",
            Self::Annotations => "keeps annotations of users on pods, or says why not",
            Self::Scheduler => "keeps the scheduler that users set, or says why not",
            Self::Warnings => "warns with a field",
            Self::Limits => "uses at most half of each limit",
            Self::Claims => "claims nothing that it does not use",
            Self::Paths => "contains no path of the machine that built it",
            Self::Rebuild => "is the same file if it is built in another directory",
        }
    }
}

/// The result of a check.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Check {
    check: CheckName,
    result: CheckResult,
    /// What was tried, or why nothing was.
    tried: String,
    failures: Vec<String>,
    /// The number of failures that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum CheckResult {
    Passed,
    Failed,
    /// It failed, which the author allows.
    Allowed,
    NotNeeded,
    NotTried,
}

impl CheckResult {
    const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Allowed => "failed (allowed)",
            Self::NotNeeded => "not needed",
            Self::NotTried => "not tried",
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Check {
    /// Returns a check that failed if there are failures. The same failure is listed once.
    pub(super) fn new(check: CheckName, tried: String, failures: Vec<String>) -> Self {
        let mut seen = indexmap::IndexSet::new();
        seen.extend(failures);
        let mut failures: Vec<_> = seen.into_iter().collect();
        let more = failures.split_off(failures.len().min(MOST_FAILURES)).len();
        Self {
            check,
            result: match failures.is_empty() {
                true => CheckResult::Passed,
                false => CheckResult::Failed,
            },
            tried,
            failures,
            more,
        }
    }

    /// Adds what was tried.
    pub(super) fn also_tried(mut self, more: &str) -> Self {
        self.tried = format!("{}, {more}", self.tried);
        self
    }

    /// Adds why a part was not tried, which the result says unless there are failures.
    pub(super) fn or_untried(self, why: &str) -> Self {
        let result = match self.result {
            CheckResult::Failed => CheckResult::Failed,
            _ => CheckResult::NotTried,
        };
        Self {
            result,
            ..self.also_tried(why)
        }
    }

    /// Returns a check that does not apply to the plugin.
    pub(super) fn unneeded(check: CheckName, why: &str) -> Self {
        Self {
            check,
            result: CheckResult::NotNeeded,
            tried: why.to_owned(),
            failures: Vec::new(),
            more: 0,
        }
    }
}

/// The report of a plugin.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConformReport {
    plugin: String,
    version: String,
    digest: String,
    contract: String,
    /// The version of Trainyard that checked it.
    trainyard: &'static str,
    #[serde(flatten)]
    tried: Tried,
    passed: bool,
    checks: Vec<Check>,
}

/// What was tried.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tried {
    pub(super) cases: usize,
    /// The number of TrainJobs that were rendered for the checks of runtimes and scenarios.
    pub(super) renderings: usize,
    pub(super) calls: usize,
    pub(super) shipped_runtimes: ShippedRuntimes,
}

impl ConformReport {
    /// Returns the report. The checks in `allowed` may fail.
    pub(super) fn new(
        plugin: &PluginInfo,
        tried: Tried,
        mut checks: Vec<Check>,
        allowed: &[CheckName],
    ) -> Self {
        for check in &mut checks {
            if check.result == CheckResult::Failed && allowed.contains(&check.check) {
                check.result = CheckResult::Allowed;
            }
        }
        let is_failed = |check: &Check| check.result == CheckResult::Failed;
        Self {
            plugin: plugin.id.name.to_string(),
            version: plugin.id.version.to_string(),
            digest: plugin.id.digest.to_string(),
            contract: plugin.manifest.contract.clone(),
            trainyard: env!("CARGO_PKG_VERSION"),
            passed: tried.calls > 0 && !checks.iter().any(is_failed),
            tried,
            checks,
        }
    }

    fn title(&self) -> String {
        format!(
            "plugin {} {} (contract {}), checked by trainyard {} (contract {}): {}, {}, {}",
            self.plugin,
            self.version,
            self.contract,
            self.trainyard,
            contract::VERSION,
            counted(self.tried.cases, "case"),
            counted(self.tried.renderings, "rendering"),
            counted(self.tried.calls, "call"),
        )
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            self.title(),
            format!("digest {}", self.digest),
            String::new(),
        ];
        let mut table = Table::new(&["check", "result", "what the plugin does", "tried"]);
        for check in &self.checks {
            let name = check.check;
            table.row([
                name.name(),
                check.result.name(),
                name.promise(),
                &check.tried,
            ]);
        }
        lines.extend(table.lines());
        for (name, failures) in self.failures() {
            lines.extend([String::new(), format!("{name}:")]);
            lines.extend(failures.iter().map(|failure| format!("  {failure}")));
        }
        lines
    }

    /// Returns the names of the checks with failures, and these.
    fn failures(&self) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        let checks = self.checks.iter();
        let failed = checks.filter(|check| !check.failures.is_empty());
        failed.map(|check| {
            let mut failures = check.failures.clone();
            if check.more > 0 {
                failures.push(format!("and {} more", check.more));
            }
            (check.check.name(), failures)
        })
    }

    pub(super) fn markdown(&self) -> Vec<String> {
        let cell = |text: &str| text.replace('|', "\\|");
        let mut lines = vec![
            cell(&self.title()),
            String::new(),
            format!("`{}`", self.digest),
            String::new(),
            "| check | result | what the plugin does | tried |".to_owned(),
            "|---|---|---|---|".to_owned(),
        ];
        lines.extend(self.checks.iter().map(|check| {
            let cells = [
                check.check.name(),
                check.result.name(),
                check.check.promise(),
                &check.tried,
            ];
            format!("| {} |", cells.map(cell).join(" | "))
        }));
        for (name, failures) in self.failures() {
            lines.extend([String::new(), format!("`{name}`:"), String::new()]);
            lines.extend(failures.iter().map(|failure| format!("- {failure}")));
        }
        lines
    }

    /// Fails if a check failed, or if no case called the plugin.
    pub(super) fn result(&self) -> Result<(), ErrorList> {
        if self.passed {
            return Ok(());
        }
        if self.tried.calls == 0 {
            return Err(ErrorList::from_iter([format!(
                "plugin {}: no case called the plugin, so nothing is known of it; add a case whose TrainJob it renders",
                self.plugin
            )]));
        }
        let failed = self
            .checks
            .iter()
            .filter(|check| check.result == CheckResult::Failed);
        let failed = counted(failed.count(), "check");
        Err(ErrorList::from_iter([format!(
            "plugin {}: {failed} failed; standard output has the reasons",
            self.plugin
        )]))
    }
}
