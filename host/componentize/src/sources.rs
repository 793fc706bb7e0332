//! What a plugin is built from: its package, and the packages of this machine that it depends on.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
};

use cargo_metadata::{CrateType, DependencyKind, Metadata, MetadataCommand, Package, PackageId};

use crate::{
    build::BuildError,
    cargo::Cargo,
    environment::cargo_home,
    toolchain::{Std, Toolchain},
};

/// A plugin's package among those of its workspace.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The package.
    pub(crate) package: Package,
    /// Where cargo puts what it builds, unless told otherwise.
    pub(crate) target_dir: PathBuf,
    workspace: PathBuf,
    /// Packages by path that are built for the guest, the plugin's own first: name and version, folder.
    local: Vec<(String, PathBuf)>,
}

impl Sources {
    /// Asks cargo.
    pub(crate) fn of(cargo: &Cargo<'_>) -> Result<Self, BuildError> {
        cargo.fetch()?;
        let metadata = String::from_utf8_lossy(&cargo.metadata()?).into_owned();
        let metadata = MetadataCommand::parse(metadata).map_err(BuildError::Metadata)?;
        let manifest = cargo.manifest();
        let package = metadata
            .packages
            .iter()
            .find(|package| package.manifest_path == manifest)
            .cloned();
        let package = package.ok_or_else(|| BuildError::NoPackage {
            manifest: manifest.to_owned(),
        })?;
        if !package
            .targets
            .iter()
            .any(|target| target.crate_types.contains(&CrateType::CDyLib))
        {
            return Err(BuildError::NotPlugin {
                package: package.name.to_string(),
            });
        }
        let local = local(&metadata, &package.id);
        Ok(Self {
            package,
            target_dir: metadata.target_directory.into(),
            workspace: metadata.workspace_root.into(),
            local,
        })
    }

    /// Folders whose files decide the bytes, beside what comes from a registry: the plugin's own and those of packages that
    /// it depends on by path, and the workspace's `Cargo.toml` and `Cargo.lock`.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        let files = ["Cargo.toml", "Cargo.lock"].map(|name| self.workspace.join(name));
        self.local
            .iter()
            .map(|(_, dir)| dir.clone())
            .chain(files)
            .collect()
    }

    /// Flags for every crate that is compiled: the paths of this machine become names in all that the compiler writes.
    ///
    /// They are the same for every plugin of a workspace, since other flags mean compiling the standard library again. So
    /// the workspace's own packages are not among them: cargo names their files by paths within the workspace anyway.
    pub(crate) fn flags(&self, toolchain: &Toolchain, target_dir: &Path) -> Vec<OsString> {
        // Of several that fit a path, the last one counts.
        let mut flags = Vec::new();
        if let Some(home) = cargo_home() {
            flags.push(remap(&home, "/cargo"));
            // The folder of a registry is named for its address, which a mirror changes.
            let registries = std::fs::read_dir(home.join("registry/src"))
                .into_iter()
                .flatten()
                .flatten();
            let registries: BTreeSet<PathBuf> = registries.map(|entry| entry.path()).collect();
            flags.extend(registries.iter().map(|dir| remap(dir, "/registry")));
        }
        if toolchain.std == Std::FromSource {
            let std = toolchain.sysroot.join("lib/rustlib/src/rust");
            flags.extend(std.canonicalize().iter().map(|dir| remap(dir, "/rustc")));
            flags.push(remap(&std, "/rustc"));
        }
        let outside = self
            .local
            .iter()
            .filter(|(_, dir)| !dir.starts_with(&self.workspace));
        flags.extend(outside.map(|(name, dir)| remap(dir, &format!("/{name}"))));
        flags.push(remap(target_dir, "/target"));
        flags
    }

    /// Flags for the plugin's own crate.
    pub(crate) fn last_flags(&self) -> Vec<OsString> {
        let stack = format!("-Clink-arg=-zstack-size={STACK_BYTES}");
        vec![remap(&self.workspace, "/workspace"), stack.into()]
    }
}

/// Bytes of a guest's own stack. The memory begins with it, and the sandbox looks through all of a memory's pages after
/// each call: rustc's 1 MiB would be most of them.
const STACK_BYTES: u32 = 128 << 10;

fn remap(from: &Path, to: &str) -> OsString {
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(from);
    flag.push("=");
    flag.push(to);
    flag
}

/// Packages by path that are compiled for the plugin, its own first: name and version, folder.
fn local(metadata: &Metadata, plugin: &PackageId) -> Vec<(String, PathBuf)> {
    let packages = reached(metadata, plugin).into_iter().filter_map(|id| {
        let package = metadata
            .packages
            .iter()
            .find(|package| package.id == *id && package.source.is_none())?;
        Some((
            format!("{}-{}", package.name, package.version),
            package.manifest_path.parent()?.into(),
        ))
    });
    packages.collect()
}

/// The packages that are compiled for the plugin: what it needs, without what its tests need.
fn reached<'a>(metadata: &'a Metadata, plugin: &'a PackageId) -> Vec<&'a PackageId> {
    let mut reached = vec![plugin];
    let nodes = metadata
        .resolve
        .as_ref()
        .map(|resolve| resolve.nodes.as_slice())
        .unwrap_or_default();
    let mut next = 0;
    while let Some(&id) = reached.get(next) {
        next += 1;
        for dependency in nodes
            .iter()
            .filter(|node| node.id == *id)
            .flat_map(|node| &node.deps)
        {
            let built = dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind != DependencyKind::Development);
            if built && !reached.contains(&&dependency.pkg) {
                reached.push(&dependency.pkg);
            }
        }
    }
    reached
}
