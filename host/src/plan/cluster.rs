//! `trainyard plan --cluster`: whether the replicas of a controller run the plugins that are loaded here, in the same way.

use std::collections::BTreeMap;

use kube::Client;
use serde::Serialize;

use super::{PlanArgs, PlanFormat};
use crate::{
    cluster::Access,
    live_objects::text,
    load::LoadedPlugins,
    output::{self, counted},
    replicas::{ReplicaArgs, Replicas, series},
    report::{self, ErrorList},
};

/// The plans of the replicas beside the one that is loaded here.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterPlans {
    /// The digest of the plan that is loaded here.
    digest: String,
    replicas: Vec<ReplicaPlan>,
}

/// The plan of a replica.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReplicaPlan {
    pod: String,
    /// `None` if it is not known.
    digest: Option<String>,
    is_same: bool,
    /// What differs, or why the plan is not known.
    differences: Vec<String>,
}

/// Plugins by name, each with its version and digest.
type Plugins = BTreeMap<String, String>;

pub(super) fn run(args: &PlanArgs) -> Result<(), ErrorList> {
    if !matches!(args.output, PlanFormat::Table | PlanFormat::Json) {
        return Err(["--cluster has the output formats table and json"]
            .into_iter()
            .collect());
    }
    let loaded = LoadedPlugins::load(&args.run.load)?;
    let generation = loaded.renderer.generation();
    let digest = generation.digest(&loaded.renderer.facts().facts);
    let here: Plugins = generation
        .plugins()
        .map(|plugin| {
            let id = &plugin.id;
            (id.name.to_string(), format!("{} {}", id.version, id.digest))
        })
        .collect();
    let read = |client, _| read(client, &args.replicas, &digest, &here);
    let replicas = args.cluster.run(Access::Read, read)?;
    let plans = ClusterPlans { digest, replicas };
    match args.output {
        PlanFormat::Json => output::json(&plans)?,
        _ => output::lines(plans.lines())?,
    }
    plans.check()
}

async fn read(
    client: Client,
    args: &ReplicaArgs,
    digest: &str,
    here: &Plugins,
) -> Result<Vec<ReplicaPlan>, ErrorList> {
    let replicas = Replicas::list(client, args).await;
    let replicas = replicas.map_err(|error| ErrorList::from_iter([error]))?;
    let mut plans = Vec::new();
    for pod in &replicas.pods {
        let metrics = replicas.metrics(pod).await;
        let pod = text(pod, "/metadata/name").unwrap_or_default();
        plans.push(ReplicaPlan::of(pod, metrics, digest, here));
    }
    Ok(plans)
}

impl ReplicaPlan {
    fn of(pod: &str, metrics: Result<String, String>, digest: &str, here: &Plugins) -> Self {
        let (pod, is_same) = (pod.to_owned(), false);
        let unknown = |why| Self {
            pod: pod.clone(),
            digest: None,
            is_same,
            differences: vec![why],
        };
        let metrics = match metrics {
            Ok(metrics) => metrics,
            Err(why) => return unknown(why),
        };
        let plan = series(&metrics, "trainyard_plan_info").next();
        let Some(&found) = plan.as_ref().and_then(|labels| labels.get("digest")) else {
            let why = "its metrics have no trainyard_plan_info; it is not Trainyard, or still loads its plugins";
            return unknown(why.to_owned());
        };
        let there = series(&metrics, "trainyard_plugin_loaded").map(|labels| {
            let label = |name| labels.get(name).copied().unwrap_or_default();
            let identity = format!("{} {}", label("version"), label("digest"));
            (label("plugin").to_owned(), identity)
        });
        let is_same = found == digest;
        let differences = match is_same {
            true => Vec::new(),
            false => differences(here, &there.collect()),
        };
        Self {
            digest: Some(found.to_owned()),
            is_same,
            differences,
            pod,
        }
    }
}

/// Returns what differs between two sets of plugins whose plans differ.
fn differences(here: &Plugins, there: &Plugins) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, own) in here {
        match there.get(name) {
            None => lines.push(format!("{name} {own} is loaded only here")),
            Some(other) if other != own => {
                lines.push(format!("{name} is {own} here, and {other} there"));
            }
            Some(_) => {}
        }
    }
    let added = there.iter().filter(|(name, _)| !here.contains_key(*name));
    lines.extend(added.map(|(name, other)| format!("{name} {other} is loaded only there")));
    if lines.is_empty() {
        lines.push("the plugins are the same; their settings differ".to_owned());
    }
    lines
}

impl ClusterPlans {
    /// Compares the plans. A replica whose plan is not known is only warned of, unless no plan is known.
    ///
    /// # Errors
    /// A plan differs, or no plan is known.
    fn check(&self) -> Result<(), ErrorList> {
        let all = counted(self.replicas.len(), "replica");
        let count = |is: fn(&&ReplicaPlan) -> bool| self.replicas.iter().filter(is).count();
        let unknown = count(|replica| replica.digest.is_none());
        let others = count(|replica| replica.digest.is_some() && !replica.is_same);
        let mut errors = Vec::new();
        if others > 0 {
            errors.push(format!(
                "{others} of {all} run other plugins, or other settings of them, than those that are loaded here"
            ));
        }
        if unknown > 0 {
            let line = format!("the plans of {unknown} of {all} are not known");
            match unknown == self.replicas.len() {
                true => errors.push(line),
                false => report::warn(&line),
            }
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(errors.into_iter().collect()),
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("here: {}", self.digest)];
        for replica in &self.replicas {
            let ReplicaPlan { pod, digest, .. } = replica;
            let same = if replica.is_same { " (the same)" } else { "" };
            let digest = digest.as_deref().unwrap_or("not known");
            lines.push(format!("pod {pod}: {digest}{same}"));
            lines.extend(replica.differences.iter().map(|line| format!("  {line}")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_compared_by_digest_and_plugins() {
        let here = Plugins::from([
            ("jax".to_owned(), "1.0.0 sha256:1".to_owned()),
            ("torch".to_owned(), "1.0.0 sha256:2".to_owned()),
        ]);
        let metrics = |digest: &str, plugins: &str| {
            Ok(format!(
                "# TYPE x gauge\ntrainyard_plan_info{{digest=\"{digest}\"}} 1\n{plugins}"
            ))
        };
        let same = ReplicaPlan::of("p", metrics("sha256:a", ""), "sha256:a", &here);
        assert!(same.is_same && same.differences.is_empty(), "{same:?}");
        let plugins = "trainyard_plugin_loaded{plugin=\"torch\",version=\"1.0.1\",digest=\"sha256:3\"} 1\n\
                       trainyard_plugin_loaded{plugin=\"tracer\",version=\"0.1.0\",digest=\"sha256:4\"} 1\n";
        let other = ReplicaPlan::of("p", metrics("sha256:b", plugins), "sha256:a", &here);
        assert_eq!(other.digest.as_deref(), Some("sha256:b"));
        assert_eq!(
            other.differences,
            [
                "jax 1.0.0 sha256:1 is loaded only here",
                "torch is 1.0.0 sha256:2 here, and 1.0.1 sha256:3 there",
                "tracer 0.1.0 sha256:4 is loaded only there",
            ]
        );
        for (metrics, why) in [
            (Ok("go_goroutines 5\n".to_owned()), "trainyard_plan_info"),
            (Err("refused".to_owned()), "refused"),
        ] {
            let unknown = ReplicaPlan::of("p", metrics, "sha256:a", &here);
            assert!(!unknown.is_same && unknown.digest.is_none());
            assert!(unknown.differences.iter().any(|line| line.contains(why)));
        }
    }
}
