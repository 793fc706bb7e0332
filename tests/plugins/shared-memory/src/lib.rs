//! Data loaders share memory between processes, and a container has 64 MiB of it: this plugin gives the trainer more.

use trainyard_sdk::{Config, Context, Failure, Mount, Transform};

/// The name of the volume.
const VOLUME: &str = "shared-memory";
/// Where Linux has its shared memory.
const PATH: &str = "/dev/shm";

/// What a runtime can set.
#[derive(Config)]
pub struct SharedMemoryConfig {
    /// At most so much of it, as a quantity.
    #[config(default = "16Gi")]
    pub size: String,
}

/// The plugin.
pub struct SharedMemory;

trainyard_sdk::plugin!(SharedMemory: transform; config = SharedMemoryConfig);

impl Transform for SharedMemory {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<SharedMemoryConfig>()?;
        for pod_set in ctx.info().with_ancestor("trainer") {
            ctx.because("data loaders share memory");
            pod_set.put_empty_dir(VOLUME, Some("Memory"), Some(&config.size));
            for container in pod_set.containers() {
                let is_taken = container.mounts().iter().any(|mount| mount.path == PATH);
                if !is_taken {
                    container.put_mount(&Mount::new(VOLUME, PATH));
                }
            }
        }
        Ok(())
    }
}
