//! A TrainJob, its runtime and other objects as YAML.

use std::sync::Arc;

use serde_json::Value;
use trainyard_api::{Admitted, InputError, Inputs, Located, Location, Object, Source};
use trainyard_model::{
    deadline::Deadline, facts::HOST_PREFIX, lookup::LookupKey, plugin::Plugin, text::listed,
};
use trainyard_render::{Catalog, ClusterFacts, InputJob, Problem, Renderer, Stopped};
use trainyard_schema::Admission;

use super::{MockError, MockPlugin, Rendered, lookups::NotServed};

/// The name of the YAML in errors and warnings.
const YAML: &str = "yaml";
/// The name of [`MockInput::object`] in errors.
const OBJECT: &str = "object";
/// The namespace of objects without one.
const NAMESPACE: &str = "default";
/// The most TrainJobs that an error lists.
const MAX_LISTED: usize = 8;

/// A TrainJob and its runtime as YAML, which are rendered to the JobSet that a cluster would have, by the code of the controller.
///
/// The YAML has one or more documents: one TrainJob, the runtime that it names, and objects that plugins look up. They are admitted as by an
/// API server with Trainyard's CRDs: unknown fields and invalid values are refused, and defaults are set. The runtime activates the
/// plugins, and has their configuration. All plugins that it names have to be added with [`Self::plugin`], and only these are loaded:
/// `mlPolicy: {torch: {}}` requires the built-in plugin `torch`, and `mlPolicy: {numNodes: 2}` none.
///
/// ```
/// use serde_json::json;
/// # use trainyard_sdk::{Context, Failure, Phases, Transform};
/// use trainyard_sdk::{PluginParts, mock::MockInput};
///
/// # struct Fabric;
/// # impl Transform for Fabric {
/// #     fn transform(ctx: &Context) -> Result<(), Failure> {
/// #         ctx.info().nodes()[0].container("node").unwrap().default_env("NCCL_IB_HCA", "mlx5");
/// #         Ok(())
/// #     }
/// # }
/// # const PLUGIN: PluginParts = PluginParts {
/// #     manifest: r#"{"name":"fabric","activeWhen":"plugins","claims":{"writes":["pod-sets[@nodes].containers[node].env[NCCL_IB_HCA]"]}}"#,
/// #     parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform"]}"#,
/// #     phases: Phases { transform: Some(Fabric::transform), ..Phases::NONE },
/// # };
/// const INPUT: &str = "
/// apiVersion: trainer.kubeflow.org/v1alpha1
/// kind: ClusterTrainingRuntime
/// metadata: {name: with-fabric}
/// spec:
///   mlPolicy: {numNodes: 2}
///   plugins: [{name: fabric}]
///   template:
///     spec:
///       replicatedJobs:
///       - name: node
///         template:
///           metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
///           spec: {template: {spec: {containers: [{name: node, image: registry.example.com/train:1}]}}}
/// ---
/// apiVersion: trainer.kubeflow.org/v1alpha1
/// kind: TrainJob
/// metadata: {name: bert}
/// spec: {runtimeRef: {name: with-fabric}}
/// ";
///
/// let rendered = MockInput::new(INPUT).plugin(&PLUGIN).render().unwrap();
/// let node = rendered.container("node", "node").unwrap();
/// assert_eq!(node["env"], json!([{"name": "NCCL_IB_HCA", "value": "mlx5"}]));
/// assert_eq!(rendered.job_set()["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"], 2);
/// ```
///
/// A file is read with `include_str!`, such as the input of a case: `MockInput::new(include_str!("../cases/rdma/input.yaml"))`.
#[derive(Debug)]
pub struct MockInput {
    yaml: String,
    objects: Vec<Value>,
    plugins: Vec<MockPlugin>,
    facts: ClusterFacts,
    not_served: NotServed,
}

impl MockInput {
    /// Creates an input from YAML or JSON.
    #[must_use]
    pub fn new(yaml: &str) -> Self {
        Self {
            yaml: yaml.to_owned(),
            objects: Vec::new(),
            plugins: Vec::new(),
            facts: ClusterFacts::default(),
            not_served: NotServed::default(),
        }
    }

    /// Loads a plugin: `&PLUGIN`, or a [`MockPlugin`] with the operator's settings. The plugins run in the order in which a cluster would run
    /// them, whatever the order in which they are added.
    #[must_use]
    pub fn plugin(mut self, plugin: impl Into<MockPlugin>) -> Self {
        self.plugins.push(plugin.into());
        self
    }

    /// Adds an object, as another document of the YAML would.
    #[must_use]
    pub fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Sets the namespace of the catalog (`rendering.catalogNamespace`). Objects in this namespace are those that
    /// [`Lookups::find_in_catalog`](crate::Lookups::find_in_catalog) finds.
    #[must_use]
    pub fn catalog_namespace(mut self, namespace: &str) -> Self {
        self.facts.catalog = Some(namespace.into());
        self
    }

    /// Sets a fact of the operator, such as `status/url`, or one of the host's own, such as `host/status-ca`.
    #[must_use]
    pub fn fact(mut self, name: &str, text: &str) -> Self {
        if name.starts_with(HOST_PREFIX) {
            self.facts.host.set(name, Some(text));
        } else {
            self.facts.facts = self.facts.facts.with(name, text);
        }
        self
    }

    /// Makes the cluster not serve the kind: lookups of it return `None`.
    #[must_use]
    pub fn not_served(mut self, api_version: &str, kind: &str) -> Self {
        self.not_served.add(api_version, kind);
        self
    }

    /// Renders the TrainJob with the plugins.
    ///
    /// # Errors
    /// The errors that a cluster would report. If objects are refused, [`MockError::Refused`] has a line for each error, with its line in
    /// the YAML, its object and its field.
    pub fn render(self) -> Result<Rendered, MockError> {
        let catalog = read(&self.yaml, self.objects)?;
        let job = only_job(&catalog)?;
        let mut plugins: Vec<Arc<dyn Plugin>> = Vec::new();
        for plugin in self.plugins {
            plugins.push(Arc::new(plugin.load()?));
        }
        let renderer = Renderer::new(plugins, self.facts).map_err(MockError::Order)?;
        let answer = |key: &LookupKey| self.not_served.answer(key);
        let rendered = catalog.render_with(job, &renderer, &Deadline::none(), answer);
        let rendered = rendered.map_err(|stopped| refused(job, stopped))?;
        let warnings = rendered.warnings.iter();
        let warnings = warnings.map(|warning| job.locate_warning(warning));
        let warnings = catalog.warnings.iter().cloned().chain(warnings);
        let warnings = warnings.map(|warning| warning.to_string()).collect();
        Ok(Rendered::new(rendered, warnings))
    }
}

/// Reads and admits the documents of the YAML, and the objects of the test.
fn read(yaml: &str, objects: Vec<Value>) -> Result<Catalog, MockError> {
    let Inputs {
        objects: mut read,
        errors,
        ..
    } = Inputs::read_text(YAML, yaml);
    let mut errors: Vec<Located> = errors.into_iter().map(Located::from).collect();
    for (number, object) in (1..).zip(objects) {
        match Object::read(Source::new(OBJECT, number), object) {
            Ok(object) => read.push(object),
            Err(found) => errors.extend(found.into_iter().map(|error: InputError| error.into())),
        }
    }
    let admission = Admission::default();
    let mut admitted: Vec<Admitted> = Vec::with_capacity(read.len());
    for object in read {
        let object = admission.admit(object, None, NAMESPACE);
        admitted.push(object.map_err(|error| MockError::Refused(vec![error.to_string()]))?);
    }
    let (catalog, more) = Catalog::new(admitted);
    errors.extend(more);
    errors.extend(catalog.without_runtime.iter().cloned());
    match errors.is_empty() {
        true => Ok(catalog),
        false => Err(MockError::Refused(
            errors.iter().map(ToString::to_string).collect(),
        )),
    }
}

/// Returns the TrainJob of the YAML, if there is one and the controller would reconcile it.
fn only_job(catalog: &Catalog) -> Result<&InputJob, MockError> {
    let error = |message: String| Located {
        location: Location::file(YAML),
        message,
    };
    let refused = match catalog.jobs.as_slice() {
        [job] => match job.of_another() {
            Some(of_another) => of_another,
            None => return Ok(job),
        },
        [] => error("has no TrainJob; add a document with one".to_owned()),
        jobs => {
            let names = jobs
                .iter()
                .map(|job| format!("{}/{}", job.namespace, job.train_job.metadata.name));
            error(format!(
                "has {} TrainJobs, {}; keep one, because a test renders a single TrainJob",
                jobs.len(),
                listed(names, MAX_LISTED)
            ))
        }
    };
    Err(MockError::Refused(vec![refused.to_string()]))
}

/// Returns why the TrainJob is not rendered, with locations in the YAML.
fn refused(job: &InputJob, stopped: Stopped) -> MockError {
    let mut lookups = stopped.lookups().iter().cloned();
    if let (true, Some(lookup)) = (stopped.problems().is_empty(), lookups.next()) {
        return MockError::NoObject(Box::new(lookup));
    }
    let problems = stopped.into_problems();
    let lines = problems.iter().map(|problem: &Problem| {
        let located = job.locate(problem);
        match problem.is_unknown_plugin() {
            true => format!("{located}; add it to the test with `plugin`"),
            false => located.to_string(),
        }
    });
    MockError::Refused(lines.collect())
}
