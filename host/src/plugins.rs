//! Plugins of one run: the built-in ones, those given as files, and `trainyard plugin`.

use std::sync::Arc;

use clap::Subcommand;
use trainyard_render::Renderer;

use crate::{cli::LoadArgs, policy_file::PolicyFile, report::Failure};

/// The plugins of one run.
pub(crate) struct Loaded {
    pub(crate) renderer: Arc<Renderer>,
}

impl Loaded {
    pub(crate) fn load(args: &LoadArgs) -> Result<Self, Failure> {
        let policy = match &args.policy {
            Some(path) => {
                PolicyFile::read(path).map_err(|errors| errors.into_iter().collect::<Failure>())?
            }
            None => PolicyFile::default(),
        };
        let renderer = Renderer::new([], policy.facts())
            .map_err(|errors| errors.into_iter().collect::<Failure>())?;
        Ok(Self {
            renderer: Arc::new(renderer),
        })
    }

    pub(crate) fn run_each<T, R: Send>(&self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        items.iter().map(run).collect()
    }
}

/// Look at plugin files, or build one.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// x
    Inspect,
}

pub(crate) fn run(_: &PluginCommand) -> Result<(), Failure> {
    Ok(())
}

pub(crate) fn compile_worker() -> Result<(), Failure> {
    Ok(())
}
