//! The table of all fields of the record: their names, levels, and the permissions to write them.

use std::{borrow::Cow, fmt};

use super::mount_path::{clean_path, clean_prefix};

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
    ($($(#[doc = $doc:literal])+ $variant:ident $level:ident $name:literal $shape:ident $permission:ident,)+) => {
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

            /// Whether it has keys. Otherwise it holds a single value.
            #[must_use]
            pub const fn is_keyed(self) -> bool {
                match self { $(Self::$variant => fields!(@keyed $shape),)+ }
            }

            /// The permission to write it.
            #[must_use]
            pub const fn permission(self) -> Permission {
                match self { $(Self::$variant => Permission::$permission,)+ }
            }
        }
    };
    (@keyed keyed) => { true };
    (@keyed scalar) => { false };
}

fields! {
    /// Labels of the JobSet.
    Labels Job "labels" keyed Default,
    /// Annotations of the JobSet.
    Annotations Job "annotations" keyed Default,
    /// Objects that a plugin emits: `objects[v1/ConfigMap/-scripts]`.
    Objects Job "objects" keyed OwnOnly,
    /// Fields of the TrainJob's spec: `job[/trainer/args]`.
    JobSpec Job "job" keyed Host,
    /// Objects in the cluster: `lookups[v1/ConfigMap/*]`.
    Lookups Job "lookups" keyed Host,

    /// The number of pods in each job of a pod set.
    Count PodSet "count" scalar Host,
    /// The number of jobs of a pod set.
    Replicas PodSet "replicas" scalar Host,
    /// How many pods of a job may fail before the job fails.
    BackoffLimit PodSet "backoff-limit" scalar Grant,
    /// Its containers.
    Containers PodSet "containers" keyed Grant,
    /// Its init containers.
    InitContainers PodSet "init-containers" keyed Grant,
    /// Volumes of the pod.
    Volumes PodSet "volumes" keyed OwnOnly,
    /// Devices of the node container, by source.
    Devices PodSet "devices" keyed Grant,
    /// Resource claims of the pod.
    ResourceClaims PodSet "resource-claims" keyed Grant,
    /// Labels of the pod.
    PodLabels PodSet "pod-labels" keyed Default,
    /// Annotations of the pod.
    PodAnnotations PodSet "pod-annotations" keyed Default,
    /// Node selector.
    NodeSelector PodSet "node-selector" keyed Grant,
    /// Priority class.
    PriorityClass PodSet "priority-class" scalar Grant,
    /// Scheduler name.
    SchedulerName PodSet "scheduler-name" scalar Grant,
    /// Scheduling gates.
    SchedulingGates PodSet "scheduling-gates" keyed Grant,
    /// Tolerations that plugins add, by id.
    Tolerations PodSet "tolerations" keyed Grant,
    /// Affinity terms that plugins add, by id.
    AffinityTerms PodSet "affinity-terms" keyed Grant,
    /// DNS search domains.
    DnsSearches PodSet "dns-searches" keyed Grant,
    /// The group that owns the volumes' files.
    FsGroup PodSet "fs-group" scalar Grant,
    /// Other members of the pod spec: `raw[hostNetwork]`, `raw[securityContext/runAsUser]`.
    PodRaw PodSet "raw" keyed Grant,

    /// Image.
    Image Container "image" scalar Grant,
    /// Image pull policy.
    ImagePullPolicy Container "image-pull-policy" scalar Grant,
    /// Command.
    Command Container "command" scalar Grant,
    /// Arguments.
    Args Container "args" scalar Grant,
    /// Working directory.
    WorkingDir Container "working-dir" scalar Grant,
    /// Restart policy of an init container.
    RestartPolicy Container "restart-policy" scalar Grant,
    /// Env vars.
    Env Container "env" keyed OwnOnly,
    /// Sources of sets of env vars, by position.
    EnvFrom Container "env-from" keyed Host,
    /// Ports, by number and protocol: `ports[29500/TCP]`.
    Ports Container "ports" keyed OwnOnly,
    /// Volume mounts, by path.
    Mounts Container "mounts" keyed OwnOnly,
    /// Resource requests.
    Requests Container "requests" keyed Grant,
    /// Resource limits.
    Limits Container "limits" keyed Grant,
    /// Uses of the pod's resource claims.
    ResourceClaimUses Container "resource-claims" keyed Grant,
    /// Other members of the container: `raw[readinessProbe]`, `raw[securityContext/privileged]`.
    ContainerRaw Container "raw" keyed Grant,
    /// The placement of a new init container: `first`, `before/NAME`, `after/NAME`.
    Placement Container "placement" keyed Host,
}

impl Field {
    /// Its number, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
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

    /// Whether writing the key needs a claim that names it and a grant. This applies to labels and annotations that belong to Kubernetes, or
    /// to a scheduler or queue that it has, except `app.kubernetes.io/...`: they put pods into gangs, queues and topologies, or act as a
    /// security context.
    #[must_use]
    pub fn is_named_to_write(self, key: &str) -> bool {
        let is_metadata = matches!(
            self,
            Self::Labels | Self::Annotations | Self::PodLabels | Self::PodAnnotations
        );
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        is_metadata && domain != "app.kubernetes.io" && is_of_kubernetes(domain)
    }

    /// Whether the keys are containers, with fields of their own.
    #[must_use]
    pub const fn holds_containers(self) -> bool {
        matches!(self, Self::Containers | Self::InitContainers)
    }
}

/// Whether a key's domain belongs to Kubernetes, its projects such as JobSet and Kueue, or Volcano.
fn is_of_kubernetes(domain: &str) -> bool {
    ["kubernetes.io", "k8s.io", "x-k8s.io", "volcano.sh"]
        .into_iter()
        .filter_map(|of| domain.strip_suffix(of))
        .any(|before| before.is_empty() || before.ends_with('.'))
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
