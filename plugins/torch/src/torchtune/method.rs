//! How a model is fine-tuned, and on how many devices.

/// How a model is fine-tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// All weights change.
    Full,
    /// Only adapters change.
    Lora,
    /// Only adapters change, and the other weights are quantized.
    Qlora,
}

/// The nodes and devices that run the recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    SingleDevice,
    SeveralDevices,
    SeveralNodes,
}

/// The setting whose presence selects LoRA.
const LORA: &str = "model.lora_attn_modules";
/// The setting that quantizes the other weights.
pub(super) const QUANTIZE: &str = "model.quantize_base";
/// The setting that selects DoRA, a form of LoRA that torchtune does not combine with quantized weights.
const DORA: &str = "model.use_dora";

impl Method {
    /// Returns the method that the settings select.
    pub(super) fn of(settings: &[String]) -> Self {
        if is_true(settings, QUANTIZE) && !is_true(settings, DORA) {
            Self::Qlora
        } else if settings.iter().any(|setting| key(setting) == LORA) {
            Self::Lora
        } else {
            Self::Full
        }
    }

    /// Returns the method's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Full => "full fine-tuning",
            Self::Lora => "LoRA",
            Self::Qlora => "QLoRA",
        }
    }

    /// Returns torchtune's name of the recipe.
    pub(super) const fn recipe(self, scale: Scale) -> &'static str {
        match (self, scale) {
            (Self::Full, Scale::SingleDevice) => "full_finetune_single_device",
            (Self::Full, _) => "full_finetune_distributed",
            (_, Scale::SingleDevice) => "lora_finetune_single_device",
            (_, _) => "lora_finetune_distributed",
        }
    }

    /// Returns what follows the model in the name of a configuration.
    pub(super) const fn configuration(self, scale: Scale) -> &'static str {
        match (self, scale) {
            (Self::Full, Scale::SingleDevice) => "_full_single_device",
            (Self::Full, Scale::SeveralDevices) => "_full",
            (Self::Full, Scale::SeveralNodes) => "_full_multinode",
            (Self::Lora, Scale::SingleDevice) => "_lora_single_device",
            (Self::Lora, Scale::SeveralDevices) => "_lora",
            (Self::Lora, Scale::SeveralNodes) => "_lora_multinode",
            (Self::Qlora, Scale::SingleDevice) => "_qlora_single_device",
            (Self::Qlora, Scale::SeveralDevices) => "_qlora",
            (Self::Qlora, Scale::SeveralNodes) => "_qlora_multinode",
        }
    }
}

/// Returns the key of a setting `KEY=VALUE` or `~KEY`.
pub(super) fn key(setting: &str) -> &str {
    let setting = setting.strip_prefix('~').unwrap_or(setting);
    setting.split_once('=').map_or(setting, |(key, _)| key)
}

/// Whether the last of these settings with the key is true, in any case, as Python's YAML reads it.
fn is_true(settings: &[String], wanted: &str) -> bool {
    let values = settings
        .iter()
        .filter_map(|setting| setting.split_once('='));
    let value = values
        .rev()
        .find_map(|(key, value)| (key == wanted).then_some(value));
    value.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}
