//! The operator configuration: the device classes that are accelerators.

use trainyard_sdk::Config;

/// The operator's configuration.
#[derive(Config, Debug)]
pub(crate) struct DraConfig {
    /// Device classes whose devices count as accelerators, instead of the default rule; `*` matches any text, such as in `*.gpu.example.com`.
    #[config(max_items = 64)]
    pub(crate) accelerator_classes: Vec<String>,
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeviceKind {
    /// Not an accelerator, such as a network card.
    Other,
    /// Unknown from its class.
    Unknown,
    /// An accelerator, which can run one process.
    Accelerator,
}

/// Words in a class's name that mean an accelerator, also in the plural and with a number after them. So does every name that contains
/// `gpu`, as in the proposal for Kubeflow Trainer.
const ACCELERATORS: [&str; 7] = [
    "tpu",
    "npu",
    "mig",
    "gaudi",
    "neuron",
    "neuroncore",
    "accelerator",
];
/// Words that mean another device.
const OTHERS: [&str; 5] = ["nic", "rdma", "channel", "daemon", "infiniband"];

impl DraConfig {
    /// The kind of the devices of a class.
    pub(crate) fn kind(&self, class: &str) -> DeviceKind {
        if !self.accelerator_classes.is_empty() {
            let mut patterns = self.accelerator_classes.iter();
            return match patterns.any(|pattern| matches(pattern, class)) {
                true => DeviceKind::Accelerator,
                false => DeviceKind::Other,
            };
        }
        let words = class
            .split(|c: char| !c.is_ascii_alphanumeric())
            .map(|word| {
                let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
                word.strip_suffix('s').unwrap_or(word)
            });
        let words: Vec<_> = words.collect();
        let says = |known: &[&str]| words.iter().any(|word| known.contains(word));
        if says(&OTHERS) {
            DeviceKind::Other
        } else if class.contains("gpu") || says(&ACCELERATORS) {
            DeviceKind::Accelerator
        } else {
            DeviceKind::Unknown
        }
    }
}

/// Whether a text matches a pattern in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut left) = text.strip_prefix(head) else {
        return false;
    };
    let (middle, tail) = rest
        .rsplit_once('*')
        .map_or(("", rest), |(middle, tail)| (middle, tail));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("gpu.example.com", "gpu.example.com", true),
            ("gpu.example.com", "gpu.example.org", false),
            ("*.example.com", "gpu.example.com", true),
            ("gpu*", "gpus.example.com", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c", false),
            ("*", "", true),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_shipped_rule() {
        let rule = DraConfig {
            accelerator_classes: Vec::new(),
        };
        for (class, kind) in [
            ("gpu.example.com", DeviceKind::Accelerator),
            ("mig.nvidia.com", DeviceKind::Accelerator),
            ("vgpu.example.com", DeviceKind::Accelerator),
            ("gpu80gb.example.com", DeviceKind::Accelerator),
            ("nvidiagpua100", DeviceKind::Accelerator),
            ("gpu-high-memory.example.com", DeviceKind::Accelerator),
            ("tpus.example.com", DeviceKind::Accelerator),
            ("tpu.google.com", DeviceKind::Accelerator),
            ("gaudi3.example.com", DeviceKind::Accelerator),
            ("rdma.example.com", DeviceKind::Other),
            ("nics.example.com", DeviceKind::Other),
            ("gpu-nic.example.com", DeviceKind::Other),
            (
                "compute-domain-default-channel.nvidia.com",
                DeviceKind::Other,
            ),
            ("h100.example.com", DeviceKind::Unknown),
            ("migration.example.com", DeviceKind::Unknown),
            ("inputs.example.com", DeviceKind::Unknown),
        ] {
            assert_eq!(rule.kind(class), kind, "{class}");
        }
    }

    #[test]
    fn the_operators_list_knows_them_all() {
        let rule = DraConfig {
            accelerator_classes: vec!["fast.*".to_owned()],
        };
        assert_eq!(rule.kind("fast.example.com"), DeviceKind::Accelerator);
        assert_eq!(rule.kind("gpu.example.com"), DeviceKind::Other);
    }
}
