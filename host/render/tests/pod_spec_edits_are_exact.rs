//! Edits of scheduling, DNS and raw fields leave the runtime's entries unchanged and follow them; a required node affinity is narrowed and
//! never widened; and every addition is explained.

use serde_json::{Value, json};
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Phase,
};
use trainyard_render::{Rendered, Setter};

use crate::common::{Scripted, container, pod_set, pod_spec, render_edited, texts};

const CLAIMS: [(&str, &str); 7] = [
    ("writes", "pod-sets[*].backoff-limit"),
    ("writes", "pod-sets[*].tolerations[*]"),
    ("writes", "pod-sets[*].affinity-terms[*]"),
    ("writes", "pod-sets[*].scheduling-gates[*]"),
    ("writes", "pod-sets[*].dns-searches[*]"),
    ("writes", "pod-sets[*].fs-group"),
    ("writes", "pod-sets[*].raw[*]"),
];

/// A plugin with the claims for all edits of the pod set `node`.
fn plugin(
    name: &str,
    act: impl Fn(&mut Call, handle::PodSet) -> Result<(), Fault> + Send + Sync + 'static,
) -> Scripted {
    let mut plugin = Scripted::new(name, &CLAIMS, move |phase, call| {
        if phase != Phase::Transform {
            return Ok(());
        }
        let set = pod_set(call, "node")?;
        act(call, set)
    });
    plugin
        .claims
        .push(("writes", "pod-sets[*].containers[*].raw[*]".to_owned()));
    plugin
}

/// The TrainJob of the tests, with additional members of the pod spec.
fn render(plugins: &[Scripted], members: &Value) -> Result<Rendered, Vec<String>> {
    let mut spec = String::new();
    for (name, value) in members.as_object().unwrap() {
        spec.push_str(&format!("                {name}: {value}\n"));
    }
    let edit = |input: String| {
        let at = "                initContainers:\n";
        input.replacen(at, &format!("{spec}{at}"), 1)
    };
    render_edited(plugins, edit).map_err(|problems| texts(&problems))
}

fn expression(key: &str) -> Value {
    json!({"key": key, "operator": "Exists"})
}

fn required(terms: &Value) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
}

/// Adds required node affinity terms by id.
fn narrowing(name: &str, terms: &'static [(&'static str, &'static str)]) -> Scripted {
    plugin(name, move |call, set| {
        terms.iter().try_for_each(|(id, key)| {
            let term = json!({"matchExpressions": [expression(key)]}).to_string();
            call.pod_set_add_affinity_term(set, id, "nodeAffinity/required", &term)
        })
    })
}

/// Whether the scheduler would place a pod on a node with these labels.
fn may_run(affinity: &Value, labels: &[&str]) -> bool {
    let terms = affinity
        .pointer("/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let Some(terms) = terms.and_then(Value::as_array) else {
        return true;
    };
    terms.iter().any(|term| {
        let expressions = term.get("matchExpressions").and_then(Value::as_array);
        let expressions = expressions.map_or(&[][..], Vec::as_slice);
        let matches = |one: &Value| labels.contains(&one["key"].as_str().unwrap());
        !expressions.is_empty() && expressions.iter().all(matches)
    })
}

#[test]
fn required_node_affinity_is_narrowed_in_every_term() {
    let alternatives = [
        json!([{"matchExpressions": [expression("a")]}, {"matchExpressions": [expression("b")]}]),
        json!([{"matchExpressions": [expression("a")]}]),
        json!([{}]),
        json!([{"matchExpressions": [expression("a")]}, {}]),
    ];
    let nodes: Vec<Vec<&str>> = (0..16)
        .map(|bits: usize| {
            let labels = ["a", "b", "x", "y"].into_iter().enumerate();
            let has = labels.filter(|(at, _)| bits >> at & 1 == 1);
            has.map(|(_, label)| label).collect()
        })
        .collect();
    for terms in alternatives {
        let before = required(&terms);
        let plugins = [narrowing("p", &[("second", "y"), ("first", "x")])];
        let rendered = render(&plugins, &json!({"affinity": before})).unwrap();
        let after = &pod_spec(&rendered)["affinity"];
        for node in &nodes {
            let both = may_run(&before, node) && node.contains(&"x") && node.contains(&"y");
            assert_eq!(may_run(after, node), both, "{terms} {node:?}: {after}");
        }
    }
    // Without one of the runtime's, the terms are the only alternative together.
    for members in [
        json!({}),
        json!({"affinity": {"podAffinity": {}}}),
        json!({"affinity": null}),
    ] {
        let plugins = [narrowing("a", &[("z", "y")]), narrowing("b", &[("c", "x")])];
        let plugins = plugins.map(|mut plugin| {
            if plugin.name == "b" {
                plugin.after = vec!["a".to_owned()];
            }
            plugin
        });
        let rendered = render(&plugins, &members).unwrap();
        let affinity = &pod_spec(&rendered)["affinity"];
        let terms = json!([{"matchExpressions": [expression("x"), expression("y")]}]);
        assert_eq!(
            affinity["nodeAffinity"],
            required(&terms)["nodeAffinity"],
            "sorted by id, whatever plugin adds it"
        );
    }
}

#[test]
fn required_node_affinity_without_terms_refuses_additions() {
    for affinity in [
        required(&json!([])),
        required(&json!(null)),
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
    ] {
        let plugins = [narrowing("p", &[("second", "y"), ("first", "x")])];
        let problems = render(&plugins, &json!({"affinity": affinity})).unwrap_err();
        assert_eq!(
            problems,
            [
                "pod-sets[node].affinity-terms[first]: the plugin p 1.0.0 (native) adds a required node affinity term, but the runtime's required node affinity has no `nodeSelectorTerms` and so matches no node; add a term to it, or remove it from the runtime"
            ],
            "{affinity}"
        );
        // Without a plugin, the message is that of what an API server refuses.
        let problems = render(&[], &json!({"affinity": affinity})).unwrap_err();
        let [problem] = &problems[..] else {
            panic!("{problems:?}")
        };
        let reason = "nodeSelectorTerms: is empty, so no node matches; add a term";
        assert!(problem.contains(reason), "{problem}");
    }
}

/// Copying every term to every alternative before counting would take gigabytes.
#[test]
fn additions_to_every_term_are_counted_before_copying() {
    let narrowing = |terms: usize, requirements: usize| {
        plugin("p", move |call, set| {
            let term = json!({"matchExpressions": vec![expression("x"); requirements]}).to_string();
            (0..terms).try_for_each(|at| {
                call.pod_set_add_affinity_term(
                    set,
                    &format!("t{at}"),
                    "nodeAffinity/required",
                    &term,
                )
            })
        })
    };
    let alternatives = |count: usize| {
        let terms = json!(vec![json!({"matchExpressions": [expression("a")]}); count]);
        json!({"affinity": required(&terms)})
    };
    for (terms, requirements, count, reported) in [
        (
            3_000,
            1,
            1_000,
            "plugins add 3000 required node affinity terms to each of the 1000 `nodeSelectorTerms` of the runtime, which makes 3001 entries, ",
        ),
        (
            10,
            100,
            100,
            "which makes 301000 entries, but at most 50000 are allowed",
        ),
    ] {
        let problems = render(&[narrowing(terms, requirements)], &alternatives(count)).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let start = "pod-sets[node].affinity-terms: plugins add ";
        assert!(
            problems[0].starts_with(start) && problems[0].contains(reported),
            "{problems:?}"
        );
    }
    render(&[narrowing(10, 10)], &alternatives(10)).unwrap();
}

/// A list of values counts as one entry, and may have the size of a whole object.
#[test]
fn bytes_of_additions_to_every_term_are_counted_before_copying() {
    let narrowing = |values: usize| {
        plugin("p", move |call, set| {
            let requirement = json!({"key": "zone", "operator": "In", "values": vec!["a"; values]});
            let term = json!({"matchExpressions": [requirement]}).to_string();
            call.pod_set_add_affinity_term(set, "t", "nodeAffinity/required", &term)
        })
    };
    let alternatives = json!(vec![json!({"matchExpressions": [expression("a")]}); 1_000]);
    let members = json!({"affinity": required(&alternatives)});
    let problems = render(&[narrowing(50_000)], &members).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let reported = "pod-sets[node].affinity-terms: plugins add required node affinity terms to each of the 1000 `nodeSelectorTerms` of the runtime, which makes 200064000 bytes, but etcd stores at most 1572864; ";
    assert!(problems[0].starts_with(reported), "{problems:?}");
    render(&[narrowing(100)], &members).unwrap();
}

#[test]
fn additions_follow_the_runtimes_entries_sorted_by_id() {
    let mut second = plugin("b", |call, set| {
        call.pod_set_add_toleration(set, "a-tail", r#"{"key": "tail", "operator": "Exists"}"#)?;
        call.pod_set_add_affinity_term(
            set,
            "a",
            "podAntiAffinity/preferred",
            r#"{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}"#,
        )
    });
    second.after = vec!["a".to_owned()];
    let plugins = [
        plugin("a", |call, set| {
            call.pod_set_add_toleration(set, "gpu", r#"{"key": "gpu", "operator": "Exists"}"#)?;
            call.pod_set_add_toleration(set, "gpu", r#"{"key": "gpus", "operator": "Exists"}"#)?;
            call.pod_set_add_scheduling_gate(set, "example.com/new")?;
            call.pod_set_add_scheduling_gate(set, "example.com/old")?;
            call.pod_set_add_dns_search(set, "new.example")?;
            call.pod_set_add_dns_search(set, "old.example")?;
            call.pod_set_set_fs_group(set, 9)?;
            call.pod_set_add_affinity_term(
                set,
                "hosts",
                "podAntiAffinity/preferred",
                r#"{"weight": 100, "podAffinityTerm": {"topologyKey": "host"}}"#,
            )
        }),
        second,
    ];
    let old = json!({
        "tolerations": [{"key": "spot", "extra": 1}],
        "schedulingGates": [{"name": "example.com/old", "extra": 1}],
        "dnsConfig": {"options": [{"name": "ndots"}], "searches": ["old.example", "old.example"]},
        "securityContext": {"runAsUser": 7},
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7}]}},
    });
    let rendered = render(&plugins, &old).unwrap();
    let pod = pod_spec(&rendered);
    assert_eq!(
        pod["tolerations"],
        json!([
            {"key": "spot", "extra": 1},
            {"key": "tail", "operator": "Exists"},
            {"key": "gpus", "operator": "Exists"},
        ])
    );
    assert_eq!(
        pod["schedulingGates"],
        json!([{"name": "example.com/old", "extra": 1}, {"name": "example.com/new"}])
    );
    assert_eq!(
        pod["dnsConfig"],
        json!({"options": [{"name": "ndots"}], "searches": ["old.example", "old.example", "new.example"]})
    );
    assert_eq!(
        pod["securityContext"],
        json!({"runAsUser": 7, "fsGroup": 9})
    );
    let terms = pod["affinity"]["podAntiAffinity"]
        .pointer("/preferredDuringSchedulingIgnoredDuringExecution")
        .unwrap();
    let weights: Vec<_> = terms
        .as_array()
        .unwrap()
        .iter()
        .map(|term| &term["weight"])
        .collect();
    assert_eq!(weights, [7, 1, 100]);
}

#[test]
fn missing_parents_are_created() {
    let all = plugin("p", |call, set| {
        call.pod_set_add_toleration(set, "gpu", r#"{"operator": "Exists"}"#)?;
        call.pod_set_add_scheduling_gate(set, "example.com/new")?;
        call.pod_set_add_dns_search(set, "new.example")?;
        call.pod_set_set_fs_group(set, 0)?;
        call.pod_set_set_raw(set, "hostNetwork", "true")?;
        call.pod_set_set_raw(set, "securityContext/runAsUser", "3")?;
        let node = container(call, "node")?;
        call.container_set_raw(node, "tty", "true")?;
        call.container_set_raw(node, "securityContext/privileged", "false")
    });
    let rendered = render(&[all], &json!({})).unwrap();
    let pod = pod_spec(&rendered);
    for (pointer, value) in [
        ("/tolerations", json!([{"operator": "Exists"}])),
        ("/schedulingGates", json!([{"name": "example.com/new"}])),
        ("/dnsConfig", json!({"searches": ["new.example"]})),
        ("/securityContext", json!({"fsGroup": 0, "runAsUser": 3})),
        ("/hostNetwork", json!(true)),
        ("/containers/0/tty", json!(true)),
        (
            "/containers/0/securityContext",
            json!({"privileged": false}),
        ),
    ] {
        assert_eq!(pod.pointer(pointer), Some(&value), "{pointer}");
    }
    let untouched = render(&[], &json!({})).unwrap();
    assert_eq!(pod["containers"][1], pod_spec(&untouched)["containers"][1]);
}

#[test]
fn raw_field_is_replaced_in_place_and_removed_by_null() {
    let raw = plugin("p", |call, set| {
        call.pod_set_set_raw(set, "terminationGracePeriodSeconds", "5")?;
        call.pod_set_set_raw(set, "hostNetwork", "null")?;
        call.pod_set_set_raw(set, "securityContext/runAsUser", "null")
    });
    let old = json!({
        "hostNetwork": true, "terminationGracePeriodSeconds": 30, "enableServiceLinks": false,
        "securityContext": {"runAsUser": 7, "runAsGroup": 8},
    });
    let rendered = render(&[raw], &old).unwrap();
    let pod = pod_spec(&rendered);
    let names: Vec<_> = pod.as_object().unwrap().keys().take(3).cloned().collect();
    assert_eq!(
        names,
        [
            "terminationGracePeriodSeconds",
            "enableServiceLinks",
            "securityContext"
        ]
    );
    assert_eq!(pod["terminationGracePeriodSeconds"], 5);
    assert_eq!(pod["securityContext"], json!({"runAsGroup": 8}));
    let row = |path: &str| {
        let rows = rendered.explain(&path.parse().unwrap()).unwrap();
        assert_eq!(rows.len(), 1, "{path}: {rows:?}");
        rows[0].clone()
    };
    // With its last member an object goes, unless it was empty before or another member comes.
    let raw = plugin("p", |call, set| {
        call.pod_set_set_raw(set, "securityContext/runAsUser", "null")?;
        call.pod_set_set_raw(set, "dnsConfig/options", "null")?;
        call.pod_set_set_raw(set, "dnsConfig/nameservers", r#"["9.9.9.9"]"#)
    });
    let old = json!({
        "securityContext": {"runAsUser": 7}, "dnsConfig": {"options": []}, "hostNetwork": true,
    });
    let pod = pod_spec(&render(&[raw], &old).unwrap()).clone();
    assert_eq!(pod.get("securityContext"), None);
    assert_eq!(pod["dnsConfig"], json!({"nameservers": ["9.9.9.9"]}));
    let first = pod.as_object().unwrap().keys().next();
    assert_eq!(first.map(|name| &**name), Some("dnsConfig"));
    let raw = plugin("p", |call, set| {
        call.pod_set_set_raw(set, "securityContext/runAsUser", "7")?;
        call.pod_set_set_raw(set, "securityContext/runAsUser", "null")
    });
    let empty = render(&[raw], &json!({"securityContext": {}})).unwrap();
    assert_eq!(pod_spec(&empty)["securityContext"], json!({}));
    let grace = row("pod-sets[node].raw[terminationGracePeriodSeconds]");
    assert_eq!(
        (&grace.steps[0].from, &grace.steps[0].to),
        (&Some(json!(30)), &Some(json!(5)))
    );
    let user = row("pod-sets[node].raw[securityContext/runAsUser]");
    assert_eq!(
        (&user.steps[0].from, &user.steps[0].to),
        (&Some(json!(7)), &None)
    );
}

/// Returns what set the value at a path of the pod spec, and its path in the record.
fn setter(rendered: &Rendered, path: &str) -> Vec<(String, String)> {
    let pod = "spec.replicatedJobs[node].template.spec.template.spec";
    let rows = rendered.explain(&format!("{pod}.{path}").parse().unwrap());
    let rows = rows.unwrap_or_else(|error| panic!("{error}"));
    let of = |by: &Setter| match by {
        Setter::Plugin { name, .. } => name.clone(),
        Setter::Runtime { .. } => "runtime".to_owned(),
        other => format!("{other:?}"),
    };
    rows.iter()
        .map(|row| (of(&row.steps[0].by), row.path.clone()))
        .collect()
}

#[test]
fn every_addition_is_explained_at_its_path() {
    let plugins = [plugin("p", |call, set| {
        call.pod_set_add_toleration(set, "gpu", r#"{"key": "gpu", "operator": "Exists"}"#)?;
        call.pod_set_add_dns_search(set, "new.example")?;
        for (id, key) in [("x", "x"), ("y", "y")] {
            let term = json!({"matchExpressions": [expression(key), expression(key)]});
            call.pod_set_add_affinity_term(set, id, "nodeAffinity/required", &term.to_string())?;
        }
        Ok(())
    })];
    let name = json!({"key": "metadata.name", "operator": "In", "values": ["b"]});
    let terms = json!([{"matchExpressions": [expression("a")]}, {}, {"matchFields": [name]}]);
    let old = json!({
        "tolerations": [{"key": "spot"}], "dnsConfig": {"searches": ["old.example"]},
        "affinity": required(&terms),
    });
    let rendered = render(&plugins, &old).unwrap();
    let by_plugin = |path: &str| vec![("p".to_owned(), path.to_owned())];
    let gpu = by_plugin("pod-sets[node].tolerations[gpu]");
    assert_eq!(setter(&rendered, "tolerations[1]"), gpu);
    assert_eq!(setter(&rendered, "tolerations[1].key"), gpu);
    assert_eq!(setter(&rendered, "tolerations[0]")[0].0, "runtime");
    assert_eq!(
        setter(&rendered, "dnsConfig.searches[1]"),
        by_plugin("pod-sets[node].dns-searches[new.example]")
    );
    assert_eq!(setter(&rendered, "dnsConfig.searches[0]")[0].0, "runtime");
    let list =
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    for (place, id) in [
        ("[0].matchExpressions[1]", "x"),
        ("[0].matchExpressions[2]", "x"),
        ("[0].matchExpressions[3]", "y"),
        ("[0].matchExpressions[4].key", "y"),
        ("[2].matchExpressions[0]", "x"),
        ("[2].matchExpressions[3]", "y"),
    ] {
        let path = format!("pod-sets[node].affinity-terms[{id}]");
        assert_eq!(
            setter(&rendered, &format!("{list}{place}")),
            by_plugin(&path),
            "{place}"
        );
    }
    for place in ["[0].matchExpressions[0]", "[1]", "[2].matchFields[0]"] {
        assert_eq!(
            setter(&rendered, &format!("{list}{place}"))[0].0,
            "runtime",
            "{place}"
        );
    }
    // By the record's own path, all places of one addition.
    let rows = rendered.explain(&"pod-sets[node].affinity-terms[y]".parse().unwrap());
    assert_eq!(rows.unwrap().len(), 4);
    let rows = rendered.explain(&"pod-sets[node].tolerations[gpu]".parse().unwrap());
    let place = "spec.replicatedJobs[0].template.spec.template.spec.tolerations[1]";
    assert_eq!(rows.unwrap()[0].job_set_path.as_deref(), Some(place));
}

#[test]
fn pods_that_kubernetes_refuses_refuse_the_train_job() {
    let searches = |count: usize, length: usize| {
        plugin("p", move |call, set| {
            (0..count).try_for_each(|at| {
                let domain = format!("{}{at:02}.example", "a".repeat(length));
                call.pod_set_add_dns_search(set, &domain)
            })
        })
    };
    let one = json!({"dnsConfig": {"searches": ["old.example"]}});
    render(&[searches(31, 1)], &one).unwrap();
    let problems = render(&[searches(32, 1)], &one).unwrap_err();
    assert_eq!(
        problems,
        [
            "pod-sets[node].dns-searches: has 33 DNS search domains, but a pod may have at most 32; the last one, `a31.example`, is from the plugin p 1.0.0 (native); remove some"
        ]
    );
    let problems = render(&[searches(30, 62)], &one).unwrap_err();
    assert!(
        problems[0].contains("DNS search domains of 2201 characters together"),
        "{problems:?}"
    );
    let gate = || {
        plugin("p", |call, set| {
            call.pod_set_add_scheduling_gate(set, "example.com/new")
        })
    };
    let problems = render(&[gate()], &json!({"nodeName": "n1"})).unwrap_err();
    assert_eq!(
        problems,
        [
            "pod-sets[node]: the plugin p 1.0.0 (native) adds the scheduling gate `example.com/new`, but the runtime sets the node name `n1`; remove one of the two"
        ]
    );
    let name = plugin("q", |call, set| {
        call.pod_set_set_raw(set, "nodeName", r#""n2""#)
    });
    let gated = json!({"schedulingGates": [{"name": "example.com/old"}]});
    let problems = render(&[name], &gated).unwrap_err();
    assert!(problems[0].contains("but the plugin q"), "{problems:?}");
    // A plugin that removes the node name may add a gate.
    let both = plugin("p", |call, set| {
        call.pod_set_set_raw(set, "nodeName", "null")?;
        call.pod_set_add_scheduling_gate(set, "example.com/new")
    });
    render(&[both], &json!({"nodeName": "n1"})).unwrap();
    // Values of the runtime's author are left to the API server.
    let alone = json!({"schedulingGates": [{"name": "a"}], "nodeName": "n1"});
    render(&[plugin("p", |_, _| Ok(()))], &alone).unwrap();
}

/// The TrainJob of the tests with members of its job's spec and of the JobSet's.
fn render_job(act: Scripted, job: &str, job_set: &str) -> Rendered {
    let edit = |input: String| {
        let spec = "          spec:\n            template:\n";
        let jobs = "      replicatedJobs:\n";
        assert!(input.contains(spec) && input.contains(jobs), "{input}");
        input
            .replacen(spec, &spec.replacen('\n', &format!("\n{job}"), 1), 1)
            .replacen(jobs, &format!("{job_set}{jobs}"), 1)
    };
    render_edited(&[act], edit).unwrap_or_else(|problems| panic!("{:?}", texts(&problems)))
}

#[test]
fn backoff_limit_is_replaced_in_place() {
    let with = |limit: u32| {
        plugin("p", move |call, set| {
            call.pod_set_set_backoff_limit(set, limit)
        })
    };
    let job = |rendered: &Rendered| {
        rendered.job_set["spec"]["replicatedJobs"][0]["template"]["spec"].clone()
    };
    for (old, from) in [
        ("", None),
        ("            backoffLimit: 3\n", Some(json!(3))),
    ] {
        let rendered = render_job(with(0), old, "");
        assert_eq!(job(&rendered)["backoffLimit"], json!(0));
        let path = "spec.replicatedJobs[node].template.spec.backoffLimit";
        let rows = rendered.explain(&path.parse().unwrap()).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].path, "pod-sets[node].backoff-limit");
        assert_eq!(
            (&rows[0].steps[0].from, &rows[0].steps[0].to),
            (&from, &Some(json!(0)))
        );
    }
    let untouched = plugin("p", |_, _| Ok(()));
    let kept = render_job(untouched, "            backoffLimit: 3\n", "");
    assert_eq!(job(&kept)["backoffLimit"], json!(3));
}

#[test]
fn plugins_see_which_pods_have_stable_names() {
    let seen = |job: &str, job_set: &str| {
        let look = plugin("p", |call, set| {
            let info = call.context_base(Call::CONTEXT)?;
            let (named, indexed) = (
                call.info_has_host_names(info)?,
                call.pod_set_is_indexed(set)?,
            );
            call.pod_set_set_raw(set, "shareProcessNamespace", &named.to_string())?;
            call.pod_set_set_raw(set, "hostIPC", &indexed.to_string())
        });
        let rendered = render_job(look, job, job_set);
        let pod = pod_spec(&rendered);
        ["shareProcessNamespace", "hostIPC"].map(|name| pod[name].as_bool().unwrap())
    };
    let network = |value: &str| format!("      network: {{enableDNSHostnames: {value}}}\n");
    let mode = |value: &str| format!("            completionMode: {value}\n");
    assert_eq!(seen("", ""), [true, true]);
    assert_eq!(seen(&mode("Indexed"), &network("true")), [true, true]);
    assert_eq!(seen(&mode("NonIndexed"), &network("false")), [false, false]);
}
