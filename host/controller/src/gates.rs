//! Feature gates, as Kubernetes components have them.

use std::{collections::BTreeMap, str::FromStr};

use thiserror::Error;

/// The feature gates that are set. Those that are not set have their defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureGates(BTreeMap<FeatureGate, bool>);

/// A feature gate of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FeatureGate {
    /// Pods report progress to the status server. Alpha, off by default.
    TrainJobStatus,
    /// All gates that are alpha and not set.
    AllAlpha,
    /// All gates that are beta and not set. There are none.
    AllBeta,
}

/// Text that sets no feature gates.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FeatureGateError {
    /// The gate does not exist.
    #[error("`{0}` is not a feature gate; the feature gates are {all}", all = FeatureGate::ALL.map(FeatureGate::name).join(", "))]
    Unknown(String),
    /// An entry of a flag is not `NAME=true` or `NAME=false`.
    #[error(
        "`{0}` does not set a feature gate; use NAME=true or NAME=false, such as TrainJobStatus=true"
    )]
    Malformed(String),
}

impl FeatureGate {
    /// All of them.
    const ALL: [Self; 3] = [Self::TrainJobStatus, Self::AllAlpha, Self::AllBeta];

    /// Returns its name in flags and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TrainJobStatus => "TrainJobStatus",
            Self::AllAlpha => "AllAlpha",
            Self::AllBeta => "AllBeta",
        }
    }
}

impl FromStr for FeatureGate {
    type Err = FeatureGateError;

    fn from_str(name: &str) -> Result<Self, FeatureGateError> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|gate| gate.name() == name);
        found.ok_or_else(|| FeatureGateError::Unknown(name.to_owned()))
    }
}

impl FromStr for FeatureGates {
    type Err = FeatureGateError;

    fn from_str(text: &str) -> Result<Self, FeatureGateError> {
        let entries = text.split(',').map(str::trim);
        let entries = entries.filter(|entry| !entry.is_empty()).map(|entry| {
            let malformed = || FeatureGateError::Malformed(entry.to_owned());
            let (name, value) = entry.split_once('=').ok_or_else(malformed)?;
            let value = value.trim().parse().map_err(|_| malformed())?;
            Ok((name.trim().parse()?, value))
        });
        entries.collect::<Result<_, _>>().map(Self)
    }
}

impl FromIterator<(FeatureGate, bool)> for FeatureGates {
    fn from_iter<I: IntoIterator<Item = (FeatureGate, bool)>>(gates: I) -> Self {
        Self(gates.into_iter().collect())
    }
}

impl FeatureGates {
    /// Reads the gates of the reference's configuration file.
    ///
    /// # Errors
    /// A gate does not exist.
    pub(crate) fn of_file(entries: &BTreeMap<String, bool>) -> Result<Self, FeatureGateError> {
        let entries = entries
            .iter()
            .map(|(name, value)| Ok((name.parse()?, *value)));
        entries.collect::<Result<_, _>>().map(Self)
    }

    /// Returns these gates with those of flags in their place.
    #[must_use]
    pub fn with(mut self, flags: &Self) -> Self {
        self.0.extend(&flags.0);
        self
    }

    /// Whether a gate is on.
    #[must_use]
    pub fn is_on(&self, gate: FeatureGate) -> bool {
        let set = |gate| self.0.get(&gate).copied();
        // All gates are alpha.
        set(gate)
            .or_else(|| set(FeatureGate::AllAlpha))
            .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn gates_are_set_as_in_kubernetes() {
        let is_on = |text: &str| {
            let gates: FeatureGates = text.parse().unwrap();
            gates.is_on(FeatureGate::TrainJobStatus)
        };
        for text in [
            "TrainJobStatus=true",
            " TrainJobStatus = true ,",
            "AllAlpha=true",
        ] {
            assert!(is_on(text), "{text}");
        }
        for text in ["", "AllBeta=true", "AllAlpha=true,TrainJobStatus=false"] {
            assert!(!is_on(text), "{text}");
        }
        let error = |text: &str| text.parse::<FeatureGates>().unwrap_err().to_string();
        assert!(error("TrainJob=true").contains("are TrainJobStatus, AllAlpha, AllBeta"));
        for text in ["TrainJobStatus", "TrainJobStatus=yes", "TrainJobStatus=1=2"] {
            assert!(error(text).contains("NAME=true"), "{text}");
        }
    }
}
