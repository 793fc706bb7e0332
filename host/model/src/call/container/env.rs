//! Env vars of a container.

use super::*;

impl Call {
    /// `container.env-names`
    pub fn container_env_names(&mut self, handle: handle::Container) -> Result<Vec<String>, Fault> {
        let target = self.container_target(handle)?;
        self.may_read(target, Field::Env, None)?;
        let entries = self.container(handle)?.fields.all(Field::Env);
        let names = entries.iter().map(|e| e.key.to_string()).collect();
        self.give_all(names)
    }

    /// `container.env`
    pub fn container_env(
        &mut self,
        handle: handle::Container,
        name: &str,
    ) -> Result<Option<String>, Fault> {
        let target = self.container_target(handle)?;
        self.read_text(target, Field::Env, name)
    }

    /// `container.env-source`
    pub fn container_env_source(
        &mut self,
        handle: handle::Container,
        name: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        self.meter.text(name)?;
        let target = self.container_target(handle)?;
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
    pub fn container_env_owner(
        &mut self,
        handle: handle::Container,
        name: &str,
    ) -> Result<Option<String>, Fault> {
        self.meter.text(name)?;
        let target = self.container_target(handle)?;
        self.may_read(target, Field::Env, Some(name))?;
        let entry = self
            .record_of(target.base)
            .entry(target.scope, Field::Env, name);
        Ok(entry.map(|e| e.owner.name().to_owned()))
    }

    /// Checks a write of an env var. A value of the runtime, a patch or the TrainJob can be replaced only if the name is reserved.
    fn set_env(
        &mut self,
        handle: handle::Container,
        name: &str,
        new: Option<Datum>,
    ) -> Result<(), Fault> {
        self.meter.text(name)?;
        let target = self.container_target(handle)?;
        if name.is_empty() || name.contains(['=', '\0']) {
            return wrong(
                "the name of an env var must not be empty and must not contain `=` or a null byte",
            );
        }
        self.may_write(target, Verb::Write, Field::Env, name)?;
        let owner = self
            .record
            .entry(target.scope, Field::Env, name)
            .map(|e| e.owner);
        if let Some(owner @ (Owner::Runtime | Owner::Patch | Owner::TrainJob)) = owner
            && !self.inputs.plugin.reserves(name, &self.inputs.config)
        {
            return Err(self.not_reserved(target, Field::Env, name, owner));
        }
        self.put(target.scope, Field::Env, name, new);
        Ok(())
    }

    /// `container.put-env`
    pub fn container_put_env(
        &mut self,
        handle: handle::Container,
        name: &str,
        value: &str,
    ) -> Result<(), Fault> {
        self.meter.text(value)?;
        self.set_env(handle, name, Some(value.into()))
    }

    /// `container.default-env`
    pub fn container_default_env(
        &mut self,
        handle: handle::Container,
        name: &str,
        value: &str,
    ) -> Result<(), Fault> {
        self.meter.text(value)?;
        let target = self.container_target(handle)?;
        match self.record.entry(target.scope, Field::Env, name) {
            Some(_) => self
                .may_write(target, Verb::Write, Field::Env, name)
                .map(drop),
            None => self.set_env(handle, name, Some(value.into())),
        }
    }

    /// `container.put-env-field`
    pub fn container_put_env_field(
        &mut self,
        handle: handle::Container,
        name: &str,
        path: &str,
    ) -> Result<(), Fault> {
        self.meter.text(path)?;
        self.set_env(
            handle,
            name,
            Some(object_with("fieldRef", object_with("fieldPath", path.into())).into()),
        )
    }

    /// `container.put-env-resource`
    pub fn container_put_env_resource(
        &mut self,
        handle: handle::Container,
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
            handle,
            name,
            Some(object_with("resourceFieldRef", source.into()).into()),
        )
    }

    /// `container.put-env-own-config-map`
    pub fn container_put_env_own_config_map(
        &mut self,
        handle: handle::Container,
        name: &str,
        suffix: &str,
        key: &str,
    ) -> Result<(), Fault> {
        self.put_env_own(handle, name, DataKind::ConfigMap, suffix, key)
    }

    /// `container.put-env-own-secret`
    pub fn container_put_env_own_secret(
        &mut self,
        handle: handle::Container,
        name: &str,
        suffix: &str,
        key: &str,
    ) -> Result<(), Fault> {
        self.put_env_own(handle, name, DataKind::Secret, suffix, key)
    }

    /// Sets an env var from a ConfigMap or Secret that this plugin emits.
    fn put_env_own(
        &mut self,
        handle: handle::Container,
        name: &str,
        kind: DataKind,
        suffix: &str,
        key: &str,
    ) -> Result<(), Fault> {
        self.meter.text(key)?;
        let object = self.own_data(kind, suffix)?;
        let source = match kind {
            DataKind::ConfigMap => "configMapKeyRef",
            DataKind::Secret => "secretKeyRef",
        };
        let reference = [("name", object.as_str()), ("key", key)]
            .into_iter()
            .collect();
        let source = object_with(source, reference);
        self.set_env(handle, name, Some(source.into()))?;
        let place = EntryRef {
            scope: self.container_target(handle)?.scope,
            field: Field::Env,
            key: name.into(),
        };
        self.stands_on_own_data(place, kind, object);
        Ok(())
    }

    /// `container.put-env-raw`
    pub fn container_put_env_raw(
        &mut self,
        handle: handle::Container,
        name: &str,
        source: &str,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.meter.text(name)?;
        // A source may refer to any Secret of the namespace, so this needs a grant even in a container that this plugin added.
        match self.claimed(target, Verb::Write, Field::Env, name)? {
            Grant::Full => {
                let (kind, source) = self.source_argument(source)?;
                self.set_env(handle, name, Some(object_with(&kind, source).into()))
            }
            Grant::OwnOnly => Err(self.not_granted(
                target,
                Field::Env,
                name,
                "a raw source of an env var",
                "plain values, fields, resources, and the plugin's own objects",
            )),
        }
    }

    /// `container.remove-env`
    pub fn container_remove_env(
        &mut self,
        handle: handle::Container,
        name: &str,
    ) -> Result<(), Fault> {
        self.set_env(handle, name, None)
    }
}
