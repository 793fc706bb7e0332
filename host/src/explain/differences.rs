//! Compares the JobSet in the cluster with the one that is explained.

use serde_json::Value;
use trainyard_api::{
    FieldPath,
    merge::{self, JOB_SET, Names},
    path::Segment,
};
use trainyard_render::{NoSuchField, Provenance, env_vars, path_in_job_set};

use crate::field_changes::without_env_name;

/// The likely cause of a difference.
#[derive(Clone, Copy)]
pub(super) enum Cause {
    /// Not all plugins of the TrainJob are loaded.
    MissingPlugin,
    /// The TrainJob was rendered with other plugins or settings than those loaded.
    OtherPlan,
    /// The Kubeflow Trainer rendered the TrainJob.
    KubeflowTrainer,
    /// The plugins are the same, and the JobSet has run.
    HasRun,
    /// The plugins are the same.
    OtherClient,
}

impl Cause {
    const fn description(self) -> &'static str {
        match self {
            Self::MissingPlugin => "set by a plugin that is not loaded, or by another client",
            Self::OtherPlan => {
                "set by other plugins or settings than those loaded here, or by another client"
            }
            Self::KubeflowTrainer => {
                "as the Kubeflow Trainer rendered it, or set by another client"
            }
            Self::HasRun => {
                "from before the TrainJob was changed, because a JobSet that has run follows only the placement of its pods, or set by another client"
            }
            Self::OtherClient => "set by another client, or by a default of the API server",
        }
    }
}

/// The JobSet that is explained, and the one in the cluster.
pub(super) struct Comparison<'a> {
    rendered: Names<'a>,
    live: Names<'a>,
    job_sets: [&'a Value; 2],
    cause: Cause,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(rendered: &'a Value, live: &'a Value, cause: Cause) -> Self {
        Self {
            rendered: Names::new(rendered, &JOB_SET),
            live: Names::new(live, &JOB_SET),
            job_sets: [rendered, live],
            cause,
        }
    }

    /// Returns a line for each explained field that has another value in the cluster.
    pub(super) fn changed(&self, fields: &[Provenance]) -> Vec<String> {
        let line = |field: &Provenance| {
            let path = field.named().filter(|path| !is_container(path))?;
            let live = self.live.value(path)?;
            let rendered = self.rendered.value(path);
            let is_same = rendered.is_some_and(|rendered| has(live, rendered));
            (!is_same).then(|| self.line(path, live))
        };
        fields.iter().filter_map(line).collect()
    }

    /// Returns a line for each list item and map key at or below these paths that only the cluster has. Fields of objects are not compared,
    /// because they may be defaults of the API server.
    pub(super) fn added<'p>(&self, wanted: impl Iterator<Item = &'p FieldPath>) -> Vec<String> {
        let wanted = wanted.map(path_in_job_set);
        let wanted = wanted.filter(|path| self.live.value(path).is_some());
        let wanted: Vec<_> = wanted.map(|path| self.live.by_names(&path)).collect();
        let [rendered, live] = self.job_sets.map(|job_set| job_set.get("spec"));
        let Some((rendered, live)) = rendered.zip(live) else {
            return Vec::new();
        };
        let differences = merge::differences(rendered, live).into_iter();
        let line = |difference: merge::Difference| {
            let path = FieldPath::of(["spec"]).join(&difference.path);
            let is_entry = matches!(path.segments(), [.., Segment::Key(_)]);
            let is_wanted = wanted.iter().any(|wanted| begins(&path, wanted));
            let value = difference.to.filter(|_| difference.from.is_none())?;
            (is_entry && is_wanted).then(|| self.line(&path, &value))
        };
        differences.filter_map(line).collect()
    }

    /// Returns a line for each place where the cluster has a field that was not rendered.
    pub(super) fn absent(&self, absent: &NoSuchField) -> Vec<String> {
        if let Some(value) = self.live.value(&absent.in_job_set) {
            let path = self.live.by_names(&absent.in_job_set);
            return vec![self.line(&path, value)];
        }
        let [Segment::Field(name)] = absent.path.segments() else {
            return Vec::new();
        };
        let [_, live] = self.job_sets;
        let of_name = env_vars(live).filter(|(_, one)| one == name);
        let value = |path: FieldPath| Some((self.live.value(&path)?, path));
        let of_name = of_name.filter_map(|(path, _)| value(path));
        of_name
            .map(|(value, path)| self.line(&path, value))
            .collect()
    }

    fn line(&self, path: &FieldPath, live: &Value) -> String {
        let value = without_env_name(path, live);
        format!(
            "{path}: is {value} in the cluster, {}",
            self.cause.description()
        )
    }
}

/// Whether it is the path of a container, whose fields are explained and compared one by one.
fn is_container(path: &FieldPath) -> bool {
    let lists = ["containers", "initContainers"];
    matches!(path.segments(), [.., list, Segment::Key(_)] if lists.contains(&&*list.text()))
}

/// Whether a path is `start` or below it.
fn begins(path: &FieldPath, start: &FieldPath) -> bool {
    let (path, start) = (path.segments(), start.segments());
    start.len() <= path.len() && path.iter().zip(start).all(|(a, b)| a.text() == b.text())
}

/// Whether a value in the cluster contains the rendered value. Other members are defaults of the API server.
fn has(live: &Value, rendered: &Value) -> bool {
    match (live, rendered) {
        (Value::Object(live), Value::Object(rendered)) => rendered
            .iter()
            .all(|(name, value)| live.get(name).is_some_and(|live| has(live, value))),
        (Value::Array(live), Value::Array(rendered)) => {
            live.len() == rendered.len() && live.iter().zip(rendered).all(|(a, b)| has(a, b))
        }
        (live, rendered) => live == rendered,
    }
}
