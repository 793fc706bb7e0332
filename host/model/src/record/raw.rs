//! Members of a pod spec or container that the record has no field for.
//!
//! The record stores only members that a plugin sets. Those of the runtime are read from the template, which the record shares, so raw
//! members cost nothing if they are not used.

use serde_json::Value;
use trainyard_text::json;

use super::{EntryScope, Field, Level, Record};

/// Objects whose members are separate raw members, such as `securityContext/runAsUser`, each with member names that authors may use without
/// the object.
const OPENED: [(Level, &str, &[&str]); 4] = [
    (
        Level::PodSet,
        "securityContext",
        &[
            "appArmorProfile",
            "fsGroup",
            "fsGroupChangePolicy",
            "runAsGroup",
            "runAsNonRoot",
            "runAsUser",
            "seLinuxChangePolicy",
            "seLinuxOptions",
            "seccompProfile",
            "supplementalGroups",
            "supplementalGroupsPolicy",
            "sysctls",
            "windowsOptions",
        ],
    ),
    (
        Level::PodSet,
        "dnsConfig",
        &["nameservers", "options", "searches"],
    ),
    (
        Level::Container,
        "securityContext",
        &[
            "allowPrivilegeEscalation",
            "appArmorProfile",
            "capabilities",
            "privileged",
            "procMount",
            "readOnlyRootFilesystem",
            "runAsGroup",
            "runAsNonRoot",
            "runAsUser",
            "seLinuxOptions",
            "seccompProfile",
            "windowsOptions",
        ],
    ),
    (Level::Container, "securityContext/capabilities", &["drop"]),
];

/// Members that are not raw, each with the method to use instead.
const TAKEN: [(Level, &str, &str); 32] = [
    (Level::PodSet, "containers", "use `pod-set.container`"),
    (Level::PodSet, "initContainers", "use `pod-set.container`"),
    (Level::PodSet, "volumes", "use `pod-set.put-raw-volume`"),
    (
        Level::PodSet,
        "resourceClaims",
        "use `pod-set.put-resource-claim`",
    ),
    (
        Level::PodSet,
        "nodeSelector",
        "use `pod-set.put-node-selector`",
    ),
    (
        Level::PodSet,
        "priorityClassName",
        "use `pod-set.set-priority-class`",
    ),
    (
        Level::PodSet,
        "priority",
        "the API server derives it from the priority class; use `pod-set.set-priority-class`",
    ),
    (
        Level::PodSet,
        "preemptionPolicy",
        "the API server derives it from the priority class; use `pod-set.set-priority-class`",
    ),
    (
        Level::PodSet,
        "serviceAccount",
        "it is deprecated; use `serviceAccountName`",
    ),
    (
        Level::PodSet,
        "schedulerName",
        "use `pod-set.set-scheduler-name`",
    ),
    (
        Level::PodSet,
        "schedulingGates",
        "use `pod-set.add-scheduling-gate`",
    ),
    (Level::PodSet, "tolerations", "use `pod-set.add-toleration`"),
    (Level::PodSet, "affinity", "use `pod-set.add-affinity-term`"),
    (
        Level::PodSet,
        "dnsConfig/searches",
        "use `pod-set.add-dns-search`",
    ),
    (
        Level::PodSet,
        "securityContext/fsGroup",
        "use `pod-set.set-fs-group`",
    ),
    (Level::PodSet, "hostname", "the Job controller sets it"),
    (
        Level::PodSet,
        "subdomain",
        "JobSet sets it; `info.subdomain` reads it",
    ),
    (
        Level::PodSet,
        "ephemeralContainers",
        "it is not allowed in a pod template",
    ),
    (Level::Container, "name", "use `container.name`"),
    (Level::Container, "image", "use `container.set-image`"),
    (
        Level::Container,
        "imagePullPolicy",
        "use `container.set-image-pull-policy`",
    ),
    (Level::Container, "command", "use `container.set-command`"),
    (Level::Container, "args", "use `container.set-args`"),
    (
        Level::Container,
        "workingDir",
        "use `container.set-working-dir`",
    ),
    (
        Level::Container,
        "restartPolicy",
        "use `container.set-restart-policy`",
    ),
    (Level::Container, "env", "use `container.put-env`"),
    (
        Level::Container,
        "envFrom",
        "only the host writes it; `container.put-env-raw` sets one variable",
    ),
    (Level::Container, "ports", "use `container.put-port`"),
    (
        Level::Container,
        "volumeMounts",
        "use `container.put-mount`",
    ),
    (
        Level::Container,
        "resources",
        "use `container.set-request` and `container.set-limit`",
    ),
    (
        Level::Container,
        "securityContext/capabilities/add",
        "use `container.add-capability`",
    ),
    (
        Level::Container,
        "resizePolicy",
        "pods of a Job are not resized",
    ),
];

impl Field {
    /// Whether its keys are names of members of a pod spec or container.
    #[must_use]
    pub const fn is_raw(self) -> bool {
        matches!(self, Self::PodRaw | Self::ContainerRaw)
    }

    /// What is wrong with the name of a raw member. `None` if plugins can read and set it.
    pub(crate) fn raw_member_problem(self, member: &str) -> Option<String> {
        let level = self.level();
        if let Some((.., way)) = TAKEN
            .iter()
            .find(|(at, name, _)| (*at, *name) == (level, member))
        {
            return Some(format!("`{member}` is not a raw member: {way}"));
        }
        let opened = || OPENED.iter().filter(|(at, ..)| *at == level);
        let is_opened = |name: &str| opened().any(|(_, object, _)| *object == name);
        if is_opened(member) {
            return Some(format!(
                "`{member}` is read and set member by member; name one, such as `{member}/NAME`"
            ));
        }
        if let Some((_, object, _)) = opened().find(|(.., names)| names.contains(&member)) {
            return Some(format!(
                "`{member}` is a member of `{object}`; name it `{object}/{member}`"
            ));
        }
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric());
        let is_member = match member.rsplit_once('/') {
            Some((object, name)) => is_opened(object) && is_name(name),
            None => is_name(member),
        };
        (!is_member).then(|| {
            format!(
                "`{}` is not the name of a member, such as `hostNetwork` or `securityContext/runAsUser`",
                crate::text::clean(member)
            )
        })
    }

    /// What is wrong with a prefix of names of raw members. `None` if some raw member can begin with it.
    pub(crate) fn raw_prefix_problem(self, prefix: &str) -> Option<String> {
        // With one more letter, no table has the name.
        self.raw_member_problem(&format!("{prefix}x"))
            .map(|_| format!("no raw member begins with `{}`", crate::text::clean(prefix)))
    }
}

impl Record {
    /// A raw member of a pod set's pods or of a container in the template. `None` if it is absent.
    #[must_use]
    pub fn template_member(&self, scope: EntryScope, member: &str) -> Option<&Value> {
        let object = match scope {
            EntryScope::Job => None,
            EntryScope::PodSet(at) => json::get(self.pod_template(at)?, "spec"),
            EntryScope::Container(id) => self.template_container(id),
        };
        let mut names = member.split('/');
        names
            .try_fold(object?, json::get)
            .filter(|value| !value.is_null())
    }

    /// A raw member after the writes of plugins. `None` if it is absent.
    #[must_use]
    pub fn member(&self, scope: EntryScope, member: &str) -> Option<&Value> {
        let field = match scope {
            EntryScope::Container(_) => Field::ContainerRaw,
            _ => Field::PodRaw,
        };
        match self.entry(scope, field, member) {
            Some(entry) => entry
                .datum
                .as_json()
                .map(|value| &**value)
                .filter(|value| !value.is_null()),
            None => self.template_member(scope, member),
        }
    }

    /// The pod template of a pod set in the JobSet's template.
    #[must_use]
    pub fn pod_template(&self, at: u32) -> Option<&Value> {
        let job = json::get(self.template.as_ref()?, "replicatedJobs")?.get(at as usize)?;
        json::get_at(job, &["template", "spec", "template"])
    }

    fn template_container(&self, id: super::ContainerId) -> Option<&Value> {
        let container = self.container(id)?;
        let pod = self.pod_template(container.pod_set)?;
        let items = json::get_at(pod, container.list.keys())?.as_array()?;
        let name = |item| json::get(item, "name").and_then(Value::as_str);
        items
            .iter()
            .find(|item| name(item) == Some(&container.name))
    }
}
