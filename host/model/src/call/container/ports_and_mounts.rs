//! Ports and volume mounts of a container.

use super::*;
use crate::{call::Target, text::clean};

/// What mounts are allowed without a grant.
const OWN_MOUNTS: &str = "mounts of the plugin's own volumes";

/// What ports are allowed without a grant.
const OWN_PORTS: &str = "ports without a host port";

/// The modes of recursive read-only mounts in Kubernetes.
const RECURSIVE_READ_ONLY: [&str; 3] = ["Disabled", "IfPossible", "Enabled"];

/// The modes of mount propagation in Kubernetes.
const PROPAGATIONS: [&str; 3] = ["None", "HostToContainer", "Bidirectional"];

impl Call {
    /// `container.ports`
    pub fn container_ports(&mut self, handle: handle::Container) -> Result<Vec<Port>, Fault> {
        let ports: Vec<_> = self
            .fragments(handle, Field::Ports)?
            .iter()
            .filter_map(|value| port(value))
            .collect();
        self.meter.add_bytes(
            ports
                .iter()
                .map(|p| {
                    let texts = [&p.name, &p.host_ip].into_iter().flatten();
                    p.protocol.len() + 16 + texts.map(String::len).sum::<usize>()
                })
                .sum(),
        )?;
        Ok(ports)
    }

    /// `container.port`
    pub fn container_port(
        &mut self,
        handle: handle::Container,
        number: u16,
        protocol: &str,
    ) -> Result<Option<Port>, Fault> {
        let target = self.container_target(handle)?;
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
    pub fn container_put_port(
        &mut self,
        handle: handle::Container,
        port: &Port,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.meter.text(port.name.as_deref().unwrap_or_default())?;
        if port.number == 0 || !matches!(port.protocol.as_str(), "TCP" | "UDP" | "SCTP") {
            return wrong("the number must not be 0, and the protocol must be TCP, UDP or SCTP");
        }
        if port.host_port == Some(0) {
            return wrong("the host port must not be 0");
        }
        if let Some(address) = &port.host_ip {
            self.meter.text(address)?;
            if address.parse::<std::net::IpAddr>().is_err() {
                return wrong(format!("`{}` is not an IP address", clean(address)));
            }
        }
        let key = format!("{}/{}", port.number, port.protocol);
        self.meter.text(&key)?;
        let grant = self.may_write(target, Verb::Write, Field::Ports, &key)?;
        if grant == Grant::OwnOnly && (port.host_port.is_some() || port.host_ip.is_some()) {
            return Err(self.not_granted(target, Field::Ports, &key, "a host port", OWN_PORTS));
        }
        let json = port_json(port);
        self.put(target.scope, Field::Ports, &key, Some(json.into()));
        Ok(())
    }

    /// `container.mounts`
    pub fn container_mounts(&mut self, handle: handle::Container) -> Result<Vec<Mount>, Fault> {
        let mounts: Vec<_> = self
            .fragments(handle, Field::Mounts)?
            .iter()
            .filter_map(|value| mount(value))
            .collect();
        self.meter.add_bytes(mounts.iter().map(mount_size).sum())?;
        Ok(mounts)
    }

    /// `container.mount`
    pub fn container_mount(
        &mut self,
        handle: handle::Container,
        path: &str,
    ) -> Result<Option<Mount>, Fault> {
        let target = self.container_target(handle)?;
        self.meter.text(path)?;
        self.may_read(target, Field::Mounts, Some(path))?;
        let found = mount_at(self.record_of(target.base), target, path);
        let found = found.and_then(|entry| mount(entry.datum.as_json()?));
        self.meter.add_bytes(found.as_ref().map_or(0, mount_size))?;
        Ok(found)
    }

    /// `container.default-mount`
    pub fn container_default_mount(
        &mut self,
        handle: handle::Container,
        mount: &Mount,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        match mount_at(&self.record, target, &mount.path) {
            Some(_) => {
                self.meter.text(&mount.path)?;
                self.may_write(target, Verb::Write, Field::Mounts, &mount.path)
                    .map(drop)
            }
            None => self.container_put_mount(handle, mount),
        }
    }

    /// `container.put-mount`
    pub fn container_put_mount(
        &mut self,
        handle: handle::Container,
        mount: &Mount,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.meter.text(&mount.volume)?;
        self.meter.text(&mount.path)?;
        let (part, expr) = (mount.sub_path.as_deref(), mount.sub_path_expr.as_deref());
        let propagation = mount.mount_propagation.as_deref();
        let recursive = mount.recursive_read_only.as_deref();
        for text in [part, expr, propagation, recursive].into_iter().flatten() {
            self.meter.text(text)?;
        }
        if let Some(problem) = mount_problem(mount) {
            return wrong(problem);
        }
        let grant = self.may_write(target, Verb::Write, Field::Mounts, &mount.path)?;
        let pod_set = EntryScope::PodSet(self.container(handle)?.pod_set);
        let volume = self
            .record
            .entry(pod_set, Field::Volumes, &mount.volume)
            .map(|entry| entry.owner);
        let (key, over) = self.mount_at(target, &mount.path);
        let own = volume == Some(self.owner()) && over.is_none_or(|owner| owner == self.owner());
        if grant == Grant::OwnOnly && !own {
            let what = "a mount of a volume, or over a mount, that the plugin did not add";
            return Err(self.not_granted(target, Field::Mounts, &mount.path, what, OWN_MOUNTS));
        }
        let json = mount_json(mount, &key);
        self.put(target.scope, Field::Mounts, &key, Some(json.into()));
        Ok(())
    }

    /// `container.remove-mount`
    pub fn container_remove_mount(
        &mut self,
        handle: handle::Container,
        path: &str,
    ) -> Result<(), Fault> {
        self.meter.text(path)?;
        let target = self.container_target(handle)?;
        let grant = self.may_write(target, Verb::Write, Field::Mounts, path)?;
        let (key, owner) = self.mount_at(target, path);
        if grant == Grant::OwnOnly && owner.is_some_and(|owner| owner != self.owner()) {
            let what = "the removal of a mount that the plugin did not add";
            return Err(self.not_granted(target, Field::Mounts, path, what, OWN_MOUNTS));
        }
        self.put(target.scope, Field::Mounts, &key, None);
        Ok(())
    }

    /// The key and the owner of the mount at a path. If there is no mount, the clean path.
    fn mount_at(&self, target: Target, path: &str) -> (Arc<str>, Option<Owner>) {
        match mount_at(&self.record, target, path) {
            Some(mount) => (mount.key.clone(), Some(mount.owner)),
            None => (Field::Mounts.compared(path).into(), None),
        }
    }

    /// The values of a field that is read as a whole.
    pub(super) fn fragments(
        &mut self,
        handle: handle::Container,
        field: Field,
    ) -> Result<Vec<Arc<Value>>, Fault> {
        let target = self.container_target(handle)?;
        self.may_read_all(target, field)?;
        let entries = self.container(handle)?.fields.all(field);
        Ok(entries
            .iter()
            .filter_map(|e| e.datum.as_json().cloned())
            .collect())
    }
}

/// The mount at a path, however its author wrote the path.
fn mount_at<'r>(record: &'r Record, target: Target, path: &str) -> Option<&'r Entry> {
    let field = Field::Mounts;
    let path = field.compared(path);
    record.entry(target.scope, field, &path).or_else(|| {
        // Plugins' keys are clean, and come after those of the runtime and of patches.
        let mounts = record.fields(target.scope)?.all(field).iter();
        let mut written = mounts.take_while(|mount| !matches!(mount.home, Owner::Plugin(_)));
        written.find(|mount| field.compared(&mount.key) == path)
    })
}

/// The bytes of a mount that are given to a plugin.
fn mount_size(mount: &Mount) -> usize {
    let texts = [
        &mount.sub_path,
        &mount.sub_path_expr,
        &mount.mount_propagation,
        &mount.recursive_read_only,
    ];
    let more = texts.into_iter().flatten().map(String::len);
    mount.volume.len() + mount.path.len() + more.sum::<usize>() + 24
}

/// Why the API server would reject a mount.
fn mount_problem(mount: &Mount) -> Option<String> {
    if !mount.path.starts_with('/') || mount.path.contains(':') {
        return Some("the path must begin with `/` and must not contain `:`".to_owned());
    }
    let parts = [
        ("sub-path", &mount.sub_path),
        ("sub-path-expr", &mount.sub_path_expr),
    ];
    if parts.iter().all(|(_, part)| part.is_some()) {
        return Some("`sub-path` and `sub-path-expr` are both set; leave one out".to_owned());
    }
    for (name, part) in parts {
        let leads_out =
            |part: &&String| part.starts_with('/') || part.split('/').any(|s| s == "..");
        if let Some(part) = part.as_ref().filter(leads_out) {
            let part = clean(part);
            return Some(format!(
                "`{name}` is `{part}`, which is not a relative path without `..`"
            ));
        }
    }
    let choices = [
        ("mount-propagation", &mount.mount_propagation, PROPAGATIONS),
        (
            "recursive-read-only",
            &mount.recursive_read_only,
            RECURSIVE_READ_ONLY,
        ),
    ];
    for (name, chosen, known) in choices {
        let is_unknown = |chosen: &&str| !known.contains(chosen);
        if let Some(unknown) = chosen.as_deref().filter(is_unknown) {
            let (unknown, known) = (clean(unknown), known.join(", "));
            return Some(format!(
                "`{name}` is `{unknown}`, which is not one of {known}"
            ));
        }
    }
    let is_recursive = matches!(
        mount.recursive_read_only.as_deref(),
        Some("IfPossible" | "Enabled")
    );
    let spreads = !matches!(mount.mount_propagation.as_deref(), None | Some("None"));
    (is_recursive && (!mount.read_only || spreads)).then(|| {
        "a recursive read-only mount must be read-only and must not have a mount propagation"
            .to_owned()
    })
}

/// A port from its JSON in a pod spec, where TCP is the default.
fn port_json(port: &Port) -> Value {
    let mut object = Map::with_capacity(3);
    let name = port.name.as_deref();
    object.extend(name.map(|name| ("name".to_owned(), Value::from(name))));
    object.insert("containerPort".to_owned(), port.number.into());
    if port.protocol != "TCP" {
        object.insert("protocol".to_owned(), port.protocol.as_str().into());
    }
    let host_port = port.host_port;
    object.extend(host_port.map(|number| ("hostPort".to_owned(), Value::from(number))));
    let host_ip = port.host_ip.as_deref();
    object.extend(host_ip.map(|address| ("hostIP".to_owned(), Value::from(address))));
    Value::Object(object)
}

/// A mount from its JSON in a pod spec, with the path of the record's key.
fn mount_json(mount: &Mount, path: &str) -> Value {
    let mut object = Map::with_capacity(3);
    object.insert("name".to_owned(), mount.volume.as_str().into());
    object.insert("mountPath".to_owned(), path.into());
    for (name, text) in [
        ("subPath", &mount.sub_path),
        ("subPathExpr", &mount.sub_path_expr),
        ("mountPropagation", &mount.mount_propagation),
        ("recursiveReadOnly", &mount.recursive_read_only),
    ] {
        let text = text.as_deref();
        object.extend(text.map(|text| (name.to_owned(), Value::from(text))));
    }
    if mount.read_only {
        object.insert("readOnly".to_owned(), true.into());
    }
    Value::Object(object)
}

fn port(value: &Value) -> Option<Port> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    Some(Port {
        name: text("name").map(str::to_owned),
        host_ip: text("hostIP")
            .filter(|text| !text.is_empty())
            .map(str::to_owned),
        number: u16::try_from(value.get("containerPort")?.as_u64()?).ok()?,
        protocol: text("protocol").unwrap_or("TCP").to_owned(),
        host_port: value
            .get("hostPort")
            .and_then(Value::as_u64)
            .and_then(|number| u16::try_from(number).ok())
            .filter(|number| *number != 0),
    })
}

fn mount(value: &Value) -> Option<Mount> {
    let text = |name: &str| {
        let text = value.get(name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    Some(Mount {
        volume: text("name")?,
        path: text("mountPath")?,
        sub_path: text("subPath"),
        sub_path_expr: text("subPathExpr"),
        mount_propagation: text("mountPropagation"),
        recursive_read_only: text("recursiveReadOnly"),
        read_only: value
            .get("readOnly")
            .and_then(Value::as_bool)
            .unwrap_or(false),
    })
}
