//! Helpers for the tests of this crate: plugins that are functions, and a TrainJob to render with them.

pub mod acts;
#[path = "../../../../tests/common/function_plugin.rs"]
mod function_plugin;

use std::sync::Arc;

pub use function_plugin::FunctionPlugin;
use serde_json::{Value, json};
use trainyard_api::{Admitted, Inputs};
use trainyard_model::{
    call::{Call, Fault},
    contract::{VERSION, handle},
    deadline::Deadline,
    limits::Limits,
    manifest::Manifest,
    plan::PlanError,
    plugin::{Phase, Plugin},
    plugin_info::{Exemptions, PluginInfo, Settings},
};
use trainyard_render::{Catalog, ClusterFacts, InputJob, Problem, Rendered, Renderer, Stopped};

type Script = Arc<dyn Fn(Phase, &mut Call) -> Result<(), Fault> + Send + Sync>;

/// A plugin of the runtime's `plugins`, with its function.
#[derive(Clone)]
pub struct Scripted {
    pub name: String,
    pub claims: Vec<(&'static str, String)>,
    pub reserved_env: Vec<Value>,
    pub after: Vec<String>,
    pub limits: Limits,
    pub active_when: String,
    pub node_sets: Value,
    pub config_schema: Value,
    pub exemptions: Exemptions,
    script: Script,
}

impl Scripted {
    pub fn new(
        name: &str,
        claims: &[(&'static str, &str)],
        script: impl Fn(Phase, &mut Call) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            claims: claims
                .iter()
                .map(|(list, path)| (*list, (*path).to_owned()))
                .collect(),
            reserved_env: Vec::new(),
            after: Vec::new(),
            limits: Limits::default(),
            active_when: "plugins".to_owned(),
            node_sets: json!([]),
            config_schema: Value::Null,
            exemptions: Exemptions::default(),
            script: Arc::new(script),
        }
    }

    pub fn plugin(&self) -> Arc<dyn Plugin> {
        let list = |wanted: &str| -> Vec<&String> {
            let of_list = self.claims.iter().filter(|(list, _)| *list == wanted);
            of_list.map(|(_, path)| path).collect()
        };
        let mut manifest = json!({
            "name": self.name, "version": "1.0.0", "contract": VERSION,
            "activeWhen": self.active_when, "nodeSets": self.node_sets,
            "phases": ["transform", "build", "check"], "reservedEnv": self.reserved_env,
            "claims": {"reads": list("reads"), "creates": list("creates"), "writes": list("writes")},
        });
        if !self.config_schema.is_null() {
            manifest["configSchema"] = self.config_schema.clone();
        }
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        let settings = Settings {
            after: self.after.clone(),
            limits: self.limits,
            exemptions: self.exemptions.clone(),
            ..Settings::built_in()
        };
        let plugin = Arc::new(PluginInfo::new(manifest, "native", settings).unwrap());
        let script = self.script.clone();
        Arc::new(FunctionPlugin::new(plugin, move |phase, call| {
            script(phase, call).map_err(Into::into)
        }))
    }
}

/// Returns the handle of a pod set.
pub fn pod_set(call: &mut Call, name: &str) -> Result<handle::PodSet, Fault> {
    let info = call.context_info(Call::CONTEXT)?;
    Ok(call.info_pod_set(info, name)?.unwrap())
}

/// Returns the handle of a container of the pod set `node`.
pub fn container(call: &mut Call, name: &str) -> Result<handle::Container, Fault> {
    let set = pod_set(call, "node")?;
    Ok(call.pod_set_container(set, name)?.unwrap())
}

/// A runtime that activates the plugins, and its TrainJob `job`.
pub fn input(plugins: &[Scripted]) -> String {
    let named = plugins
        .iter()
        .filter(|plugin| plugin.active_when == "plugins");
    let names: Vec<_> = named
        .map(|plugin| format!("{{name: {}}}", plugin.name))
        .collect();
    format!(
        r#"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: runtime}}
spec:
  plugins: [{}]
  template:
    metadata: {{labels: {{team: ml}}}}
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
          spec:
            template:
              metadata: {{labels: {{app: job, keep: me}}}}
              spec:
                initContainers:
                - {{name: first, image: init:1}}
                - {{name: second, image: init:1}}
                containers:
                - name: node
                  image: base:1
                  env: [{{name: A, value: a}}, {{name: B, value: "$(LATER) $(C)"}}, {{name: C, value: c}}, {{name: P0_OVER, value: runtime}}]
                  ports: [{{containerPort: 80}}]
                - {{name: side, image: side:1, volumeMounts: [{{name: data, mountPath: /data}}]}}
                volumes: [{{name: data, emptyDir: {{}}}}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: job}}
spec: {{runtimeRef: {{name: runtime}}, trainer: {{env: [{{name: USERS, value: "$(ADDED)"}}]}}}}
"#,
        names.join(", ")
    )
}

/// Returns a renderer with these plugins, if they can run together.
pub fn renderer(plugins: &[Scripted]) -> Result<Renderer, Vec<PlanError>> {
    let plugins = plugins.iter().map(Scripted::plugin);
    Renderer::new(plugins, ClusterFacts::default())
}

/// Renders the TrainJob with these plugins.
pub fn render(plugins: &[Scripted]) -> Result<Rendered, Vec<Problem>> {
    render_edited(plugins, |input| input)
}

/// Renders a TrainJob without objects to look up.
pub fn render_job(renderer: &Renderer, job: &InputJob) -> Result<Rendered, Stopped> {
    let (lookups, deadline) = (Arc::default(), Deadline::none());
    renderer.render(&job.train_job, &job.runtime, "default", &lookups, &deadline)
}

/// Renders another input with these plugins.
pub fn render_edited(
    plugins: &[Scripted],
    edit: impl FnOnce(String) -> String,
) -> Result<Rendered, Vec<Problem>> {
    let renderer = renderer(plugins).unwrap_or_else(|errors| panic!("{errors:?}"));
    let catalog = catalog(&edit(input(plugins)));
    render_job(&renderer, &catalog.jobs[0]).map_err(refused)
}

/// Renders the TrainJob with these plugins, and breaks ties between them by this list of names.
pub fn render_preferring(plugins: &[Scripted], order: &[String]) -> Result<Rendered, Vec<Problem>> {
    let renderer = renderer(plugins).unwrap_or_else(|errors| panic!("{errors:?}"));
    let renderer = renderer.with_preference(order.iter().map(|name| name.as_str().into()));
    let catalog = catalog(&input(plugins));
    render_job(&renderer, &catalog.jobs[0]).map_err(refused)
}

/// Returns the problems of a refused TrainJob.
pub fn refused(stopped: Stopped) -> Vec<Problem> {
    match stopped {
        Stopped::Refused(problems) => problems,
        Stopped::Needs(needs) => panic!("{needs:?}"),
    }
}

/// Returns all permutations of this many items.
pub fn permutations(of: usize) -> Vec<Vec<usize>> {
    let Some(last) = of.checked_sub(1) else {
        return vec![Vec::new()];
    };
    let mut out = Vec::new();
    for shorter in permutations(last) {
        for at in 0..=last {
            let mut longer = shorter.clone();
            longer.insert(at, last);
            out.push(longer);
        }
    }
    out
}

/// Returns problems as text.
pub fn texts(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// Returns the objects of a text, without admission.
pub fn catalog(text: &str) -> Catalog {
    let inputs = Inputs::read_text("input.yaml", text);
    assert!(inputs.errors.is_empty(), "{}", inputs.errors[0]);
    let objects = inputs.objects.into_iter();
    let (catalog, errors) = Catalog::new(objects.map(|object| Admitted::new(object, "default")));
    assert!(errors.is_empty(), "{}", errors[0]);
    catalog
}

/// Returns the pod spec of the pod set `node`.
pub fn pod_spec(rendered: &Rendered) -> &Value {
    rendered
        .job_set
        .pointer("/spec/replicatedJobs/0/template/spec/template/spec")
        .unwrap()
}

/// Returns the names of a list's items.
pub fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect()
}
