//! Volumes of a pod set's pods.

use super::*;

/// What volumes are allowed without a grant.
const OWN_VOLUMES: &str = "empty volumes and volumes of the plugin's own objects";

impl Call {
    /// `pod-set.volumes`
    pub fn pod_set_volumes(&mut self, handle: handle::PodSet) -> Result<Vec<String>, Fault> {
        let (target, at) = self.pod_set_target(handle)?;
        self.may_read(target, Field::Volumes, None)?;
        let set = self.record_of(target.base).pod_set(at);
        let names = set.map(|set| {
            set.fields
                .all(Field::Volumes)
                .iter()
                .map(|e| e.key.to_string())
                .collect()
        });
        self.give_all(names.unwrap_or_default())
    }

    /// `pod-set.volume`
    pub fn pod_set_volume(
        &mut self,
        handle: handle::PodSet,
        name: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        self.meter.text(name)?;
        let (target, _) = self.pod_set_target(handle)?;
        self.may_read(target, Field::Volumes, Some(name))?;
        let entry = self
            .record_of(target.base)
            .entry(target.scope, Field::Volumes, name);
        let volume = entry.and_then(|e| e.datum.as_json()).cloned();
        volume
            .map(|value| self.new_document(value, false))
            .transpose()
    }

    /// `pod-set.remove-volume`
    pub fn pod_set_remove_volume(
        &mut self,
        handle: handle::PodSet,
        name: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.own_volume_only(
            target,
            name,
            "the removal of a volume that the plugin did not add",
        )?;
        self.put(target.scope, Field::Volumes, name, None);
        Ok(())
    }

    /// `pod-set.put-empty-dir`
    pub fn pod_set_put_empty_dir(
        &mut self,
        handle: handle::PodSet,
        name: &str,
        medium: Option<&str>,
        size_limit: Option<&str>,
    ) -> Result<(), Fault> {
        self.meter.text(medium.unwrap_or_default())?;
        self.meter.text(size_limit.unwrap_or_default())?;
        let mut source = Map::new();
        source.extend(medium.map(|medium| ("medium".to_owned(), Value::from(medium))));
        source.extend(size_limit.map(|limit| ("sizeLimit".to_owned(), Value::from(limit))));
        self.put_volume(handle, name, "emptyDir", Value::Object(source))
    }

    /// `pod-set.put-own-config-map`
    pub fn pod_set_put_own_config_map(
        &mut self,
        handle: handle::PodSet,
        name: &str,
        suffix: &str,
        default_mode: Option<u32>,
        items: &[KeyFile],
    ) -> Result<(), Fault> {
        self.put_own(
            handle,
            name,
            DataKind::ConfigMap,
            suffix,
            default_mode,
            items,
        )
    }

    /// `pod-set.put-own-secret`
    pub fn pod_set_put_own_secret(
        &mut self,
        handle: handle::PodSet,
        name: &str,
        suffix: &str,
        default_mode: Option<u32>,
        items: &[KeyFile],
    ) -> Result<(), Fault> {
        self.put_own(handle, name, DataKind::Secret, suffix, default_mode, items)
    }

    /// Sets a volume of a ConfigMap or Secret that this plugin emits.
    fn put_own(
        &mut self,
        handle: handle::PodSet,
        volume: &str,
        kind: DataKind,
        suffix: &str,
        default_mode: Option<u32>,
        items: &[KeyFile],
    ) -> Result<(), Fault> {
        self.meter
            .add_bytes(items.iter().map(|i| i.key.len() + i.path.len() + 16).sum())?;
        let (member, name) = match kind {
            DataKind::ConfigMap => ("configMap", "name"),
            DataKind::Secret => ("secret", "secretName"),
        };
        let object = self.own_data(kind, suffix)?;
        let mut source = Map::with_capacity(3);
        source.insert(name.to_owned(), object.as_str().into());
        source.extend(default_mode.map(|mode| ("defaultMode".to_owned(), Value::from(mode))));
        if !items.is_empty() {
            source.insert("items".to_owned(), items.iter().map(key_file).collect());
        }
        self.put_volume(handle, volume, member, Value::Object(source))?;
        let place = EntryRef {
            scope: self.pod_set_target(handle)?.0.scope,
            field: Field::Volumes,
            key: volume.into(),
        };
        self.stands_on_own_data(place, kind, object);
        Ok(())
    }

    /// `pod-set.put-raw-volume`
    pub fn pod_set_put_raw_volume(
        &mut self,
        handle: handle::PodSet,
        name: &str,
        source: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        if !is_dns_label(name) {
            return wrong(NO_LABEL);
        }
        self.meter.text(name)?;
        if self.may_write(target, Verb::Write, Field::Volumes, name)? == Grant::OwnOnly {
            return Err(self.not_granted(
                target,
                Field::Volumes,
                name,
                "a raw volume",
                OWN_VOLUMES,
            ));
        }
        let (kind, source) = self.source_argument(source)?;
        if kind == "name" {
            return wrong("`name` is not a volume source");
        }
        let volume: Value = [("name", name.into()), (&kind, source)]
            .into_iter()
            .collect();
        self.put(target.scope, Field::Volumes, name, Some(volume.into()));
        Ok(())
    }

    fn put_volume(
        &mut self,
        handle: handle::PodSet,
        name: &str,
        kind: &str,
        source: Value,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        if !is_dns_label(name) {
            return wrong(NO_LABEL);
        }
        self.own_volume_only(
            target,
            name,
            "a volume over one that the plugin did not add",
        )?;
        let volume: Value = [("name", name.into()), (kind, source)]
            .into_iter()
            .collect();
        self.put(target.scope, Field::Volumes, name, Some(volume.into()));
        Ok(())
    }

    /// Checks a write of a volume. Without a full grant, an existing volume must be one that this plugin added.
    fn own_volume_only(
        &mut self,
        target: Target,
        name: &str,
        what: &'static str,
    ) -> Result<(), Fault> {
        self.meter.text(name)?;
        let grant = self.may_write(target, Verb::Write, Field::Volumes, name)?;
        let foreign = self
            .record
            .entry(target.scope, Field::Volumes, name)
            .is_some_and(|entry| entry.owner != self.owner());
        if grant == Grant::OwnOnly && foreign {
            return Err(self.not_granted(target, Field::Volumes, name, what, OWN_VOLUMES));
        }
        Ok(())
    }
}

fn key_file(item: &KeyFile) -> Value {
    let mut object = Map::with_capacity(3);
    object.insert("key".to_owned(), item.key.as_str().into());
    object.insert("path".to_owned(), item.path.as_str().into());
    object.extend(item.mode.map(|mode| ("mode".to_owned(), Value::from(mode))));
    Value::Object(object)
}
