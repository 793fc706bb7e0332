//! The engine that all plugins share, and the clock behind its wall-clock limits.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread::JoinHandle,
    time::Duration,
};

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, WasmFeatures,
};

/// How often the clock ticks. A wall-clock limit is kept to within two ticks.
const TICK: Duration = Duration::from_millis(10);

/// Bytes of the guest's stack.
pub(crate) const STACK_BYTES: usize = 512 << 10;

/// The largest linear memory that any plugin can be given: address space, not memory.
pub(crate) const MAX_MEMORY_BYTES: usize = 256 << 20;

/// Memories and tables of one component.
pub(crate) const MAX_MEMORIES: u32 = 4;
pub(crate) const MAX_TABLES: u32 = 16;
/// Core instances of one component: its module, and the shims of its imports; an interpreter comes in a dozen modules.
pub(crate) const MAX_CORE_INSTANCES: u32 = 32;
/// Elements of one table: an interpreter has some ten thousand functions.
const MAX_TABLE_ELEMENTS: usize = 65_536;
/// Memories that are kept ready at least. A memory that was used by a component is ready for the same one again, so
/// that each loaded component should find its own on each thread. Address space, not memory.
const MIN_MEMORIES: u32 = 128;
/// Bytes that the host keeps for one instance.
const MAX_INSTANCE_BYTES: usize = 1 << 20;
/// Bytes of a used memory that are cleared by hand rather than given back: most guests touch no more.
const KEEP_RESIDENT: usize = 64 << 10;
/// The same of a table.
const KEEP_TABLE_RESIDENT: usize = 4 << 10;

/// What code is made of and how it runs: the same for those that compile and those that run it, so that what one made
/// the other takes.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .memory_init_cow(true)
        .max_wasm_stack(STACK_BYTES)
        .wasm_backtrace_max_frames(None)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_tail_call(false)
        .wasm_features(WasmFeatures::FUNCTION_REFERENCES, false)
        .wasm_component_model(true);
    config
}

/// An engine with room for so many calls at once, and its clock.
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
        let mut config = config();
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

/// Ticks of a wall-clock limit.
pub(crate) fn ticks(milliseconds: u64) -> u64 {
    milliseconds / (TICK.as_millis() as u64) + 1
}
