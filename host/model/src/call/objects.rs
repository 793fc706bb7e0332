//! `objects.objects` and `objects.object`.

use serde_json::Value;

use super::{Call, Fault, OwnDataUse, raw::room_of, wrong};
use crate::{
    claims::{ObjectPattern, Verb},
    contract::handle,
    names::NO_KIND,
    object::{
        ApplyMode, Content, Data, DataError, DataKind, EmittedObject, MAX_MESSAGE, MAX_REPORTS,
        ObjectKind, ObjectKindError, ObjectName, ObjectNameError, REPORTS_ANNOTATION,
        ReportedState, SecretType, SecretValue, object_name,
    },
    phase::Phase,
    record::{EntryRef, Field},
    text::clean,
};

/// Members of an object that only the host or the cluster sets.
const HOSTS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The error for writing a key of an object without keys.
const NO_DATA: &str =
    "the object is neither a ConfigMap nor a Secret; set its content with `set-body`";

/// The error for calling a method for Secrets on another object.
const NO_SECRET: &str = "the object is not a Secret";

impl Call {
    /// The checked kind and name of an object.
    fn checked_name(
        &mut self,
        api_version: &str,
        kind: &str,
        suffix: &str,
        content: Option<&str>,
    ) -> Result<(ObjectKind, ObjectName), Fault> {
        for text in [api_version, kind, suffix, content.unwrap_or_default()] {
            self.meter.text(text)?;
        }
        let kind = match ObjectKind::new(api_version, kind) {
            Ok(kind) => kind,
            Err(ObjectKindError::Malformed) => return wrong(NO_KIND),
            Err(error @ (ObjectKindError::Powerful | ObjectKindError::ClusterScoped)) => {
                return wrong(format!("`{}` {error}", clean(kind)));
            }
        };
        let job = &self.inputs.job;
        let uid = content.map(|_| job.uid()).unwrap_or_default();
        let name = object_name(&job.name, &uid, suffix, content);
        let malformed = "the suffix must begin with `-`, or be empty for a kind outside the core group, and the name must be a DNS subdomain of at most 253 characters";
        if !kind.allows_suffix(suffix) {
            return wrong(malformed);
        }
        match ObjectName::new(&kind, &self.inputs.job.name, name.clone()) {
            Ok(name) => Ok((kind, name)),
            Err(ObjectNameError::Reserved(reserved)) => Err(Fault::Reserved { name, reserved }),
            Err(_) => wrong(malformed),
        }
    }

    /// Checks an emission by the claims.
    fn may_emit(&mut self, kind: &ObjectKind, suffix: &str) -> Result<(), Fault> {
        let object = ObjectPattern::emitted(kind, suffix);
        if self.access.may_emit(&object) {
            return Ok(());
        }
        Err(self.objects_not_claimed(Verb::Write, Field::Objects, object))
    }

    /// The name of the ConfigMap or Secret that this plugin may emit under a suffix. Whether it emits the object is known only after
    /// build: see [`Self::stands_on_own_data`].
    pub(super) fn own_data(&mut self, kind: DataKind, suffix: &str) -> Result<String, Fault> {
        let (version, kind) = (DataKind::API_VERSION, kind.name());
        let (kind, name) = self.checked_name(version, kind, suffix, None)?;
        self.may_emit(&kind, suffix)?;
        Ok(name.to_string())
    }

    /// Records a reference to an object of this plugin, so that pods never refer to an object of the same name from elsewhere.
    pub(super) fn stands_on_own_data(&mut self, place: EntryRef, kind: DataKind, name: String) {
        self.on_own_data.push(OwnDataUse {
            place,
            owner: self.owner(),
            kind,
            name,
        });
    }

    /// `objects.name`
    pub fn objects_name(
        &mut self,
        _: handle::Objects,
        api_version: &str,
        kind: &str,
        suffix: &str,
        content: Option<&str>,
    ) -> Result<String, Fault> {
        let (_, name) = self.checked_name(api_version, kind, suffix, content)?;
        self.give(name.as_str())
    }

    /// `objects.emit`
    pub fn objects_emit(
        &mut self,
        _: handle::Objects,
        api_version: &str,
        kind: &str,
        suffix: &str,
        content: Option<&str>,
    ) -> Result<handle::Object, Fault> {
        if self.phase != Phase::Build {
            return Err(Fault::WrongPhase {
                what: "emit objects",
                phase: self.phase,
            });
        }
        let (kind, name) = self.checked_name(api_version, kind, suffix, content)?;
        self.meter.write()?;
        self.meter.add_handles(1)?;
        self.may_emit(&kind, suffix)?;
        if self
            .objects
            .iter()
            .any(|object| object.kind == kind && object.name == name)
        {
            return wrong(format!(
                "the plugin has already emitted the {kind} `{name}`"
            ));
        }
        self.meter.object()?;
        let content = Content::of(&kind);
        let apply = match content {
            Content::Secret { .. } => ApplyMode::Once,
            _ => ApplyMode::default(),
        };
        self.objects.push(EmittedObject {
            kind,
            suffix: suffix.to_owned(),
            name,
            labels: std::collections::BTreeMap::new(),
            annotations: std::collections::BTreeMap::new(),
            reports: std::collections::BTreeMap::new(),
            content,
            apply,
            written: 0,
        });
        let number = u32::try_from(self.objects.len() - 1).unwrap_or(u32::MAX);
        Ok(handle::Object(number))
    }

    /// Returns an emitted object for a write, and charges for its bytes.
    fn object(
        &mut self,
        handle: handle::Object,
        bytes: usize,
    ) -> Result<&mut EmittedObject, Fault> {
        self.meter.write()?;
        self.meter.add_bytes(bytes)?;
        let object = self.emitted(handle)?;
        object.written = object.written.saturating_add(bytes);
        if object.written > EmittedObject::MOST_BYTES {
            let claimed = ObjectPattern::emitted(&object.kind, &object.suffix);
            return Err(Fault::TooLarge {
                path: format!("{}[{claimed}]", Field::Objects),
                written: object.written,
            });
        }
        Ok(object)
    }

    fn emitted(&mut self, handle: handle::Object) -> Result<&mut EmittedObject, Fault> {
        self.objects
            .get_mut(handle.0 as usize)
            .ok_or(Fault::DeadHandle { what: "object" })
    }

    /// `object.name`
    pub fn object_name(&mut self, handle: handle::Object) -> Result<String, Fault> {
        let name = self.emitted(handle)?.name.clone();
        self.give(name.as_str())
    }

    /// `object.report-while`
    pub fn object_report_while(
        &mut self,
        handle: handle::Object,
        state: &str,
        message: &str,
    ) -> Result<(), Fault> {
        let object = self.object(handle, state.len() + message.len())?;
        if !object.kind.has_status() {
            return wrong(format!("a {} has no status", object.kind));
        }
        let Some(state) = ReportedState::parse(state) else {
            return wrong(
                "the state must be `phase/PHASE` or `condition/TYPE/STATUS`, such as `phase/Pending` or `condition/Unschedulable/True`",
            );
        };
        if message.is_empty() || message.chars().count() > MAX_MESSAGE {
            return wrong(format!(
                "the message must have 1 to {MAX_MESSAGE} characters"
            ));
        }
        object.reports.insert(state, clean(message));
        if object.reports.len() > MAX_REPORTS {
            return wrong(format!("an object reports at most {MAX_REPORTS} states"));
        }
        Ok(())
    }

    /// `object.set-label`
    pub fn object_set_label(
        &mut self,
        handle: handle::Object,
        key: &str,
        value: &str,
    ) -> Result<(), Fault> {
        self.object(handle, key.len() + value.len())?
            .labels
            .insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// `object.set-annotation`
    pub fn object_set_annotation(
        &mut self,
        handle: handle::Object,
        key: &str,
        value: &str,
    ) -> Result<(), Fault> {
        if key == REPORTS_ANNOTATION {
            return wrong("the annotation is that of `report-while`");
        }
        self.object(handle, key.len() + value.len())?
            .annotations
            .insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// `object.set-body`
    pub fn object_set_body(&mut self, handle: handle::Object, json: &str) -> Result<(), Fault> {
        // A body may be larger than other JSON from plugins: its values are charged, and the meter limits them.
        self.meter.add_bytes(room_of(json))?;
        let object = self.object(handle, json.len())?;
        let Content::Body(body) = &mut object.content else {
            return wrong(
                "a ConfigMap or Secret has no body; set its content with `append` and `set-binary`",
            );
        };
        let members = match serde_json::from_str(json) {
            Ok(Value::Object(members)) => members,
            _ => return wrong("the body is not a JSON object, such as `{\"spec\": {...}}`"),
        };
        if let Some(key) = HOSTS.iter().find(|key| members.contains_key(**key)) {
            return wrong(format!(
                "the body contains `{key}`, which only the host sets"
            ));
        }
        *body = members;
        Ok(())
    }

    /// Returns the keys of a Secret for a write.
    fn secret(&mut self, handle: handle::Object) -> Result<&mut Data<SecretValue>, Fault> {
        match &mut self.emitted(handle)?.content {
            Content::Secret { data, .. } => Ok(data),
            Content::ConfigMap(_) | Content::Body(_) => wrong(NO_SECRET),
        }
    }

    /// `object.append`
    pub fn object_append(
        &mut self,
        handle: handle::Object,
        key: &str,
        text: &str,
    ) -> Result<(), Fault> {
        match &mut self.object(handle, key.len() + text.len())?.content {
            Content::ConfigMap(data) => data.text_mut(key)?.push_str(text),
            Content::Secret { data, .. } => data.text_mut(key)?.append(text),
            Content::Body(_) => return wrong(NO_DATA),
        }
        Ok(())
    }

    /// `object.append-secret`
    pub fn object_append_secret(
        &mut self,
        handle: handle::Object,
        key: &str,
        text: handle::SecretText,
    ) -> Result<(), Fault> {
        let text = self.secret_text(text)?;
        self.object(handle, key.len() + text.form().most_bytes())?;
        self.give_place(&text, handle)?;
        self.secret(handle)?.text_mut(key)?.append_material(text);
        Ok(())
    }

    /// `object.set-binary`
    pub fn object_set_binary(
        &mut self,
        handle: handle::Object,
        key: &str,
        value: &[u8],
    ) -> Result<(), Fault> {
        match &mut self.object(handle, key.len() + value.len())?.content {
            Content::ConfigMap(data) => data.set_bytes(key, value)?,
            Content::Secret { data, .. } => data.set_bytes(key, value)?,
            Content::Body(_) => return wrong(NO_DATA),
        }
        Ok(())
    }

    /// `object.set-type`
    pub fn object_set_type(&mut self, handle: handle::Object, text: &str) -> Result<(), Fault> {
        match &mut self.object(handle, text.len())?.content {
            Content::Secret { secret_type, .. } => match SecretType::new(text) {
                Ok(checked) => *secret_type = checked,
                Err(problem) => return wrong(problem.to_string()),
            },
            Content::ConfigMap(_) | Content::Body(_) => return wrong(NO_SECRET),
        }
        Ok(())
    }

    /// `object.set-immutable`
    pub fn object_set_immutable(&mut self, handle: handle::Object) -> Result<(), Fault> {
        match &mut self.object(handle, 0)?.content {
            Content::ConfigMap(data) => data.immutable = true,
            Content::Secret { data, .. } => data.immutable = true,
            Content::Body(_) => return wrong(NO_DATA),
        }
        Ok(())
    }

    /// `object.set-apply`
    pub fn object_set_apply(&mut self, handle: handle::Object, mode: &str) -> Result<(), Fault> {
        match ApplyMode::named(mode) {
            Some(mode) => {
                let object = self.object(handle, 0)?;
                if matches!(object.content, Content::Secret { .. }) && mode != ApplyMode::Once {
                    return wrong("a Secret is always applied `once`");
                }
                object.apply = mode;
            }
            None => {
                let known = ApplyMode::ALL.map(ApplyMode::name).join(", ");
                return wrong(format!("the mode must be one of {known}"));
            }
        }
        Ok(())
    }
}

impl From<DataError> for Fault {
    fn from(error: DataError) -> Self {
        Self::Argument(error.to_string())
    }
}
