//! `context.context` and `job.job`.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, Fault, LogLine, raw::room_of, wrong};
use crate::{contract::handle, names::fit_name, quantity::Quantity, text::clean, value::Failure};

/// Features added after contract 1.0.0.
const FEATURES: &[&str] = &[];

/// The longest JSON text that is parsed. The API server limits annotations to 256 KiB in total.
const MAX_JSON: usize = 256 << 10;

/// The handle of the record.
const INFO: handle::Info = handle::Info(0);
/// The handle of the base record.
pub(super) const BASE_INFO: handle::Info = handle::Info(1);

impl Call {
    /// `context.job`
    pub fn context_job(&mut self, _: handle::Context) -> Result<handle::Job, Fault> {
        self.give_handle(handle::Job(0))
    }

    /// `context.lookups`
    pub fn context_lookups(&mut self, _: handle::Context) -> Result<handle::Lookups, Fault> {
        self.give_handle(handle::Lookups(0))
    }

    /// `context.objects`
    pub fn context_objects(&mut self, _: handle::Context) -> Result<handle::Objects, Fault> {
        self.give_handle(handle::Objects(0))
    }

    /// `context.info`
    pub fn context_info(&mut self, _: handle::Context) -> Result<handle::Info, Fault> {
        self.give_handle(INFO)
    }

    /// `context.base`
    pub fn context_base(&mut self, _: handle::Context) -> Result<handle::Info, Fault> {
        self.give_handle(BASE_INFO)
    }

    /// `context.because`
    pub fn context_because(&mut self, _: handle::Context, text: &str) -> Result<(), Fault> {
        self.meter.text(text)?;
        self.reason = (!text.is_empty()).then(|| clean(text).into());
        Ok(())
    }

    /// `context.warn`
    pub fn context_warn(
        &mut self,
        _: handle::Context,
        message: &str,
        field: Option<&str>,
    ) -> Result<(), Fault> {
        let failure = self.failure(message, field)?;
        self.warnings.push(failure);
        Ok(())
    }

    /// `context.error`
    pub fn context_error(
        &mut self,
        _: handle::Context,
        message: &str,
        field: Option<&str>,
    ) -> Result<(), Fault> {
        let failure = self.failure(message, field)?;
        self.errors.push(failure);
        Ok(())
    }

    fn failure(&mut self, message: &str, field: Option<&str>) -> Result<Failure, Fault> {
        self.meter.text(message)?;
        self.meter.text(field.unwrap_or_default())?;
        self.meter.log_line()?;
        Ok(Failure::cleaned(message, field))
    }

    /// `context.log`
    pub fn context_log(
        &mut self,
        _: handle::Context,
        level: &str,
        line: &str,
    ) -> Result<(), Fault> {
        self.meter.text(level)?;
        self.meter.text(line)?;
        self.meter.log_line()?;
        if !matches!(level, "error" | "warn" | "info" | "debug" | "trace") {
            return wrong("the level must be one of error, warn, info, debug, trace");
        }
        self.log.push(LogLine {
            level: level.to_owned(),
            line: clean(line),
        });
        Ok(())
    }

    /// `context.supports`
    pub fn context_supports(&mut self, _: handle::Context, feature: &str) -> Result<bool, Fault> {
        self.meter.text(feature)?;
        Ok(FEATURES.contains(&feature))
    }

    /// `context.parse-json`
    pub fn context_parse_json(
        &mut self,
        _: handle::Context,
        json: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        self.pay_for_json(json)?;
        let value = serde_json::from_str(json).ok();
        let value = value.map(|value: Value| self.new_document(value.into(), false));
        value.transpose()
    }

    /// Charges for a text before it is parsed as JSON.
    pub(super) fn pay_for_json(&mut self, json: &str) -> Result<(), Fault> {
        self.meter.text(json)?;
        if json.len() > MAX_JSON {
            return wrong(format!("the text is longer than {MAX_JSON} bytes"));
        }
        self.meter.add_bytes(room_of(json))
    }

    /// `context.quantity-ceil`
    pub fn context_quantity_ceil(
        &mut self,
        _: handle::Context,
        amount: &str,
    ) -> Result<Option<i64>, Fault> {
        self.meter.text(amount)?;
        Ok(Quantity::parse(amount).and_then(Quantity::ceil))
    }

    /// `context.quantity-milli`
    pub fn context_quantity_milli(
        &mut self,
        _: handle::Context,
        amount: &str,
    ) -> Result<Option<i64>, Fault> {
        self.meter.text(amount)?;
        Ok(Quantity::parse(amount).and_then(Quantity::milli))
    }

    /// `context.fit-name`
    pub fn context_fit_name(
        &mut self,
        _: handle::Context,
        text: &str,
        max: u32,
    ) -> Result<String, Fault> {
        self.meter.text(text)?;
        let name = fit_name(text, max);
        self.give(&name)
    }

    /// `job.name`
    pub fn job_name(&mut self, _: handle::Job) -> Result<String, Fault> {
        let name = self.inputs.job.name.clone();
        self.give(&name)
    }

    /// `job.namespace`
    pub fn job_namespace(&mut self, _: handle::Job) -> Result<String, Fault> {
        let namespace = self.inputs.job.namespace.clone();
        self.give(&namespace)
    }

    /// `job.uid`
    pub fn job_uid(&mut self, _: handle::Job) -> Result<String, Fault> {
        let uid = self.inputs.job.uid().into_owned();
        self.give(&uid)
    }

    /// `job.suspended`
    pub fn job_suspended(&mut self, _: handle::Job) -> Result<bool, Fault> {
        Ok(self.inputs.job.suspended)
    }

    /// `job.label`
    pub fn job_label(&mut self, _: handle::Job, key: &str) -> Result<Option<String>, Fault> {
        self.meter.text(key)?;
        let job = self.inputs.job.clone();
        self.give_some(job.labels.get(key).map(String::as_str))
    }

    /// `job.annotation`
    pub fn job_annotation(&mut self, _: handle::Job, key: &str) -> Result<Option<String>, Fault> {
        self.meter.text(key)?;
        let job = self.inputs.job.clone();
        self.give_some(job.annotations.get(key).map(String::as_str))
    }

    /// `job.runtime-kind`
    pub fn job_runtime_kind(&mut self, _: handle::Job) -> Result<String, Fault> {
        let kind = self.inputs.job.runtime.kind.clone();
        self.give(&kind)
    }

    /// `job.runtime-name`
    pub fn job_runtime_name(&mut self, _: handle::Job) -> Result<String, Fault> {
        let name = self.inputs.job.runtime.name.clone();
        self.give(&name)
    }

    /// `job.runtime-label`
    pub fn job_runtime_label(
        &mut self,
        _: handle::Job,
        key: &str,
    ) -> Result<Option<String>, Fault> {
        self.meter.text(key)?;
        let job = self.inputs.job.clone();
        self.give_some(job.runtime.labels.get(key).map(String::as_str))
    }

    /// `job.runtime-annotation`
    pub fn job_runtime_annotation(
        &mut self,
        _: handle::Job,
        key: &str,
    ) -> Result<Option<String>, Fault> {
        self.meter.text(key)?;
        let job = self.inputs.job.clone();
        self.give_some(job.runtime.annotations.get(key).map(String::as_str))
    }

    /// `job.nodes`
    pub fn job_nodes(&mut self, _: handle::Job) -> Result<u32, Fault> {
        Ok(self.inputs.job.nodes)
    }

    /// `job.processes-per-node`
    pub fn job_processes_per_node(&mut self, _: handle::Job) -> Result<Option<u32>, Fault> {
        Ok(self.inputs.job.processes_per_node)
    }

    /// `job.spec`
    pub fn job_spec(&mut self, _: handle::Job) -> Result<handle::Document, Fault> {
        self.new_document(self.inputs.job.spec.clone(), true)
    }

    /// `job.config`
    pub fn job_config(&mut self, _: handle::Job) -> Result<handle::Document, Fault> {
        self.new_document(self.inputs.config.clone(), false)
    }

    /// `job.operator-config`
    pub fn job_operator_config(&mut self, _: handle::Job) -> Result<handle::Document, Fault> {
        let config = Arc::clone(&self.inputs.plugin.settings.operator_config);
        self.new_document(config, false)
    }
}
