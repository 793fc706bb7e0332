//! Renders a case with its own runtimes, or with a shipped one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use trainyard_api::{Inputs, Object, PluginUse, names};
use trainyard_model::{
    deadline::Deadline,
    manifest::Manifest,
    plugin_info::PluginInfo,
    text::{MAX_LINE, clean_to},
};
use trainyard_render::{Catalog, InputJob, Problem, Renderer};
use trainyard_schema::Admission;

use super::{
    folder::{Case, Read},
    placement::switch_on,
    result::{RenderedJob, Rendering, Skipped},
};
use crate::{
    input::{self, is_runtime},
    load::LoadedPlugins,
    render,
    report::ErrorList,
    runtimes::{self, Runtime},
};

/// The namespace of objects without one.
const NAMESPACE: &str = "default";

/// What renders the cases.
pub(super) struct Host {
    pub(super) plugin: Arc<PluginInfo>,
    pub(super) loaded: LoadedPlugins,
    /// The built-in plugins alone.
    pub(super) without: Renderer,
    pub(super) admission: Admission,
    pub(super) timeout: Duration,
}

/// How a case is rendered.
pub(in crate::plugin) struct Variant<'v> {
    /// What renders it. `None` for the plugins in their own order.
    pub(in crate::plugin) renderer: Option<&'v Renderer>,
    /// Changes the objects of the input.
    pub(in crate::plugin) edit: &'v (dyn Fn(&mut Vec<Object>) + Sync),
}

impl Variant<'_> {
    /// The case as it is.
    pub(in crate::plugin) const SAME: Self = Self {
        renderer: None,
        edit: &|_| (),
    };
}

/// A case whose input was read.
pub(in crate::plugin) struct Prepared<'c> {
    case: &'c Case,
    read: Read,
    /// The TrainJobs, each with how its own runtime names the plugin.
    jobs: Vec<(Object, Option<PluginUse>)>,
    /// Objects that are neither TrainJobs nor runtimes.
    others: Vec<Object>,
}

impl Prepared<'_> {
    pub(in crate::plugin) fn name(&self) -> &str {
        &self.case.name
    }

    /// Whether the case is expected to be refused.
    pub(in crate::plugin) fn is_refused(&self) -> bool {
        self.case.is_refused()
    }
}

impl Host {
    /// Reads a case.
    pub(super) fn prepare<'c>(&self, case: &'c Case) -> Result<Prepared<'c>, ErrorList> {
        let read = case.read();
        let mut unused = Rendering::new(case, None);
        let (objects, renderer) = (read.objects.clone(), &self.loaded.renderer);
        let catalog = catalog(&self.admission, objects, renderer, &mut unused)?;
        let named_as = |object: &Object| {
            let namespace = object.metadata.namespace.as_deref().unwrap_or(NAMESPACE);
            let is_it = |job: &&InputJob| {
                job.namespace == namespace && job.train_job.metadata.name == object.metadata.name
            };
            let job = catalog.jobs.iter().find(is_it)?;
            let mut named = job.runtime.named_plugins();
            named
                .find(|used| *used.name == *self.plugin.id.name)
                .cloned()
        };
        let (jobs, others): (Vec<_>, Vec<_>) = read
            .objects
            .iter()
            .filter(|object| !is_runtime(object))
            .cloned()
            .partition(input::is_train_job);
        let jobs = jobs.into_iter().map(|job| {
            let named_as = named_as(&job);
            (job, named_as)
        });
        Ok(Prepared {
            case,
            jobs: jobs.collect(),
            others,
            read,
        })
    }

    /// Renders a case with its own runtimes. There is no result if all its TrainJobs name shipped runtimes, which it does not have.
    pub(super) fn render_own<'c>(
        &self,
        prepared: &Prepared<'c>,
        variant: &Variant<'_>,
    ) -> Result<Rendering<'c>, ErrorList> {
        let Prepared { case, read, .. } = prepared;
        let of_shipped = |object: &Object| names_shipped(object, &read.objects).is_some();
        let jobs = &prepared.jobs;
        if !jobs.is_empty() && read.errors.is_empty() && jobs.iter().all(|(job, _)| of_shipped(job))
        {
            return Ok(Rendering {
                is_complete: false,
                ..Rendering::new(case, None)
            });
        }
        let mut rendering = Rendering {
            warnings: read.warnings.clone(),
            errors: read.errors.clone(),
            ..Rendering::new(case, None)
        };
        let own = read.objects.iter().filter(|object| !of_shipped(object));
        let mut own = own.cloned().collect();
        (variant.edit)(&mut own);
        self.render(own, self.renderer(variant), &mut rendering)?;
        Ok(rendering)
    }

    /// Renders each TrainJob of a case with a shipped runtime, in which the plugin is switched on.
    pub(super) fn render_shipped<'c>(
        &self,
        prepared: &Prepared<'c>,
        runtime: &'static Runtime,
        variant: &Variant<'_>,
    ) -> Result<Rendering<'c>, ErrorList> {
        let mut all = Rendering::new(prepared.case, Some(runtime.name));
        for (job, named_as) in &prepared.jobs {
            let train_job = job.metadata.name.clone();
            match self.render_on(prepared, runtime, (job, named_as.as_ref()), variant)? {
                Ok(one) => all.absorb(one),
                Err(reason) => all.skipped.push(Skipped { train_job, reason }),
            }
        }
        Ok(all)
    }

    /// Renders a TrainJob with a shipped runtime. Returns a reason if the runtime cannot run it even without the plugin, or does not activate
    /// the plugin.
    fn render_on<'c>(
        &self,
        prepared: &Prepared<'c>,
        runtime: &'static Runtime,
        (job, named_as): (&Object, Option<&PluginUse>),
        variant: &Variant<'_>,
    ) -> Result<Result<Rendering<'c>, String>, ErrorList> {
        let file = format!("{}.yaml", runtime.name);
        let mut job = job.clone();
        if let Some(spec) = job.value.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("runtimeRef".to_owned(), json!({"name": runtime.name}));
        }
        let mut objects = prepared.others.clone();
        objects.push(job);
        objects.extend(Inputs::read_text(&file, runtime.text).objects);
        (variant.edit)(&mut objects);
        let mut with = objects.clone();
        let shipped = with.iter_mut().filter(|object| is_runtime(object));
        for object in shipped {
            if let Err(reason) = switch_on(&mut object.value, &self.plugin.manifest, named_as) {
                return Ok(Err(reason));
            }
        }
        let mut rendering = Rendering::new(prepared.case, Some(runtime.name));
        self.render(with, self.renderer(variant), &mut rendering)?;
        if !rendering.errors.is_empty() {
            let mut baseline = Rendering::new(prepared.case, Some(runtime.name));
            // What a TrainJob says about the plugin would be refused without it.
            objects.iter_mut().for_each(without_overrides);
            self.render(objects, &self.without, &mut baseline)?;
            let reason = baseline.errors.lines().next().map(String::from);
            return Ok(reason.map_or(Ok(rendering), Err));
        }
        let is_active = |job: &RenderedJob| {
            let mut plan = job.rendered.plan.iter();
            plan.any(|active| active.plugin.id.name == self.plugin.id.name)
        };
        if !rendering.jobs.is_empty() && !rendering.jobs.iter().any(is_active) {
            let when = &self.plugin.manifest.active_when;
            return Ok(Err(format!(
                "it does not activate the plugin, which is active by `{when}`"
            )));
        }
        Ok(Ok(rendering))
    }

    /// Whether the host ended a call of the plugin.
    fn is_ended(&self, problem: &Problem) -> bool {
        matches!(problem, Problem::Call(error) if error.plugin.name == self.plugin.id.name)
    }

    fn renderer<'v>(&'v self, variant: &Variant<'v>) -> &'v Renderer {
        variant.renderer.unwrap_or(&self.loaded.renderer)
    }

    /// Renders the TrainJobs among these objects.
    ///
    /// # Errors
    /// The host could not render one of them, although it may be valid.
    fn render(
        &self,
        objects: Vec<Object>,
        renderer: &Renderer,
        rendering: &mut Rendering<'_>,
    ) -> Result<(), ErrorList> {
        let catalog = catalog(&self.admission, objects, renderer, rendering)?;
        for job in &catalog.jobs {
            if let Some(warning) = job.of_another() {
                rendering.warn(warning);
                continue;
            }
            match catalog.render(job, renderer, &Deadline::after(self.timeout)) {
                Ok(rendered) => {
                    let warnings = rendered.warnings.iter();
                    warnings.for_each(|warning| rendering.warn(job.locate_warning(warning)));
                    let unseen = render::deadline(job);
                    rendering.jobs.push(RenderedJob {
                        unseen: unseen.map(|line| clean_to(&line, MAX_LINE)),
                        rendered,
                    });
                }
                Err(stopped) => {
                    let errors = input::errors_of(job, &stopped);
                    if stopped
                        .problems()
                        .iter()
                        .any(|problem| problem.is_transient())
                    {
                        let case = &rendering.case.name;
                        return Err(errors
                            .map(|error| format!("case {case}: {error}"))
                            .collect());
                    }
                    rendering.refused += 1;
                    let ended = stopped
                        .problems()
                        .iter()
                        .filter(|problem| self.is_ended(problem));
                    let ended = ended.map(|problem| input::locate(job, problem).message);
                    rendering
                        .ended
                        .extend(ended.map(|line| clean_to(&line, MAX_LINE)));
                    errors.for_each(|error| rendering.errors.add(error));
                }
            }
        }
        Ok(())
    }
}

/// Admits objects and sorts them. Adds their errors and warnings to the result.
fn catalog(
    admission: &Admission,
    objects: Vec<Object>,
    renderer: &Renderer,
    rendering: &mut Rendering<'_>,
) -> Result<Catalog, ErrorList> {
    let admit = |object| admission.admit(object, None, NAMESPACE);
    let admitted = objects
        .into_iter()
        .map(admit)
        .collect::<Result<Vec<_>, _>>();
    let admitted = admitted.map_err(|error| ErrorList::from_iter([error]))?;
    let (catalog, errors) = Catalog::new(admitted);
    let warnings = catalog.warnings.iter();
    warnings.for_each(|warning| rendering.warn(warning));
    let errors = errors.iter().chain(&catalog.without_runtime);
    errors.for_each(|error| rendering.errors.add(error));
    input::check_runtimes(&catalog.stand_ins, renderer, &mut rendering.errors);
    let jobs = catalog.counts.train_jobs;
    rendering.refused += jobs - catalog.jobs.len().min(jobs);
    if jobs == 0 && rendering.errors.is_empty() {
        let error = "there is no TrainJob in the case; add one";
        rendering.errors.add(error);
    }
    Ok(catalog)
}

/// Returns the errors of a case that are found without rendering it. `renderer` knows the plugin with the manifest, but cannot call it.
pub(super) fn check(
    case: &Case,
    admission: &Admission,
    (renderer, manifest): (&Renderer, &Manifest),
) -> Result<ErrorList, ErrorList> {
    let read = case.read();
    let mut jobs = read
        .objects
        .iter()
        .filter(|object| input::is_train_job(object));
    let is_shipped = |object: &Object| names_shipped(object, &read.objects).is_some();
    if case.is_refused_on_shipped() && jobs.all(is_shipped) {
        return Ok(ErrorList::default());
    }
    let objects = with_shipped(&read.objects, manifest);
    let mut rendering = Rendering {
        errors: read.errors.clone(),
        ..Rendering::new(case, None)
    };
    let catalog = catalog(admission, objects, renderer, &mut rendering)?;
    let mut errors = rendering.errors;
    for job in &catalog.jobs {
        let problems = renderer
            .plan(&job.train_job, &job.runtime, &job.namespace)
            .err();
        let problems = problems.into_iter().flatten();
        // The plugin is skipped, because it is not built.
        let is_of_case = |problem: &Problem| match problem {
            Problem::PluginSkipped(_) => false,
            Problem::NotLoaded { is_unknown, .. } => *is_unknown,
            _ => true,
        };
        let problems = problems.filter(is_of_case);
        problems.for_each(|problem| errors.add(input::locate(job, &problem)));
    }
    Ok(errors)
}

/// Returns the shipped runtime that a TrainJob names and that the case does not have.
fn names_shipped(object: &Object, all: &[Object]) -> Option<&'static Runtime> {
    let reference = |field| object.value.pointer(field).and_then(Value::as_str);
    let kind = reference("/spec/runtimeRef/kind");
    let name = reference("/spec/runtimeRef/name")?;
    let is_it = |object: &Object| is_runtime(object) && object.metadata.name == name;
    if !input::is_train_job(object)
        || kind.is_some_and(|kind| kind != names::CLUSTER_TRAINING_RUNTIME)
        || all.iter().any(is_it)
    {
        return None;
    }
    let mut shipped = runtimes::shipped().iter();
    shipped.find(|shipped| shipped.name == name)
}

/// Adds the shipped runtimes that TrainJobs name, with the plugin.
fn with_shipped(all: &[Object], manifest: &Manifest) -> Vec<Object> {
    let named = all.iter().filter_map(|object| names_shipped(object, all));
    let named: BTreeMap<_, _> = named.map(|runtime| (runtime.name, runtime)).collect();
    let mut objects = all.to_vec();
    for runtime in named.into_values() {
        let file = format!("{}.yaml", runtime.name);
        let mut shipped = Inputs::read_text(&file, runtime.text).objects;
        for object in shipped.iter_mut().filter(|object| is_runtime(object)) {
            // A runtime that cannot name the plugin is skipped when the case is rendered.
            let _ = switch_on(&mut object.value, manifest, None);
        }
        objects.extend(shipped);
    }
    objects
}

/// Removes what a TrainJob says about plugins.
fn without_overrides(object: &mut Object) {
    for name in [
        names::DISABLED_PLUGINS_ANNOTATION,
        names::PLUGIN_PARAMETERS_ANNOTATION,
    ] {
        object.metadata.annotations.shift_remove(name);
        let annotations = object.value.pointer_mut("/metadata/annotations");
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.shift_remove(name);
        }
    }
}
