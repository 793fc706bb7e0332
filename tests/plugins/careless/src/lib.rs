//! The mistakes that `trainyard plugin conform` finds, selected by its configuration.

use trainyard_sdk::{Config, Context, Failure, PodSet, Transform};

/// The configuration of the plugin.
#[derive(Config)]
pub struct Carelessness {
    /// The mistake. Without one, the plugin makes none.
    #[config(default = "none")]
    pub mistake: String,
}

/// The plugin.
pub struct Careless;

trainyard_sdk::plugin!(Careless: transform; config = Carelessness);

impl Transform for Careless {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let mistake = ctx.job().config_as::<Carelessness>()?.mistake;
        let sets = match mistake.as_str() {
            // The launcher of MPI is the trainer, and no node.
            "nodes" => ctx.info().with_ancestor("trainer"),
            _ => ctx.info().nodes(),
        };
        for set in sets {
            make(ctx, &set, &mistake);
        }
        Ok(())
    }
}

fn make(ctx: &Context, set: &PodSet, mistake: &str) {
    let Some(node) = set.container("node") else {
        return;
    };
    match mistake {
        "env" => node.put_env("CARELESS", "yes"),
        // It is set, and the user's value stays.
        _ => node.default_env("CARELESS", "yes"),
    }
    match mistake {
        "many-nodes" => assert!(ctx.job().nodes() < 500, "too many nodes"),
        "warning" => ctx.warn("something is wrong", None),
        "limits" => (0..70).for_each(|line| ctx.log("debug", &line.to_string())),
        // A claim would order it after the plugins that write the command. Without one, their order would matter.
        "order" => {
            let command = node.command().unwrap_or_default();
            node.default_env("CARELESS_COMMAND", &command.join(" "));
        }
        _ => {}
    }
}
