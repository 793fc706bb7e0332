//! Compares two manifests.

use trainyard_model::{claims::ClaimPath, manifest::Manifest, record::ObeyedDomains};

use super::{Breaks, Change, ChangeKind, schema};

/// Returns the changes from one version of a plugin to another.
pub(crate) fn changes(old: &Manifest, new: &Manifest) -> Vec<Change> {
    let mut out = Vec::new();
    if old.active_when != new.active_when {
        let what = format!(
            "active by `{}` instead of `{}`",
            new.active_when, old.active_when
        );
        out.push(Change::new(
            ChangeKind::Changed,
            what,
            Some(Breaks::Runtimes),
        ));
    }
    if old.contract != new.contract {
        let what = format!("contract {} instead of {}", new.contract, old.contract);
        let breaks = is_newer(&old.contract, &new.contract).then_some(Breaks::Hosts);
        out.push(Change::new(ChangeKind::Changed, what, breaks));
    }
    let granted = old.needed_grants(&ObeyedDomains::default());
    let needed = new.needed_grants(&ObeyedDomains::default());
    let needs_grant = |declared: &Declared| {
        let path = declared.path.as_ref()?;
        let is_granted = granted.iter().any(|grant| grant.covers(path));
        (needed.contains(path) && !is_granted).then_some(Breaks::PolicyPlugins)
    };
    let (before, after) = (declared(old), declared(new));
    for one in after.iter().filter(|one| !before.contains(one)) {
        let breaks = needs_grant(one).or(one.breaks_if_added);
        out.push(Change::one_sided(true, one.what.clone(), breaks));
    }
    for one in before.iter().filter(|one| !after.contains(one)) {
        out.push(Change::one_sided(
            false,
            one.what.clone(),
            one.breaks_if_removed,
        ));
    }
    for (what, breaks, old, new) in [
        (
            "configuration",
            Breaks::Runtimes,
            &old.config_schema,
            &new.config_schema,
        ),
        (
            "operator configuration",
            Breaks::PolicyPlugins,
            &old.operator_config_schema,
            &new.operator_config_schema,
        ),
    ] {
        out.extend(schema::changes(what, breaks, old.as_ref(), new.as_ref()));
    }
    out
}

/// An item of a list in a manifest.
#[derive(PartialEq)]
struct Declared {
    what: String,
    /// The path that may need a grant.
    path: Option<ClaimPath>,
    breaks_if_added: Option<Breaks>,
    breaks_if_removed: Option<Breaks>,
}

impl Declared {
    const fn new(what: String) -> Self {
        Self {
            what,
            path: None,
            breaks_if_added: None,
            breaks_if_removed: None,
        }
    }
}

/// Returns the items of a manifest's lists.
fn declared(manifest: &Manifest) -> Vec<Declared> {
    let phases = manifest.phases.iter();
    let phases = phases.map(|phase| Declared::new(format!("phase {phase}")));
    let claims = manifest.claims.iter().map(|(verb, path)| Declared {
        path: Some(path.clone()),
        ..Declared::new(format!("{verb}s `{path}`"))
    });
    // Other pods count as nodes.
    let counts = manifest.node_sets.iter().map(|set| Declared {
        path: Some(set.count()),
        breaks_if_added: Some(Breaks::Runtimes),
        breaks_if_removed: Some(Breaks::Runtimes),
        ..Declared::new(format!("lets numNodes set {set}"))
    });
    let orders = [("after", &manifest.after), ("before", &manifest.before)];
    let orders = orders.into_iter().flat_map(|(order, names)| {
        let names = names.iter();
        names.map(move |name| Declared::new(format!("{order} {name}")))
    });
    let excludes = manifest.excludes.iter().map(|name| Declared {
        breaks_if_added: Some(Breaks::Runtimes),
        ..Declared::new(format!("excludes {name}"))
    });
    let reserved = manifest.reserved_env.iter().flat_map(|some| {
        let when = some.when().map(|when| format!(" {when}"));
        let when = when.unwrap_or_default();
        let names = some.names().iter();
        names.map(move |name| Declared {
            breaks_if_added: Some(Breaks::TrainJobs),
            ..Declared::new(format!("reserves the env var `{name}`{when}"))
        })
    });
    let all = phases.chain(claims).chain(counts).chain(orders);
    all.chain(excludes).chain(reserved).collect()
}

/// Whether a host that supports one contract may refuse another.
fn is_newer(old: &str, new: &str) -> bool {
    match (semver::Version::parse(old), semver::Version::parse(new)) {
        (Ok(old), Ok(new)) => new > old,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::{Value, json};

    use super::*;

    fn manifest(change: impl FnOnce(&mut Value)) -> Manifest {
        let mut manifest = json!({
            "name": "fabric",
            "version": "1.0.0",
            "contract": "1.0.0",
            "activeWhen": "plugins",
            "phases": ["transform"],
            "claims": {"writes": ["pod-sets[@nodes].containers[node].env[A]", "pod-sets[*].scheduler-name"]},
            "configSchema": {"type": "object", "properties": {"ports": {"type": "integer", "minimum": 1}}},
        });
        change(&mut manifest);
        Manifest::parse(manifest.to_string().as_bytes()).unwrap()
    }

    fn lines(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let changes = changes(&manifest(|_| ()), &manifest(change));
        changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn claims_break_policy_files_if_they_need_another_grant() {
        let claim = |path: &str| {
            lines(|manifest| {
                let writes = manifest["claims"]["writes"].as_array_mut().unwrap();
                writes.push(json!(path));
            })
        };
        assert_eq!(
            claim("pod-sets[@nodes].containers[node].env[B]"),
            ["+ writes `pod-sets[@nodes].containers[node].env[B]`"]
        );
        assert_eq!(
            claim("pod-sets[*].priority-class"),
            ["+ writes `pod-sets[*].priority-class` (breaks PolicyPlugins)"]
        );
        let fewer = lines(|manifest| {
            manifest["claims"]["writes"] = json!(["pod-sets[@nodes].containers[node].env[A]"]);
        });
        assert_eq!(fewer, ["- writes `pod-sets[*].scheduler-name`"]);
    }

    #[test]
    fn each_declaration_breaks_those_who_have_to_change_something() {
        type Edit = fn(&mut Value);
        let table: [(Edit, &str); 7] = [
            (
                |it| it["activeWhen"] = json!("always"),
                "~ active by `always` instead of `plugins` (breaks runtimes)",
            ),
            (
                |it| it["phases"] = json!(["transform", "check"]),
                "+ phase check",
            ),
            (|it| it["after"] = json!(["torch"]), "+ after torch"),
            (
                |it| it["excludes"] = json!(["dra"]),
                "+ excludes dra (breaks runtimes)",
            ),
            (
                |it| it["reservedEnv"] = json!(["A"]),
                "+ reserves the env var `A` (breaks TrainJobs)",
            ),
            (
                |it| it["nodeSets"] = json!([{"podSet": "launcher"}]),
                "+ lets numNodes set pod-sets[launcher].count (breaks PolicyPlugins)",
            ),
            (
                |it| it["operatorConfigSchema"] = json!({"type": "object", "required": ["pool"]}),
                "+ operator configuration (breaks PolicyPlugins)",
            ),
        ];
        for (edit, expected) in table {
            assert_eq!(lines(edit), [expected]);
        }
        assert!(lines(|_| ()).is_empty());
    }
}
