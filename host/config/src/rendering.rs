//! The settings for all TrainJobs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainyard_api::{FieldPath, Located, Location};
use trainyard_model::{
    facts,
    names::{is_dns_label, is_dns_subdomain},
    record::{MAX_OBEYED, ObeyedDomains},
    text::clean,
};

use crate::{FieldError, texts};

/// The settings for all TrainJobs: the section `rendering` of the controller's configuration, and fields of a policy file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RenderingSettings {
    /// Resource names with their domain that count as accelerators, instead of the shipped list; a trailing `*` matches any
    /// ending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerators: Option<Vec<String>>,
    /// The cluster's DNS domain. Default `cluster.local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster_domain: Option<String>,
    /// The namespace of the catalog: objects that plugins look up for TrainJobs of all namespaces. It should contain nothing else, because
    /// users of a TrainJob can read what its plugins read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub catalog_namespace: Option<String>,
    /// Facts of the cluster that plugins may read by name, such as `status/url`. They are not secret: the snapshot of a TrainJob holds
    /// those that its plugins read. At most 32 KiB, names and values together.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Changes of the list of domains whose labels and annotations controllers obey. A plugin needs a grant for each such key, by its name.
    #[serde(skip_serializing_if = "ObeyedDomainChanges::is_empty")]
    pub obeyed_domains: ObeyedDomainChanges,
}

/// Changes of the list of domains whose labels and annotations controllers obey.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ObeyedDomainChanges {
    /// Domains to add, such as `example.com`, which includes those below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_OBEYED))]
    pub add: Vec<String>,
    /// Domains of the shipped list to remove: the docs of the contract list them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_OBEYED))]
    pub remove: Vec<String>,
}

/// Settings for all TrainJobs, with where they were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderingSection {
    /// The settings.
    pub settings: RenderingSettings,
    /// The file.
    pub location: Location,
    /// The field of the section in the file.
    pub field: FieldPath,
}

impl RenderingSection {
    /// Returns the location of a setting.
    #[must_use]
    pub fn at(&self, setting: &str) -> Location {
        self.location.clone().at(self.field.field(setting))
    }

    /// Merges sections. The result has the place of the one that has facts, because these are compared with the facts of plugins.
    ///
    /// # Errors
    /// An error for each setting that two of them have, with both places.
    pub fn merge(sections: Vec<Self>) -> Result<Self, Vec<Located>> {
        let mut first: BTreeMap<&str, &Self> = BTreeMap::new();
        let mut twice = Vec::new();
        for section in &sections {
            for name in section.settings.names() {
                if let Some(other) = first.insert(name, section) {
                    twice.push(Located {
                        location: section.at(name),
                        message: format!(
                            "is also set in {}; remove one of the two",
                            other.at(name)
                        ),
                    });
                }
            }
        }
        if !twice.is_empty() {
            return Err(twice);
        }
        let place = first.get("facts").copied();
        let mut merged = place.cloned().unwrap_or_default();
        for Self { settings, .. } in sections {
            merged.settings.fill(settings);
        }
        Ok(merged)
    }
}

impl ObeyedDomainChanges {
    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }
}

impl RenderingSettings {
    /// Sets what is not set.
    fn fill(&mut self, other: Self) {
        self.accelerators = self.accelerators.take().or(other.accelerators);
        self.cluster_domain = self.cluster_domain.take().or(other.cluster_domain);
        self.catalog_namespace = self.catalog_namespace.take().or(other.catalog_namespace);
        if self.facts.is_empty() {
            self.facts = other.facts;
        }
        if self.obeyed_domains.is_empty() {
            self.obeyed_domains = other.obeyed_domains;
        }
    }

    /// Returns the names of the settings that are set.
    fn names(&self) -> Vec<&'static str> {
        let set = [
            ("accelerators", self.accelerators.is_some()),
            ("clusterDomain", self.cluster_domain.is_some()),
            ("catalogNamespace", self.catalog_namespace.is_some()),
            ("facts", !self.facts.is_empty()),
            ("obeyedDomains", !self.obeyed_domains.is_empty()),
        ];
        let set = set.into_iter().filter(|(_, is_set)| *is_set);
        set.map(|(name, _)| name).collect()
    }

    /// Returns the errors of settings at `at` that their schema does not find.
    #[must_use]
    pub fn field_errors(settings: &Value, at: &FieldPath) -> Vec<FieldError> {
        let mut field_errors = Vec::new();
        check_domain(settings, at, &mut field_errors);
        check_catalog(settings, at, &mut field_errors);
        check_accelerators(settings, at, &mut field_errors);
        check_obeyed_domains(settings, at, &mut field_errors);
        let facts = settings.get("facts");
        let facts = facts.map(|facts| fact_errors(facts, &at.field("facts")));
        field_errors.extend(facts.into_iter().flatten());
        field_errors
    }

    /// Returns the domains whose labels and annotations have to be granted by name.
    #[must_use]
    pub fn obeyed(&self) -> ObeyedDomains {
        let ObeyedDomainChanges { add, remove } = &self.obeyed_domains;
        ObeyedDomains::default().changed(add, remove)
    }
}

/// Returns the errors of facts by name, at `at`.
pub(crate) fn fact_errors(facts: &Value, at: &FieldPath) -> Vec<FieldError> {
    let facts: Vec<_> = facts.as_object().into_iter().flatten().collect();
    let names = facts.iter().filter_map(|(name, _)| {
        Some(FieldError {
            field: at.field(clean(name)),
            problem: facts::name_problem(name)?,
        })
    });
    let mut field_errors: Vec<_> = names.collect();
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let sizes = facts.iter().map(|(name, value)| name.len() + text(value));
    field_errors.extend(size_problem(sizes.sum()).map(|problem| FieldError {
        field: at.clone(),
        problem,
    }));
    field_errors
}

/// Returns what is wrong with facts that have so many bytes of names and values.
#[must_use]
pub(crate) fn size_problem(bytes: usize) -> Option<String> {
    (bytes > facts::MAX_BYTES).then(|| {
        format!(
            "the facts have {bytes} bytes of names and values, but at most {} are allowed; remove some",
            facts::MAX_BYTES
        )
    })
}

fn check_domain(settings: &Value, at: &FieldPath, field_errors: &mut Vec<FieldError>) {
    let Some(domain) = settings.get("clusterDomain").and_then(Value::as_str) else {
        return;
    };
    if !is_dns_subdomain(domain) || !domain.split('.').all(is_dns_label) {
        field_errors.push(FieldError {
            field: at.field("clusterDomain"),
            problem: format!(
                "`{}` is not a DNS domain; write labels of 1 to 63 of a-z, 0-9 and `-`, separated by dots, with no `-` at either end",
                clean(domain)
            ),
        });
    }
}

fn check_catalog(settings: &Value, at: &FieldPath, field_errors: &mut Vec<FieldError>) {
    let namespace = settings.get("catalogNamespace").and_then(Value::as_str);
    if let Some(namespace) = namespace.filter(|namespace| !is_dns_label(namespace)) {
        field_errors.push(FieldError {
            field: at.field("catalogNamespace"),
            problem: format!(
                "`{}` is not the name of a namespace: at most 63 of a-z, 0-9 and `-`",
                clean(namespace)
            ),
        });
    }
}

fn check_accelerators(settings: &Value, at: &FieldPath, field_errors: &mut Vec<FieldError>) {
    for (of, name) in texts(settings, "accelerators") {
        // Any valid end of a name may replace the `*`.
        let whole = match name.strip_suffix('*') {
            Some(prefix) => format!("{prefix}x"),
            None => name.to_owned(),
        };
        if !is_resource_name(&whole) {
            field_errors.push(FieldError {
                field: at.field("accelerators").index(of),
                problem: format!(
                    "`{}` is not the name of an extended resource, such as `example.com/gpu`, or the beginning of several, such as `example.com/mig-*`",
                    clean(name)
                ),
            });
        }
    }
}

/// The domain of keys that describe an application, which are never obeyed.
const EXEMPT: &str = "app.kubernetes.io";

/// Reports domains that no key has, and domains to remove that are not in the list.
fn check_obeyed_domains(settings: &Value, at: &FieldPath, field_errors: &mut Vec<FieldError>) {
    let Some(changes) = settings.get("obeyedDomains") else {
        return;
    };
    let shipped = ObeyedDomains::default();
    let added = texts(changes, "add").filter_map(|(of, domain)| {
        let problem = match domain {
            EXEMPT => format!("no controller obeys keys of `{EXEMPT}`, so it is exempt; remove it"),
            domain if is_dns_subdomain(domain) => return None,
            _ => format!(
                "`{}` is not a DNS domain, such as `example.com`",
                clean(domain)
            ),
        };
        Some(("add", of, problem))
    });
    let removed = texts(changes, "remove");
    let removed = removed.filter(|(_, domain)| !shipped.domains().any(|of| of == *domain));
    let removed = removed.map(|(of, domain)| {
        let shipped: Vec<_> = shipped.domains().collect();
        let problem = format!(
            "`{}` is not in the shipped list, which has {}",
            clean(domain),
            shipped.join(", ")
        );
        ("remove", of, problem)
    });
    field_errors.extend(added.chain(removed).map(|(list, of, problem)| FieldError {
        field: at.fields(["obeyedDomains", list]).index(of),
        problem,
    }));
}

/// Whether it is a valid name of an extended resource: a domain and a name with the syntax of a label.
fn is_resource_name(text: &str) -> bool {
    let Some((domain, name)) = text.split_once('/') else {
        return false;
    };
    let (first, last) = (name.chars().next(), name.chars().next_back());
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    is_dns_subdomain(domain)
        && name.len() <= 63
        && name.chars().all(is_inner)
        && [first, last]
            .iter()
            .all(|end| end.is_some_and(|c| c.is_ascii_alphanumeric()))
}
