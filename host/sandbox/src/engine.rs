//! The engine that all plugins share, and the clock for wall-clock limits.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread::JoinHandle,
    time::Duration,
};

use target_lexicon::Triple;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, WasmFeatures,
};

/// The interval of the clock. Wall-clock limits are exact to two ticks.
const TICK: Duration = Duration::from_millis(10);

/// Bytes of the guest's stack.
pub(crate) const STACK_BYTES: usize = 512 << 10;

/// The largest linear memory of a plugin. This reserves address space, not memory.
pub(crate) const MAX_MEMORY_BYTES: usize = 256 << 20;

/// The most memories and tables of one component.
pub(crate) const MAX_MEMORIES: u32 = 4;
pub(crate) const MAX_TABLES: u32 = 16;
/// The most core instances of one component: its modules, the shims of its imports, and the stubs of WASI, of which componentize-py
/// generates two dozen.
pub(crate) const MAX_CORE_INSTANCES: u32 = 48;
/// The most elements of one table. An interpreter has more than ten thousand functions.
const MAX_TABLE_ELEMENTS: usize = 65_536;
/// The least number of memories in the pool. A memory is cheaper to reuse for the same component, so there should be one for each loaded
/// component and thread. This reserves address space, not memory.
const MIN_MEMORIES: u32 = 128;
/// The most bytes of the host for one instance.
const MAX_INSTANCE_BYTES: usize = 1 << 20;
/// The bytes of a memory that are cleared rather than returned to the kernel. Most guests use no more.
const KEEP_RESIDENT: usize = 64 << 10;
/// The same for a table.
const KEEP_TABLE_RESIDENT: usize = 4 << 10;

/// The configuration of compilation and execution, which has to be the same for both.
///
/// # Errors
/// The compiler does not support the processors of this machine.
pub(crate) fn config() -> wasmtime::Result<Config> {
    let mut config = Config::new();
    config
        // Without a target, the code would use all features of this machine's processor, and not run on another one.
        .target(&Triple::host().to_string())?
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .memory_init_cow(true)
        .max_wasm_stack(STACK_BYTES)
        .wasm_backtrace_max_frames(None)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        // Adapters between the memories of inner components need it. The modules of guests may not ([`guest_features`]).
        .wasm_multi_memory(true)
        .wasm_tail_call(false)
        .wasm_features(WasmFeatures::FUNCTION_REFERENCES, false)
        .wasm_component_model(true);
    Ok(config)
}

/// The features of WebAssembly that the modules of a guest may use: those of the engine, without several memories.
pub(crate) fn guest_features() -> wasmparser::WasmFeatures {
    use wasmparser::WasmFeatures as Features;
    let without = [
        Features::MULTI_MEMORY,
        Features::RELAXED_SIMD,
        Features::MEMORY64,
        Features::TAIL_CALL,
        Features::FUNCTION_REFERENCES,
        Features::GC,
        Features::GC_TYPES,
        Features::CM_ASYNC,
        Features::THREADS,
        Features::EXCEPTIONS,
    ];
    without
        .into_iter()
        .fold(Features::default(), Features::difference)
}

/// An engine for a number of concurrent calls, with its clock.
pub(crate) struct RunningEngine {
    pub(crate) engine: Engine,
    /// Dropped to stop the clock.
    stop: Option<mpsc::Sender<()>>,
    clock: Option<JoinHandle<()>>,
}

impl RunningEngine {
    pub(crate) fn new(calls: u32) -> wasmtime::Result<Self> {
        let mut pool = PoolingAllocationConfig::default();
        pool.total_component_instances(calls)
            .total_core_instances(calls * MAX_CORE_INSTANCES)
            .total_memories((calls * MAX_MEMORIES).max(MIN_MEMORIES))
            .total_tables(calls * MAX_TABLES)
            .max_core_instances_per_component(MAX_CORE_INSTANCES)
            .max_memories_per_component(MAX_MEMORIES)
            .max_tables_per_component(MAX_TABLES)
            .max_component_instance_size(MAX_INSTANCE_BYTES)
            .max_core_instance_size(MAX_INSTANCE_BYTES)
            .table_elements(MAX_TABLE_ELEMENTS)
            .max_memory_size(MAX_MEMORY_BYTES)
            .linear_memory_keep_resident(KEEP_RESIDENT)
            .table_keep_resident(KEEP_TABLE_RESIDENT)
            .pagemap_scan(Enabled::Auto);
        let mut config = config()?;
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config)?;
        let (stop, stopped) = mpsc::channel::<()>();
        let weak = engine.weak();
        let clock = std::thread::Builder::new()
            .name("trainyard-clock".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    match weak.upgrade() {
                        Some(engine) => engine.increment_epoch(),
                        None => break,
                    }
                }
            })?;
        Ok(Self {
            engine,
            stop: Some(stop),
            clock: Some(clock),
        })
    }
}

impl Drop for RunningEngine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(clock) = self.clock.take() {
            let _ = clock.join();
        }
    }
}

/// Converts a wall-clock limit to ticks.
pub(crate) fn ticks(milliseconds: u64) -> u64 {
    milliseconds / (TICK.as_millis() as u64) + 1
}
