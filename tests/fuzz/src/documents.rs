//! What operators, vendors and tenants write: reading it never panics, and what was read is printed so that it reads back as the same.
//!
//! The first byte of an input says what it is.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use trainyard_api::{FieldPath, Location, Object, Source, TrainJob, path::Segment, yaml};
use trainyard_config::{
    ConfigFile, PolicyFile, RenderingSettings, TypeMeta,
    policy_plugin::{PluginRevisionSpec, PolicyPlugin, TYPE_META},
};
use trainyard_controller::{reconcile::Snapshot, settings::LoadedSettings};
use trainyard_model::{
    claims::ClaimPath,
    manifest::Manifest,
    plugin_info::{PluginInfo, Settings as PluginSettings},
    quantity::Quantity,
};
use trainyard_oci::Location as OciLocation;

const KINDS: &[TypeMeta] = &[TYPE_META, PolicyFile::TYPE_META];

/// The TrainJob of snapshots.
static JOB: LazyLock<TrainJob> = LazyLock::new(|| {
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "a"},
        "spec": {"runtimeRef": {"name": "x", "kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"}},
    });
    TrainJob::read(&Object::read(Source::new("job.yaml", 1), job).unwrap()).unwrap()
});

/// A reader with what holds for it. It returns `None` if the reader refuses the text.
type Reader = fn(&str) -> Option<()>;

/// The readers, by the first byte of their inputs.
pub const READERS: &[(u8, Reader)] = &[
    (b'c', check_claims),
    (b'f', check_field_path),
    (b'm', check_manifest),
    (b'o', check_reference),
    (b'p', check_policy),
    (b'q', check_quantities),
    (b'r', check_revision),
    (b's', check_snapshot),
    (b'w', check_configuration),
];

/// Checks a document.
pub fn check(bytes: &[u8]) -> bool {
    let read = || {
        let (kind, text) = bytes.split_first()?;
        let (_, reader) = READERS.iter().find(|(of, _)| of == kind)?;
        reader(std::str::from_utf8(text).ok()?)
    };
    read().is_some()
}

/// Two quantities, on a line each.
fn check_quantities(text: &str) -> Option<()> {
    let read: Vec<_> = text.lines().take(2).filter_map(Quantity::parse).collect();
    for quantity in &read {
        let printed = quantity.to_string();
        let again =
            Quantity::parse(&printed).unwrap_or_else(|| panic!("{text:?} prints as {printed}"));
        // Amounts beyond the bound are printed as the bound.
        assert!(
            again.compare(*quantity).is_eq() || printed.len() > 15,
            "{text:?} prints as {printed}"
        );
        assert_eq!(again.to_string(), printed, "{text:?}");
        if let (Some(whole), Some(milli)) = (quantity.ceil(), quantity.milli()) {
            let up = milli.div_euclid(1000) + i64::from(milli.rem_euclid(1000) != 0);
            assert_eq!(up, whole, "{text:?}");
        }
    }
    if let [a, b] = read.as_slice() {
        assert!(a.plus(*b).compare(b.plus(*a)).is_eq(), "{text:?}");
        assert!(
            a.max(*b).compare(*a).is_ge() && a.max(*b).compare(*b).is_ge(),
            "{text:?}"
        );
        assert_eq!(a.compare(*b), b.compare(*a).reverse(), "{text:?}");
        assert!(a.times(2).compare(a.plus(*a)).is_eq(), "{text:?}");
    }
    read.first().map(drop)
}

/// Two claims, on a line each.
fn check_claims(text: &str) -> Option<()> {
    let mut read = Vec::new();
    for line in text.lines().take(2) {
        match line.parse::<ClaimPath>() {
            Ok(path) => {
                let printed = path.to_string();
                let again = printed.parse();
                assert_eq!(again.as_ref(), Ok(&path), "{line:?} prints as {printed:?}");
                assert!(path.overlaps(&path) && path.covers(&path), "{line:?}");
                read.push(path);
            }
            Err(error) => drop(error.to_string()),
        }
    }
    if let [a, b] = read.as_slice() {
        assert_eq!(a.overlaps(b), b.overlaps(a), "{text:?}");
        assert!(!a.covers(b) || a.overlaps(b), "{text:?}");
        if a.overlaps(b) {
            let meet = a.meet(b);
            assert!(meet.overlaps(a) && meet.overlaps(b), "{text:?}: {meet}");
            assert_eq!(meet.to_string().parse().as_ref(), Ok(&meet), "{text:?}");
        }
    }
    read.first().map(drop)
}

fn check_field_path(text: &str) -> Option<()> {
    let has_to_be_quoted = |segment: &Segment| match segment {
        Segment::Key(key) => {
            key.is_empty()
                || key.contains(['[', ']'])
                || key.starts_with(['"', '\''])
                || key.parse::<usize>().is_ok()
        }
        Segment::Field(_) | Segment::Index(_) => false,
    };
    let path: FieldPath = text.parse().ok()?;
    let printed = path.to_string();
    let is_plain = !path.segments().iter().any(has_to_be_quoted);
    assert!(
        !is_plain || printed.parse().as_ref() == Ok(&path),
        "{text:?} prints as {printed:?}"
    );
    Some(())
}

fn check_reference(text: &str) -> Option<()> {
    let location: OciLocation = text.parse().ok()?;
    let printed = location.to_string();
    let again: OciLocation = printed
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {text:?}"));
    assert_eq!(again.to_string(), printed, "{text:?}");
    Some(())
}

/// A manifest, and a configuration after a NUL.
fn check_manifest(text: &str) -> Option<()> {
    let (manifest, config) = text.split_once('\0').unwrap_or((text, "null"));
    let manifest = Manifest::parse(manifest.as_bytes());
    let manifest = manifest.map_err(|error| error.to_string()).ok()?;
    let printed = json!(manifest).to_string();
    let again =
        Manifest::parse(printed.as_bytes()).unwrap_or_else(|error| panic!("{error}: {printed}"));
    assert_eq!(json!(again).to_string(), printed);
    let plugin = PluginInfo::new(manifest, "fuzz", PluginSettings::built_in()).ok()?;
    let config: Value = serde_json::from_str(config).unwrap_or_default();
    if let Ok(complete) = plugin.config(config) {
        let again = plugin.config((*complete).clone());
        assert_eq!(again, Ok(complete), "defaults change what has them");
    }
    Some(())
}

/// A PolicyPlugin or a policy file.
fn check_policy(text: &str) -> Option<()> {
    let file = ConfigFile::parse("fuzz.yaml", text, KINDS).ok()?;
    if file.type_meta().map_err(|error| error.to_string()).ok()? == TYPE_META {
        let location = file.location(FieldPath::root());
        check_policy_plugin(&PolicyPlugin::decode(file.value(), location).ok()?);
        return Some(());
    }
    let policy = PolicyFile::decode(&file).ok()?;
    policy.plugins.iter().for_each(check_policy_plugin);
    let settings = json!(policy.rendering.settings);
    let again: RenderingSettings = serde_json::from_value(settings).unwrap();
    assert_eq!(again, policy.rendering.settings);
    Some(())
}

fn check_policy_plugin(plugin: &PolicyPlugin) {
    let printed = json!({
        "apiVersion": TYPE_META.api_version, "kind": TYPE_META.kind, "metadata": {"name": plugin.name}, "spec": plugin.spec,
    });
    let again = PolicyPlugin::decode(&printed, Location::file("again.yaml"));
    match again {
        Ok(again) => assert_eq!(again.spec, plugin.spec, "{printed}"),
        // The entries of a policy file have names that no object can have.
        Err(errors) => assert!(
            errors
                .iter()
                .all(|error| error.to_string().contains("name")),
            "{printed}: {errors:?}"
        ),
    }
}

fn check_revision(text: &str) -> Option<()> {
    let spec: PluginRevisionSpec = serde_json::from_str(text).ok()?;
    let printed = json!(spec);
    let again: PluginRevisionSpec = serde_json::from_value(printed.clone())
        .unwrap_or_else(|error| panic!("{error}: {printed}"));
    assert_eq!(again, spec, "{printed}");
    Some(())
}

/// The ConfigMap of a snapshot.
fn check_snapshot(text: &str) -> Option<()> {
    let document = yaml::read(text).into_iter().next()?.ok()?;
    let map: ConfigMap = serde_json::from_value(document.value).ok()?;
    let snapshot = Snapshot::parse(&map, &JOB, 16).map_err(|error| {
        let text = error.to_string();
        let is_shown = text.chars().count() < 2000 && !text.chars().any(char::is_control);
        assert!(is_shown, "{text:?}");
    });
    let written = snapshot.ok()?.to_config_map(&JOB, "default");
    let again =
        Snapshot::parse(&written, &JOB, 16).unwrap_or_else(|error| panic!("{error}: {written:?}"));
    assert_eq!(again.to_config_map(&JOB, "default"), written);
    Some(())
}

/// The controller's configuration.
fn check_configuration(text: &str) -> Option<()> {
    let LoadedSettings { settings, .. } = LoadedSettings::parse("fuzz.yaml", text).ok()?;
    let printed = settings.to_file().ok()?;
    let text = yaml::write(&printed);
    let again = LoadedSettings::parse("again.yaml", &text)
        .unwrap_or_else(|errors| panic!("{errors:?}: {text}"));
    // What has no key, or follows from other settings, is not compared.
    assert_eq!(again.settings.to_file().unwrap(), printed, "{text}");
    Some(())
}
