//! `trainyard plugin claims`: compares the claims and grants of a plugin with what its calls used.

use clap::Args;
use serde::Serialize;
use trainyard_model::{
    claims::{ClaimPath, Grants, permission},
    manifest::NodeSet,
    plugin_info::PluginInfo,
    record::Permission,
};

use super::cases::{CasesArgs, Missing, Rendering, Usage};
use crate::{
    args::ReportFormat,
    output::{self, Table, counted},
    report::{self, ErrorList},
};

/// Arguments of `plugin claims`.
#[derive(Debug, Args)]
pub(crate) struct ClaimsArgs {
    #[command(flatten)]
    cases: CasesArgs,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
}

pub(super) fn run(args: &ClaimsArgs) -> Result<(), ErrorList> {
    let cases = args.cases.load()?;
    let renderings =
        cases.render(|rendering: Rendering<'_>| (rendering.jobs.len(), rendering.refused))?;
    let (usage, count) = (cases.usage(), cases.cases.len());
    let report = ClaimsReport::new(&cases.plugin, &usage, count, &renderings);
    match args.output {
        ReportFormat::Json => output::json(&report)?,
        ReportFormat::Table => output::lines(report.lines())?,
    }
    if report.calls == 0 {
        return Err(ErrorList::from_iter([format!(
            "plugin {}: no case called the plugin, so nothing is known of its claims; add a case whose TrainJob it renders",
            report.plugin
        )]));
    }
    report.warnings().for_each(report::warn);
    report.errors().collect::<ErrorList>().or_ok(())
}

/// The claims and grants of a plugin, compared with what its calls used.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClaimsReport {
    plugin: String,
    version: String,
    cases: usize,
    /// The number of TrainJobs, each with one runtime.
    renderings: usize,
    /// The number of them that were refused.
    refused: usize,
    /// The number of the plugin's calls.
    calls: usize,
    claims: Vec<Claim>,
    /// What ended calls because no claim or grant allowed it.
    missing: Vec<MissingPermission>,
    /// The grants that are wider than necessary.
    wide_grants: Vec<WideGrant>,
}

/// A claim of the manifest.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    /// The list in the manifest.
    list: &'static str,
    path: ClaimPath,
    used: bool,
}

/// A claim or a grant that a call lacked.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MissingPermission {
    /// The list in the manifest, or `grants` of its PolicyPlugin.
    list: &'static str,
    path: String,
}

/// A grant that allows more than the calls used.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WideGrant {
    grant: ClaimPath,
    /// The grants that suffice instead. Empty if no call used it.
    enough: Vec<ClaimPath>,
}

impl ClaimsReport {
    fn new(
        plugin: &PluginInfo,
        usage: &Usage,
        cases: usize,
        renderings: &[(usize, usize)],
    ) -> Self {
        let claims = plugin.manifest.claims.iter().enumerate();
        let claims = claims.map(|(at, (verb, path))| Claim {
            list: verb.list(),
            path: path.clone(),
            used: usage.has_used(at),
        });
        let missing = usage.missing.iter().map(|missing| match missing {
            Missing::Claim(verb, path) => MissingPermission {
                list: verb.list(),
                path: path.clone(),
            },
            Missing::Grant(path) => MissingPermission {
                list: "grants",
                path: path.clone(),
            },
        });
        Self {
            plugin: plugin.id.name.to_string(),
            version: plugin.id.version.to_string(),
            cases,
            renderings: renderings
                .iter()
                .map(|(done, refused)| done + refused)
                .sum(),
            refused: renderings.iter().map(|(_, refused)| refused).sum(),
            calls: usage.calls,
            claims: claims.collect(),
            missing: missing.collect(),
            wide_grants: wide_grants(plugin, usage),
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("plugin {} {}", self.plugin, self.version),
            format!(
                "{} ({} refused) of {}: {}",
                counted(self.renderings, "rendering"),
                self.refused,
                counted(self.cases, "case"),
                counted(self.calls, "call")
            ),
            String::new(),
        ];
        let mut table = Table::new(&["list", "claim", "used"]);
        for claim in &self.claims {
            let used = if claim.used { "yes" } else { "no" };
            table.row([claim.list, &claim.path.to_string(), used]);
        }
        for missing in &self.missing {
            table.row([missing.list, &missing.path, "missing"]);
        }
        for WideGrant { grant, enough } in &self.wide_grants {
            let enough: Vec<_> = enough.iter().map(ToString::to_string).collect();
            let used = match enough.as_slice() {
                [] => "no".to_owned(),
                some => format!("only {}", some.join(", ")),
            };
            table.row(["grants", &grant.to_string(), &used]);
        }
        lines.extend(table.lines());
        lines
    }

    /// Returns a warning for each claim and grant beyond what was used.
    fn warnings(&self) -> impl Iterator<Item = String> {
        let unused = self.claims.iter().filter(|claim| !claim.used);
        let unused = unused.map(|Claim { list, path, .. }| {
            format!(
                "plugin {}: manifest.json: claims.{list}: no call used `{path}`; remove it, or add a case that needs it",
                self.plugin
            )
        });
        let wide = self.wide_grants.iter().map(|WideGrant { grant, enough }| {
            let what = match enough.as_slice() {
                [] => "no call used it; remove it, or add a case that needs it".to_owned(),
                some => {
                    let some: Vec<_> = some.iter().map(|path| format!("`{path}`")).collect();
                    format!(
                        "is wider than what the calls used; grant {} instead",
                        some.join(" and ")
                    )
                }
            };
            format!(
                "plugin {}: its PolicyPlugin's grant `{grant}`: {what}",
                self.plugin
            )
        });
        unused.chain(wide)
    }

    /// Returns an error for each claim and grant that a call lacked.
    fn errors(&self) -> impl Iterator<Item = String> {
        self.missing.iter().map(|MissingPermission { list, path }| {
            let place = match *list {
                "grants" => "grants: of its PolicyPlugin".to_owned(),
                list => format!("manifest.json: claims.{list}"),
            };
            format!(
                "plugin {}: {place}: a call needs `{path}`; add it, or change the code",
                self.plugin
            )
        })
    }
}

/// Returns the operator's grants that allow more than the claims that were used need.
fn wide_grants(plugin: &PluginInfo, usage: &Usage) -> Vec<WideGrant> {
    let Grants::Paths(grants) = &plugin.settings.grants else {
        return Vec::new();
    };
    let manifest = &plugin.manifest;
    let claims = manifest.claims.iter().enumerate();
    let used = claims.filter(|(at, (verb, path))| {
        usage.has_used(*at)
            && permission(*verb, path, &plugin.settings.obeyed) != Permission::Default
    });
    let used = used.map(|(_, (_, path))| path.clone());
    let used: Vec<_> = used
        .chain(manifest.node_sets.iter().map(NodeSet::count))
        .collect();
    let wide = grants.iter().filter_map(|grant| {
        let enough: Vec<_> = used
            .iter()
            .filter(|path| grant.covers(path))
            .cloned()
            .collect();
        (!enough.contains(grant)).then(|| WideGrant {
            grant: grant.clone(),
            enough,
        })
    });
    wide.collect()
}
