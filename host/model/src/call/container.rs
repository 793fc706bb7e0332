//! `pod-set-info.container`.

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
            return wrong(
                "container.place",
                "only an init container that this plugin added can be placed",
            );
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

    /// `container.env-names`
    pub fn container_env_names(&mut self, rep: u32) -> Result<Vec<String>, Fault> {
        let (target, id) = self.container_target(rep)?;
        self.may_read(target, Field::Env, None)?;
        let entries = self.container(target, id)?.fields.all(Field::Env);
        let names = entries.iter().map(|e| e.key.to_string()).collect();
        self.give_all(names)
    }

    /// `container.env`
    pub fn container_env(&mut self, rep: u32, name: &str) -> Result<Option<String>, Fault> {
        let (target, _) = self.container_target(rep)?;
        self.read_text(target, Field::Env, name)
    }

    /// `container.env-source`
    pub fn container_env_source(&mut self, rep: u32, name: &str) -> Result<Option<u32>, Fault> {
        self.meter.text(name)?;
        let (target, _) = self.container_target(rep)?;
        self.may_read(target, Field::Env, Some(name))?;
        let entry = self
            .record_of(target.base)
            .entry(target.scope, Field::Env, name);
        let source = entry.and_then(|e| e.datum.as_json()).cloned();
        source
            .map(|value| self.new_document(value, false))
            .transpose()
    }

    /// `container.env-owner`
    pub fn container_env_owner(&mut self, rep: u32, name: &str) -> Result<Option<String>, Fault> {
        self.meter.text(name)?;
        let (target, _) = self.container_target(rep)?;
        self.may_read(target, Field::Env, Some(name))?;
        let entry = self
            .record_of(target.base)
            .entry(target.scope, Field::Env, name);
        Ok(entry.map(|e| e.owner.name().to_owned()))
    }

    /// Checks a write of an env var: over a value of the runtime, a patch or the TrainJob only by a reserved name.
    fn set_env(&mut self, rep: u32, name: &str, new: Option<Datum>) -> Result<(), Fault> {
        self.meter.text(name)?;
        let (target, _) = self.container_target(rep)?;
        if name.is_empty() || name.contains(['=', '\0']) {
            return wrong(
                "container.put-env",
                "an env var's name is empty or holds `=` or a zero byte",
            );
        }
        self.may_write(target, Touch::Write, Field::Env, name)?;
        let owner = self
            .record
            .entry(target.scope, Field::Env, name)
            .map(|e| e.owner);
        if let Some(owner @ (Owner::Runtime | Owner::Patch | Owner::TrainJob)) = owner
            && !self
                .inputs
                .plugin
                .manifest
                .reserved_env
                .iter()
                .any(|reserved| reserved == name)
        {
            return Err(Fault::NotReserved {
                path: self.path(target.scope, Field::Env, name),
                owner: owner.name(),
            });
        }
        self.put(target.scope, Field::Env, name, new);
        Ok(())
    }

    /// `container.put-env`
    pub fn container_put_env(&mut self, rep: u32, name: &str, value: &str) -> Result<(), Fault> {
        self.meter.text(value)?;
        self.set_env(rep, name, Some(value.into()))
    }

    /// `container.default-env`
    pub fn container_default_env(
        &mut self,
        rep: u32,
        name: &str,
        value: &str,
    ) -> Result<(), Fault> {
        self.meter.text(value)?;
        let (target, _) = self.container_target(rep)?;
        self.may_write(target, Touch::Write, Field::Env, name)?;
        match self.record.entry(target.scope, Field::Env, name) {
            Some(_) => Ok(()),
            None => self.set_env(rep, name, Some(value.into())),
        }
    }

    /// `container.put-env-field`
    pub fn container_put_env_field(
        &mut self,
        rep: u32,
        name: &str,
        path: &str,
    ) -> Result<(), Fault> {
        self.meter.text(path)?;
        self.set_env(
            rep,
            name,
            Some(json!({ "fieldRef": { "fieldPath": path } }).into()),
        )
    }

    /// `container.put-env-resource`
    pub fn container_put_env_resource(
        &mut self,
        rep: u32,
        name: &str,
        container: Option<&str>,
        resource: &str,
        divisor: Option<&str>,
    ) -> Result<(), Fault> {
        self.meter.text(resource)?;
        self.meter.text(container.unwrap_or_default())?;
        self.meter.text(divisor.unwrap_or_default())?;
        let mut source = Map::new();
        source.extend(container.map(|name| ("containerName".to_owned(), Value::from(name))));
        source.insert("resource".to_owned(), resource.into());
        source.extend(divisor.map(|divisor| ("divisor".to_owned(), Value::from(divisor))));
        self.set_env(
            rep,
            name,
            Some(json!({ "resourceFieldRef": source }).into()),
        )
    }

    /// `container.put-env-own-config-map`
    pub fn container_put_env_own_config_map(
        &mut self,
        rep: u32,
        name: &str,
        suffix: &str,
        key: &str,
    ) -> Result<(), Fault> {
        self.meter.text(key)?;
        let object = self.own_config_map(suffix)?;
        self.set_env(
            rep,
            name,
            Some(json!({ "configMapKeyRef": { "name": object, "key": key } }).into()),
        )
    }

    /// `container.remove-env`
    pub fn container_remove_env(&mut self, rep: u32, name: &str) -> Result<(), Fault> {
        self.set_env(rep, name, None)
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

    /// `container.ports`
    pub fn container_ports(&mut self, rep: u32) -> Result<Vec<Port>, Fault> {
        let ports: Vec<_> = self
            .fragments(rep, Field::Ports)?
            .iter()
            .filter_map(|value| port(value))
            .collect();
        self.meter.add_bytes(
            ports
                .iter()
                .map(|p| p.protocol.len() + 16 + p.name.as_ref().map_or(0, String::len))
                .sum(),
        )?;
        Ok(ports)
    }

    /// `container.port`
    pub fn container_port(
        &mut self,
        rep: u32,
        number: u16,
        protocol: &str,
    ) -> Result<Option<Port>, Fault> {
        let (target, _) = self.container_target(rep)?;
        let key = format!("{number}/{protocol}");
        self.meter.text(&key)?;
        self.may_read(target, Field::Ports, Some(&key))?;
        let entry = self
            .record_of(target.base)
            .entry(target.scope, Field::Ports, &key);
        Ok(entry
            .and_then(|e| e.datum.as_json())
            .and_then(|value| port(value)))
    }

    /// `container.put-port`
    pub fn container_put_port(&mut self, rep: u32, port: &Port) -> Result<(), Fault> {
        let (target, _) = self.container_target(rep)?;
        self.meter.text(port.name.as_deref().unwrap_or_default())?;
        if port.number == 0 || !matches!(port.protocol.as_str(), "TCP" | "UDP" | "SCTP") {
            return wrong(
                "container.put-port",
                "the number is 0, or the protocol is none of TCP, UDP, SCTP",
            );
        }
        let key = format!("{}/{}", port.number, port.protocol);
        let mut object = Map::new();
        object.extend(
            port.name
                .as_deref()
                .map(|name| ("name".to_owned(), Value::from(name))),
        );
        object.insert("containerPort".to_owned(), port.number.into());
        if port.protocol != "TCP" {
            object.insert("protocol".to_owned(), port.protocol.as_str().into());
        }
        self.set(
            target,
            Field::Ports,
            &key,
            Some(Value::Object(object).into()),
        )
    }

    /// `container.mounts`
    pub fn container_mounts(&mut self, rep: u32) -> Result<Vec<Mount>, Fault> {
        let mounts: Vec<_> = self
            .fragments(rep, Field::Mounts)?
            .iter()
            .filter_map(|value| mount(value))
            .collect();
        self.meter.add_bytes(
            mounts
                .iter()
                .map(|m| m.volume.len() + m.path.len() + 24)
                .sum(),
        )?;
        Ok(mounts)
    }

    /// `container.put-mount`
    pub fn container_put_mount(&mut self, rep: u32, mount: &Mount) -> Result<(), Fault> {
        let (target, id) = self.container_target(rep)?;
        self.meter.text(&mount.volume)?;
        self.meter.text(&mount.path)?;
        self.meter
            .text(mount.sub_path.as_deref().unwrap_or_default())?;
        if !mount.path.starts_with('/') || mount.path.contains(':') {
            return wrong(
                "container.put-mount",
                "the path does not begin with `/`, or holds `:`",
            );
        }
        let grant = self.may_write(target, Touch::Write, Field::Mounts, &mount.path)?;
        let pod_set = PlaceScope::PodSet(self.container(target, id)?.pod_set);
        let volume = self
            .record
            .entry(pod_set, Field::Volumes, &mount.volume)
            .map(|e| e.owner);
        let over = self
            .record
            .entry(target.scope, Field::Mounts, &mount.path)
            .map(|e| e.owner);
        let own = volume == Some(self.owner()) && over.is_none_or(|owner| owner == self.owner());
        if grant == Grant::OwnOnly && !own {
            let what = "a mount of another's volume, or over another's mount,";
            return Err(self.not_granted(
                target,
                Field::Mounts,
                &mount.path,
                what,
                "mounts of the plugin's own volumes",
            ));
        }
        let mut object = Map::new();
        object.insert("name".to_owned(), mount.volume.as_str().into());
        object.insert("mountPath".to_owned(), mount.path.as_str().into());
        object.extend(
            mount
                .sub_path
                .as_deref()
                .map(|path| ("subPath".to_owned(), Value::from(path))),
        );
        if mount.read_only {
            object.insert("readOnly".to_owned(), true.into());
        }
        self.put(
            target.scope,
            Field::Mounts,
            &mount.path,
            Some(Value::Object(object).into()),
        );
        Ok(())
    }

    /// `container.remove-mount`
    pub fn container_remove_mount(&mut self, rep: u32, path: &str) -> Result<(), Fault> {
        self.meter.text(path)?;
        let (target, _) = self.container_target(rep)?;
        let grant = self.may_write(target, Touch::Write, Field::Mounts, path)?;
        let owner = self
            .record
            .entry(target.scope, Field::Mounts, path)
            .map(|e| e.owner);
        if grant == Grant::OwnOnly && owner.is_some_and(|owner| owner != self.owner()) {
            let what = "the removal of another's mount";
            return Err(self.not_granted(
                target,
                Field::Mounts,
                path,
                what,
                "mounts of the plugin's own volumes",
            ));
        }
        self.put(target.scope, Field::Mounts, path, None);
        Ok(())
    }

    /// `container.request`
    pub fn container_request(&mut self, rep: u32, resource: &str) -> Result<Option<String>, Fault> {
        let (target, _) = self.container_target(rep)?;
        let request = self.read_text(target, Field::Requests, resource)?;
        let limit = self.read_text(target, Field::Limits, resource)?;
        Ok(request.or(limit))
    }

    /// `container.limit`
    pub fn container_limit(&mut self, rep: u32, resource: &str) -> Result<Option<String>, Fault> {
        let (target, _) = self.container_target(rep)?;
        self.read_text(target, Field::Limits, resource)
    }

    /// `container.requests`
    pub fn container_requests(&mut self, rep: u32) -> Result<Vec<Quantity>, Fault> {
        let mut out = self.amounts(rep, Field::Requests)?;
        let limits = self.amounts(rep, Field::Limits)?;
        out.extend(
            limits
                .into_iter()
                .filter(|l| !out.iter().any(|r| r.resource == l.resource))
                .collect::<Vec<_>>(),
        );
        Ok(out)
    }

    /// `container.limits`
    pub fn container_limits(&mut self, rep: u32) -> Result<Vec<Quantity>, Fault> {
        self.amounts(rep, Field::Limits)
    }

    fn amounts(&mut self, rep: u32, field: Field) -> Result<Vec<Quantity>, Fault> {
        let (target, id) = self.container_target(rep)?;
        self.may_read_all(target, field)?;
        let amounts: Vec<_> = self
            .container(target, id)?
            .fields
            .all(field)
            .iter()
            .filter_map(|e| {
                Some(Quantity {
                    resource: e.key.to_string(),
                    amount: e.datum.as_text()?.to_owned(),
                })
            })
            .collect();
        self.meter.add_bytes(
            amounts
                .iter()
                .map(|q| q.resource.len() + q.amount.len() + 16)
                .sum(),
        )?;
        Ok(amounts)
    }

    /// `container.set-request`
    pub fn container_set_request(
        &mut self,
        rep: u32,
        resource: &str,
        amount: &str,
    ) -> Result<(), Fault> {
        self.set_amount(rep, Field::Requests, resource, amount)
    }

    /// `container.set-limit`
    pub fn container_set_limit(
        &mut self,
        rep: u32,
        resource: &str,
        amount: &str,
    ) -> Result<(), Fault> {
        self.set_amount(rep, Field::Limits, resource, amount)
    }

    fn set_amount(
        &mut self,
        rep: u32,
        field: Field,
        resource: &str,
        amount: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.container_target(rep)?;
        if Amount::parse(amount).is_none() {
            return wrong(
                "container.set-request",
                format!("`{}` is no quantity", crate::text::clean(amount)),
            );
        }
        self.set_text(target, field, resource, amount)
    }
}

fn strings(list: &[Arc<str>]) -> Vec<String> {
    list.iter().map(|item| item.to_string()).collect()
}

fn port(value: &Value) -> Option<Port> {
    Some(Port {
        name: value.get("name").and_then(Value::as_str).map(str::to_owned),
        number: u16::try_from(value.get("containerPort")?.as_u64()?).ok()?,
        protocol: value
            .get("protocol")
            .and_then(Value::as_str)
            .unwrap_or("TCP")
            .to_owned(),
    })
}

fn mount(value: &Value) -> Option<Mount> {
    Some(Mount {
        volume: value.get("name")?.as_str()?.to_owned(),
        path: value.get("mountPath")?.as_str()?.to_owned(),
        sub_path: value
            .get("subPath")
            .and_then(Value::as_str)
            .map(str::to_owned),
        read_only: value
            .get("readOnly")
            .and_then(Value::as_bool)
            .unwrap_or(false),
    })
}
