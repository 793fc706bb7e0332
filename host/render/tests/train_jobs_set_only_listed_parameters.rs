//! A TrainJob sets the parameters of plugins that its runtime's author lists, and nothing else. Errors name the field of the object that has
//! the value.

use serde_json::{Value, json};
use trainyard_render::{Problem, Rendered};

use crate::common::{Scripted, catalog, input, refused, render_job, renderer, texts};

const ANNOTATION: &str = "metadata.annotations[trainyard.dev/plugin-parameters]";

/// The plugins `tracer`, with a configuration, and `guard`, which is always active.
fn loaded() -> [Scripted; 2] {
    let mut tracer = Scripted::new("tracer", &[], |_, _| Ok(()));
    tracer.config_schema = json!({
        "type": "object", "additionalProperties": false, "required": ["bucket"],
        "properties": {
            "bucket": {"type": "string"},
            "sampling": {"type": "integer", "minimum": 1, "default": 100},
            "network": {
                "type": "object", "additionalProperties": false, "maxProperties": 2,
                "properties": {"mtu": {"type": "integer"}, "tls": {"type": "boolean"}, "a/b": {"type": "integer"}},
            },
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    });
    let mut guard = Scripted::new("guard", &[], |_, _| Ok(()));
    guard.active_when = "always".to_owned();
    [tracer, guard]
}

/// Renders a TrainJob with these values, on a runtime with these members of `tracer`.
fn render(tracer: &str, values: &Value) -> Result<Rendered, Vec<Problem>> {
    let runtime =
        input(&loaded()).replace("{name: tracer}", &format!("{{name: tracer, {tracer}}}"));
    render_input(&runtime, values)
}

fn render_input(input: &str, values: &Value) -> Result<Rendered, Vec<Problem>> {
    let annotations = json!({"trainyard.dev/plugin-parameters": values.to_string()});
    let metadata = format!("{{name: job, annotations: {annotations}}}");
    let catalog = catalog(&input.replace("{name: job}", &metadata));
    render_job(&renderer(&loaded()).unwrap(), &catalog.jobs[0]).map_err(refused)
}

/// Returns the configuration of `tracer`.
fn config(rendered: &Rendered) -> &Value {
    let mut plan = rendered.plan.iter();
    &plan
        .find(|active| &*active.plugin.id.name == "tracer")
        .unwrap()
        .config
}

const RUNTIME: &str = "config: {bucket: a, network: {mtu: 1500}}, parameters: [/sampling, /network/tls, /network/a~1b, /tags]";

#[test]
fn listed_values_replace_those_of_the_runtime() {
    let values = json!({"tracer": {"sampling": 7, "network": {"tls": true, "a/b": 1}, "tags": []}});
    // Three members are too many.
    let problems = texts(&render(RUNTIME, &values).unwrap_err());
    let wanted = format!(
        "{ANNOTATION}.tracer.network: must have at most 2 keys; remove some (plugin tracer "
    );
    assert!(
        problems.len() == 1 && problems[0].starts_with(&wanted),
        "{problems:?}"
    );

    let values = json!({"tracer": {"sampling": 7, "network": {"tls": true}, "tags": ["x"]}});
    let rendered = render(RUNTIME, &values).unwrap();
    let wanted =
        json!({"bucket": "a", "network": {"mtu": 1500, "tls": true}, "sampling": 7, "tags": ["x"]});
    assert_eq!(*config(&rendered), wanted);
    let tracer = rendered
        .plan
        .iter()
        .find(|it| &*it.plugin.id.name == "tracer");
    let set: Vec<_> = tracer
        .unwrap()
        .parameters
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(set, ["sampling", "network.tls", "tags"]);

    // A list that is listed as a whole is replaced, not merged.
    let with_tags = RUNTIME.replace("bucket: a", "bucket: a, tags: [y, z]");
    let rendered = render(&with_tags, &json!({"tracer": {"tags": ["x"]}})).unwrap();
    assert_eq!(config(&rendered)["tags"], json!(["x"]));
    // Without values, the runtime's configuration stays.
    for values in [
        json!({}),
        json!({"tracer": {}}),
        json!({"tracer": {"network": {}}}),
    ] {
        let rendered = render("config: {bucket: a}, parameters: [/network/tls]", &values).unwrap();
        assert_eq!(
            *config(&rendered),
            json!({"bucket": "a", "sampling": 100}),
            "{values}"
        );
    }
}

#[test]
fn runtime_can_require_a_value() {
    let required = "parameters: [/bucket]";
    let rendered = render(required, &json!({"tracer": {"bucket": "b"}})).unwrap();
    assert_eq!(config(&rendered)["bucket"], "b");
    let problems = texts(&render(required, &json!({})).unwrap_err());
    let wanted =
        "spec.plugins[0].config: the required key `bucket` is missing; add it (plugin tracer ";
    assert!(
        problems.len() == 1 && problems[0].starts_with(wanted),
        "{problems:?}"
    );
}

#[test]
fn other_values_are_refused_with_the_listed_ones() {
    let allowed = "with ClusterTrainingRuntime runtime, a TrainJob can set `/sampling` of tracer, `/network/tls` of tracer, `/network/a~1b` of tracer, `/tags` of tracer; remove it, or use another runtime";
    for (values, fields) in [
        (json!({"tracer": {"bucket": "b"}}), vec![".tracer.bucket"]),
        (
            json!({"tracer": {"sampling": 5, "bucket": "b"}}),
            vec![".tracer.bucket"],
        ),
        (
            json!({"tracer": {"network": {"mtu": 9000}}}),
            vec![".tracer.network.mtu"],
        ),
        // Neither a whole object, nor something else in its place.
        (
            json!({"tracer": {"network": null}}),
            vec![".tracer.network"],
        ),
        (json!({"tracer": {"network": [1]}}), vec![".tracer.network"]),
        (
            json!({"tracer": {"network/tls": true}}),
            vec![".tracer.network/tls"],
        ),
        (
            json!({"tracer": {"/sampling": 1}}),
            vec![".tracer./sampling"],
        ),
        (json!({"guard": {"a": 1}}), vec![".guard"]),
        (
            json!({"guard": {}, "Tracer": {"sampling": 1}}),
            vec![".guard", ".Tracer"],
        ),
    ] {
        let problems = texts(&render(RUNTIME, &values).unwrap_err());
        let wanted = fields.iter().map(|field| {
            format!("{ANNOTATION}{field}: is not a parameter that the runtime lists in `parameters` of a plugin; {allowed}")
        });
        assert_eq!(problems, wanted.collect::<Vec<_>>());
    }
    let problems =
        texts(&render("config: {bucket: a}", &json!({"tracer": {"sampling": 1}})).unwrap_err());
    assert!(
        problems[0].contains("a TrainJob can set no parameters; "),
        "{problems:?}"
    );
}

#[test]
fn errors_of_the_schema_name_the_object_with_the_value() {
    let place = |tracer: &str, values: &Value| {
        let problems = texts(&render(tracer, values).unwrap_err());
        assert_eq!(problems.len(), 1, "{problems:?}");
        let (place, _) = problems[0].split_once(": ").unwrap();
        place.to_owned()
    };
    let in_job = |field: &str| format!("{ANNOTATION}.tracer{field}");
    let values = json!({"tracer": {"sampling": 0}});
    assert_eq!(place(RUNTIME, &values), in_job(".sampling"));
    let values = json!({"tracer": {"tags": ["a", 5]}});
    assert_eq!(place(RUNTIME, &values), in_job(".tags[1]"));
    // The runtime's own values are wrong, whatever the TrainJob sets.
    let wrong = RUNTIME.replace("mtu: 1500", "mtu: jumbo");
    let values = json!({"tracer": {"network": {"tls": true}}});
    assert_eq!(place(&wrong, &values), "spec.plugins[0].config.network.mtu");
    let wrong = RUNTIME.replace("bucket: a", "unknown: a, bucket: b");
    assert_eq!(place(&wrong, &values), "spec.plugins[0].config");
    // A list of the runtime has no members.
    let wrong = "config: {bucket: a, tags: [x]}, parameters: [/tags/0]";
    assert_eq!(
        place(wrong, &json!({"tracer": {"tags": {"0": "y"}}})),
        in_job(".tags.0")
    );
}

/// On a cluster with the reference's CRDs, the runtime's annotation has the list.
#[test]
fn annotation_of_the_runtime_lists_parameters() {
    let plugins = r#"[{"name": "tracer", "config": {"bucket": "a"}, "parameters": ["/sampling"]}]"#;
    let annotated = json!({"trainyard.dev/plugins": plugins});
    let input = input(&loaded())
        .replace(
            "{name: runtime}\nspec",
            &format!("{{name: runtime, annotations: {annotated}}}\nspec"),
        )
        .replace("  plugins: [{name: tracer}]\n", "");
    let rendered = render_input(&input, &json!({"tracer": {"sampling": 3}})).unwrap();
    assert_eq!(config(&rendered)["sampling"], 3);
    let problems = texts(&render_input(&input, &json!({"tracer": {"tags": []}})).unwrap_err());
    assert!(
        problems[0].contains("a TrainJob can set `/sampling` of tracer; "),
        "{problems:?}"
    );
}

#[test]
fn members_of_unions_have_parameters() {
    let [mut framework, _] = loaded();
    framework.active_when = "mlPolicy.plugin".to_owned();
    let policy = "mlPolicy: {plugin: {name: tracer, config: {bucket: a}, parameters: [/sampling]}}";
    let input = input(&[]).replace("  plugins: []\n", &format!("  {policy}\n"));
    let annotations = json!({"trainyard.dev/plugin-parameters": r#"{"tracer": {"sampling": 3}}"#});
    let metadata = format!("{{name: job, annotations: {annotations}}}");
    let catalog = catalog(&input.replace("{name: job}", &metadata));
    let rendered = render_job(&renderer(&[framework]).unwrap(), &catalog.jobs[0]).unwrap();
    assert_eq!(config(&rendered)["sampling"], 3);
}

/// An annotation can have thousands of values, with any characters in their names.
#[test]
fn refused_values_are_bounded_and_cleaned() {
    let many: serde_json::Map<_, _> = (0..1000).map(|at| (at.to_string(), json!(1))).collect();
    let problems = texts(&render(RUNTIME, &json!({"tracer": many})).unwrap_err());
    assert_eq!(problems.len(), 17, "{problems:?}");
    let hidden = json!({"a\u{202e}\u{1b}[2J\n": {}, "tracer": {"b\u{202e}\r": 1}});
    let problems = texts(&render(RUNTIME, &hidden).unwrap_err());
    assert_eq!(problems.len(), 2);
    for problem in problems {
        assert!(
            !problem.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{problem}"
        );
    }
}
