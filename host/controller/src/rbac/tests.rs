#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use k8s_openapi::{Resource, api::rbac::v1::PolicyRule};
use kube::api::ApiResource;
use serde_json::json;
use trainyard_model::names::resource_of;

use super::{rules::BUILT_IN_GROUPS, *};

fn claims(reads: &[&str], writes: &[&str]) -> Claims {
    serde_json::from_value(json!({"reads": reads, "writes": writes})).unwrap()
}

/// The rules for a plugin beyond the base, a line each, and the notes.
fn beyond(reads: &[&str], writes: &[&str]) -> (Vec<String>, Vec<String>) {
    let text = |roles: &Roles| -> Vec<String> {
        let rules = roles.cluster_role.rules.iter().flatten();
        let line = |rule: &PolicyRule| {
            let join = |list: &Option<Vec<String>>| list.clone().unwrap_or_default().join(",");
            format!(
                "{}/{} [{}] {}",
                join(&rule.api_groups),
                join(&rule.resources),
                join(&rule.resource_names),
                rule.verbs.join(",")
            )
        };
        rules.map(line).collect()
    };
    let base = text(&roles(
        [],
        NAMESPACE,
        &FeatureGates::default(),
        PluginsSource::File,
    ));
    let with = roles(
        [("p", &claims(reads, writes))],
        NAMESPACE,
        &FeatureGates::default(),
        PluginsSource::File,
    );
    let more = text(&with)
        .into_iter()
        .filter(|rule| !base.contains(rule))
        .collect();
    (more, with.notes.iter().map(ToString::to_string).collect())
}

#[test]
fn plugins_of_the_cluster_need_their_kinds_and_no_other_does() {
    let of = |source| {
        let rules = roles([], "ml", &FeatureGates::default(), source)
            .cluster_role
            .rules
            .unwrap();
        let ours = rules
            .into_iter()
            .filter(|rule| rule.api_groups == Some(vec![TRAINYARD_GROUP.to_owned()]));
        let line = |rule: PolicyRule| {
            format!(
                "{} {}",
                rule.resources.unwrap().join(","),
                rule.verbs.join(",")
            )
        };
        ours.map(line).collect::<Vec<_>>()
    };
    assert_eq!(of(PluginsSource::File), [""; 0]);
    assert_eq!(
        of(PluginsSource::Cluster),
        [
            "pluginrevisions create,delete,list,watch",
            "pluginrevisions/status patch",
            "policyplugins list,watch",
            "policyplugins/status patch",
        ]
    );
}

#[test]
fn without_plugins_there_is_what_the_controller_calls() {
    let roles = roles([], "ml", &FeatureGates::default(), PluginsSource::File);
    let rules = roles.cluster_role.rules.unwrap();
    assert_eq!(rules.len(), BASE.len());
    let resources = rules
        .iter()
        .flat_map(|rule| rule.resources.iter().flatten());
    let forbidden = ["*", "secrets", "pods"];
    assert!(
        !resources
            .into_iter()
            .any(|name| forbidden.contains(&name.as_str()))
    );
    assert!(
        !rules
            .iter()
            .any(|rule| rule.verbs.iter().any(|verb| verb == "*"))
    );
    let configmaps = rules.first().unwrap();
    assert_eq!(configmaps.verbs, ["create", "get", "patch"]);
    assert_eq!(
        serde_json::to_value(roles.role).unwrap(),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": NAME, "namespace": "ml"},
            "rules": [
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
                {
                    "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                    "resourceNames": ["trainer.kubeflow.org"], "verbs": ["get", "update"],
                },
            ],
        })
    );
}

#[test]
fn a_lookup_allows_no_more_than_it_asks_for() {
    for (claim, rule) in [
        ("lookups[v1/Node/*]", "/nodes [] get,list,watch"),
        ("lookups[\"v1/Node/*\"]", "/nodes [] list,watch"),
        ("lookups[v1/Node/gpu-1]", "/nodes [gpu-1] get,list,watch"),
        ("lookups[v1/Node/gpu-*]", "/nodes [] get,list,watch"),
        (
            "lookups[networking.k8s.io/v1/NetworkPolicy/*]",
            "networking.k8s.io/networkpolicies [] get,list,watch",
        ),
    ] {
        assert_eq!(
            beyond(&[claim], &[]),
            (vec![rule.to_owned()], vec![]),
            "{claim}"
        );
    }
    for nothing in [
        // Discovery is open to all authenticated users.
        "lookups[v1/Node/#]",
        // ConfigMaps are read by name anyway.
        "lookups[v1/ConfigMap/tracing]",
        "job[/trainer/args]",
        "labels[team]",
    ] {
        assert_eq!(beyond(&[nothing], &[]), (vec![], vec![]), "{nothing}");
    }
}

#[test]
fn names_are_joined_without_verbs_that_are_allowed_for_all() {
    let nodes = ["lookups[v1/Node/b]", "lookups[v1/Node/a]"];
    assert_eq!(beyond(&nodes, &[]).0, ["/nodes [a,b] get,list,watch"]);
    let all = ["lookups[v1/Node/a]", "lookups[v1/Node/*]"];
    assert_eq!(beyond(&all, &[]).0, ["/nodes [] get,list,watch"]);
    let list = ["lookups[v1/Node/a]", "lookups[\"v1/Node/*\"]"];
    assert_eq!(
        beyond(&list, &[]).0,
        ["/nodes [] list,watch", "/nodes [a] get"]
    );
}

#[test]
fn what_a_plugin_emits_is_read_created_and_patched() {
    let (rules, notes) = beyond(
        &[],
        &[
            "objects[v1/ConfigMap/-scripts]",
            "objects[resource.k8s.io/v1/ResourceClaimTemplate/-gpu]",
            "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/*]",
            "objects[scheduling.example.com/v1/Gang/*]",
        ],
    );
    assert_eq!(
        rules,
        [
            "resource.k8s.io/resourceclaimtemplates [] create,get,patch",
            "scheduling.example.com/gangs [] create,get,patch",
            "scheduling.x-k8s.io/podgroups [] create,get,patch",
        ]
    );
    let [guessed] = notes.as_slice() else {
        unreachable!("one of four is guessed: {notes:?}");
    };
    assert!(
        guessed.contains("`gangs` is guessed from the kind Gang"),
        "{guessed}"
    );
}

#[test]
fn secrets_are_never_changed_however_they_are_spelled() {
    for claim in [
        "objects[v1/Secret/-keys]",
        "objects[v1/Secret/*]",
        "objects[v1/SECRET/-keys]",
        "objects[v2/Secret/-keys]",
    ] {
        assert_eq!(
            beyond(&[], &[claim]),
            (vec!["/secrets [] create,get".to_owned()], vec![]),
            "{claim}"
        );
    }
}

#[test]
fn secrets_are_never_read_however_they_are_spelled() {
    for claim in [
        "lookups[v1/Secret/a]",
        "lookups[v1/Secret/*]",
        "lookups[v1/SECRET/*]",
        "lookups[v2/Secret/x-*]",
    ] {
        let (rules, notes) = beyond(&[claim], &[]);
        assert!(rules.is_empty(), "{claim}: {rules:?}");
        let [note] = notes.as_slice() else {
            unreachable!("{claim}: {notes:?}");
        };
        assert!(
            note.contains(claim) && note.contains("plugins cannot read Secrets"),
            "{note}"
        );
    }
}

#[test]
fn a_claim_without_a_kind_allows_nothing_and_is_told() {
    for claim in [
        "lookups[*]",
        "lookups[v1/*]",
        "lookups[v1/No*]",
        "lookups[apps/v1/*]",
        "lookups[apps/v1/Dep*]",
        "lookups[$config./kind]",
        "lookups[a/b/c/Kind/name]",
    ] {
        let (rules, notes) = beyond(&[claim], &[]);
        assert!(rules.is_empty(), "{claim}: {rules:?}");
        let [note] = notes.as_slice() else {
            unreachable!("{claim}: {notes:?}");
        };
        assert!(
            note.contains(claim) && note.contains("does not name one kind"),
            "{note}"
        );
    }
}

#[test]
fn kinds_of_kubernetes_itself_have_their_own_names() {
    fn check<K: Resource>() {
        let kind = kube::core::GroupVersionKind::gvk(K::GROUP, K::VERSION, K::KIND);
        assert_eq!(ApiResource::from_gvk(&kind).plural, K::URL_PATH_SEGMENT);
        // What no plugin emits is refused by the same names.
        assert_eq!(resource_of(K::KIND), K::URL_PATH_SEGMENT);
        assert!(
            !K::GROUP.contains('.') || BUILT_IN_GROUPS.contains(&K::GROUP),
            "{}",
            K::GROUP
        );
    }
    use k8s_openapi::api;
    check::<api::admissionregistration::v1::ValidatingAdmissionPolicyBinding>();
    check::<api::apps::v1::StatefulSet>();
    check::<api::autoscaling::v2::HorizontalPodAutoscaler>();
    check::<api::batch::v1::CronJob>();
    check::<api::certificates::v1::CertificateSigningRequest>();
    check::<api::coordination::v1::Lease>();
    check::<api::core::v1::Endpoints>();
    check::<api::core::v1::LimitRange>();
    check::<api::core::v1::PersistentVolumeClaim>();
    check::<api::core::v1::ResourceQuota>();
    check::<api::discovery::v1::EndpointSlice>();
    check::<api::events::v1::Event>();
    check::<api::flowcontrol::v1::PriorityLevelConfiguration>();
    check::<api::networking::v1::Ingress>();
    check::<api::networking::v1::NetworkPolicy>();
    check::<api::node::v1::RuntimeClass>();
    check::<api::policy::v1::PodDisruptionBudget>();
    check::<api::rbac::v1::ClusterRoleBinding>();
    check::<api::resource::v1::DeviceClass>();
    check::<api::resource::v1::ResourceClaimTemplate>();
    check::<api::scheduling::v1::PriorityClass>();
    check::<api::storage::v1::CSIStorageCapacity>();
    check::<api::storage::v1::StorageClass>();
    check::<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>();
    check::<k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService>();
}

#[test]
fn what_is_watched_is_allowed_and_nothing_else_is() {
    let reads = [
        "lookups[v1/Node/a]",
        "lookups[v1/Node/b]",
        "lookups[v1/Node/a*]",
        "lookups[\"v1/Node/*\"]",
        "lookups[v1/Node/*]",
        "lookups[v1/ConfigMap/a]",
        "lookups[v1/ConfigMap/*]",
    ];
    for set in 0..1_u32 << reads.len() {
        let claimed: Vec<&str> = (0..reads.len())
            .filter(|bit| set & 1 << bit != 0)
            .map(|bit| reads[bit])
            .collect();
        let claims = claims(&claimed, &[]);
        let reach = Reach::of([&claims], None);
        let rules = roles(
            [("p", &claims)],
            NAMESPACE,
            &FeatureGates::default(),
            PluginsSource::File,
        )
        .cluster_role
        .rules;
        let watches = |rule: &&PolicyRule| rule.verbs.contains(&"watch".to_owned());
        let of_nodes = |rule: &&PolicyRule| rule.resources == Some(vec!["nodes".to_owned()]);
        let rules: Vec<_> = rules.iter().flatten().filter(watches).collect();
        let allowed = |name: Option<&str>| {
            rules.iter().copied().filter(of_nodes).any(|rule| {
                assert!(rule.verbs.contains(&"list".to_owned()));
                let names = rule.resource_names.as_ref();
                names.is_none_or(|names| name.is_some_and(|name| names.iter().any(|n| n == name)))
            })
        };
        let mut needed = BTreeSet::new();
        for (claim, name) in [
            (0, Some("a")),
            (1, Some("b")),
            (2, Some("ab")),
            (3, None),
            (4, None),
        ] {
            if set & 1 << claim == 0 {
                continue;
            }
            let watched = reach.watched("v1", "Node", name).unwrap();
            match &watched {
                WatchScope::Kind => assert!(allowed(None), "{claimed:?}"),
                WatchScope::Named(name) => assert!(allowed(Some(name)), "{claimed:?}"),
            }
            needed.insert(watched);
        }
        assert_eq!(
            allowed(None),
            needed.contains(&WatchScope::Kind),
            "{claimed:?}"
        );
        assert_eq!(reach.watched("v1", "ConfigMap", Some("a")), None);
        let config_maps =
            |rule: &&PolicyRule| rule.resources == Some(vec!["configmaps".to_owned()]);
        assert!(!rules.iter().copied().any(|rule| config_maps(&rule)));
    }
}

#[test]
fn shadow_mode_may_only_read_and_no_secrets() {
    let emitted = [
        "objects[v1/Secret/-keys]",
        "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/]",
    ];
    let claims = claims(&["lookups[v1/LimitRange/*]"], &emitted);
    let role = shadow_role(roles(
        [("p", &claims)],
        NAMESPACE,
        &FeatureGates::default(),
        PluginsSource::File,
    ));
    assert_eq!(role.metadata.name.as_deref(), Some(SHADOW_NAME));
    let mut allowed = BTreeSet::new();
    for rule in role.rules.unwrap() {
        for resource in rule.resources.unwrap() {
            let verbs = rule.verbs.iter();
            allowed.extend(verbs.map(|verb| format!("{verb} {resource}")));
        }
    }
    let expected = [
        "get configmaps",
        "get jobsets",
        "list jobsets",
        "watch jobsets",
        "list clustertrainingruntimes",
        "watch clustertrainingruntimes",
        "list trainingruntimes",
        "watch trainingruntimes",
        "get trainjobs",
        "list trainjobs",
        "watch trainjobs",
        "get podgroups",
        "list limitranges",
        "watch limitranges",
        "get limitranges",
    ];
    let unexpected: Vec<_> = allowed
        .iter()
        .filter(|one| !expected.contains(&one.as_str()))
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
    for needed in [
        "get jobsets",
        "get configmaps",
        "watch trainjobs",
        "get podgroups",
        "list limitranges",
    ] {
        assert!(allowed.contains(needed), "{needed}: {allowed:?}");
    }
}
