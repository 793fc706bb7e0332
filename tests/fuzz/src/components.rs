//! Components: any bytes are refused with an error, or are a plugin whose calls end within their limits, change only what its claims name,
//! and leave no trace if they fail.
//!
//! Components are compiled in this process, because a process for each of them would be too slow. So this does not check that the limits
//! of the compiler process hold.

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use serde_json::{Value, json};
use trainyard_model::{
    claims::Grants,
    limits::Limits,
    manifest::Manifest,
    plugin::{Phase, Plugin as _},
    plugin_info::Settings,
};
use trainyard_sandbox::{CompilerCommand, LoadLimits, Loader, LoaderOptions, SandboxedPlugin};

use crate::{
    calls::{check_call, check_end, session},
    check_text,
};

static LOADER: LazyLock<Loader> = LazyLock::new(|| {
    // Less than by default, so that no input compiles for seconds.
    let limits = LoadLimits {
        functions: 500,
        modules: 16,
        body_bytes: 16 << 10,
        ..LoadLimits::default()
    };
    let options = LoaderOptions {
        compiler: CompilerCommand {
            program: PathBuf::from("/nonexistent"),
            args: Vec::new(),
        },
        cache: None,
        compiled: None,
        limits,
        threads: 1,
    };
    Loader::new(options).unwrap()
});

/// Limits that a call reaches fast.
fn settings(grants: Grants) -> Settings {
    let limits = Limits {
        memory_bytes: 4 << 20,
        fuel: 300_000,
        wall_clock_ms: 60_000,
        import_bytes: 64 << 10,
        handles: 500,
        writes: 100,
        log_lines: 10,
        ..Limits::default()
    };
    Settings {
        grants,
        limits,
        ..Settings::default()
    }
}

/// Checks the bytes of a component.
pub fn check(bytes: &[u8]) -> bool {
    let mut is_plugin = false;
    for grants in [Grants::default(), Grants::AsClaimed] {
        let load = |_: &Manifest| settings(grants.clone());
        match LOADER.load_without_a_process(bytes.to_vec(), load) {
            Ok(plugin) => {
                check_calls(&plugin);
                is_plugin = true;
            }
            Err(problem) => check_text(&problem.to_string()),
        }
    }
    is_plugin
}

fn check_calls(plugin: &SandboxedPlugin) {
    let config = plugin
        .info()
        .config(Value::Null)
        .unwrap_or_else(|_| Arc::new(json!({})));
    let mut session = session();
    for phase in Phase::ALL {
        if plugin.info().manifest.has(phase) {
            check_call(&mut session, plugin, phase, 0, &config);
        }
    }
    check_end(&session);
}
