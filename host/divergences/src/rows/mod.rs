//! The rows of the table "What a TrainJob becomes" in divergences.md, each with its matcher. Those of a plugin are in its folder.

mod forms;
pub(crate) mod frameworks;
mod gangs;
mod kueue;
mod overrides;
mod patches;
mod refusals;
mod shipped;
pub(crate) mod uses;

pub use self::uses::Uses;
use crate::{
    answer::{Difference, Refusal, without_indices},
    expected::{devices::is_uncountable, env, input, order},
    seen::Seen,
};

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// Its ID, in the first column.
    pub id: &'static str,
    /// Returns whether a difference is of the kind and at the place that the row is about.
    place: fn(&Seen<'_>) -> bool,
    /// Returns whether Trainyard's value is the expected one. `None` if the row is about refusals and Kueue's quota alone.
    expects: Option<fn(&Seen<'_>) -> bool>,
    /// The refusals of the row, each a field and a part of the error. Empty if `place` checks both.
    refusals: &'static [(&'static str, &'static str)],
    /// Returns whether a TrainJob uses what the row is about. `None` if only a refusal shows the row.
    pub uses: Option<Uses>,
}

impl Row {
    /// Returns whether a difference is the one that the row lists: at its place, and with the value or the error that it expects.
    pub fn lists(&self, seen: &Seen<'_>) -> bool {
        let is_expected = || match seen.difference {
            Difference::Field { .. } if seen.is_of_quota() => true,
            Difference::Field { .. } if is_of_devices(seen.path()) && is_uncountable(seen) => true,
            Difference::Field { .. } => self.has_values() && self.has_expected_value(seen),
            Difference::RefusedByTrainyard(refusal) | Difference::RefusedByReference(refusal) => {
                self.has_refusal(refusal)
            }
            Difference::Dropped(_) | Difference::Unwarned(_) => true,
        };
        (self.place)(seen) && is_expected()
    }

    /// Returns whether the row lists fields of rendered objects, and expects values of them.
    #[must_use]
    pub fn has_values(&self) -> bool {
        self.expects.is_some()
    }

    fn has_expected_value(&self, seen: &Seen<'_>) -> bool {
        self.expects.is_some_and(|is_expected| is_expected(seen))
    }

    fn has_refusal(&self, refusal: &Refusal) -> bool {
        let field = without_indices(&refusal.field);
        let field = field.replace("spec.runtimePatches.trainingRuntimeSpec.", "spec.");
        let is_it = |(known, words): &(&str, &str)| {
            let is_field = match known.strip_suffix('*') {
                Some(start) => field.starts_with(start),
                None => field == *known,
            };
            is_field && refusal.error.contains(words)
        };
        self.refusals.is_empty() || self.refusals.iter().any(is_it)
    }

    /// Says which value the row expects, where it lists different values.
    pub(crate) const fn expects(mut self, is_expected: fn(&Seen<'_>) -> bool) -> Self {
        self.expects = Some(is_expected);
        self
    }

    /// Says which refusals the row lists, each a field without its indices, and a part of the error. A `*` ends a field with any below it. A
    /// field of a patch is that of the runtime's template.
    pub(crate) const fn says(mut self, refusals: &'static [(&'static str, &'static str)]) -> Self {
        self.refusals = refusals;
        self
    }

    /// Says when the row may concern a TrainJob.
    pub(crate) const fn when(mut self, uses: Uses) -> Self {
        self.uses = Some(uses);
        self
    }
}

pub(crate) const fn row(id: &'static str, place: fn(&Seen<'_>) -> bool) -> Row {
    Row {
        id,
        place,
        expects: None,
        refusals: &[],
        uses: None,
    }
}

/// Whether the path is that of a value that follows from the devices of a node.
fn is_of_devices(path: &str) -> bool {
    let ends = [".env[DMLC_NUM_WORKER].value", "_slots].value", "].command"];
    frameworks::is_of_accelerators(path)
        || path.starts_with("data[")
        || ends.iter().any(|end| path.ends_with(end))
}

/// Every row about shipped runtimes, in the order of their table.
pub const SHIPPED: &[Row] = shipped::ROWS;

/// Every row that belongs to no plugin, in the order of the table.
pub const ROWS: &[Row] = &[
    row("env-without-trainer", frameworks::env_without_trainer)
        .expects(frameworks::env_or_port)
        .when(uses::env_without_trainer),
    row("partial-override", frameworks::partial_override)
        .expects(env::is_right)
        .when(uses::partial_override),
    row("accelerators", frameworks::accelerators)
        .expects(env::is_right)
        .when(uses::accelerators),
    row("master-address", frameworks::master_address)
        .expects(env::is_right)
        .when(uses::master_address),
    row("ports", frameworks::ports)
        .expects(env::is_right_port)
        .when(uses::unnamed_ports),
    row("port-name", frameworks::port_name)
        .expects(env::is_right_port)
        .when(uses::port_name),
    row("rendezvous-port", frameworks::rendezvous_port)
        .expects(frameworks::env_or_port)
        .when(uses::rendezvous_port),
    row("env-sources", frameworks::env_sources)
        .expects(env::is_as_written)
        .when(uses::env_sources),
    row("env-reference", frameworks::env_reference)
        .expects(order::is_after_its_references)
        .when(uses::env_reference),
    row(
        "resources-without-policy",
        overrides::resources_without_policy,
    )
    .expects(overrides::given_resources)
    .when(uses::resources_without_policy),
    row("container-claims", overrides::container_claims)
        .expects(overrides::used_claims)
        .when(uses::container_claims),
    row("claims-in-use", overrides::claims_in_use)
        .expects(overrides::used_claims_or_processes)
        .when(uses::claims_in_use),
    row("counts", overrides::counts)
        .expects(overrides::kept_counts)
        .when(uses::counts),
    row("empty-image", overrides::empty_image)
        .expects(input::is_merged)
        .when(uses::empty_image),
    row("label-on-pod", overrides::label_on_pod)
        .expects(overrides::as_for_a_trainer)
        .when(uses::label_on_pod),
    row("name-too-long", overrides::name_too_long),
    row("too-many-entries", overrides::too_many_entries).says(refusals::TOO_MANY_ENTRIES),
    row("count-below-one", overrides::count_below_one),
    row("nodes-of-the-template", overrides::nodes_of_the_template)
        .says(refusals::NODES_OF_THE_TEMPLATE),
    row("override-without-place", overrides::override_without_place)
        .says(refusals::OVERRIDE_WITHOUT_PLACE),
    row(
        "framework-without-trainer",
        frameworks::without_trainer_pods,
    )
    .says(refusals::FRAMEWORK_WITHOUT_TRAINER),
    row("same-env", frameworks::same_env),
    row("request-above-limit", overrides::request_above_limit).says(refusals::REQUEST_ABOVE_LIMIT),
    row("invalid-pods", overrides::invalid_pods).says(refusals::INVALID_PODS),
    row("patch-finds-nothing", patches::patch_finds_nothing)
        .expects(patches::nothing_added)
        .when(uses::patch_finds_nothing),
    row("init-order", patches::init_order)
        .expects(order::is_of_runtime)
        .when(uses::init_order),
    row("two-sources", patches::two_sources)
        .expects(input::is_merged)
        .when(uses::two_sources),
    row("read-only-false", patches::read_only_false)
        .expects(input::is_merged)
        .when(uses::read_only_false),
    row("ambiguous-patch", patches::ambiguous_patch),
    row("patch-mounts-nothing", patches::patch_mounts_nothing),
    row("patch-breaks-runtime", patches::patch_breaks_runtime).says(refusals::PATCH_BREAKS_RUNTIME),
    row("patch-env", patches::patch_env).says(refusals::PATCH_ENV),
    row("patch-claims", patches::patch_claims)
        .expects(input::is_merged)
        .when(uses::patch_claims),
    row("old-overrides", forms::old_overrides)
        .expects(input::is_merged)
        .says(refusals::OLD_OVERRIDES)
        .when(uses::old_overrides),
    row("old-metadata", forms::old_metadata)
        .expects(forms::is_metadata)
        .says(refusals::OLD_METADATA)
        .when(uses::old_metadata),
    row("old-processes", forms::old_processes)
        .says(refusals::OLD_PROCESSES)
        .when(uses::old_processes),
    row("old-versions", forms::old_versions).says(refusals::OLD_VERSIONS),
    row("same-name", forms::same_name).says(refusals::SAME_NAME),
    row("other-manager", forms::other_manager).when(uses::other_manager),
    row("plugins-by-name", forms::plugins_by_name)
        .says(refusals::PLUGINS_BY_NAME)
        .when(uses::plugins_by_name),
    row("plugin-overrides", forms::plugin_overrides).says(refusals::PLUGIN_OVERRIDES),
    row("gang-members", gangs::members)
        .expects(gangs::counted_or_nothing)
        .when(uses::gang_members),
    row("gang-pods", gangs::pods)
        .expects(gangs::counted_or_nothing)
        .when(uses::gang_pods),
    row("gang-requests", gangs::requests)
        .expects(gangs::counted_or_nothing)
        .when(uses::gang_requests),
    row("gang-priority", gangs::priority)
        .expects(gangs::priority_of_members)
        .when(uses::gang_priority),
    row("gang-lookups", gangs::lookups).says(refusals::GANG_LOOKUPS),
    row("gang-bounds", gangs::bounds),
    row("gang-queue", gangs::queue).says(refusals::GANG_QUEUE),
    row("gang-queue-of-others", gangs::queue_of_others)
        .expects(gangs::queue_of_job_set)
        .when(uses::gang_queue_of_others),
    row("gang-unfit", gangs::unfit),
    row("gang-exclusive", gangs::exclusive).says(refusals::GANG_EXCLUSIVE),
    row("gang-two-schedulers", gangs::two_schedulers),
    row("override-replaces", kueue::override_replaces),
    row("claims-per-node", kueue::claims_per_node),
    row("claims-excluded", kueue::claims_excluded),
    row("claims-without-quota", kueue::claims_without_quota),
    row("pod-limits", kueue::pod_limits),
    row("limit-range", kueue::limit_range),
    row("immutable-trainer", kueue::immutable_trainer),
];
