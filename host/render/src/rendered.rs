//! What a TrainJob becomes.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use trainyard_api::{FieldPath, Runtime, TrainJob};
use trainyard_model::{
    facts::Facts,
    lookup::Lookups,
    object::{ApplyMode, Content, DataValue, EmittedObject, ObjectKind, ObjectName, SecretValue},
    plan::Plan,
    plugin::PluginId,
    session::Session,
};

use crate::{
    assemble,
    explain::{Defaults, NoSuchField, Origins, Provenance},
    problem::Warning,
    resolve::{self, Resolved},
    select::{self, Active, plan_of},
};

/// What a TrainJob becomes.
#[derive(Debug)]
pub struct Rendered {
    /// The objects beside the JobSet, in the order in which they are applied.
    pub objects: Vec<RenderedObject>,
    /// The JobSet, which is applied last.
    pub job_set: Value,
    /// The plugins that ran, in their order, with their configurations.
    pub plan: Vec<Active>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    patched: Option<Arc<Value>>,
    origins: Origins,
}

impl Rendered {
    /// Writes the record and the emitted objects into what a cluster gets.
    pub(crate) fn assemble(
        (job, runtime): (&TrainJob, &Runtime),
        namespace: &str,
        mut resolved: Resolved,
        session: Session,
        active: &[Active],
    ) -> Self {
        let mut warnings = std::mem::take(&mut resolved.warnings);
        warnings.extend(select::unhandled_claims(session.base(), active));
        warnings.extend(session.warnings().into_iter().map(Warning::from));
        warnings.extend(resolve::reserved_in_runtime(&session));
        let patched = resolved.patched.take();
        let template = runtime.template.spec.clone();
        let defaults = Defaults {
            job: job.defaulted.clone(),
            runtime: runtime.defaulted.clone(),
        };
        let origins = Origins::new(template, resolved, session, defaults);
        let session = &origins.session;
        let record = session.record();
        let template = patched.as_deref().unwrap_or(&origins.template);
        let spec = assemble::assemble(template, record, origins.journal.changed());
        let job_set = assemble::job_set(record, namespace, origins.job.suspended, spec);
        let mut objects: Vec<_> = session
            .emitted()
            .iter()
            .map(|emitted| RenderedObject {
                kind: emitted.object.kind.clone(),
                name: emitted.object.name.clone(),
                value: assemble::object(&emitted.object, namespace),
                material: material(&emitted.object),
                apply: emitted.object.apply,
                plugin: emitted.plugin.clone(),
            })
            .collect();
        // A stable sort: each plugin's objects keep the order in which it emitted them.
        objects.sort_by(|a, b| a.plugin.name.cmp(&b.plugin.name));
        Self {
            objects,
            job_set,
            plan: active.to_vec(),
            warnings,
            patched,
            origins,
        }
    }

    /// The spec of the runtime's template with the TrainJob's patches, before anything else was written into it.
    #[must_use]
    pub fn patched(&self) -> &Value {
        self.patched.as_deref().unwrap_or(&self.origins.template)
    }

    /// Who set what: all that the runtime's template does not have as it is. Worked out anew by every call.
    #[must_use]
    pub fn provenance(&self) -> Vec<Provenance> {
        self.origins.provenance(&self.job_set)
    }

    /// The plan that it went through, as a snapshot keeps it.
    #[must_use]
    pub fn whole_plan(&self) -> Plan {
        plan_of(&self.plan, &self.origins.job.facts)
    }

    /// What plugins read of the objects that they looked up: with it in the place of the lookups, the same TrainJob becomes the
    /// same.
    #[must_use]
    pub fn read_lookups(&self) -> Lookups {
        self.origins.session.read_lookups()
    }

    /// The same with all that was read, however large: what a bundle holds.
    #[must_use]
    pub fn all_read_lookups(&self) -> Lookups {
        self.origins.session.all_read_lookups()
    }

    /// The operator's facts that plugins read.
    #[must_use]
    pub fn read_facts(&self) -> Facts {
        self.origins.session.read_facts()
    }

    /// Who set a field and all below it, as the JobSet spells it (`spec.replicatedJobs[0].replicas`, or with names in
    /// brackets) or as the record does (`pod-sets[node].replicas`). Never empty: what nobody changed is the runtime's.
    ///
    /// # Errors
    /// The JobSet has no such field, and nobody removed one.
    pub fn explain(&self, path: &FieldPath) -> Result<Vec<Provenance>, NoSuchField> {
        self.origins.explain(&self.job_set, path)
    }
}

/// An object beside the JobSet.
#[derive(Debug)]
pub struct RenderedObject {
    /// Its `apiVersion` and `kind`.
    pub kind: ObjectKind,
    /// Its `metadata.name`.
    pub name: ObjectName,
    /// The object, with placeholders for key material.
    pub value: Value,
    /// The keys of a Secret that hold key material: whoever creates it makes that, and writes them anew.
    pub material: BTreeMap<String, SecretValue>,
    /// How it is applied.
    pub apply: ApplyMode,
    /// Who emitted it.
    pub plugin: PluginId,
}

/// The keys of an object that hold key material.
fn material(object: &EmittedObject) -> BTreeMap<String, SecretValue> {
    let Content::Secret { data, .. } = &object.content else {
        return BTreeMap::new();
    };
    let with_material = |(key, held): (&str, &DataValue<SecretValue>)| match held {
        DataValue::Text(text) if text.has_material() => Some((key.to_owned(), text.clone())),
        DataValue::Text(_) | DataValue::Bytes(_) => None,
    };
    data.iter().filter_map(with_material).collect()
}
