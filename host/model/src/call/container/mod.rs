//! `pod-set-info.container`.

mod env;
mod ports_and_mounts;
mod resources;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Call, Fault, Target, wrong};
use crate::{
    claims::{Grant, Touch},
    quantity::Quantity as Amount,
    record::{Container, ContainerId, Datum, Field, Owner, PlaceScope},
    value::{Mount, Port, Quantity},
};

type List = Arc<[Arc<str>]>;

impl Call {
    fn container(&self, target: Target, id: ContainerId) -> Result<&Container, Fault> {
        self.record_of(target.base)
            .container(id)
            .ok_or(Fault::DeadHandle { what: "container" })
    }

    /// `container.name`
    pub fn container_name(&mut self, rep: u32) -> Result<String, Fault> {
        let (target, id) = self.container_target(rep)?;
        let name = self.container(target, id)?.name.clone();
        self.give(&name)
    }

    /// `container.is-init`
    pub fn container_is_init(&mut self, rep: u32) -> Result<bool, Fault> {
        let (target, id) = self.container_target(rep)?;
        Ok(self.container(target, id)?.list == Field::InitContainers)
    }

    /// `container.is-sidecar`
    pub fn container_is_sidecar(&mut self, rep: u32) -> Result<bool, Fault> {
        let (target, id) = self.container_target(rep)?;
        let is_init = self.container(target, id)?.list == Field::InitContainers;
        Ok(is_init
            && self.read_text(target, Field::RestartPolicy, "")?.as_deref() == Some("Always"))
    }

    /// `container.created-by-me`
    pub fn container_created_by_me(&mut self, rep: u32) -> Result<bool, Fault> {
        let (target, id) = self.container_target(rep)?;
        Ok(self.container(target, id)?.home == self.owner())
    }

    /// `container.place-first`
    pub fn container_place_first(&mut self, rep: u32) -> Result<(), Fault> {
        self.place(rep, "first".to_owned())
    }

    /// `container.place-before`
    pub fn container_place_before(&mut self, rep: u32, anchor: &str) -> Result<(), Fault> {
        self.place(rep, format!("before/{anchor}"))
    }

    /// `container.place-after`
    pub fn container_place_after(&mut self, rep: u32, anchor: &str) -> Result<(), Fault> {
        self.place(rep, format!("after/{anchor}"))
    }

    fn place(&mut self, rep: u32, wish: String) -> Result<(), Fault> {
        let (target, id) = self.container_target(rep)?;
        let container = self.container(target, id)?;
        if container.home != self.owner() || container.list != Field::InitContainers {
            return wrong("only an init container that this plugin added can be placed");
        }
        self.set(target, Field::Placement, &wish, Some("".into()))
    }

    /// `container.image`
    pub fn container_image(&mut self, rep: u32) -> Result<Option<String>, Fault> {
        let (target, _) = self.container_target(rep)?;
        self.read_text(target, Field::Image, "")
    }

    /// `container.set-image`
    pub fn container_set_image(&mut self, rep: u32, image: &str) -> Result<(), Fault> {
        let (target, _) = self.container_target(rep)?;
        self.set_text(target, Field::Image, "", image)
    }

    /// `container.set-image-pull-policy`
    pub fn container_set_image_pull_policy(&mut self, rep: u32, policy: &str) -> Result<(), Fault> {
        let (target, _) = self.container_target(rep)?;
        self.set_text(target, Field::ImagePullPolicy, "", policy)
    }

    fn read_list(&mut self, rep: u32, field: Field) -> Result<Option<Vec<String>>, Fault> {
        let (target, _) = self.container_target(rep)?;
        self.may_read(target, field, Some(""))?;
        let entry = self.record_of(target.base).entry(target.scope, field, "");
        let list = entry.and_then(|e| e.datum.as_list()).map(strings);
        list.map(|list| self.give_all(list)).transpose()
    }

    fn set_list(&mut self, rep: u32, field: Field, list: &[String]) -> Result<(), Fault> {
        let (target, _) = self.container_target(rep)?;
        self.meter
            .add_bytes(list.iter().map(|item| item.len() + 8).sum())?;
        self.set(target, field, "", Some(list.into()))
    }

    /// `container.command`
    pub fn container_command(&mut self, rep: u32) -> Result<Option<Vec<String>>, Fault> {
        self.read_list(rep, Field::Command)
    }

    /// `container.set-command`
    pub fn container_set_command(&mut self, rep: u32, command: &[String]) -> Result<(), Fault> {
        self.set_list(rep, Field::Command, command)
    }

    /// `container.args`
    pub fn container_args(&mut self, rep: u32) -> Result<Option<Vec<String>>, Fault> {
        self.read_list(rep, Field::Args)
    }

    /// `container.set-args`
    pub fn container_set_args(&mut self, rep: u32, args: &[String]) -> Result<(), Fault> {
        self.set_list(rep, Field::Args, args)
    }

    /// `container.clear-args`
    pub fn container_clear_args(&mut self, rep: u32) -> Result<(), Fault> {
        let (target, _) = self.container_target(rep)?;
        self.set(target, Field::Args, "", None)
    }

    /// `container.runtime-command`
    pub fn container_runtime_command(&mut self, rep: u32) -> Result<Option<Vec<String>>, Fault> {
        self.runtime_list(rep, |container| container.runtime_command.as_ref())
    }

    /// `container.runtime-args`
    pub fn container_runtime_args(&mut self, rep: u32) -> Result<Option<Vec<String>>, Fault> {
        self.runtime_list(rep, |container| container.runtime_args.as_ref())
    }

    fn runtime_list(
        &mut self,
        rep: u32,
        list: impl FnOnce(&Container) -> Option<&List>,
    ) -> Result<Option<Vec<String>>, Fault> {
        let (target, id) = self.container_target(rep)?;
        let list = list(self.container(target, id)?).map(|list| strings(list));
        list.map(|list| self.give_all(list)).transpose()
    }

    /// `container.working-dir`
    pub fn container_working_dir(&mut self, rep: u32) -> Result<Option<String>, Fault> {
        let (target, _) = self.container_target(rep)?;
        self.read_text(target, Field::WorkingDir, "")
    }

    /// `container.set-working-dir`
    pub fn container_set_working_dir(&mut self, rep: u32, path: &str) -> Result<(), Fault> {
        let (target, _) = self.container_target(rep)?;
        self.set_text(target, Field::WorkingDir, "", path)
    }

    /// `container.set-restart-policy`
    pub fn container_set_restart_policy(&mut self, rep: u32, policy: &str) -> Result<(), Fault> {
        let (target, _) = self.container_target(rep)?;
        self.set_text(target, Field::RestartPolicy, "", policy)
    }

    /// The fragments of a field that is read as a whole.
    fn fragments(&mut self, rep: u32, field: Field) -> Result<Vec<Arc<Value>>, Fault> {
        let (target, id) = self.container_target(rep)?;
        self.may_read_all(target, field)?;
        let entries = self.container(target, id)?.fields.all(field);
        Ok(entries
            .iter()
            .filter_map(|e| e.datum.as_json().cloned())
            .collect())
    }
}

fn strings(list: &[Arc<str>]) -> Vec<String> {
    list.iter().map(|item| item.to_string()).collect()
}
