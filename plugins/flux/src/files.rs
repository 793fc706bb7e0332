//! The scripts and their settings. No values are interpolated into the scripts.

use crate::instance::Instance;

/// The files of the ConfigMap without values.
pub(crate) const SCRIPTS: [(&str, &str); 2] = [
    ("entrypoint.sh", include_str!("../scripts/entrypoint.sh")),
    ("init.sh", include_str!("../scripts/init.sh")),
];

/// All network devices, in the address of a broker.
const ALL_DEVICES: &str = "*";

/// The names of the files with values.
pub(crate) const SETTINGS: &str = "settings.sh";
pub(crate) const BROKER: &str = "broker.toml";

/// The settings of the scripts.
pub(crate) fn settings(instance: &Instance) -> String {
    let gpus = instance
        .gpus
        .map(|gpus| gpus.to_string())
        .unwrap_or_default();
    let values = [
        ("hosts", instance.hosts.clone()),
        ("lead", instance.lead.clone()),
        ("nodes", instance.nodes.to_string()),
        ("tasks", instance.tasks.to_string()),
        ("exit_timeout", instance.settings.exit_timeout.clone()),
        ("core_ids", ids(instance.cores)),
        ("gpu_ids", instance.gpus.map(ids).unwrap_or_default()),
        ("gpus", gpus),
    ];
    let mut values = values
        .map(|(name, value)| (name, shell_word(&value)))
        .to_vec();
    values.push(("why", instance.tasks_because.to_owned()));
    filled(include_str!("../scripts/settings.sh"), &values)
}

/// The configuration of the brokers. Its values contain no characters that need quoting in TOML: see [`crate::settings`].
pub(crate) fn broker(instance: &Instance) -> String {
    let settings = &instance.settings;
    let device = settings.network_device.as_deref();
    let values = [
        ("device", device.unwrap_or(ALL_DEVICES).to_owned()),
        ("ipv6", device.is_none().to_string()),
        ("domain", instance.domain.clone()),
        ("hosts", instance.hosts.clone()),
        ("policy", settings.queue_policy.clone()),
    ];
    filled(include_str!("../scripts/broker.toml"), &values)
}

/// Replaces each `@NAME@` by its value.
fn filled(text: &str, values: &[(&str, String)]) -> String {
    let fill =
        |text: String, (name, value): &(&str, String)| text.replace(&format!("@{name}@"), value);
    values.iter().fold(text.to_owned(), fill)
}

/// The ids from 0 to `count` - 1, in Flux's format.
fn ids(count: u32) -> String {
    match count.saturating_sub(1) {
        0 => "0".to_owned(),
        last => format!("0-{last}"),
    }
}

/// Quotes the text as one word of a shell.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_whatever_it_holds() {
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's $(x)"), r"'it'\''s $(x)'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn sets_of_ids() {
        assert_eq!([1, 2, 8].map(ids), ["0", "0-1", "0-7"]);
    }
}
