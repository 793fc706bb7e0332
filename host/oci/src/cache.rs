//! Plugins that were pulled, in a folder of the OCI image layout. With it, a controller starts while its registry is down, and a site without
//! a network gets the folder from `trainyard plugin copy`.
//!
//! Content is found by its digest, and compared with it whenever it is read. Only the names of tags are as good as the folder is protected.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::Path,
    time::SystemTime,
};

use crate::{
    artifact::Manifest,
    digest::Digest,
    error::Problem,
    layout::{Entry, Layout},
    limits::Limits,
    progress::Progress,
    reference::Reference,
    store::{Fetched, Store},
};

/// A cache of plugins.
#[derive(Clone, Debug)]
pub struct Cache {
    layout: Layout,
    limit: u64,
}

impl Cache {
    /// Returns the cache in a folder, which holds at most so many bytes.
    #[must_use]
    pub fn new(folder: &Path, limit: u64) -> Self {
        Self {
            layout: Layout::new(folder),
            limit,
        }
    }

    /// Returns the plugin with a digest.
    pub(crate) async fn by_digest(&self, digest: &Digest, limits: &Limits) -> Option<Fetched> {
        self.found(self.layout.find(None, Some(digest)), limits)
            .await
    }

    /// Returns the plugin that a tag named when it was pulled last.
    pub(crate) async fn by_tag(&self, reference: &Reference, limits: &Limits) -> Option<Fetched> {
        self.found(self.layout.find(Some(&reference.to_string()), None), limits)
            .await
    }

    async fn found(&self, manifest: Result<Manifest, Problem>, limits: &Limits) -> Option<Fetched> {
        let manifest = manifest.ok()?;
        let path = self.layout.path(&manifest.digest);
        let store = Store::Layout(self.layout.clone());
        match store.plugin(manifest, limits, &Progress::NONE).await {
            Ok(found) => {
                // If this fails, it is removed earlier.
                if let Ok(file) = File::open(path) {
                    let _ = file.set_modified(SystemTime::now());
                }
                Some(found)
            }
            Err(problem) => {
                tracing::warn!(%problem, "a cached plugin cannot be used; pulling it again");
                None
            }
        }
    }

    /// Keeps a plugin, and removes those that were used longest ago if there is no room. A plugin that cannot be kept is pulled again.
    pub(crate) fn keep(&self, reference: &Reference, plugin: &Fetched) {
        if let Err(problem) = self.try_keep(reference, plugin) {
            tracing::warn!(%reference, %problem, "cannot keep a plugin in the cache; without the registry, the controller cannot start with it");
        }
    }

    fn try_keep(&self, reference: &Reference, plugin: &Fetched) -> Result<(), Problem> {
        self.layout.create()?;
        self.layout.put(&plugin.config)?;
        self.layout.put(&plugin.file)?;
        self.layout
            .put_manifest(&plugin.manifest, Some(&reference.to_string()))?;
        self.make_room(&plugin.manifest.digest)
    }

    fn make_room(&self, kept: &Digest) -> Result<(), Problem> {
        let mut entries = self.layout.entries()?;
        while self.layout.bytes()? > self.limit {
            let used = |entry: &&Entry| {
                let path = self.layout.path(&entry.blob.digest);
                fs::metadata(path).and_then(|file| file.modified()).ok()
            };
            let others = entries.iter().filter(|entry| entry.blob.digest != *kept);
            let Some(oldest) = others
                .min_by_key(used)
                .map(|entry| entry.blob.digest.clone())
            else {
                return Ok(());
            };
            entries.retain(|entry| entry.blob.digest != oldest);
            self.layout.write_index(&entries)?;
            self.sweep(&entries)?;
        }
        Ok(())
    }

    /// Removes the content that no manifest of the index needs.
    fn sweep(&self, entries: &[Entry]) -> Result<(), Problem> {
        let mut needed = BTreeSet::new();
        for entry in entries {
            needed.insert(entry.blob.digest.clone());
            let manifest = self.layout.manifest(&entry.blob);
            let blobs = manifest.and_then(|manifest| Ok(manifest.blobs()?));
            needed.extend(blobs.into_iter().flatten().map(|blob| blob.digest));
        }
        Ok(self.layout.retain(|digest| needed.contains(digest))?)
    }
}
