//! The rows of the table "What a TrainJob becomes" in divergences.md, each with its matcher.

mod flux;
mod forms;
mod frameworks;
mod gangs;
mod kueue;
mod mpi;
mod overrides;
mod patches;
mod torchtune;

use super::seen::Seen;

/// A row of the table.
pub(crate) struct Row {
    /// Its ID, in the first column.
    pub(crate) id: &'static str,
    /// Returns whether a difference is the one that the row lists.
    pub(crate) lists: fn(&Seen<'_>) -> bool,
}

pub(crate) const fn row(id: &'static str, lists: fn(&Seen<'_>) -> bool) -> Row {
    Row { id, lists }
}

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    row("env-without-trainer", frameworks::env_without_trainer),
    row("partial-override", frameworks::partial_override),
    row("accelerators", frameworks::accelerators),
    row("master-address", frameworks::master_address),
    row("ports", frameworks::ports),
    row("port-name", frameworks::port_name),
    row("rendezvous-port", frameworks::rendezvous_port),
    row("env-sources", frameworks::env_sources),
    row("env-reference", frameworks::env_reference),
    row("runtime-processes", torchtune::runtime_processes),
    row("torch-elastic", frameworks::torch_elastic),
    row(
        "resources-without-policy",
        overrides::resources_without_policy,
    ),
    row("container-claims", overrides::container_claims),
    row("claims-in-use", overrides::claims_in_use),
    row("counts", overrides::counts),
    row("empty-image", overrides::empty_image),
    row("label-on-pod", overrides::label_on_pod),
    row("name-too-long", overrides::name_too_long),
    row("too-many-entries", overrides::too_many_entries),
    row("count-below-one", overrides::count_below_one),
    row("nodes-of-the-template", overrides::nodes_of_the_template),
    row("override-without-place", overrides::override_without_place),
    row(
        "framework-without-trainer",
        frameworks::without_trainer_pods,
    ),
    row("jax-reserved-env", frameworks::jax_reserved_env),
    row("same-env", frameworks::same_env),
    row("xgboost-workers", frameworks::xgboost_workers),
    row("mpi-implementations", mpi::implementations),
    row("mpi-open-mpi-5", mpi::open_mpi_5),
    row("mpi-own-line", mpi::own_line),
    row("mpi-slots", mpi::slots),
    row("mpi-runtime-nodes", mpi::runtime_nodes),
    row("mpi-one-node", mpi::one_node),
    row("mpi-resources", mpi::resources),
    row("mpi-image", mpi::image),
    row("mpi-roots-key", mpi::roots_key),
    row("mpi-runtime-not-whole", mpi::runtime_not_whole),
    row("mpi-mount-path", mpi::mount_path),
    row("mpi-command", mpi::command),
    row("mpi-unfit", mpi::unfit),
    row("mpi-mutable-keys", mpi::mutable_keys),
    row("request-above-limit", overrides::request_above_limit),
    row("invalid-pods", overrides::invalid_pods),
    row("patch-finds-nothing", patches::patch_finds_nothing),
    row("init-order", patches::init_order),
    row("two-sources", patches::two_sources),
    row("read-only-false", patches::read_only_false),
    row("ambiguous-patch", patches::ambiguous_patch),
    row("patch-mounts-nothing", patches::patch_mounts_nothing),
    row("patch-breaks-runtime", patches::patch_breaks_runtime),
    row("patch-env", patches::patch_env),
    row("patch-claims", patches::patch_claims),
    row("old-overrides", forms::old_overrides),
    row("old-metadata", forms::old_metadata),
    row("old-processes", forms::old_processes),
    row("old-versions", forms::old_versions),
    row("same-name", forms::same_name),
    row("other-manager", forms::other_manager),
    row("plugins-by-name", forms::plugins_by_name),
    row("flux-without-trainer", flux::without_trainer),
    row("flux-words", flux::words),
    row("flux-args", flux::args),
    row("flux-tasks", flux::tasks),
    row("flux-cores", flux::cores),
    row("flux-binding", flux::binding),
    row("flux-gpus", flux::gpus),
    row("flux-devices", flux::devices),
    row("flux-address", flux::address),
    row("flux-pod-set", flux::pod_set),
    row("flux-volume", flux::volume),
    row("flux-shared-memory", flux::shared_memory),
    row("flux-spread", flux::spread),
    row("flux-group", flux::group),
    row("flux-installer", flux::installer),
    row("flux-command", flux::command),
    row("flux-network", flux::network),
    row("flux-architecture", flux::architecture),
    row("flux-installer-fits", flux::installer_fits),
    row("flux-settings", flux::settings),
    row("flux-unfit", flux::unfit),
    row("flux-failure", flux::failure),
    row("torchtune-model", torchtune::model),
    row("torchtune-devices", torchtune::devices),
    row("torchtune-address", torchtune::address),
    row("torchtune-runtime-args", torchtune::runtime_args),
    row("torchtune-repeated-settings", torchtune::repeated_settings),
    row("torchtune-runtime-command", torchtune::runtime_command),
    row("torchtune-complete-line", torchtune::complete_line),
    row("torchtune-options", torchtune::options),
    row("torchtune-configuration", torchtune::configuration),
    row("gang-members", gangs::members),
    row("gang-pods", gangs::pods),
    row("gang-requests", gangs::requests),
    row("gang-priority", gangs::priority),
    row("gang-lookups", gangs::lookups),
    row("gang-bounds", gangs::bounds),
    row("gang-queue", gangs::queue),
    row("gang-queue-of-others", gangs::queue_of_others),
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
