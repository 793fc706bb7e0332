//! The table of all fields of the record: their names, levels, the permissions to write them, and their places in a JobSet.

use std::{borrow::Cow, fmt};

use super::{
    ListKey::{Field as By, Port, Position, Text},
    Shape::{self, Additions, Elsewhere, Job, List, Map, Members, One},
    mount_path::{clean_path, clean_prefix},
};

/// The level of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The TrainJob: `labels[KEY]`.
    Job,
    /// A pod set: `pod-sets[P].volumes[NAME]`.
    PodSet,
    /// A container or init container: `pod-sets[P].containers[C].env[NAME]`.
    Container,
}

/// What a plugin needs to write a field, in addition to its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Nothing.
    Default,
    /// Nothing for values that refer to the plugin's own objects and volumes, or to none; a grant otherwise.
    OwnOnly,
    /// A grant of the operator.
    Grant,
    /// Only the host writes it.
    Host,
}

macro_rules! fields {
    ($($(#[doc = $doc:literal])+ $variant:ident $level:ident $name:literal $permission:ident [$($key:literal),*] $shape:expr,)+) => {
        /// A field of the record, or one of the other subjects of claims.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Field { $($(#[doc = $doc])+ $variant,)+ }

        impl Field {
            /// All fields, in the order of docs/contract.md.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name in a path.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Its description, one sentence.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_start(),)+ }
            }

            /// Its level.
            #[must_use]
            pub const fn level(self) -> Level {
                match self { $(Self::$variant => Level::$level,)+ }
            }

            /// The permission to write it.
            #[must_use]
            pub const fn permission(self) -> Permission {
                match self { $(Self::$variant => Permission::$permission,)+ }
            }

            /// Its path in the JobSet, the replicated job, the pod template or the container.
            #[must_use]
            pub const fn keys(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($key),*],)+ }
            }

            /// The shape of its values in the JobSet.
            #[must_use]
            pub const fn shape(self) -> Shape {
                match self { $(Self::$variant => $shape,)+ }
            }
        }
    };
}

fields! {
    /// Labels of the JobSet.
    Labels Job "labels" Default ["metadata", "labels"] Map,
    /// Annotations of the JobSet.
    Annotations Job "annotations" Default ["metadata", "annotations"] Map,
    /// Objects that a plugin emits: `objects[v1/ConfigMap/-scripts]`.
    Objects Job "objects" OwnOnly [] Elsewhere,
    /// Fields of the TrainJob's spec: `job[/trainer/args]`.
    JobSpec Job "job" Host [] Elsewhere,
    /// Objects in the cluster: `lookups[v1/ConfigMap/*]`.
    Lookups Job "lookups" Host [] Elsewhere,
    /// Objects in the catalog, a namespace that the operator names: `catalog[v1/ConfigMap/sites]`.
    Catalog Job "catalog" Host [] Elsewhere,

    /// The number of pods in each job of a pod set.
    Count PodSet "count" Host ["template", "spec", "parallelism"] Job,
    /// The number of jobs of a pod set.
    Replicas PodSet "replicas" Host ["replicas"] Job,
    /// How many pods of a job may fail before the job fails.
    BackoffLimit PodSet "backoff-limit" Grant ["template", "spec", "backoffLimit"] Job,
    /// Its containers.
    Containers PodSet "containers" Grant ["spec", "containers"] List(By("name")),
    /// Its init containers.
    InitContainers PodSet "init-containers" Grant ["spec", "initContainers"] List(By("name")),
    /// Volumes of the pod.
    Volumes PodSet "volumes" OwnOnly ["spec", "volumes"] List(By("name")),
    /// Devices of the node container, by source.
    Devices PodSet "devices" Grant [] Elsewhere,
    /// Resource claims of the pod.
    ResourceClaims PodSet "resource-claims" Grant ["spec", "resourceClaims"] List(By("name")),
    /// Labels of the pod.
    PodLabels PodSet "pod-labels" Default ["metadata", "labels"] Map,
    /// Annotations of the pod.
    PodAnnotations PodSet "pod-annotations" Default ["metadata", "annotations"] Map,
    /// Node selector.
    NodeSelector PodSet "node-selector" Grant ["spec", "nodeSelector"] Map,
    /// Priority class.
    PriorityClass PodSet "priority-class" Grant ["spec", "priorityClassName"] One,
    /// Scheduler name.
    SchedulerName PodSet "scheduler-name" Grant ["spec", "schedulerName"] One,
    /// Scheduling gates.
    SchedulingGates PodSet "scheduling-gates" Grant ["spec", "schedulingGates"] List(By("name")),
    /// Tolerations that plugins add, by id.
    Tolerations PodSet "tolerations" Grant ["spec", "tolerations"] Additions,
    /// Affinity terms that plugins add, by id.
    AffinityTerms PodSet "affinity-terms" Grant ["spec", "affinity"] Additions,
    /// DNS search domains.
    DnsSearches PodSet "dns-searches" Grant ["spec", "dnsConfig", "searches"] List(Text),
    /// The group that owns the volumes' files.
    FsGroup PodSet "fs-group" Grant ["spec", "securityContext", "fsGroup"] One,
    /// Other members of the pod spec: `raw[hostNetwork]`, `raw[securityContext/runAsUser]`.
    PodRaw PodSet "raw" Grant ["spec"] Members,

    /// Image.
    Image Container "image" Grant ["image"] One,
    /// Image pull policy.
    ImagePullPolicy Container "image-pull-policy" Grant ["imagePullPolicy"] One,
    /// Command.
    Command Container "command" Grant ["command"] One,
    /// Arguments.
    Args Container "args" Grant ["args"] One,
    /// Working directory.
    WorkingDir Container "working-dir" Grant ["workingDir"] One,
    /// Restart policy of an init container.
    RestartPolicy Container "restart-policy" Grant ["restartPolicy"] One,
    /// Env vars.
    Env Container "env" OwnOnly ["env"] List(By("name")),
    /// Sources of sets of env vars, by position.
    EnvFrom Container "env-from" Host ["envFrom"] List(Position),
    /// Ports, by number and protocol: `ports[29500/TCP]`.
    Ports Container "ports" OwnOnly ["ports"] List(Port),
    /// Volume mounts, by path.
    Mounts Container "mounts" OwnOnly ["volumeMounts"] List(By("mountPath")),
    /// Resource requests.
    Requests Container "requests" Grant ["resources", "requests"] Map,
    /// Resource limits.
    Limits Container "limits" Grant ["resources", "limits"] Map,
    /// Uses of the pod's resource claims.
    ResourceClaimUses Container "resource-claims" Grant ["resources", "claims"] List(By("name")),
    /// Linux capabilities that the container has in addition to the default ones.
    Capabilities Container "capabilities" Grant ["securityContext", "capabilities", "add"] List(Text),
    /// Other members of the container: `raw[readinessProbe]`, `raw[securityContext/privileged]`.
    ContainerRaw Container "raw" Grant [] Members,
    /// The placement of a new init container: `first`, `before/NAME`, `after/NAME`.
    Placement Container "placement" Host [] Elsewhere,
}

impl Field {
    /// Its number, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it has keys. Otherwise it holds a single value.
    #[must_use]
    pub const fn is_keyed(self) -> bool {
        !matches!(self.shape(), One | Job)
    }

    /// The fields of a level that are read from a template and written back at their places.
    pub fn in_templates(level: Level) -> impl Iterator<Item = Self> {
        let of_level = Self::ALL
            .iter()
            .copied()
            .filter(move |f| f.level() == level);
        of_level.filter(|f| matches!(f.shape(), One | Map | List(_)) && !f.holds_containers())
    }

    /// The field of that name at that level.
    #[must_use]
    pub fn named(level: Level, name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|f| f.level() == level && f.name() == name)
    }

    /// The canonical form of a key: two spellings of one mount path or DNS domain are equal.
    #[must_use]
    pub fn compared(self, key: &str) -> Cow<'_, str> {
        match self {
            Self::Mounts => clean_path(key),
            Self::DnsSearches => key.strip_suffix('.').unwrap_or(key).into(),
            _ => key.into(),
        }
    }

    /// The canonical form of a prefix of keys.
    #[must_use]
    pub fn compared_prefix(self, prefix: &str) -> Cow<'_, str> {
        match self {
            Self::Mounts => clean_prefix(prefix),
            _ => prefix.into(),
        }
    }

    /// Whether it holds labels or annotations.
    #[must_use]
    pub const fn is_metadata(self) -> bool {
        matches!(
            self,
            Self::Labels | Self::Annotations | Self::PodLabels | Self::PodAnnotations
        )
    }

    /// Whether the keys are containers, with fields of their own.
    #[must_use]
    pub const fn holds_containers(self) -> bool {
        matches!(self, Self::Containers | Self::InitContainers)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
