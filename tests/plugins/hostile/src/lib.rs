//! The ways in which a plugin can harm its host, selected by its configuration.

use std::hint::black_box;

use trainyard_sdk::{Config, Context, Failure, Transform};

/// The configuration of the plugin.
#[derive(Config)]
pub struct Behavior {
    /// The behavior: `trap`, `loop` (endlessly), `fill` (memory, endlessly) or `behave`.
    pub does: String,
}

/// The plugin.
pub struct Hostile;

trainyard_sdk::plugin!(Hostile: transform; config = Behavior);

impl Transform for Hostile {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        match ctx.job().config_as::<Behavior>()?.does.as_str() {
            "trap" => trap(),
            "loop" => endless(),
            "fill" => fill(),
            _ => behave(ctx),
        }
        Ok(())
    }
}

#[expect(clippy::panic, reason = "this is what it is for")]
fn trap() {
    panic!("on purpose");
}

fn endless() {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn fill() {
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        // The memory is not written, so it is exhausted long before the fuel.
        held.push(black_box(Vec::with_capacity(1 << 16)));
    }
}

fn behave(ctx: &Context) {
    for pod_set in ctx.info().with_ancestor("trainer") {
        for container in pod_set.containers() {
            ctx.because("it was told to behave");
            container.put_env("BEHAVED", "yes");
        }
    }
    ctx.log("info", "it behaved");
}
