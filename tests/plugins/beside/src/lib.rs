//! Emits a ConfigMap of each apply mode with the TrainJob's note, which shows which objects follow a change, and when.

use trainyard_sdk::{Build, Context, Failure, Transform};

/// The annotation whose text each object contains.
const NOTE: &str = "example.com/note";
/// The edition of the build, like the version of a vendor's update.
const EDITION: &str = match option_env!("TRAINYARD_TEST_EDITION") {
    Some(edition) => edition,
    None => "first",
};

/// The plugin.
pub struct Beside;

trainyard_sdk::plugin!(Beside: transform, build);

impl Transform for Beside {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        for pod_set in ctx.info().with_ancestor("trainer") {
            pod_set.set_pod_label("example.com/edition", EDITION);
            for container in pod_set.containers() {
                ctx.because("pods know by which edition they were made");
                container.put_env("EDITION", EDITION);
            }
        }
        Ok(())
    }
}

impl Build for Beside {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let note = ctx.job().annotation(NOTE).unwrap_or_default();
        for mode in ["with-jobset", "once", "while-suspended", "live"] {
            let suffix = format!("-{mode}");
            let object = ctx.objects().emit("v1", "ConfigMap", &suffix, None);
            object.append("edition", EDITION);
            object.append("note", &note);
            object.set_apply(mode);
        }
        Ok(())
    }
}
