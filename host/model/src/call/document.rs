//! `types.document`: JSON that is read by pointers.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use trainyard_text::json;

use super::{Call, EntryScope, Fault, wrong};
use crate::{
    claims::Verb,
    contract::handle,
    lookup::{LookupKey, is_known},
    record::Field,
};

/// JSON that a guest has a handle to.
#[derive(Debug)]
pub(super) struct Document {
    value: Arc<Value>,
    /// Whether each pointer needs a claim `job[POINTER]`.
    is_job_spec: bool,
    /// The lookup that returned it.
    looked_up: Option<Arc<LookupKey>>,
}

impl Call {
    pub(super) fn new_document(
        &mut self,
        value: Arc<Value>,
        is_job_spec: bool,
    ) -> Result<handle::Document, Fault> {
        let number = u32::try_from(self.documents.len()).unwrap_or(u32::MAX);
        let handle = self.give_handle(handle::Document(number))?;
        self.documents.push(Document {
            value,
            is_job_spec,
            looked_up: None,
        });
        Ok(handle)
    }

    /// Returns a handle to an object that was looked up. Reads of it are recorded.
    pub(super) fn new_looked_up(
        &mut self,
        value: Arc<Value>,
        key: &Arc<LookupKey>,
    ) -> Result<handle::Document, Fault> {
        let handle = self.new_document(value, false)?;
        if let Some(document) = self.documents.last_mut() {
            document.looked_up = Some(Arc::clone(key));
        }
        Ok(handle)
    }

    /// Records that a looked-up object is read at a pointer. Fails if that part of it is not available.
    pub(super) fn note_read(&mut self, key: &LookupKey, at: &str) -> Result<(), Fault> {
        let known = self.inputs.lookups.known(key);
        if known.is_some_and(|known| !is_known(known, at)) {
            return Err(Fault::Missing(key.clone()));
        }
        match self.reads.get_mut(key) {
            Some(pointers) if pointers.contains(at) => {}
            Some(pointers) => _ = pointers.insert(at.to_owned()),
            None => {
                let pointers = BTreeSet::from([at.to_owned()]);
                self.reads.insert(key.clone(), pointers);
            }
        }
        Ok(())
    }

    fn with_document<T>(
        &mut self,
        handle: handle::Document,
        at: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        self.meter.text(at)?;
        if !is_pointer(at) {
            return wrong(format!(
                "`{}` is not a JSON pointer (RFC 6901): it must be empty or begin with `/`, with `~` only in `~0` and `~1`",
                crate::text::clean(at)
            ));
        }
        let document = self
            .documents
            .get(handle.0 as usize)
            .ok_or(Fault::DeadHandle { what: "document" })?;
        let (value, looked_up) = (document.value.clone(), document.looked_up.clone());
        if document.is_job_spec
            && self
                .access
                .find(
                    &self.record,
                    Verb::Read,
                    EntryScope::Job,
                    Field::JobSpec,
                    Some(at),
                )
                .is_none()
        {
            return Err(self.not_claimed(Verb::Read, EntryScope::Job, Field::JobSpec, at));
        }
        if let Some(key) = looked_up {
            self.note_read(&key, at)?;
        }
        Ok(json::pointer(&value, at).and_then(read))
    }

    /// `document.kind`
    pub fn document_kind(
        &mut self,
        handle: handle::Document,
        at: &str,
    ) -> Result<Option<String>, Fault> {
        let kind = |value: &Value| match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.with_document(handle, at, |value| Some(kind(value).to_owned()))
    }

    /// `document.text`
    pub fn document_text(
        &mut self,
        handle: handle::Document,
        at: &str,
    ) -> Result<Option<String>, Fault> {
        let text = self.with_document(handle, at, |value| value.as_str().map(str::to_owned))?;
        self.meter.text(text.as_deref().unwrap_or_default())?;
        Ok(text)
    }

    /// `document.integer`
    pub fn document_integer(
        &mut self,
        handle: handle::Document,
        at: &str,
    ) -> Result<Option<i64>, Fault> {
        self.with_document(handle, at, Value::as_i64)
    }

    /// `document.boolean`
    pub fn document_boolean(
        &mut self,
        handle: handle::Document,
        at: &str,
    ) -> Result<Option<bool>, Fault> {
        self.with_document(handle, at, Value::as_bool)
    }

    /// `document.len`
    pub fn document_len(&mut self, handle: handle::Document, at: &str) -> Result<u32, Fault> {
        let len = self.with_document(handle, at, |value| match value {
            Value::Array(items) => Some(items.len()),
            Value::Object(members) => Some(members.len()),
            _ => None,
        })?;
        Ok(len.and_then(|n| u32::try_from(n).ok()).unwrap_or(0))
    }

    /// `document.keys`
    pub fn document_keys(
        &mut self,
        handle: handle::Document,
        at: &str,
    ) -> Result<Vec<String>, Fault> {
        let keys = self.with_document(handle, at, |value| {
            Some(value.as_object()?.keys().cloned().collect::<Vec<_>>())
        })?;
        self.give_all(keys.unwrap_or_default())
    }

    /// `document.json`
    pub fn document_json(
        &mut self,
        handle: handle::Document,
        at: &str,
    ) -> Result<Option<String>, Fault> {
        let json = self.with_document(handle, at, |value| Some(value.to_string()))?;
        self.meter.text(json.as_deref().unwrap_or_default())?;
        Ok(json)
    }
}

/// RFC 6901, section 3.
fn is_pointer(text: &str) -> bool {
    (text.is_empty() || text.starts_with('/'))
        && (!text.as_bytes().contains(&b'~')
            || text
                .split('~')
                .skip(1)
                .all(|after| after.starts_with(['0', '1'])))
}
