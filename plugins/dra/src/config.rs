//! What the operator sets: which device classes are accelerators.

use trainyard_sdk::Config;

/// The operator's configuration.
#[derive(Config, Debug)]
pub(crate) struct DraConfig {
    /// Device classes whose devices count as accelerators, in place of the shipped rule; `*` stands for any text, as in `*.gpu.example.com`.
    #[config(max_items = 64)]
    pub(crate) accelerator_classes: Vec<String>,
}

/// Words of a class's name that mean an accelerator, and those that mean that it is something beside one.
const ACCELERATORS: [&str; 7] = ["gpu", "gpus", "tpu", "npu", "mig", "gaudi", "neuron"];
const OTHERS: [&str; 6] = ["nic", "nics", "rdma", "channel", "daemon", "memory"];

impl DraConfig {
    /// Whether devices of the class are accelerators.
    pub(crate) fn is_accelerator(&self, class: &str) -> bool {
        if self.accelerator_classes.is_empty() {
            let words = || class.split(|c: char| !c.is_ascii_alphanumeric());
            let named = |word: &str| ACCELERATORS.contains(&word) || word.ends_with("gpu");
            words().any(named) && !words().any(|word| OTHERS.contains(&word))
        } else {
            let mut patterns = self.accelerator_classes.iter();
            patterns.any(|pattern| matches(pattern, class))
        }
    }
}

/// Whether a text is of a pattern in which `*` stands for any text.
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
        for class in [
            "gpu.example.com",
            "gpu.nvidia.com",
            "mig.nvidia.com",
            "vgpu.example.com",
            "tpu.google.com",
        ] {
            assert!(rule.is_accelerator(class), "{class}");
        }
        for class in [
            "rdma.example.com",
            "gpu-nic.example.com",
            "compute-domain-default-channel.nvidia.com",
            "migration.example.com",
        ] {
            assert!(!rule.is_accelerator(class), "{class}");
        }
    }
}
