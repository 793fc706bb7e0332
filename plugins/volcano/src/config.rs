//! The block `podGroupPolicy.volcano` of a runtime, and the operator's configuration.

use trainyard_sdk::{
    Config,
    json::{object, quoted},
};

/// `podGroupPolicy.volcano`.
#[derive(Config, Debug)]
pub(crate) struct VolcanoConfig {
    /// The network topology that the pods need. Without it, Volcano schedules them on any nodes.
    pub(crate) network_topology: Option<NetworkTopology>,
}

/// `networkTopology`.
#[derive(Config, Debug)]
pub(crate) struct NetworkTopology {
    /// Whether the pods wait for nodes of this topology (hard), or also start on others (soft).
    #[config(default = "hard")]
    mode: Mode,
    /// The highest tier of the network that the pods can span. Tiers are numbered from the bottom.
    #[config(default = 1, minimum = 0)]
    highest_tier_allowed: i32,
}

/// How strict a network topology is.
#[derive(Config, Debug)]
pub(crate) enum Mode {
    /// The pods wait for it.
    Hard,
    /// It is preferred.
    Soft,
}

impl NetworkTopology {
    /// Returns it as a member of a PodGroup.
    pub(crate) fn json(&self) -> String {
        let mode = match self.mode {
            Mode::Hard => "hard",
            Mode::Soft => "soft",
        };
        object([
            ("mode", quoted(mode)),
            ("highestTierAllowed", self.highest_tier_allowed.to_string()),
        ])
    }
}

/// The operator's configuration.
#[derive(Config, Debug)]
pub(crate) struct SchedulerConfig {
    /// The scheduler of the group's pods for which the runtime sets none, such as `volcano`.
    #[config(min_length = 1, max_length = 253)]
    pub(crate) scheduler_name: Option<String>,
}
