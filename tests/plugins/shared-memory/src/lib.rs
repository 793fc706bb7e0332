//! Increases the shared memory of the trainer. Data loaders share memory between processes, and a container has only 64 MiB by default.

use trainyard_sdk::{Config, Context, Failure, Mount, Transform};

/// The name of the volume.
const VOLUME: &str = "shared-memory";
/// The mount path of shared memory on Linux.
const PATH: &str = "/dev/shm";

/// The configuration of the plugin.
#[derive(Config)]
pub struct SharedMemoryConfig {
    /// The maximum size, as a quantity.
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
