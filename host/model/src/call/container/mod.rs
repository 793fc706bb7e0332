//! `pod-set-info.container`.

mod capabilities;
mod env;
mod ports_and_mounts;
mod resource_claims;
mod resources;

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Call, Fault, object_with, wrong};
use crate::{
    claims::{Grant, Verb},
    contract::handle,
    names::is_capability,
    object::DataKind,
    quantity::Quantity as Amount,
    record::{Container, Datum, Entry, EntryRef, EntryScope, Field, Owner, Record},
    value::{Mount, Port, Quantity},
};

type List = Arc<[Arc<str>]>;

impl Call {
    /// `container.name`
    pub fn container_name(&mut self, handle: handle::Container) -> Result<String, Fault> {
        let name = self.container(handle)?.name.clone();
        self.give(&name)
    }

    /// `container.is-init`
    pub fn container_is_init(&mut self, handle: handle::Container) -> Result<bool, Fault> {
        Ok(self.container(handle)?.list == Field::InitContainers)
    }

    /// `container.is-sidecar`
    pub fn container_is_sidecar(&mut self, handle: handle::Container) -> Result<bool, Fault> {
        if self.container(handle)?.list == Field::InitContainers {
            let target = self.container_target(handle)?;
            self.may_read(target, Field::RestartPolicy, Some(""))?;
        }
        Ok(self.container(handle)?.is_sidecar())
    }

    /// `container.created-by-me`
    pub fn container_created_by_me(&mut self, handle: handle::Container) -> Result<bool, Fault> {
        Ok(self.container(handle)?.home == self.owner())
    }

    /// `container.place-first`
    pub fn container_place_first(&mut self, handle: handle::Container) -> Result<(), Fault> {
        self.place(handle, "first".to_owned())
    }

    /// `container.place-before`
    pub fn container_place_before(
        &mut self,
        handle: handle::Container,
        anchor: &str,
    ) -> Result<(), Fault> {
        self.place(handle, format!("before/{anchor}"))
    }

    /// `container.place-after`
    pub fn container_place_after(
        &mut self,
        handle: handle::Container,
        anchor: &str,
    ) -> Result<(), Fault> {
        self.place(handle, format!("after/{anchor}"))
    }

    fn place(&mut self, handle: handle::Container, wish: String) -> Result<(), Fault> {
        let container = self.container(handle)?;
        if container.home != self.owner() || container.list != Field::InitContainers {
            return wrong("only an init container that this plugin added can be placed");
        }
        let target = self.container_target(handle)?;
        self.set(target, Field::Placement, &wish, Some("".into()))
    }

    /// `container.image`
    pub fn container_image(&mut self, handle: handle::Container) -> Result<Option<String>, Fault> {
        let target = self.container_target(handle)?;
        self.read_text(target, Field::Image, "")
    }

    /// `container.set-image`
    pub fn container_set_image(
        &mut self,
        handle: handle::Container,
        image: &str,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.set_text(target, Field::Image, "", image)
    }

    /// `container.set-image-pull-policy`
    pub fn container_set_image_pull_policy(
        &mut self,
        handle: handle::Container,
        policy: &str,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.set_text(target, Field::ImagePullPolicy, "", policy)
    }

    fn read_list(
        &mut self,
        handle: handle::Container,
        field: Field,
    ) -> Result<Option<Vec<String>>, Fault> {
        let target = self.container_target(handle)?;
        self.may_read(target, field, Some(""))?;
        let entry = self.record_of(target.base).entry(target.scope, field, "");
        let list = entry.and_then(|e| e.datum.as_list()).map(strings);
        list.map(|list| self.give_all(list)).transpose()
    }

    fn set_list(
        &mut self,
        handle: handle::Container,
        field: Field,
        list: &[String],
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.meter
            .add_bytes(list.iter().map(|item| item.len() + 8).sum())?;
        self.set(target, field, "", Some(list.into()))
    }

    /// `container.command`
    pub fn container_command(
        &mut self,
        handle: handle::Container,
    ) -> Result<Option<Vec<String>>, Fault> {
        self.read_list(handle, Field::Command)
    }

    /// `container.set-command`
    pub fn container_set_command(
        &mut self,
        handle: handle::Container,
        command: &[String],
    ) -> Result<(), Fault> {
        self.set_list(handle, Field::Command, command)
    }

    /// `container.args`
    pub fn container_args(
        &mut self,
        handle: handle::Container,
    ) -> Result<Option<Vec<String>>, Fault> {
        self.read_list(handle, Field::Args)
    }

    /// `container.set-args`
    pub fn container_set_args(
        &mut self,
        handle: handle::Container,
        args: &[String],
    ) -> Result<(), Fault> {
        self.set_list(handle, Field::Args, args)
    }

    /// `container.clear-args`
    pub fn container_clear_args(&mut self, handle: handle::Container) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.set(target, Field::Args, "", None)
    }

    /// `container.runtime-command`
    pub fn container_runtime_command(
        &mut self,
        handle: handle::Container,
    ) -> Result<Option<Vec<String>>, Fault> {
        self.runtime_list(handle, |container| container.runtime_command.as_ref())
    }

    /// `container.runtime-args`
    pub fn container_runtime_args(
        &mut self,
        handle: handle::Container,
    ) -> Result<Option<Vec<String>>, Fault> {
        self.runtime_list(handle, |container| container.runtime_args.as_ref())
    }

    fn runtime_list(
        &mut self,
        handle: handle::Container,
        list: impl FnOnce(&Container) -> Option<&List>,
    ) -> Result<Option<Vec<String>>, Fault> {
        let list = list(self.container(handle)?).map(|list| strings(list));
        list.map(|list| self.give_all(list)).transpose()
    }

    /// `container.working-dir`
    pub fn container_working_dir(
        &mut self,
        handle: handle::Container,
    ) -> Result<Option<String>, Fault> {
        let target = self.container_target(handle)?;
        self.read_text(target, Field::WorkingDir, "")
    }

    /// `container.set-working-dir`
    pub fn container_set_working_dir(
        &mut self,
        handle: handle::Container,
        path: &str,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.set_text(target, Field::WorkingDir, "", path)
    }

    /// `container.set-restart-policy`
    pub fn container_set_restart_policy(
        &mut self,
        handle: handle::Container,
        policy: &str,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.set_text(target, Field::RestartPolicy, "", policy)
    }
}

fn strings(list: &[Arc<str>]) -> Vec<String> {
    list.iter().map(|item| item.to_string()).collect()
}
