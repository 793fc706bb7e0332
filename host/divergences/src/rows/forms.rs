//! Differences in the accepted forms of input.

use serde_json::json;

use super::frameworks::is_frameworks_env;
use crate::{expected::input::at, seen::Seen};

const OLD_OVERRIDES: [&str; 2] = ["podTemplateOverrides", "podSpecOverrides"];

pub(super) fn old_overrides(seen: &Seen<'_>) -> bool {
    let spec = &seen.job["spec"];
    let given = OLD_OVERRIDES.iter().any(|field| !spec[*field].is_null());
    let path = seen.path();
    // The fields that an override can set: fields of pods and of their containers, but not the framework's env vars.
    let of_pod = path.contains("].template.spec.template.")
        && !is_frameworks_env(path)
        && !path.contains(".ports");
    let printed = OLD_OVERRIDES.iter().any(|field| {
        let field = format!("spec.{field}");
        seen.they_drop(&field) || seen.we_refuse(&field)
    });
    given && (of_pod || seen.needs(".claims[")) || printed
}

pub(super) fn old_metadata(seen: &Seen<'_>) -> bool {
    let fields = ["labels", "annotations"];
    fields.iter().any(|field| {
        let given = seen.job["spec"][*field].is_object();
        let path = format!("spec.{field}");
        given && seen.path().starts_with(&format!("metadata.{field}"))
            || seen.they_drop(&path)
            || seen.we_refuse(&path)
    })
}

pub(super) fn old_processes(seen: &Seen<'_>) -> bool {
    let field = "spec.trainer.numProcPerNode";
    seen.trainer()["numProcPerNode"].is_string()
        && seen.their_refusal().is_some_and(|refusal| {
            refusal.field == field || refusal.error.contains("some validation rules")
        })
}

pub(super) fn other_manager(seen: &Seen<'_>) -> bool {
    let own = "trainer.kubeflow.org/trainjob-controller";
    let manager = seen.job["spec"]["managedBy"].as_str().unwrap_or(own);
    manager != own
        && seen
            .their_refusal()
            .is_some_and(|refusal| refusal.by == "webhook")
}

pub(super) fn plugins_by_name(seen: &Seen<'_>) -> bool {
    let fields = [
        "spec.mlPolicy.plugin",
        "spec.podGroupPolicy.plugin",
        "spec.plugins",
    ];
    let member = seen.policy()["plugin"].is_object() && seen.we_refuse("spec.mlPolicy");
    member
        || fields
            .iter()
            .any(|field| seen.they_drop(field) || seen.we_refuse(field))
}

/// The annotations with which a TrainJob disables plugins and sets their parameters.
pub(super) fn plugin_overrides(seen: &Seen<'_>) -> bool {
    let annotations = ["disabled-plugins", "plugin-parameters"];
    annotations
        .iter()
        .any(|name| seen.we_refuse(&format!("metadata.annotations[trainyard.dev/{name}]")))
}

pub(super) fn old_versions(seen: &Seen<'_>) -> bool {
    seen.their_refusal()
        .is_some_and(|refusal| refusal.field == "apiVersion")
}

pub(super) fn same_name(seen: &Seen<'_>) -> bool {
    seen.our_refusal()
        .is_some_and(|refusal| refusal.error.starts_with("is a duplicate"))
}

/// A label or an annotation of the TrainJob's spec.
pub(super) fn is_metadata(seen: &Seen<'_>) -> bool {
    let given = json!({"metadata": {
        "labels": seen.job["spec"]["labels"],
        "annotations": seen.job["spec"]["annotations"],
    }});
    let expected = at(&given, seen.path());
    seen.ours() == expected && expected.is_some()
}
