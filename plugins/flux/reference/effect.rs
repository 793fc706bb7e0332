//! The effect of Flux's scripts and configuration, which is compared instead of their text: the hosts and their addresses, the resources of
//! a node, and the command.

use serde_json::{Map, Value, json};

/// The name of the script before the command, for both sides.
const ENTRYPOINT: &str = "/etc/flux-config/entrypoint.sh";

/// Replaces the scripts of an object, and the commands that they precede, by their effect.
pub(super) fn effect(object: &mut Value) {
    if is_scripts(object)
        && let Some(data) = object.get_mut("data")
    {
        *data = facts(data);
    }
    unwrap_below(object);
}

fn unwrap_below(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(unwrapped) = unwrapped(map) {
                *map = unwrapped;
            }
            map.values_mut().for_each(unwrap_below);
        }
        Value::Array(items) => items.iter_mut().for_each(unwrap_below),
        _ => {}
    }
}

/// Returns whether an object contains the scripts.
fn is_scripts(object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    object["kind"] == "ConfigMap" && name.ends_with("-flux-entrypoint")
}

/// Returns the facts of the files of such an object.
fn facts(data: &Value) -> Value {
    let file = |name: &str| data[name].as_str().unwrap_or_default();
    let mut facts = if data["settings.sh"].is_string() {
        ours(file("settings.sh"), file("broker.toml"))
    } else {
        theirs(file("entrypoint.sh"), file("init.sh"))
    };
    let affinity = cpu_affinity(file("entrypoint.sh"));
    facts.insert("cpuAffinity".to_owned(), affinity);
    facts.into()
}

/// Returns the text between the first occurrences of two texts.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

/// Returns whether Flux binds tasks to their allocated cores, which is its default.
fn cpu_affinity(entrypoint: &str) -> Value {
    between(entrypoint, "cpu-affinity=", " ")
        .unwrap_or("on")
        .into()
}

/// Returns the facts of the brokers' configuration, which is TOML on both sides.
fn of_broker(broker: &str) -> Map<String, Value> {
    let quoted = |key: &str| between(broker, &format!("{key} = \""), "\"").map(str::to_owned);
    let hosts = between(broker, "{ host", "}").and_then(|rest| between(rest, "\"", "\""));
    let facts = json!({
        "bind": quoted("default_bind"),
        "connect": quoted("default_connect"),
        "queue": quoted("queue-policy"),
        "hosts": hosts.map(hosts_of),
    });
    facts.as_object().cloned().unwrap_or_default()
}

/// Returns a list of hosts in a canonical form.
fn hosts_of(list: &str) -> String {
    match list.strip_suffix("-[0]") {
        Some(prefix) => format!("{prefix}-0"),
        None => list.to_owned(),
    }
}

/// Returns the number of IDs in a set that starts at 0.
fn count(ids: &str) -> u64 {
    let last = ids.rsplit('-').next().unwrap_or_default();
    last.parse::<u64>().map_or(0, |last| last.saturating_add(1))
}

fn ours(settings: &str, broker: &str) -> Map<String, Value> {
    let setting = |name: &str| {
        let value = between(settings, &format!("\ntrainyard_{name}="), "\n").unwrap_or_default();
        value.trim_matches('\'').to_owned()
    };
    let number = |name: &str| setting(name).parse::<u64>().unwrap_or(0);
    let mut facts = of_broker(broker);
    facts.insert("lead".to_owned(), setting("lead").into());
    facts.insert("nodes".to_owned(), number("nodes").into());
    facts.insert("tasksPerNode".to_owned(), number("tasks").into());
    facts.insert("cores".to_owned(), count(&setting("core_ids")).into());
    facts.insert("gpus".to_owned(), count(&setting("gpu_ids")).into());
    facts.insert("gpusAskedPerNode".to_owned(), number("gpus").into());
    facts
}

fn theirs(entrypoint: &str, init: &str) -> Map<String, Value> {
    let flags = between(entrypoint, "flags=\"", "\"").unwrap_or_default();
    let words: Vec<_> = flags.split_whitespace().collect();
    let flag = |name: &str| {
        let at = words.iter().position(|word| *word == name);
        let value = at.and_then(|at| words.get(at + 1));
        value
            .and_then(|value| value.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let encode = between(entrypoint, "flux R encode --hosts=${hosts} ", ">").unwrap_or_default();
    let ids = |name: &str| {
        let mut words = encode.split_whitespace();
        words
            .find_map(|word| word.strip_prefix(name))
            .map_or(0, count)
    };
    let (nodes, tasks) = (flag("-N"), flag("-n"));
    let tasks = tasks.checked_div(nodes).unwrap_or(0);
    let mut facts = of_broker(init);
    let lead = between(entrypoint, "mainHost=\"", "\"").unwrap_or_default();
    facts.insert("lead".to_owned(), lead.into());
    facts.insert("nodes".to_owned(), nodes.into());
    facts.insert("tasksPerNode".to_owned(), tasks.into());
    facts.insert("cores".to_owned(), ids("--cores=").into());
    facts.insert("gpus".to_owned(), ids("--gpu=").into());
    // `-g` requests them per task.
    facts.insert(
        "gpusAskedPerNode".to_owned(),
        (flag("-g").saturating_mul(tasks)).into(),
    );
    facts
}

/// Returns the container with the command that Flux runs, if the script precedes it.
fn unwrapped(container: &Map<String, Value>) -> Option<Map<String, Value>> {
    let list = |name: &str| {
        let items = container.get(name).and_then(Value::as_array);
        let items = items.into_iter().flatten().filter_map(Value::as_str);
        items.map(str::to_owned).collect::<Vec<_>>()
    };
    let (command, args) = (list("command"), list("args"));
    let words = match command.as_slice() {
        [shell, script] if shell == "/bin/bash" && script == ENTRYPOINT => args,
        [shell, script, joined @ ..] if shell == "/bin/bash" && script == ENTRYPOINT => {
            // The shell splits the arguments of the reference's script.
            let all = [joined, &args].concat().join(" ");
            all.split_whitespace().map(str::to_owned).collect()
        }
        _ => return None,
    };
    let mut out = container.clone();
    out.remove("command");
    out.remove("args");
    out.insert("fluxRuns".to_owned(), words.into());
    Some(out)
}
