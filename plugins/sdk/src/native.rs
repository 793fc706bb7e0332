//! A plugin as native code that implements the host's trait, for tests, benchmarks, and hosts that trust it.

use std::sync::Arc;

use trainyard_model::{
    call::{Call, Faulted},
    manifest::{Manifest, PartsError},
    plugin::{CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::{PluginError, PluginInfo, Settings},
    text::clean,
    value,
};

use crate::{
    call::during,
    contract::Context,
    give::Give,
    parts::{Phases, PluginParts},
};

/// The reason why a plugin cannot be created from its parts.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// `manifest.json` and the macro's part of the manifest are not a valid manifest.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// The plugin's claims or its configuration are refused.
    #[error(transparent)]
    Plugin(#[from] PluginError),
}

impl PluginParts {
    /// Returns the complete manifest, as it is embedded in a component.
    ///
    /// # Errors
    /// The manifest is invalid.
    pub fn manifest(&self) -> Result<Manifest, PartsError> {
        Manifest::from_parts(self.manifest.as_bytes(), self.parts.as_bytes())
    }
}

/// A plugin that runs in this process, with the same claims, grants and meters as in the sandbox.
#[derive(Debug)]
pub struct NativePlugin {
    plugin: Arc<PluginInfo>,
    phases: Phases,
}

impl NativePlugin {
    /// Creates the plugin with these settings.
    ///
    /// # Errors
    /// The manifest, the claims or the operator's configuration are invalid.
    pub fn new(parts: &PluginParts, settings: Settings) -> Result<Self, NativeError> {
        let plugin = PluginInfo::new(parts.manifest()?, "native", settings)?;
        Ok(Self {
            plugin: Arc::new(plugin),
            phases: parts.phases,
        })
    }
}

impl Plugin for NativePlugin {
    fn info(&self) -> &Arc<PluginInfo> {
        &self.plugin
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        let context: Context = Call::CONTEXT.give();
        let (call, result) = during(call, || match phase {
            Phase::Transform => self
                .phases
                .transform
                .map_or(Ok(()), |transform| transform(&context)),
            Phase::Build => self.phases.build.map_or(Ok(()), |build| build(&context)),
            Phase::Check => {
                if let Some(check) = self.phases.check {
                    check(&context);
                }
                Ok(())
            }
        });
        let end = match result {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(CallFailure::Refused(value::Failure::cleaned(
                &failure.message,
                failure.field.as_deref(),
            ))),
            Err(panic) => Err(ended(panic)),
        };
        CallOutcome {
            call,
            end,
            fuel: None,
        }
    }
}

/// Returns the cause of a panic: a fault of the host, or the plugin's own panic.
fn ended(panic: Box<dyn std::any::Any + Send>) -> CallFailure {
    match panic.downcast::<Faulted>() {
        Ok(fault) => (*fault).into(),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
            CallFailure::Trap {
                kind: "panic".to_owned(),
                message: message.as_deref().map(clean),
            }
        }
    }
}
