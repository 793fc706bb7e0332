//! Members of a pod spec or container without a method of their own.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, Fault, Target, wrong};
use crate::{claims::Verb, contract::handle, record::Field};

impl Call {
    /// `pod-set.raw`
    pub fn pod_set_raw(
        &mut self,
        handle: handle::PodSet,
        member: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.raw(target, Field::PodRaw, member)
    }

    /// `pod-set.set-raw`
    pub fn pod_set_set_raw(
        &mut self,
        handle: handle::PodSet,
        member: &str,
        json: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.set_raw(target, Field::PodRaw, member, json)
    }

    /// `container.raw`
    pub fn container_raw(
        &mut self,
        handle: handle::Container,
        member: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        let target = self.container_target(handle)?;
        self.raw(target, Field::ContainerRaw, member)
    }

    /// `container.set-raw`
    pub fn container_set_raw(
        &mut self,
        handle: handle::Container,
        member: &str,
        json: &str,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        self.set_raw(target, Field::ContainerRaw, member, json)
    }

    fn raw(
        &mut self,
        target: Target,
        field: Field,
        member: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        self.check_member(field, member)?;
        self.may_read(target, field, Some(member))?;
        let Some(value) = self
            .record_of(target.base)
            .member(target.scope, member)
            .cloned()
        else {
            return Ok(None);
        };
        self.meter.add_bytes(weight(&value))?;
        self.new_document(Arc::new(value), false).map(Some)
    }

    fn set_raw(
        &mut self,
        target: Target,
        field: Field,
        member: &str,
        json: &str,
    ) -> Result<(), Fault> {
        self.check_member(field, member)?;
        self.may_write(target, Verb::Write, field, member)?;
        let value = self.json_argument(json)?;
        if field == Field::PodRaw && member == "restartPolicy" && !is_of_a_job(&value) {
            return wrong("the restart policy of a Job's pods must be `Never` or `OnFailure`");
        }
        let is_absent = self.record.member(target.scope, member).is_none();
        if !(value.is_null() && is_absent) {
            self.put(target.scope, field, member, Some(value.into()));
        }
        Ok(())
    }

    fn check_member(&mut self, field: Field, member: &str) -> Result<(), Fault> {
        self.meter.text(member)?;
        field.raw_member_problem(member).map_or(Ok(()), wrong)
    }

    /// Parses JSON from a plugin, and charges for it.
    pub(super) fn json_argument(&mut self, json: &str) -> Result<Value, Fault> {
        self.pay_for_json(json)?;
        match serde_json::from_str(json) {
            Ok(value) => Ok(value),
            Err(error) => wrong(format!("the text is not valid JSON: {error}")),
        }
    }

    /// Parses an object with one member: the name of a source, and its content.
    pub(super) fn source_argument(&mut self, json: &str) -> Result<(String, Value), Fault> {
        let mut members = match self.json_argument(json)? {
            Value::Object(members) if members.len() == 1 => members.into_iter(),
            _ => return wrong(NO_SOURCE),
        };
        members.next().map_or_else(|| wrong(NO_SOURCE), Ok)
    }
}

/// The error for a source with no member or several.
const NO_SOURCE: &str =
    "the source is not a JSON object with one member, such as `{\"secretKeyRef\": {...}}`";

/// Estimates the memory of the values of a JSON text, which is more than the text itself: lists and objects are allocated for at least
/// four entries.
pub(super) fn room_of(json: &str) -> usize {
    const VALUE: usize = size_of::<Value>();
    const LIST: usize = 4 * VALUE;
    const OBJECT: usize = 4 * (VALUE + size_of::<String>() + 2 * size_of::<usize>());
    let (mut in_text, mut is_escaped) = (false, false);
    let room = json.bytes().map(|byte| match byte {
        _ if is_escaped => {
            is_escaped = false;
            0
        }
        b'\\' => {
            is_escaped = in_text;
            0
        }
        b'"' => {
            in_text = !in_text;
            0
        }
        _ if in_text => 0,
        b'{' => OBJECT,
        b'[' => LIST,
        b',' | b':' => VALUE,
        _ => 0,
    });
    room.sum()
}

/// The restart policies that a Job allows for its pods.
fn is_of_a_job(policy: &Value) -> bool {
    matches!(policy, Value::Null) || matches!(policy.as_str(), Some("Never" | "OnFailure"))
}

/// The approximate size of a value in memory.
pub(super) fn weight(value: &Value) -> usize {
    let below = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() + weight(value))
            .sum(),
        _ => 0,
    };
    below + size_of::<Value>()
}
