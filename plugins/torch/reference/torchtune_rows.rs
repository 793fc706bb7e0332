//! Differences of torchtune, whose command both sides complete.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rows;
use crate::{
    rows::frameworks::{has_disputed_accelerators, is_first_pod, is_partial_override, named},
    seen::Seen,
};

/// The env vars that a completed command replaces.
const IN_THE_COMMAND: [&str; 2] = [
    ".containers[node].env[PET_MASTER_ADDR]",
    ".containers[node].env[PET_MASTER_PORT]",
];

/// A completed command.
struct Line<'l> {
    endpoint: Option<&'l str>,
    recipe: &'l str,
    configuration: &'l str,
    settings: Vec<&'l str>,
}

impl<'l> Line<'l> {
    fn read(side: Option<&'l Value>) -> Option<Self> {
        let words: Option<Vec<_>> = side?.as_array()?.iter().map(Value::as_str).collect();
        let words = words?;
        let ["tune", "run", rest @ ..] = &*words else {
            return None;
        };
        let endpoint = rest.first()?.strip_prefix("--rdzv_endpoint=");
        let rest = if endpoint.is_some() {
            rest.get(1..)?
        } else {
            rest
        };
        let [recipe, "--config", configuration, settings @ ..] = rest else {
            return None;
        };
        Some(Self {
            endpoint,
            recipe,
            configuration,
            settings: settings.to_vec(),
        })
    }
}

/// Whether the TrainJob leaves the recipe to the policy.
fn is_torchtune(seen: &Seen<'_>) -> bool {
    seen.trainer()["command"] == json!(["tune", "run"])
}

/// Returns both commands if at most these parts differ, and the settings as `keeps_paths` says.
fn lines<'s>(seen: &Seen<'s>) -> Option<(Line<'s>, Line<'s>)> {
    let is_command = is_torchtune(seen) && seen.path().ends_with(".containers[node].command");
    let (ours, theirs) = (Line::read(seen.ours())?, Line::read(seen.theirs())?);
    let is_like = ours.settings == theirs.settings || keeps_paths(seen, &ours, &theirs);
    (is_command && is_like).then_some((ours, theirs))
}

/// Whether only Trainyard's command has the paths in the runtime's arguments, which the TrainJob's arguments replace.
fn keeps_paths(seen: &Seen<'_>, ours: &Line<'_>, theirs: &Line<'_>) -> bool {
    let kept = ours.settings.strip_prefix(&*theirs.settings);
    let kept = kept.unwrap_or_default();
    let is_of_runtime = |word: &&str| {
        let of = |container: &Value| {
            let mut args = container["args"].as_array().into_iter().flatten();
            args.any(|arg| arg == word)
        };
        seen.node_containers().any(of)
    };
    seen.trainer()["args"].is_array() && !kept.is_empty() && kept.iter().all(is_of_runtime)
}

pub(super) fn model(seen: &Seen<'_>) -> bool {
    let is_refused = is_torchtune(seen)
        && seen.their_refusal().is_some_and(|refusal| {
            refusal.field == "spec.runtimeRef.name"
                && refusal.error.contains("supported pretrained model")
        });
    let other_model = lines(seen).is_some_and(|(ours, theirs)| {
        let model = |line: &Line<'_>| {
            line.configuration
                .split_once('_')
                .map(|(model, _)| model.to_owned())
        };
        ours.recipe == theirs.recipe && model(&ours) != model(&theirs)
    });
    is_refused || other_model
}

pub(super) fn devices(seen: &Seen<'_>) -> bool {
    let is_explicit = seen.trainer()["numProcPerNode"].as_u64() > Some(1);
    let claimed = |pod: &Value| !pod["resourceClaims"].is_null();
    let is_disputed = is_partial_override(seen)
        || has_disputed_accelerators(seen)
        || seen.pods().any(claimed)
        || seen.patched_pods().any(claimed);
    let differs = lines(seen).is_some_and(|(ours, theirs)| ours.recipe != theirs.recipe);
    // They require a GPU or the number. Without GPUs, Trainyard counts CPUs.
    let is_refused = is_torchtune(seen)
        && seen.trainer()["numProcPerNode"].is_null()
        && seen
            .their_refusal()
            .is_some_and(|refusal| refusal.error.contains("model when using QLoRA"));
    let has_gpus = || {
        let of_container = seen
            .node_containers()
            .flat_map(|container| named(&container["resources"]));
        let mut all = of_container.chain(named(&seen.trainer()["resourcesPerNode"]));
        all.any(|(_, name)| name.contains("gpu"))
    };
    differs && (is_explicit || is_disputed) || is_refused && (is_disputed || !has_gpus())
}

/// Whether only Trainyard's configuration is one for several nodes, whose number is in the runtime's template.
pub(super) fn nodes_of_the_template(seen: &Seen<'_>) -> bool {
    let mut given = [seen.trainer(), seen.policy()].into_iter();
    let is_given = given.any(|from| !from["numNodes"].is_null());
    let is_of_several = |line: &Line<'_>| line.configuration.ends_with("_multinode");
    let differs =
        lines(seen).is_some_and(|(ours, theirs)| is_of_several(&ours) && !is_of_several(&theirs));
    differs && !is_given
}

/// The runtime's number of processes, or the recipe that follows from it.
pub(super) fn runtime_processes(seen: &Seen<'_>) -> bool {
    let is_of_runtime = !seen.policy()["torch"]["numProcPerNode"].is_null()
        && seen.trainer()["numProcPerNode"].is_null();
    let differs = lines(seen).is_some_and(|(ours, theirs)| ours.recipe != theirs.recipe);
    is_of_runtime && differs || rows::runtime_processes(seen)
}

pub(super) fn address(seen: &Seen<'_>) -> bool {
    lines(seen).is_some_and(|(ours, theirs)| {
        let is_ours = ours
            .endpoint
            .is_some_and(|endpoint| is_first_pod(seen, endpoint));
        is_ours
            && theirs.endpoint.is_some()
            && (ours.recipe, ours.configuration) == (theirs.recipe, theirs.configuration)
    })
}

pub(super) fn runtime_args(seen: &Seen<'_>) -> bool {
    let has_args = |container: &Value| {
        container["args"]
            .as_array()
            .is_some_and(|args| !args.is_empty())
    };
    let differs = lines(seen).is_some_and(|(ours, theirs)| ours.recipe != theirs.recipe);
    let selects = differs && seen.trainer()["args"].is_null();
    let keeps = lines(seen).is_some_and(|(ours, theirs)| {
        (ours.recipe, ours.configuration) == (theirs.recipe, theirs.configuration)
            && ours.settings != theirs.settings
    });
    (selects || keeps) && seen.node_containers().any(has_args)
}

/// A setting of the TrainJob that is true and false, of which torchtune uses the last value.
pub(super) fn repeated_settings(seen: &Seen<'_>) -> bool {
    let args = seen.trainer()["args"].as_array();
    let values = |key: &str| -> BTreeSet<bool> {
        let words = args.into_iter().flatten().filter_map(Value::as_str);
        let values = words.filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        values
            .map(|value| value.eq_ignore_ascii_case("true"))
            .collect()
    };
    let keys = ["model.use_dora", "model.quantize_base"];
    let differs =
        lines(seen).is_some_and(|(ours, theirs)| ours.configuration != theirs.configuration);
    differs && keys.iter().any(|key| values(key).len() > 1)
}

/// A runtime whose own command is `[tune, run]`.
pub(super) fn runtime_command(seen: &Seen<'_>) -> bool {
    let mut nodes = seen.node_containers();
    let is_incomplete = seen.trainer()["command"].is_null()
        && nodes.any(|container| container["command"] == json!(["tune", "run"]));
    let path = seen.path();
    let is_rendered = path.ends_with(".containers[node].command")
        || path.contains(".containers[node].env[") && path.ends_with(".expands")
        || IN_THE_COMMAND.iter().any(|field| path.ends_with(field));
    // The checks of a line that is completed.
    let is_refused = seen.our_refusal().is_some_and(|refusal| {
        let says = |text| refusal.error.contains(text);
        says("torchtune") || says("a path in the volume of the runtime")
    });
    is_incomplete && (is_rendered || is_refused)
}

pub(super) fn complete_line(seen: &Seen<'_>) -> bool {
    let args = seen.trainer()["args"].as_array();
    let words = args.into_iter().flatten().filter_map(Value::as_str);
    let mut before = "";
    let mut words = words.filter(|word| {
        let is_value = std::mem::replace(&mut before, word) == "--config";
        !is_value && !word.starts_with('-')
    });
    let first = words.next();
    let is_complete = first.is_some_and(|word| !word.starts_with('~') && !word.contains('='));
    let path = seen.path();
    let is_rendered = path.ends_with(".containers[node].command")
        || IN_THE_COMMAND.iter().any(|field| path.ends_with(field));
    // They check the line that they would make of it.
    let is_refused = seen.their_refusal().is_some_and(|refusal| {
        refusal.field == "spec.trainer.numNodes" || refusal.error.contains("immutable config")
    });
    is_torchtune(seen) && is_complete && (is_rendered || is_refused)
}

pub(super) fn options(seen: &Seen<'_>) -> bool {
    let refusal = seen.our_refusal();
    let is_option = refusal.is_some_and(|refusal| {
        refusal.field.contains("args[")
            && refusal
                .error
                .contains("the only option of torchtune's recipes")
    });
    is_torchtune(seen) && is_option
}

pub(super) fn configuration(seen: &Seen<'_>) -> bool {
    let fields = [
        "spec.mlPolicy.numNodes",
        "spec.trainer.numNodes",
        "spec.trainer.numProcPerNode",
    ];
    let is_lacking = seen.our_refusal().is_some_and(|refusal| {
        let at_scale = refusal.error.contains("which torchtune runs on");
        let at_argument = refusal
            .error
            .contains("because torchtune has no configuration for");
        at_scale && fields.contains(&&*refusal.field) || at_argument
    });
    // Both refuse it, at other fields.
    let is_their_method = seen
        .their_refusal()
        .is_some_and(|refusal| refusal.error.contains("QLoRA is not supported"));
    is_torchtune(seen) && (is_lacking || is_their_method)
}
