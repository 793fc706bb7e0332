//! The models that torchtune can fine-tune, and the configurations that it has for each.
//!
//! The models are those of the Kubeflow Trainer, the configurations those of torchtune 0.6.1, its last release.

use super::method::{Method, Scale};

/// A model in the names of torchtune's configurations.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// The name, such as `llama3_2/1B`.
    pub(super) name: &'static str,
    /// What follows the name in the names of its configurations.
    configurations: &'static [&'static str],
}

const SMALL_LLAMA: &[&str] = &[
    "_full_single_device",
    "_full",
    "_lora_single_device",
    "_lora",
    "_qlora_single_device",
];

const MODELS: [Model; 4] = [
    Model {
        name: "llama3_2/1B",
        configurations: SMALL_LLAMA,
    },
    Model {
        name: "llama3_2/3B",
        configurations: SMALL_LLAMA,
    },
    Model {
        name: "llama3_3/70B",
        configurations: &["_full", "_full_multinode", "_lora", "_qlora"],
    },
    Model {
        name: "qwen2_5/1.5B",
        configurations: &[
            "_full_single_device",
            "_full",
            "_lora_single_device",
            "_lora",
        ],
    },
];

impl Model {
    /// Returns the model of the configuration that a command names with `--config`.
    pub(super) fn of_command(command: &[String]) -> Option<&'static Self> {
        let mut words = command.iter();
        words.find(|word| *word == "--config")?;
        let configuration = words.next()?;
        let is_of = |model: &&Self| {
            let rest = configuration.strip_prefix(model.name);
            rest.is_some_and(|rest| model.configurations.contains(&rest))
        };
        MODELS.iter().find(is_of)
    }

    /// Returns the model in the name of a runtime, such as `torchtune-llama3.2-1b`.
    pub(super) fn of_runtime(name: &str) -> Option<&'static Self> {
        let mut parts = name.split('-');
        let (_, family, size) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let name = format!("{}/{}", family.replace('.', "_"), size.to_ascii_uppercase());
        MODELS.iter().find(|model| model.name == name)
    }

    /// Returns the configuration for a method and a number of nodes and devices, if torchtune has one.
    pub(super) fn configuration(&self, method: Method, scale: Scale) -> Option<String> {
        let suffix = method.configuration(scale)?;
        let is_known = self.configurations.contains(&suffix);
        is_known.then(|| format!("{}{suffix}", self.name))
    }

    /// The names of all models, for messages.
    pub(super) fn names() -> String {
        MODELS.map(|model| format!("`{}`", model.name)).join(", ")
    }
}
