//! Pods that no machine can run. Plugins cannot read required node affinity, so a plugin may add a node selector that contradicts it. The
//! pods would stay pending, and nothing would say why.

use serde_json::{Map, Value};
use trainyard_api::FieldPath;

use crate::{
    json::{get_at, items, text},
    problem::{InputObject, Warning},
};

/// Returns a warning for each replicated job whose pods have a node selector that none of the alternatives of their affinity allows.
pub(crate) fn warnings(job_set: &Value) -> impl Iterator<Item = Warning> {
    let jobs = get_at(job_set, &["spec"]).map_or(&[][..], |spec| items(spec, "replicatedJobs"));
    jobs.iter().enumerate().filter_map(|(position, job)| {
        let pod = get_at(job, &["template", "spec", "template", "spec"])?;
        let (key, value) = contradiction(pod)?;
        let field = FieldPath::of(["spec", "template", "spec", "replicatedJobs"])
            .index(position)
            .fields(["template", "spec", "template", "spec", "nodeSelector"])
            .key(key);
        Some(Warning {
            about: InputObject::Runtime,
            field: Some(field.to_string()),
            message: format!(
                "is `{value}` in the pods, but their required node affinity excludes it, so no machine can run them; change one of the two (`trainyard explain` shows what set the label)"
            ),
            plugin: None,
        })
    })
}

/// Returns a label of the node selector that contradicts the required affinity. Its alternatives can contradict different labels, so the one
/// of the first alternative is returned.
fn contradiction(pod: &Value) -> Option<(&str, &str)> {
    let selector = get_at(pod, &["nodeSelector"])?.as_object()?;
    let required = [
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
    ];
    let mut alternatives = items(get_at(pod, &required)?, "nodeSelectorTerms").iter();
    let first = alternatives
        .next()
        .and_then(|term| excluded(selector, term))?;
    let all = alternatives.all(|term| excluded(selector, term).is_some());
    all.then_some(first)
}

/// Returns a label of the node selector that an alternative excludes.
fn excluded<'s>(selector: &'s Map<String, Value>, term: &Value) -> Option<(&'s str, &'s str)> {
    items(term, "matchExpressions")
        .iter()
        .find_map(|expression| {
            let (key, value) = selector.get_key_value(text(expression, "key"))?;
            let is_listed = items(expression, "values").contains(value);
            let is_excluded = match text(expression, "operator") {
                "In" => !is_listed,
                "NotIn" => is_listed,
                "DoesNotExist" => true,
                _ => false,
            };
            is_excluded.then_some((key.as_str(), value.as_str()?))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(terms: &Value) -> usize {
        let required =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        let pod =
            json!({"nodeSelector": {"arch": "amd64"}, "affinity": {"nodeAffinity": required}});
        let job = json!({"template": {"spec": {"template": {"spec": pod}}}});
        warnings(&json!({"spec": {"replicatedJobs": [job]}})).count()
    }

    #[test]
    fn an_affinity_that_excludes_the_selector_in_every_alternative_is_found() {
        let term = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "arch", "operator": operator, "values": values}]});
        let (other, own) = (term("In", &["arm64"]), term("In", &["amd64", "arm64"]));
        for excluded in [
            other.clone(),
            term("NotIn", &["amd64"]),
            term("DoesNotExist", &[]),
        ] {
            assert_eq!(found(&json!([excluded])), 1, "{excluded}");
            assert_eq!(found(&json!([excluded, other])), 1, "{excluded}");
            assert_eq!(found(&json!([excluded, own])), 0, "{excluded}");
            assert_eq!(found(&json!([own, excluded])), 0, "{excluded}");
        }
        for allowed in [own.clone(), term("NotIn", &["arm64"]), term("Exists", &[])] {
            assert_eq!(found(&json!([allowed])), 0, "{allowed}");
        }
        assert_eq!(found(&json!([])), 0);
    }
}
