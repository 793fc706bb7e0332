//! Objects that plugins emit in addition to the JobSet.

mod data;
mod refused;
mod reports;
mod secret;

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

pub use self::{
    data::{Data, DataError, DataValue},
    reports::{MAX_MESSAGE, MAX_REPORTS, REPORTS_ANNOTATION, ReportedState, waits_for},
    secret::{Part, SecretType, SecretTypeError, SecretValue},
};
use crate::{
    names::{is_api_version, is_dns_subdomain, is_kind, resource_of, short_hash},
    reserved::{Reserved, reserved},
};

/// A kind of object that plugins can emit, some of them with a grant: it is valid in a path of the API server, and it does not grant
/// privileges by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKind {
    api_version: Arc<str>,
    kind: Arc<str>,
}

/// Why plugins cannot emit objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ObjectKindError {
    /// It is not a valid kind.
    #[error("is not a kind, such as `v1/ConfigMap`")]
    Malformed,
    /// It grants privileges by itself, or only the host emits it.
    #[error("is a kind that plugins cannot emit")]
    Powerful,
    /// It is cluster-scoped.
    #[error("is a cluster-scoped kind; plugins can emit objects only in the TrainJob's namespace")]
    ClusterScoped,
}

impl ObjectKind {
    /// The most bytes of an `apiVersion` and of a `kind`. The API server allows fewer.
    const LONGEST: usize = 253;

    /// Returns the kind with that `apiVersion` and `kind`.
    ///
    /// # Errors
    /// Why plugins cannot emit such objects.
    pub fn new(api_version: &str, kind: &str) -> Result<Self, ObjectKindError> {
        let is_short = api_version.len().max(kind.len()) <= Self::LONGEST;
        if !is_short || !is_api_version(api_version) || !is_kind(kind) {
            return Err(ObjectKindError::Malformed);
        }
        if let Some(refused) = refused::refused(api_version, kind) {
            return Err(refused);
        }
        // These are kinds of the API server's responses, not of objects.
        let is_list = (api_version, kind) == (DataKind::API_VERSION, "List");
        if is_list || DataKind::is_misspelled(api_version, kind) {
            return Err(ObjectKindError::Malformed);
        }
        Ok(Self {
            api_version: api_version.into(),
            kind: kind.into(),
        })
    }

    /// The API version, such as `v1`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Whether such objects may have a status, which ConfigMaps and Secrets do not.
    #[must_use]
    pub fn has_status(&self) -> bool {
        DataKind::of(&self.api_version, &self.kind).is_none()
    }

    /// Whether the suffix may follow the TrainJob's name in the name of such an object. Without a suffix, the object has the TrainJob's own
    /// name, as schedulers expect of a PodGroup. Users give that name to ConfigMaps and Secrets of their own, so no object of the core
    /// group has it.
    #[must_use]
    pub fn allows_suffix(&self, suffix: &str) -> bool {
        suffix.starts_with('-') || suffix.is_empty() && self.api_version.contains('/')
    }

    /// The kind, such as `ConfigMap`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

/// The name of an object that a plugin can emit for a TrainJob: it is valid in a path of the API server, and not reserved for the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(String);

/// Why a plugin cannot emit an object with this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ObjectNameError {
    /// It does not begin with the TrainJob's name.
    #[error("is not the TrainJob's name with a suffix that begins with `-`")]
    OfAnother,
    /// It is not a valid name.
    #[error("is not a DNS subdomain of at most 253 characters")]
    Malformed,
    /// It is reserved for the host.
    #[error("is reserved: {0}")]
    Reserved(&'static Reserved),
}

impl ObjectName {
    /// Returns the name, if it is valid for an object of that kind and TrainJob.
    ///
    /// # Errors
    /// Why it is not valid.
    pub fn new(kind: &ObjectKind, job: &str, text: String) -> Result<Self, ObjectNameError> {
        let suffix = text.strip_prefix(job);
        let Some(suffix) = suffix.filter(|suffix| kind.allows_suffix(suffix)) else {
            return Err(ObjectNameError::OfAnother);
        };
        if !is_dns_subdomain(&text) {
            return Err(ObjectNameError::Malformed);
        }
        // Without a suffix, the ending is the user's choice of a name. The object cannot replace one of the host, which are in the core group.
        let is_own_name = suffix.is_empty();
        match reserved(&text).filter(|_| !is_own_name) {
            Some(why) => Err(ObjectNameError::Reserved(why)),
            None => Ok(Self(text)),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// When an object is applied. In every mode it is created before the JobSet, and recreated if it is missing.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ApplyMode {
    /// Updated only until the JobSet runs for the first time, so that running or resumed pods never see a changed script in a volume.
    #[default]
    #[serde(rename = "with-jobset")]
    WithJobSet,
    /// Created once and never updated.
    Once,
    /// Updated only while the JobSet is suspended, for the last time just before its pods start.
    WhileSuspended,
    /// Updated whenever it differs, even while the JobSet runs.
    Live,
}

impl ApplyMode {
    /// All modes.
    pub const ALL: [Self; 4] = [
        Self::WithJobSet,
        Self::Once,
        Self::WhileSuspended,
        Self::Live,
    ];

    /// The name in the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WithJobSet => "with-jobset",
            Self::Once => "once",
            Self::WhileSuspended => "while-suspended",
            Self::Live => "live",
        }
    }

    /// The mode with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for ApplyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kinds of objects whose keys pods use as files and env vars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

impl DataKind {
    /// The `apiVersion` of both.
    pub const API_VERSION: &str = "v1";

    /// The kind of that name.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let mut all = [Self::ConfigMap, Self::Secret].into_iter();
        all.find(|it| api_version == Self::API_VERSION && kind == it.name())
    }

    /// The kind that a spelling means: the API server and roles use the resource, which is the same for several spellings.
    #[must_use]
    pub fn meant(api_version: &str, kind: &str) -> Option<Self> {
        let resource = (!api_version.contains('/')).then(|| resource_of(kind))?;
        match &*resource {
            "configmaps" => Some(Self::ConfigMap),
            "secrets" => Some(Self::Secret),
            _ => None,
        }
    }

    /// Whether it means one of these kinds, but is spelled differently.
    pub(crate) fn is_misspelled(api_version: &str, kind: &str) -> bool {
        Self::of(api_version, kind).is_none() && Self::meant(api_version, kind).is_some()
    }

    /// The kind, such as `ConfigMap`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }
}

/// An emitted object. Assembly adds namespace and owner.
#[derive(Clone, Debug, PartialEq)]
pub struct EmittedObject {
    /// `apiVersion` and `kind`.
    pub kind: ObjectKind,
    /// The suffix that follows the TrainJob's name.
    pub suffix: String,
    /// `metadata.name`.
    pub name: ObjectName,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// Its content.
    pub content: Content,
    /// The messages that are reported while it is in a state.
    pub reports: BTreeMap<ReportedState, String>,
    /// When it is applied; `once` for a Secret.
    pub apply: ApplyMode,
    /// The number of bytes that the plugin wrote to it.
    pub written: usize,
}

impl EmittedObject {
    /// The most bytes that a plugin can write to an object. This is the limit of Kubernetes for ConfigMaps and Secrets.
    pub const MOST_BYTES: usize = 1 << 20;

    /// The text of a key of a ConfigMap or Secret, with placeholders for key material.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.content {
            Content::ConfigMap(data) => data.text(key).map(String::as_str),
            Content::Secret { data, .. } => data.text(key).map(SecretValue::shown),
            Content::Body(_) => None,
        }
    }

    /// The member of the body at a pointer, such as `/spec/minMember`. None for a ConfigMap or Secret.
    #[must_use]
    pub fn value(&self, pointer: &str) -> Option<&Value> {
        let Content::Body(body) = &self.content else {
            return None;
        };
        let pointer = pointer.strip_prefix('/')?;
        let (member, below) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
        body.get(member)?.pointer(below)
    }
}

/// The content of an emitted object.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// The content of a ConfigMap.
    ConfigMap(Data<String>),
    /// The content of a Secret.
    Secret {
        /// `type`.
        secret_type: SecretType,
        /// Its keys.
        data: Data<SecretValue>,
    },
    /// The content of any other kind: the members other than `apiVersion`, `kind` and `metadata`.
    Body(Map<String, Value>),
}

impl Content {
    /// Returns the empty content of a kind.
    #[must_use]
    pub fn of(kind: &ObjectKind) -> Self {
        match DataKind::of(kind.api_version(), kind.kind()) {
            Some(DataKind::ConfigMap) => Self::ConfigMap(Data::default()),
            Some(DataKind::Secret) => Self::Secret {
                secret_type: SecretType::default(),
                data: Data::default(),
            },
            None => Self::Body(Map::new()),
        }
    }
}

/// The number of digits of the hash in a name.
const HASH_DIGITS: usize = 10;

/// The name of an object: the TrainJob's name and the suffix; with content, a hash over it and the job's identity
/// (otherwise job `a` with suffix `-b-c` and job `a-b` with suffix `-c` would have the same name).
#[must_use]
pub fn object_name(job: &str, uid: &str, suffix: &str, content: Option<&str>) -> String {
    match content {
        None => format!("{job}{suffix}"),
        Some(content) => format!(
            "{job}{suffix}-{}",
            short_hash(&[uid, suffix, content], HASH_DIGITS)
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::reserved::RESERVED;

    #[test]
    fn a_name_is_the_train_jobs_own_and_fits_into_a_path() {
        let map = ObjectKind::new("v1", "ConfigMap").unwrap();
        let of_job = |text: &str| ObjectName::new(&map, "job", text.to_owned());
        assert_eq!(of_job("job-hostfile").unwrap().as_str(), "job-hostfile");
        for text in ["", "job", "jobs-a", "other-a", "-a", "../job-a"] {
            assert_eq!(of_job(text), Err(ObjectNameError::OfAnother), "{text}");
        }
        let long = format!("job-{}", "a".repeat(250));
        for text in [
            "job-a?watch=true&x=",
            "job-/../b",
            "job-%2e",
            "job-A",
            "job-",
            &long,
        ] {
            assert_eq!(of_job(text), Err(ObjectNameError::Malformed), "{text}");
        }
        for text in ["job-runtime-snapshot", "job-other-runtime-snapshot"] {
            let refused = of_job(text).unwrap_err().to_string();
            assert!(refused.contains("`-runtime-snapshot`"), "{refused}");
        }
    }

    #[test]
    fn core_objects_never_have_the_train_jobs_own_name() {
        let group = ObjectKind::new("scheduling.x-k8s.io/v1alpha1", "PodGroup").unwrap();
        let of_job = |kind: &ObjectKind, text: &str| ObjectName::new(kind, "job", text.to_owned());
        assert_eq!(of_job(&group, "job").unwrap().as_str(), "job");
        for reserved in RESERVED {
            let job = format!("job{}", reserved.ending());
            let own = ObjectName::new(&group, &job, job.clone());
            assert_eq!(own.unwrap().as_str(), job);
        }
        for text in ["", "jobs", "jo", "other"] {
            assert_eq!(
                of_job(&group, text),
                Err(ObjectNameError::OfAnother),
                "{text}"
            );
        }
        for kind in ["ConfigMap", "Secret", "Event"] {
            let kind = ObjectKind::new("v1", kind).unwrap();
            assert_eq!(
                of_job(&kind, "job"),
                Err(ObjectNameError::OfAnother),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_kind_fits_into_a_path_and_carries_no_power() {
        let kind = ObjectKind::new("resource.k8s.io/v1", "ResourceClaimTemplate").unwrap();
        assert_eq!(
            (kind.api_version(), kind.kind()),
            ("resource.k8s.io/v1", "ResourceClaimTemplate")
        );
        let long = "a".repeat(254);
        for (version, kind, why) in [
            (
                "v1/configmaps?watch=true&x=",
                "ConfigMap",
                ObjectKindError::Malformed,
            ),
            ("v1%2Fnamespaces", "ConfigMap", ObjectKindError::Malformed),
            ("../v1", "ConfigMap", ObjectKindError::Malformed),
            ("a/b/v1", "ConfigMap", ObjectKindError::Malformed),
            (&long, "ConfigMap", ObjectKindError::Malformed),
            ("v1", "ConfigMaps/a", ObjectKindError::Malformed),
            ("v1", "", ObjectKindError::Malformed),
            ("v1", "Pod", ObjectKindError::Powerful),
            (
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                ObjectKindError::Powerful,
            ),
            // Roles allow resources, whatever the spelling of the kind.
            ("v1", "POD", ObjectKindError::Powerful),
            ("v1", "PodMetrics", ObjectKindError::Powerful),
            (
                "rbac.authorization.k8s.io/v1",
                "ROLEBINDING",
                ObjectKindError::Powerful,
            ),
            (
                "admissionregistration.k8s.io/v1",
                "ValidatingAdmissionPolicie",
                ObjectKindError::Powerful,
            ),
            ("v1", "Binding", ObjectKindError::Powerful),
            ("v1", "SECRET", ObjectKindError::Malformed),
            ("v1", "Configmap", ObjectKindError::Malformed),
            ("v2", "Secret", ObjectKindError::Malformed),
            ("v1", "List", ObjectKindError::Malformed),
            ("v1", "Namespace", ObjectKindError::ClusterScoped),
            ("v1", "PERSISTENTVOLUME", ObjectKindError::ClusterScoped),
            ("v1", "NodeMetrics", ObjectKindError::ClusterScoped),
            (
                "certificates.k8s.io/v1",
                "CertificateSigningRequest",
                ObjectKindError::ClusterScoped,
            ),
            (
                "storage.k8s.io/v1beta1",
                "StorageClass",
                ObjectKindError::ClusterScoped,
            ),
        ] {
            assert_eq!(ObjectKind::new(version, kind), Err(why), "{version} {kind}");
        }
        // Kinds of other groups have resources of their own.
        for (version, kind) in [
            ("v1", "Secret"),
            ("example.com/v1", "Secret"),
            ("example.com/v1", "Namespace"),
            ("v1", "PersistentVolumeClaim"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
        ] {
            assert!(ObjectKind::new(version, kind).is_ok(), "{version} {kind}");
        }
    }

    #[test]
    fn a_stored_mode_is_spelled_as_in_the_contract() {
        for mode in ApplyMode::ALL {
            let stored = serde_json::to_value(mode).unwrap();
            assert_eq!(stored, mode.name());
            assert_eq!(serde_json::from_value::<ApplyMode>(stored).unwrap(), mode);
            assert_eq!(ApplyMode::named(mode.name()), Some(mode));
        }
    }
}
