//! Pod templates.

use serde_json::{Map, Value};
use trainyard_api::StackPath;

use super::{
    FieldProblems, container, names, resources,
    rules::{ANY, INT_MAX, Rule, Shape},
    scheduling, security, volumes,
};
use crate::json::items;

/// The pod template of a Job.
pub(super) static TEMPLATE: Shape = Shape {
    members: &[
        ("metadata", &[Rule::Object(&METADATA)]),
        (
            "spec",
            &[
                Rule::Check(|problems, at, pod, _| container::check(problems, at, pod)),
                Rule::Object(&POD),
            ],
        ),
    ],
    ..ANY
};

pub(super) static METADATA: Shape = Shape {
    members: &[
        ("annotations", &[Rule::Check(names::annotations)]),
        ("labels", &[Rule::Check(names::labels)]),
    ],
    ..ANY
};

pub(super) static POD: Shape = Shape {
    members: &[
        ("activeDeadlineSeconds", &[Rule::Range(1, INT_MAX)]),
        ("affinity", &[Rule::Object(&scheduling::AFFINITY)]),
        ("dnsConfig", &[Rule::Object(&DNS_CONFIG)]),
        (
            "dnsPolicy",
            &[
                Rule::Word(&["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
                Rule::Check(name_servers),
            ],
        ),
        (
            "ephemeralContainers",
            &[Rule::Never(
                "pod templates have no ephemeral containers; remove it",
            )],
        ),
        ("hostAliases", &[Rule::Items(&HOST_ALIAS)]),
        ("hostUsers", &[Rule::Check(host_namespaces)]),
        ("hostname", &[Rule::Text(names::label)]),
        ("nodeName", &[Rule::Text(names::object)]),
        ("nodeSelector", &[Rule::Check(names::labels)]),
        ("os", &[Rule::Object(&OS)]),
        (
            "preemptionPolicy",
            &[Rule::Word(&["Never", "PreemptLowerPriority"])],
        ),
        ("priorityClassName", &[Rule::Text(names::object)]),
        ("readinessGates", &[Rule::Items(&READINESS_GATE)]),
        ("resources", &[Rule::Check(resources::of_pod)]),
        // JobSet sets `OnFailure` if it is absent.
        ("restartPolicy", &[Rule::Word(&["Never", "OnFailure"])]),
        ("runtimeClassName", &[Rule::Text(names::object)]),
        ("schedulingGates", &[Rule::Items(&SCHEDULING_GATE)]),
        (
            "securityContext",
            &[
                Rule::Object(&security::OF_POD),
                Rule::Check(security::host_sysctls),
            ],
        ),
        ("serviceAccountName", &[Rule::Text(names::object)]),
        ("shareProcessNamespace", &[Rule::Check(one_pid_namespace)]),
        ("subdomain", &[Rule::Text(names::label)]),
        ("tolerations", &[Rule::Items(&scheduling::TOLERATION)]),
        (
            "topologySpreadConstraints",
            &[Rule::Items(&scheduling::SPREAD)],
        ),
        (
            "volumes",
            &[
                Rule::Items(&volumes::VOLUME),
                Rule::Unique(
                    "name",
                    "another volume of the pod is named",
                    "rename or remove one",
                ),
            ],
        ),
    ],
    ..ANY
};

static DNS_CONFIG: Shape = Shape {
    members: &[
        (
            "nameservers",
            &[Rule::Each(&Rule::Text(names::ip)), Rule::Most(3)],
        ),
        ("options", &[Rule::Items(&DNS_OPTION)]),
    ],
    ..ANY
};

static DNS_OPTION: Shape = Shape {
    needs: &["name"],
    ..ANY
};

static HOST_ALIAS: Shape = Shape {
    members: &[
        ("hostnames", &[Rule::Each(&Rule::Text(names::object))]),
        ("ip", &[Rule::Text(names::ip)]),
    ],
    needs: &["ip"],
    ..ANY
};

static OS: Shape = Shape {
    members: &[("name", &[Rule::Word(&["linux", "windows"])])],
    needs: &["name"],
    ..ANY
};

static READINESS_GATE: Shape = Shape {
    members: &[("conditionType", &[Rule::Text(names::key)])],
    needs: &["conditionType"],
    ..ANY
};

static SCHEDULING_GATE: Shape = Shape {
    members: &[("name", &[Rule::Text(names::key)])],
    needs: &["name"],
    ..ANY
};

/// Checks that a pod without the cluster's DNS has name servers.
fn name_servers(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    policy: &Value,
    pod: &Map<String, Value>,
) {
    let servers = pod
        .get("dnsConfig")
        .map(|config| items(config, "nameservers"));
    if policy == "None" && servers.is_none_or(<[_]>::is_empty) {
        let message =
            "is `None`, which requires `dnsConfig.nameservers`; set it, or use another policy";
        problems.add(at, message);
    }
}

/// Checks that a pod with its own users does not share other namespaces with the host. Newer releases let it share the network.
fn host_namespaces(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    host_users: &Value,
    pod: &Map<String, Value>,
) {
    for member in ["hostPID", "hostIPC"] {
        if host_users == false && pod.get(member) == Some(&Value::Bool(true)) {
            let message =
                format!("`false` cannot be set together with `{member}: true`; remove one");
            problems.add(at, message);
        }
    }
}

fn one_pid_namespace(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    share: &Value,
    pod: &Map<String, Value>,
) {
    if share == true && pod.get("hostPID") == Some(&Value::Bool(true)) {
        let message = "cannot be set together with `hostPID: true`; remove one";
        problems.add(at, message);
    }
}
