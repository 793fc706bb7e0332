//! The models that torchtune can fine-tune, and the configurations that it has for each.
//!
//! The models are those of the Kubeflow Trainer, the configurations those of torchtune 0.6.1, its last release.

use super::method::{
    Method::{self, Full, Lora, Qlora},
    Scale::{self, SeveralDevices, SeveralNodes, SingleDevice},
};

/// The only option of recipes, which names a configuration. Of several, the last one counts.
pub(super) const CONFIG: &str = "--config";

/// A model in the names of torchtune's configurations.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// The name, such as `llama3_2/1B`.
    pub(super) name: &'static str,
    /// What torchtune has a configuration for.
    configurations: &'static [(Method, Scale)],
}

const SMALL_LLAMA: &[(Method, Scale)] = &[
    (Full, SingleDevice),
    (Full, SeveralDevices),
    (Lora, SingleDevice),
    (Lora, SeveralDevices),
    (Qlora, SingleDevice),
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
        configurations: &[
            (Full, SeveralDevices),
            (Full, SeveralNodes),
            (Lora, SeveralDevices),
            (Qlora, SeveralDevices),
        ],
    },
    Model {
        name: "qwen2_5/1.5B",
        configurations: &[
            (Full, SingleDevice),
            (Full, SeveralDevices),
            (Lora, SingleDevice),
            (Lora, SeveralDevices),
        ],
    },
];

impl Model {
    /// Returns the model of the first configuration that a line names with `--config`.
    pub(super) fn of_line(line: &[String]) -> Option<&'static Self> {
        let mut words = line.iter();
        let named = words.find_map(|word| word.strip_prefix(CONFIG))?;
        let configuration = match named.strip_prefix('=') {
            Some(configuration) => configuration,
            None => words.next()?,
        };
        let has = |model: &&Self| {
            let mut all = model.configurations.iter();
            all.any(|(method, scale)| {
                model.configuration(*method, *scale).as_deref() == Some(configuration)
            })
        };
        MODELS.iter().find(has)
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
        let is_known = self.configurations.contains(&(method, scale));
        is_known.then(|| format!("{}{}", self.name, method.configuration(scale)))
    }

    /// The names of all models, for messages.
    pub(super) fn names() -> String {
        MODELS.map(|model| format!("`{}`", model.name)).join(", ")
    }
}
