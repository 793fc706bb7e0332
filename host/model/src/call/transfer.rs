//! Passing texts and handles to the guest, which is charged, and values into the record.

use super::{Call, Fault, Target, Write};
use crate::{
    claims::Verb,
    contract::Handle,
    record::{Datum, EntryRef, EntryScope, Field},
};

impl Call {
    /// Charges for a text and passes it to the guest.
    pub(super) fn give(&mut self, text: &str) -> Result<String, Fault> {
        self.meter.text(text)?;
        Ok(text.to_owned())
    }

    /// Charges for an optional text and passes it to the guest.
    pub(super) fn give_some(&mut self, text: Option<&str>) -> Result<Option<String>, Fault> {
        text.map(|text| self.give(text)).transpose()
    }

    /// Charges for texts and passes them to the guest.
    pub(super) fn give_all(&mut self, texts: Vec<String>) -> Result<Vec<String>, Fault> {
        self.meter
            .add_bytes(texts.iter().map(|text| text.len() + 8).sum())?;
        Ok(texts)
    }

    /// Charges for a handle and passes it to the guest.
    pub(super) fn give_handle<H: Handle>(&mut self, handle: H) -> Result<H, Fault> {
        self.meter.add_handles(1)?;
        Ok(handle)
    }

    /// Charges for an optional handle and passes it to the guest.
    pub(super) fn give_some_handle<H: Handle>(
        &mut self,
        handle: Option<H>,
    ) -> Result<Option<H>, Fault> {
        handle.map(|handle| self.give_handle(handle)).transpose()
    }

    /// Charges for handles and passes them to the guest.
    pub(super) fn give_handles<H: Handle>(&mut self, handles: Vec<H>) -> Result<Vec<H>, Fault> {
        self.meter.add_handles(handles.len())?;
        Ok(handles)
    }

    /// Checks and reads a text.
    pub(super) fn read_text(
        &mut self,
        target: Target,
        field: Field,
        key: &str,
    ) -> Result<Option<String>, Fault> {
        self.meter.text(key)?;
        self.may_read(target, field, Some(key))?;
        let text = self
            .record_of(target.base)
            .entry(target.scope, field, key)
            .and_then(|e| e.datum.as_text());
        let text = text.map(str::to_owned);
        self.meter.text(text.as_deref().unwrap_or_default())?;
        Ok(text)
    }

    /// Writes one value (`None` removes it) after [`Self::may_write`], and journals it.
    pub(super) fn put(&mut self, scope: EntryScope, field: Field, key: &str, new: Option<Datum>) {
        let place = EntryRef {
            scope,
            field,
            key: key.into(),
        };
        let change = self.record.write(place, new, self.owner());
        let reason = self.reason.clone();
        if self.writes.is_empty() {
            // Growing moves the writes, which are large, and most calls make about this many.
            self.writes.reserve(16);
        }
        self.writes
            .extend(change.map(|change| Write { change, reason }));
    }

    /// Checks and writes a field that needs nothing beyond a claim.
    pub(super) fn set(
        &mut self,
        target: Target,
        field: Field,
        key: &str,
        new: Option<Datum>,
    ) -> Result<(), Fault> {
        self.meter.text(key)?;
        self.may_write(target, Verb::Write, field, key)?;
        self.put(target.scope, field, key, new);
        Ok(())
    }

    /// Checks and writes a text.
    pub(super) fn set_text(
        &mut self,
        target: Target,
        field: Field,
        key: &str,
        text: &str,
    ) -> Result<(), Fault> {
        self.meter.text(text)?;
        self.set(target, field, key, Some(text.into()))
    }
}
