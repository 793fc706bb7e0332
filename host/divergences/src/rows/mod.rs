//! The rows of the table "What a TrainJob becomes" in divergences.md, each with its matcher. Those of a plugin are in its folder.

mod forms;
pub(crate) mod frameworks;
mod gangs;
mod kueue;
mod overrides;
mod patches;
mod shipped;
pub(crate) mod uses;

pub use self::uses::Uses;
use crate::seen::Seen;

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// Its ID, in the first column.
    pub id: &'static str,
    /// Returns whether a difference is the one that the row lists.
    pub lists: fn(&Seen<'_>) -> bool,
    /// Returns whether a TrainJob uses what the row is about. `None` if only a refusal shows the row.
    pub uses: Option<Uses>,
}

impl Row {
    /// Says when the row may concern a TrainJob.
    pub(crate) const fn when(mut self, uses: Uses) -> Self {
        self.uses = Some(uses);
        self
    }
}

pub(crate) const fn row(id: &'static str, lists: fn(&Seen<'_>) -> bool) -> Row {
    Row {
        id,
        lists,
        uses: None,
    }
}

/// Every row about shipped runtimes, in the order of their table.
pub const SHIPPED: &[Row] = shipped::ROWS;

/// Every row that belongs to no plugin, in the order of the table.
pub const ROWS: &[Row] = &[
    row("env-without-trainer", frameworks::env_without_trainer).when(uses::env_without_trainer),
    row("partial-override", frameworks::partial_override).when(uses::partial_override),
    row("accelerators", frameworks::accelerators).when(uses::accelerators),
    row("master-address", frameworks::master_address).when(uses::master_address),
    row("ports", frameworks::ports).when(uses::unnamed_ports),
    row("port-name", frameworks::port_name).when(uses::port_name),
    row("rendezvous-port", frameworks::rendezvous_port).when(uses::rendezvous_port),
    row("env-sources", frameworks::env_sources).when(uses::env_sources),
    row("env-reference", frameworks::env_reference).when(uses::env_reference),
    row(
        "resources-without-policy",
        overrides::resources_without_policy,
    )
    .when(uses::resources_without_policy),
    row("container-claims", overrides::container_claims).when(uses::container_claims),
    row("claims-in-use", overrides::claims_in_use).when(uses::claims_in_use),
    row("counts", overrides::counts).when(uses::counts),
    row("empty-image", overrides::empty_image).when(uses::empty_image),
    row("label-on-pod", overrides::label_on_pod).when(uses::label_on_pod),
    row("name-too-long", overrides::name_too_long),
    row("too-many-entries", overrides::too_many_entries),
    row("count-below-one", overrides::count_below_one),
    row("nodes-of-the-template", overrides::nodes_of_the_template),
    row("override-without-place", overrides::override_without_place),
    row(
        "framework-without-trainer",
        frameworks::without_trainer_pods,
    ),
    row("same-env", frameworks::same_env),
    row("request-above-limit", overrides::request_above_limit),
    row("invalid-pods", overrides::invalid_pods),
    row("patch-finds-nothing", patches::patch_finds_nothing).when(uses::patch_finds_nothing),
    row("init-order", patches::init_order).when(uses::init_order),
    row("two-sources", patches::two_sources).when(uses::two_sources),
    row("read-only-false", patches::read_only_false).when(uses::read_only_false),
    row("ambiguous-patch", patches::ambiguous_patch),
    row("patch-mounts-nothing", patches::patch_mounts_nothing),
    row("patch-breaks-runtime", patches::patch_breaks_runtime),
    row("patch-env", patches::patch_env),
    row("patch-claims", patches::patch_claims).when(uses::patch_claims),
    row("old-overrides", forms::old_overrides).when(uses::old_overrides),
    row("old-metadata", forms::old_metadata).when(uses::old_metadata),
    row("old-processes", forms::old_processes).when(uses::old_processes),
    row("old-versions", forms::old_versions),
    row("same-name", forms::same_name),
    row("other-manager", forms::other_manager).when(uses::other_manager),
    row("plugins-by-name", forms::plugins_by_name).when(uses::plugins_by_name),
    row("plugin-overrides", forms::plugin_overrides),
    row("gang-members", gangs::members).when(uses::gang_members),
    row("gang-pods", gangs::pods).when(uses::gang_pods),
    row("gang-requests", gangs::requests).when(uses::gang_requests),
    row("gang-priority", gangs::priority).when(uses::gang_priority),
    row("gang-lookups", gangs::lookups),
    row("gang-bounds", gangs::bounds),
    row("gang-queue", gangs::queue),
    row("gang-queue-of-others", gangs::queue_of_others).when(uses::gang_queue_of_others),
    row("gang-unfit", gangs::unfit),
    row("gang-exclusive", gangs::exclusive),
    row("gang-two-schedulers", gangs::two_schedulers),
    row("override-replaces", kueue::override_replaces),
    row("claims-per-node", kueue::claims_per_node),
    row("claims-excluded", kueue::claims_excluded),
    row("claims-without-quota", kueue::claims_without_quota),
    row("pod-limits", kueue::pod_limits),
    row("limit-range", kueue::limit_range),
];
