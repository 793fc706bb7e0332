//! Runs a sidecar in the pods of the nodes, which reads what training writes to a shared volume.

use trainyard_sdk::{Config, Context, Failure, Mount, Transform};

/// The volume, and the sidecar itself.
const NAME: &str = "sidecar";
/// Where both containers mount the volume.
const PATH: &str = "/var/run/sidecar";

/// The plugin's configuration in a runtime.
#[derive(Config, Debug)]
pub struct SidecarConfig {
    /// The sidecar's image.
    #[config(min_length = 1)]
    pub image: String,
}

/// The plugin.
pub struct Sidecar;

trainyard_sdk::plugin!(Sidecar: transform; config = SidecarConfig);

impl Transform for Sidecar {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<SidecarConfig>()?;
        for pod_set in ctx.info().nodes() {
            let Some(node) = pod_set.container("node") else {
                continue;
            };
            pod_set.reserve_volume(NAME)?;
            ctx.because("training shares this volume with the sidecar");
            pod_set.put_empty_dir(NAME, None, None);
            node.default_mount(&Mount::new(NAME, PATH));
            ctx.because("the image in the configuration of trainyard-template-sidecar");
            let sidecar = pod_set.add_init_container(NAME, &config.image);
            // An init container that is always restarted starts before the others, and ends after them.
            sidecar.set_restart_policy("Always");
            sidecar.put_mount(&Mount::new(NAME, PATH).read_only());
        }
        Ok(())
    }
}
