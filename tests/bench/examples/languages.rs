//! Measures plugin files beside Torch, with the small TrainJob: `languages TRAINYARD FILE.wasm...`, where the program TRAINYARD compiles the
//! files. `make bench-languages` runs it for new plugins in each language.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;
use trainyard_bench::{CHAIN, Job, SMALL, loader_with, sandboxed};
use trainyard_model::{
    plugin::{Phase, Plugin},
    plugin_info::Settings,
    session::Session,
};
use trainyard_sandbox::{CompilerCommand, Loader, SandboxedPlugin};

/// The number of measured calls.
const CALLS: usize = 2000;

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let usage = "usage: languages TRAINYARD FILE.wasm...";
    let program = args.next().context(usage)?;
    let compiler = CompilerCommand {
        program,
        args: vec!["compile-worker".into()],
    };
    let folder = tempfile::tempdir()?;
    let compiling = loader_with(compiler.clone(), None, 1)?;
    let torch = sandboxed(&compiling, CHAIN)?;
    let session = Job::read(SMALL.chained())?.session(&torch.renderer()?)?;
    let torch = || {
        // Torch is the first of the chain.
        median(|session| torch.call(session, 1), &session).map(|time| time.as_secs_f64() * 1e6)
    };
    println!("torch alone: {:.1} µs", torch()?);
    println!(
        "| plugin | component, KB | compiled, KB | compiling, s | loading compiled code, ms | first call, µs | call, µs |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut loaded = Vec::new();
    for file in args {
        let start = Instant::now();
        let plugin = load(&compiling, &file)?;
        let compiled = start.elapsed();
        let name = compiling.write_compiled(&plugin, folder.path())?;
        let code = folder
            .path()
            .join(format!("{name}.cwasm"))
            .metadata()?
            .len();
        let ready = loader_with(compiler.clone(), Some(folder.path()), 1)?;
        let start = Instant::now();
        let plugin = load(&ready, &file)?;
        let loading = start.elapsed();
        let call = caller(&plugin)?;
        let mut own = session.clone();
        let start = Instant::now();
        call(&mut own)?;
        let first = start.elapsed();
        println!(
            "| {} | {} | {} | {:.2} | {:.1} | {:.1} | {:.1} |",
            file.display(),
            file.metadata()?.len() / 1000,
            code / 1000,
            compiled.as_secs_f64(),
            loading.as_secs_f64() * 1e3,
            first.as_secs_f64() * 1e6,
            median(&call, &session)?.as_secs_f64() * 1e6,
        );
        loaded.push(load(&compiling, &file)?);
    }
    // A call of each plugin before, because a loaded plugin that is not called costs nothing.
    for plugin in &loaded {
        caller(plugin)?(&mut session.clone())?;
    }
    println!("torch beside them: {:.1} µs", torch()?);
    Ok(())
}

fn load(loader: &Loader, file: &Path) -> Result<SandboxedPlugin> {
    Ok(loader.load_file(file, |_| Settings::built_in())?)
}

/// Returns a call of `transform` of the plugin with its default configuration.
fn caller(plugin: &SandboxedPlugin) -> Result<impl Fn(&mut Session) -> Result<()> + '_> {
    let config = plugin.info().config(json!({}));
    let config = config.map_err(|errors| anyhow!("{errors:?}"))?;
    Ok(move |session: &mut Session| {
        session.call(plugin, Phase::Transform, 0, Arc::clone(&config))?;
        Ok(())
    })
}

/// Returns the median time of a call.
fn median(call: impl Fn(&mut Session) -> Result<()>, session: &Session) -> Result<Duration> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let mut session = session.clone();
        let start = Instant::now();
        call(&mut session)?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times.get(CALLS / 2).copied().context("no calls")
}
