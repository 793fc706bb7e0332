//! The code of a deferred plugin is loaded by its first call. Until then nothing is compiled, and the calls are those of the plugin itself.

use std::fs;

use trainyard_model::{limits::Limits, plugin::Plugin as _};
use trainyard_sandbox::{BuiltIn, CachePaths, DeferredPlugin, LoadLimits, Loader};

use crate::common::{
    ENV_CLAIMS, PUT_NNODES, call, component_in, contract, env_of, good, loader, loader_with,
    manifest, settings, transform_core, with_custom,
};

fn deferred(loader: &Loader, bytes: &[u8]) -> DeferredPlugin {
    let settings = |_: &_| settings(Limits::default());
    let built_in = BuiltIn::read("test", bytes.to_vec()).unwrap();
    loader.defer_built_in(&built_in, settings).unwrap()
}

#[test]
fn code_is_compiled_by_the_first_call_alone() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("compiled");
    let paths = CachePaths {
        folder: cache.clone(),
        key: folder.path().join("state/cache.key"),
    };
    let loader = loader_with(LoadLimits::default(), Some(paths));
    let plugin = deferred(&loader, &good());
    let compiled = || fs::read_dir(&cache).unwrap().count();
    assert_eq!((&*plugin.info().id.name, compiled()), ("mole", 0));
    for _ in 0..2 {
        let record = call(&plugin).unwrap();
        assert_eq!(env_of(&record, "PET_NNODES").as_deref(), Some("four"));
        assert_eq!(compiled(), 1);
    }
}

#[test]
fn prepared_plugin_is_compiled_before_its_first_call() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("compiled");
    let paths = CachePaths {
        folder: cache.clone(),
        key: folder.path().join("state/cache.key"),
    };
    let loader = loader_with(LoadLimits::default(), Some(paths));
    let plugin = deferred(&loader, &good());
    plugin.prepare();
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    // The call needs the cache no more.
    fs::remove_dir_all(&cache).unwrap();
    let record = call(&plugin).unwrap();
    assert_eq!(env_of(&record, "PET_NNODES").as_deref(), Some("four"));
    assert!(!cache.exists());
}

#[test]
fn code_that_does_not_link_ends_each_call() {
    let core = transform_core("", PUT_NNODES);
    let component = component_in(&contract(), "transformer", &core);
    let manifest = manifest("build", ENV_CLAIMS);
    let bytes = with_custom(component, "trainyard:manifest", manifest.as_bytes());
    let loader = loader();
    let plugin = deferred(&loader, &bytes);
    for _ in 0..2 {
        let end = call(&plugin).unwrap_err().cause;
        assert_eq!(end.kind(), "load");
        let error = end.to_string();
        let expected =
            "cannot load its code: its manifest declares the phase build, which it does not export";
        assert!(error.starts_with(expected), "{error}");
    }
}
