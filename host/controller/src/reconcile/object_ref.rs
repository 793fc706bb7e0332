//! References to the objects beside a JobSet, as a snapshot lists them.
//!
//! Anyone who can write ConfigMaps can forge such a list, and the controller reads the listed objects with its own permissions. Lists are
//! parsed only here, into types that can only name objects which plugins can emit for the TrainJob.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};
use serde_json::json;
use trainyard_model::{
    object::{ApplyMode, ObjectKind, ObjectName},
    text::clean,
};
use trainyard_render::RenderedObject;

/// The most bytes of an entry of a list: a name, an `apiVersion` and a `kind` have at most 253 each.
const ENTRY_BYTES: u64 = 1024;

/// A reference to an object beside the JobSet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// `apiVersion` and `kind`.
    pub kind: ObjectKind,
    /// `metadata.name`.
    pub name: ObjectName,
    /// The mode in which it is applied.
    pub apply: ApplyMode,
}

/// An entry of a list as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredEntry {
    api_version: String,
    kind: String,
    name: String,
    apply: ApplyMode,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)
    }
}

impl ObjectRef {
    /// Returns the reference to a rendered object.
    pub fn of(object: &RenderedObject) -> Self {
        Self {
            kind: object.kind.clone(),
            name: object.name.clone(),
            apply: object.apply,
        }
    }

    /// Parses an entry of the TrainJob's list.
    fn read(stored: StoredEntry, job: &str) -> Result<Self, String> {
        let kind = ObjectKind::new(&stored.api_version, &stored.kind).map_err(|problem| {
            let kind = clean(&format!("{}/{}", stored.api_version, stored.kind));
            format!("`{kind}` {problem}")
        })?;
        let shown = clean(&stored.name);
        let name = ObjectName::new(&kind, job, stored.name);
        Ok(Self {
            kind,
            name: name.map_err(|problem| format!("the name `{shown}` {problem}"))?,
            apply: stored.apply,
        })
    }
}

/// Returns the list in its stored form.
pub(super) fn write(objects: &[ObjectRef]) -> String {
    let stored = |it: &ObjectRef| StoredEntry {
        api_version: it.kind.api_version().to_owned(),
        kind: it.kind.kind().to_owned(),
        name: it.name.to_string(),
        apply: it.apply,
    };
    json!(objects.iter().map(stored).collect::<Vec<_>>()).to_string()
}

/// Parses the list of the TrainJob with that name, whose plugins can emit at most `most` objects.
///
/// # Errors
/// The list is malformed, or names an object that no plugin emits for the TrainJob.
pub(super) fn read(text: &str, job: &str, most: u64) -> Result<Vec<ObjectRef>, String> {
    if text.len() as u64 > most.saturating_add(1).saturating_mul(ENTRY_BYTES) {
        let bytes = text.len();
        return Err(format!(
            "has {bytes} bytes, more than a list of {most} objects, the most that plugins emit for a TrainJob (`limits.objects`)"
        ));
    }
    let stored: Vec<StoredEntry> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if stored.len() as u64 > most {
        let count = stored.len();
        return Err(format!(
            "lists {count} objects, but plugins emit at most {most} for a TrainJob (`limits.objects`)"
        ));
    }
    let mut listed = Vec::with_capacity(stored.len());
    let mut names = BTreeSet::new();
    for (at, stored) in stored.into_iter().enumerate() {
        let entry = ObjectRef::read(stored, job);
        let entry = entry.map_err(|problem| format!("entry {at}: {problem}"))?;
        if !names.insert((entry.kind.clone(), entry.name.clone())) {
            return Err(format!("entry {at}: {entry} is listed twice"));
        }
        listed.push(entry);
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::Value;

    use super::*;

    fn entry(api_version: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "name": name, "apply": "once"})
    }

    fn refused(entries: &Value) -> String {
        read(&entries.to_string(), "job", 2).unwrap_err()
    }

    #[test]
    fn a_list_is_read_as_it_is_written() {
        let kind = ObjectKind::new("v1", "ConfigMap").unwrap();
        let listed = ApplyMode::ALL.map(|apply| ObjectRef {
            kind: kind.clone(),
            name: ObjectName::new(&kind, "job", format!("job-{apply}")).unwrap(),
            apply,
        });
        let text = write(&listed);
        assert_eq!(read(&text, "job", 4).unwrap(), listed);
        assert!(text.contains(r#""apiVersion":"v1""#) && text.contains(r#""apply":"with-jobset""#));
    }

    #[test]
    fn object_lists_name_only_objects_that_plugins_can_emit() {
        for (api_version, kind, name) in [
            (
                "jobset.x-k8s.io/v1alpha2/jobsets?watch=true&x=",
                "JobSet",
                "job-a",
            ),
            (
                "v1%2Fnamespaces%2Fvictim%2Fconfigmaps%2Fa?x=",
                "ConfigMap",
                "job-a",
            ),
            ("v1", "Pod", "job-a"),
            ("", "", "job-a"),
            ("v1", "ConfigMap", "another-a"),
            ("v1", "ConfigMap", "job-a?watch=true&x="),
            ("v1", "ConfigMap", "job-a/../../secrets"),
            ("v1", "ConfigMap", "job-runtime-snapshot"),
            ("v1", "ConfigMap", ""),
        ] {
            let problem = refused(&json!([entry(api_version, kind, name)]));
            assert!(problem.starts_with("entry 0: "), "{problem}");
        }
    }

    #[test]
    fn object_lists_are_bounded_and_have_no_duplicates() {
        let map = |name: &str| entry("v1", "ConfigMap", name);
        let all = json!([map("job-a"), map("job-b")]).to_string();
        assert_eq!(read(&all, "job", 2).unwrap().len(), 2);
        let problem = refused(&json!([map("job-a"), map("job-b"), map("job-c")]));
        assert!(
            problem.contains("lists 3 objects") && problem.contains("at most 2"),
            "{problem}"
        );
        let problem = refused(&json!([map("job-a"), map("job-a")]));
        assert!(problem.contains("`job-a` is listed twice"), "{problem}");
        let many: Vec<_> = (0..14_500).map(|at| map(&format!("job-{at}"))).collect();
        let problem = refused(&json!(many));
        assert!(
            problem.contains("more than a list of 2 objects"),
            "{problem}"
        );
    }

    #[test]
    fn a_list_of_the_longest_names_is_read() {
        let kind = ObjectKind::new("v1", "ConfigMap").unwrap();
        let names = (0..20).map(|at| format!("job-{}{at:02}", "a".repeat(247)));
        let listed: Vec<_> = names
            .map(|name| ObjectRef {
                kind: kind.clone(),
                name: ObjectName::new(&kind, "job", name).unwrap(),
                apply: ApplyMode::WhileSuspended,
            })
            .collect();
        assert_eq!(read(&write(&listed), "job", 20).unwrap(), listed);
    }

    #[test]
    fn errors_of_a_list_are_short() {
        let long = "x".repeat(900_000);
        for entries in [
            json!([entry(&long, "ConfigMap", "job-a")]),
            json!([entry("v1", &long, "job-a")]),
            json!([entry("v1", "ConfigMap", &long)]),
        ] {
            let problem = read(&entries.to_string(), "job", 1 << 20).unwrap_err();
            assert!(problem.len() < 1_200, "{} bytes", problem.len());
        }
    }
}
