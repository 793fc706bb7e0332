//! The content of plugins in registries, verified as by the controller, or as it is.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use trainyard_config::policy_plugin::{OciSource, PolicyPlugin, Source};
use trainyard_controller::plugins::PluginSource as _;
use trainyard_model::{manifest::Manifest, names::sha256_digest, text::clean};
use trainyard_oci::{Client, Digest, LayoutReference, Location, Pulled, Reference, Signers};

use super::{file::PluginContent, refused};
use crate::{
    args::SourceArgs,
    built_ins,
    output::Transfer,
    registries,
    report::ErrorList,
    sources::{Content, Registries},
};

/// A plugin whose signature was verified, unless it may be unsigned.
pub(super) struct VerifiedPlugin {
    file: Vec<u8>,
    pub(super) version: String,
    pub(super) is_signed: bool,
}

impl VerifiedPlugin {
    /// Takes a plugin from the store, or else from its registry, after its signature was verified as the controller does. Files of the command
    /// line have no signature, so none is used in its place.
    pub(super) fn pull(
        args: &SourceArgs,
        signers: &Signers,
        plugin: &PolicyPlugin,
        (source, oci): (&Source, &OciSource),
    ) -> Result<Self, ErrorList> {
        let content = Arc::new(Content {
            store: store_of(args, plugin)?,
            plugin_dir: None,
        });
        let registries = Registries::new(content.clone(), signers.clone(), args.registry.clone());
        let transfer = Transfer::new("pulling");
        let pinned = registries::block_on(registries.pin(&plugin.name, source))?;
        drop(transfer);
        let failed = |message: String| refused(plugin, "source", named(&oci.reference, message));
        let pinned = pinned.map_err(|error| failed(error.message().to_owned()))?;
        let file = content.stored(&pinned.digest);
        Ok(Self {
            file: file.map_err(|problem| failed(problem.message))?,
            version: pinned.version,
            is_signed: pinned.signer.is_some(),
        })
    }

    /// Returns it to be loaded, if it has the digest of its PolicyPlugin.
    pub(super) fn content(
        self,
        plugin: &PolicyPlugin,
        oci: &OciSource,
    ) -> Result<PluginContent, ErrorList> {
        checked(plugin, oci, self.file)
    }
}

/// Returns the plugin of a reference, whoever made it: from the store, or else from its registry.
pub(super) fn pulled(
    args: &SourceArgs,
    plugin: &PolicyPlugin,
    oci: &OciSource,
) -> Result<PluginContent, ErrorList> {
    let error = |problem: &dyn std::fmt::Display| refused(plugin, "source", problem.to_string());
    let reference = oci.reference.parse();
    let reference: Reference = reference.map_err(|problem| error(&problem))?;
    let store = store_of(args, plugin)?;
    let transfer = Transfer::new("pulling");
    let pulled = args.registry.run(async |client| {
        let pulled = stored_or_pulled(&client, &store, reference, &transfer).await;
        pulled.map_err(|problem| error(&problem))
    })?;
    drop(transfer);
    checked(plugin, oci, pulled.file)
}

/// Returns the directory that keeps plugins of registries.
fn store_of(args: &SourceArgs, plugin: &PolicyPlugin) -> Result<PathBuf, ErrorList> {
    store(args.plugin_store.as_deref()).ok_or_else(|| {
        let message = "there is no directory for plugins of registries, because HOME is not set; set --plugin-store";
        refused(plugin, "source", message.to_owned())
    })
}

/// Fails for a plugin with the name of a built-in one, because only signatures say whether it may replace that one.
pub(super) fn check_unverified(plugin: &PolicyPlugin) -> Result<(), ErrorList> {
    let Some(Manifest { version, .. }) = built_ins::manifest(&plugin.name) else {
        return Ok(());
    };
    Err(refused(
        plugin,
        "source",
        format!(
            "`{name}` is a built-in plugin, and only a plugin that is newer than {version} and signed by a signer whose `plugins` writes out `{name}` may replace it; pass the configuration of the controller with --signers to verify that, remove `source`, or name the plugin differently",
            name = plugin.name
        ),
    ))
}

/// Returns a message that names the reference.
fn named(reference: &str, message: String) -> String {
    let name = clean(reference);
    match message.contains(&name) {
        true => message,
        false => format!("{name}: {message}"),
    }
}

/// Returns the plugin of a reference. It is kept in the store, so that it is pulled only once.
async fn stored_or_pulled(
    client: &Client,
    store: &Path,
    reference: Reference,
    transfer: &Transfer,
) -> Result<Pulled, trainyard_oci::OciError> {
    let in_store = |digest: Digest| {
        Location::Layout(LayoutReference {
            folder: store.to_owned(),
            name: None,
            digest: Some(digest),
        })
    };
    if let Some(digest) = reference.digest() {
        let kept = client
            .pull(&in_store(digest.clone()), &transfer.progress())
            .await;
        if let Ok(kept) = kept {
            return Ok(kept);
        }
    }
    let target = Location::Layout(LayoutReference {
        folder: store.to_owned(),
        name: Some(reference.to_string()),
        digest: None,
    });
    let source = Location::Registry(reference);
    let copied = client
        .copy(&source, &target, None, &transfer.progress())
        .await?;
    client
        .pull(&in_store(copied.digest), &transfer.progress())
        .await
}

/// Returns a plugin to be loaded, if its file has the digest of its PolicyPlugin.
fn checked(
    plugin: &PolicyPlugin,
    oci: &OciSource,
    file: Vec<u8>,
) -> Result<PluginContent, ErrorList> {
    let digest = sha256_digest(&file);
    match &plugin.spec.digest {
        Some(wanted) if *wanted != digest => Err(refused(
            plugin,
            "digest",
            format!(
                "the plugin file in the registry has the digest {digest}; correct one of `digest` and `source`"
            ),
        )),
        _ => Ok(PluginContent::Pulled {
            reference: oci.reference.clone(),
            component: file.into(),
        }),
    }
}

/// Returns the directory of the store; `None` if none is given and there is no home directory.
pub(crate) fn store(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(store) = given {
        return Some(store.to_owned());
    }
    let path = |variable: &str| {
        let set = env::var_os(variable).map(PathBuf::from);
        set.filter(|path| path.is_absolute())
    };
    let cache = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")))?;
    Some(cache.join("trainyard/store"))
}
