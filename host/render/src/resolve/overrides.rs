//! Writes the TrainJob's overrides to the record.

use serde_json::{Value, json};
use trainyard_api::{FieldPath, fields::describe, names, trainjob};
use trainyard_model::{
    quantity::Quantity,
    record::{ContainerId, Datum, EntryRef, EntryScope, Field, NODE_CONTAINER, Owner, Record},
};

use super::node_sets::NodeSets;
use crate::{
    journal::{Journal, Source},
    json::get,
    problem::Problem,
};

/// Writes overrides, and collects changes and problems.
pub(super) struct Overrides<'a> {
    pub(super) record: &'a mut Record,
    pub(super) journal: &'a mut Journal,
    pub(super) problems: Vec<Problem>,
}

impl Overrides<'_> {
    /// Writes one value.
    pub(super) fn write(
        &mut self,
        entry: EntryRef,
        new: Option<Datum>,
        owner: Owner,
        source: Source,
    ) {
        let change = self.record.write(entry, new, owner);
        self.journal.add(change, source);
    }

    fn set(
        &mut self,
        id: ContainerId,
        field: Field,
        key: &str,
        new: Option<Datum>,
        from: FieldPath,
    ) {
        let entry = EntryRef {
            scope: EntryScope::Container(id),
            field,
            key: key.into(),
        };
        let source = Source::TrainJob { field: from };
        self.write(entry, new, Owner::TrainJob, source);
    }

    /// Applies the trainer's overrides: command and arguments to the trainer's container, resources to the nodes' containers, image and env to
    /// both (W65, W66). They differ if a separate launcher runs the command.
    pub(super) fn apply_trainer(&mut self, trainer: &trainjob::Trainer, node_sets: &NodeSets) {
        let path = FieldPath::of(["spec", "trainer"]);
        let of_all = trainer.image.is_some() || !trainer.env.is_empty();
        let of_trainer = of_all || trainer.command.is_some() || trainer.args.is_some();
        let of_nodes = of_all || trainer.resources_per_node.is_some();
        let step = if of_trainer || (of_nodes && node_sets.positions.is_empty()) {
            self.find_container(names::ANCESTOR_TRAINER, NODE_CONTAINER, &path)
        } else {
            None
        };
        let nodes = if of_nodes {
            self.node_containers(node_sets, &path)
        } else {
            Vec::new()
        };
        let others = nodes.iter().copied().filter(|id| Some(*id) != step);
        for id in step.into_iter().chain(others) {
            if let Some(image) = &trainer.image {
                let new = Some(image.as_str().into());
                self.set(id, Field::Image, "", new, path.field("image"));
            }
            self.set_env(id, &trainer.env, &path);
        }
        for (field, list, name) in [
            (Field::Command, &trainer.command, "command"),
            (Field::Args, &trainer.args, "args"),
        ] {
            if let (Some(list), Some(id)) = (list, step) {
                let new = (!list.is_empty()).then(|| list.as_slice().into());
                self.set(id, field, "", new, path.field(name));
            }
        }
        if let Some(resources) = &trainer.resources_per_node {
            for id in nodes {
                self.set_resources(id, resources, &path.field("resourcesPerNode"));
            }
        }
    }

    /// Returns the containers of the nodes. Reports each pod set whose pods are the nodes and that has no such container.
    fn node_containers(&mut self, sets: &NodeSets, path: &FieldPath) -> Vec<ContainerId> {
        let mut found = Vec::new();
        for position in &sets.positions {
            match self.record.node_container(*position) {
                Some(id) => found.push(id),
                None => {
                    let set = self.record.pod_set(*position);
                    let name = set.map_or("", |set| &*set.name);
                    let message = format!(
                        "cannot be applied: replicated job `{name}` of the runtime, whose pods are the nodes, has no container `{NODE_CONTAINER}`"
                    );
                    self.problems.push(Problem::job(path.clone(), message));
                }
            }
        }
        found
    }

    /// Returns the container of this name in the pod set of a step. Reports a problem if it does not exist.
    fn find_container(
        &mut self,
        ancestor: &str,
        container: &str,
        path: &FieldPath,
    ) -> Option<ContainerId> {
        let sets = &self.record.pod_sets;
        let set = sets
            .iter()
            .position(|set| set.ancestor.as_deref() == Some(ancestor));
        let set = set.and_then(|at| u32::try_from(at).ok());
        let found = set.and_then(|set| self.record.main_container(set, container));
        if found.is_none() {
            let message = format!(
                "cannot be applied: the runtime has no container `{container}` in a replicated job with the label {}: {ancestor}",
                names::ANCESTOR_LABEL
            );
            self.problems.push(Problem::job(path.clone(), message));
        }
        found
    }

    fn set_env(&mut self, id: ContainerId, env: &[trainjob::EnvVar], path: &FieldPath) {
        if env.is_empty() {
            return;
        }
        let path = path.field("env");
        for (at, var) in env.iter().enumerate() {
            let datum: Datum = match &var.value_from {
                Some(source) => source.clone().into(),
                None => var.value.as_deref().unwrap_or_default().into(),
            };
            self.set(id, Field::Env, &var.name, Some(datum), path.index(at));
        }
    }

    /// Sets requests and limits by resource, and claims by name. Others keep the runtime's value (W24, W64, W72).
    fn set_resources(&mut self, id: ContainerId, resources: &Value, path: &FieldPath) {
        for (field, key) in [(Field::Requests, "requests"), (Field::Limits, "limits")] {
            for (name, amount) in resources
                .get(key)
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                let at = path.field(key).key(name);
                match field
                    .map_text(amount)
                    .filter(|text| !text.starts_with('-') && Quantity::parse(text).is_some())
                {
                    Some(text) => self.set(id, field, name, Some((&*text).into()), at),
                    None => self.problems.push(Problem::job(
                        at,
                        format!(
                            "{} is not a quantity of 0 or more, or is out of range; write it as `4`, `500m` or `800Gi`",
                            describe(amount)
                        ),
                    )),
                }
            }
        }
        for (at, claim) in resources
            .get("claims")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let at = path.field("claims").index(at);
            match get(claim, "name").and_then(Value::as_str) {
                Some(name) => self.set(
                    id,
                    Field::ResourceClaimUses,
                    name,
                    Some(claim.clone().into()),
                    at,
                ),
                None => self
                    .problems
                    .push(Problem::job(at.field("name"), "is required")),
            }
        }
        self.check_requests(id, path);
    }

    /// Reports requests above their limits, because the API server would refuse the pods.
    fn check_requests(&mut self, id: ContainerId, path: &FieldPath) {
        let Some(fields) = self.record.fields(EntryScope::Container(id)) else {
            return;
        };
        let amount = |datum: &Datum| datum.as_text().and_then(Quantity::parse);
        let above = fields.all(Field::Requests).iter().filter_map(|request| {
            let limit = fields.get(Field::Limits, &request.key)?;
            let is_above = amount(&request.datum)?
                .compare(amount(&limit.datum)?)
                .is_gt();
            let both = (request.datum.as_text()?, limit.datum.as_text()?);
            is_above.then(|| {
                Problem::job(
                    path.field("requests").key(&*request.key),
                    format!(
                        "{} is above the container's limit {}; set `limits` as well",
                        both.0, both.1
                    ),
                )
            })
        });
        let above: Vec<_> = above.collect();
        self.problems.extend(above);
    }

    /// Whether a container mounts a volume.
    fn mounts(&self, id: ContainerId, volume: &str) -> bool {
        let fields = self.record.fields(EntryScope::Container(id));
        let mut mounts = fields
            .into_iter()
            .flat_map(|fields| fields.all(Field::Mounts).iter());
        mounts.any(|mount| {
            let name = mount.datum.as_json().and_then(|json| get(json, "name"));
            name.is_some_and(|name| name == volume)
        })
    }

    /// Applies the overrides of the dataset and model initializers: the source, the env vars and the secret.
    pub(super) fn apply_initializers(&mut self, initializer: &trainjob::Initializer) {
        let path = FieldPath::of(["spec", "initializer"]);
        for (name, ancestor, overrides) in [
            (
                "dataset",
                names::ANCESTOR_DATASET_INITIALIZER,
                &initializer.dataset,
            ),
            (
                "model",
                names::ANCESTOR_MODEL_INITIALIZER,
                &initializer.model,
            ),
        ] {
            let Some(overrides) = overrides else { continue };
            let path = path.field(name);
            let Some(id) = self.find_container(ancestor, ancestor, &path) else {
                continue;
            };
            if !self.mounts(id, names::INITIALIZER_VOLUME) {
                let message = format!(
                    "the runtime's container `{ancestor}` does not mount the volume `{}`, so the fetched files would be lost; add the mount to the runtime",
                    names::INITIALIZER_VOLUME
                );
                self.problems.push(Problem::job(path.clone(), message));
            }
            if let Some(uri) = &overrides.storage_uri {
                let from = path.field("storageUri");
                self.set(
                    id,
                    Field::Env,
                    names::STORAGE_URI_ENV,
                    Some(uri.as_str().into()),
                    from,
                );
            }
            self.set_env(id, &overrides.env, &path);
            if let Some(secret) = &overrides.secret_ref {
                let fields = self.record.fields(EntryScope::Container(id));
                let next = fields
                    .map_or(0, |fields| fields.all(Field::EnvFrom).len())
                    .to_string();
                let source = json!({ "secretRef": { "name": secret.name } });
                self.set(
                    id,
                    Field::EnvFrom,
                    &next,
                    Some(source.into()),
                    path.field("secretRef"),
                );
            }
        }
    }
}
