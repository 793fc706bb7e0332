//! A sandboxed plugin. Every call has a fresh store and a fresh instance.

use std::{collections::BTreeMap, sync::Arc};

use trainyard_model::{
    call::{Call, CallInputs, Faulted},
    contract::handle,
    plugin::{Busy, CallFailure, CallOutcome, Limit, Phase, Plugin},
    plugin_info::PluginInfo,
    record::Record,
    text::clean,
    value,
};
use wasmtime::{
    PoolConcurrencyLimitError, Store, Trap,
    component::{Component, ComponentExportIndex, InstancePre, Linker, Resource},
};

use crate::{
    contract::{Contract, Failure},
    engine::{RunningEngine, STACK_BYTES, ticks},
    error::{LinkError, LoadProblem},
    state::{OutOfMemory, State},
};

/// A linked component.
pub struct SandboxedPlugin {
    plugin: Arc<PluginInfo>,
    engine: Arc<RunningEngine>,
    pre: InstancePre<State>,
    exports: BTreeMap<Phase, ComponentExportIndex>,
}

/// A type error of wasmtime.
fn types(error: wasmtime::Error) -> LinkError {
    LinkError::Types(clean(&format!("{error:#}")))
}

impl SandboxedPlugin {
    pub(crate) fn new(
        engine: Arc<RunningEngine>,
        contract: &Contract,
        linker: &Linker<State>,
        component: &Component,
        plugin: Arc<PluginInfo>,
    ) -> Result<Self, LinkError> {
        let pre = linker.instantiate_pre(component).map_err(types)?;
        let mut exports = BTreeMap::new();
        for phase in &plugin.manifest.phases {
            let interface = contract.export(*phase);
            let export = component
                .get_export_index(None, &interface)
                .and_then(|interface| component.get_export_index(Some(&interface), phase.name()))
                .ok_or(LinkError::PhaseMissing(*phase))?;
            exports.insert(*phase, export);
        }
        Ok(Self {
            plugin,
            engine,
            pre,
            exports,
        })
    }

    /// Returns the compiled code.
    ///
    /// # Errors
    /// There is not enough memory for it.
    pub(crate) fn compiled(&self) -> wasmtime::Result<Vec<u8>> {
        self.pre.component().serialize()
    }

    /// Creates a store with the plugin's limits, which apply before any code of the guest runs.
    fn store(&self, call: Box<Call>) -> (Store<State>, wasmtime::Result<()>) {
        let limits = &self.plugin.settings.limits;
        let mut store = Store::new(&self.engine.engine, State::new(call, limits.memory_bytes));
        store.limiter(|state| &mut state.memory);
        store.set_epoch_deadline(ticks(limits.wall_clock_ms));
        // This limits what one import copies before the call's meter counts it: a text cannot be longer than the guest's memory, but a
        // list could contain the same text many times.
        let copied = limits.memory_bytes.max(limits.import_bytes);
        store.set_hostcall_fuel(usize::try_from(copied).unwrap_or(usize::MAX));
        let fueled = store.set_fuel(limits.fuel);
        (store, fueled)
    }

    /// Instantiates the component once under its limits, and checks the types of its exports.
    ///
    /// # Errors
    /// The instantiation fails, or an export has a type that differs from the contract.
    pub(crate) fn try_out(&self) -> Result<(), LoadProblem> {
        let inputs = CallInputs {
            plugin: self.plugin.clone(),
            rank: 0,
            config: Arc::default(),
            job: Arc::default(),
            base: Arc::default(),
            lookups: Arc::default(),
            kept: Arc::default(),
        };
        let call = Box::new(Call::new(Phase::Check, Record::default(), inputs));
        let (mut store, fueled) = self.store(call);
        let id = || self.plugin.id.clone();
        let instance = match fueled.and_then(|()| self.pre.instantiate(&mut store)) {
            Ok(instance) => instance,
            Err(error) => {
                let cause = Box::new(self.ended(&error, store.into_data().panic_message));
                return Err(LoadProblem::Instantiate { id: id(), cause });
            }
        };
        for (phase, export) in &self.exports {
            let typed = match phase {
                Phase::Check => instance
                    .get_typed_func::<(Resource<handle::Context>,), ()>(&mut store, export)
                    .map(drop),
                Phase::Transform | Phase::Build => instance
                    .get_typed_func::<(Resource<handle::Context>,), (Result<(), Failure>,)>(
                        &mut store, export,
                    )
                    .map(drop),
            };
            typed.map_err(|error| LoadProblem::Link {
                id: id(),
                problem: types(error.context(format!("export `{phase}`"))),
            })?;
        }
        Ok(())
    }

    fn call(
        &self,
        phase: Phase,
        store: &mut Store<State>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let export = self
            .exports
            .get(&phase)
            .ok_or_else(|| wasmtime::Error::msg("the phase is not exported"))?;
        let instance = self.pre.instantiate(&mut *store)?;
        let context = Resource::<handle::Context>::new_own(Call::CONTEXT.0);
        if phase == Phase::Check {
            let check =
                instance.get_typed_func::<(Resource<handle::Context>,), ()>(&mut *store, export)?;
            return check.call(&mut *store, (context,)).map(Ok);
        }
        let run = instance.get_typed_func::<(Resource<handle::Context>,), (Result<(), Failure>,)>(
            &mut *store,
            export,
        )?;
        run.call(&mut *store, (context,)).map(|(result,)| result)
    }

    /// Classifies an error by its type, never by its text.
    fn ended(&self, error: &wasmtime::Error, panic_message: Option<String>) -> CallFailure {
        let limits = &self.plugin.settings.limits;
        if let Some(fault) = error.downcast_ref::<Faulted>() {
            return fault.clone().into();
        }
        if error.downcast_ref::<OutOfMemory>().is_some() {
            return CallFailure::limit(Limit::Memory(limits.memory_bytes));
        }
        if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
            return CallFailure::Busy(Busy::Pool);
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => CallFailure::limit(Limit::Fuel(limits.fuel)),
            Some(Trap::StackOverflow) => CallFailure::limit(Limit::Stack(STACK_BYTES as u64)),
            Some(Trap::Interrupt) => CallFailure::Busy(Busy::WallClock(limits.wall_clock_ms)),
            Some(trap) => CallFailure::Trap {
                kind: trap.to_string(),
                message: panic_message,
            },
            None => CallFailure::Trap {
                kind: clean(&format!("{error:#}")),
                message: panic_message,
            },
        }
    }
}

impl Plugin for SandboxedPlugin {
    fn info(&self) -> &Arc<PluginInfo> {
        &self.plugin
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        let (mut store, fueled) = self.store(call);
        let result = fueled.and_then(|()| self.call(phase, &mut store));
        let left = store.get_fuel().ok();
        let state = store.into_data();
        let end = match result {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(CallFailure::Refused(value::Failure::cleaned(
                &failure.message,
                failure.field.as_deref(),
            ))),
            Err(error) => Err(self.ended(&error, state.panic_message)),
        };
        CallOutcome {
            call: state.call,
            end,
            fuel: left.map(|left| self.plugin.settings.limits.fuel.saturating_sub(left)),
        }
    }
}
