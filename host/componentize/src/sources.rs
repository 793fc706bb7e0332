//! The sources of a plugin: its package, and the local packages that it depends on.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
};

use cargo_metadata::{CrateType, DependencyKind, Metadata, MetadataCommand, Package, PackageId};

use crate::{
    cargo::Cargo,
    environment::cargo_home,
    error::BuildError,
    toolchain::{Std, Toolchain},
};

/// A plugin's package and its local dependencies.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) package: Package,
    /// The default target directory of the workspace.
    pub(crate) target_dir: PathBuf,
    workspace: PathBuf,
    /// The name and version, and the directory, of the plugin's package, followed by those of its path dependencies.
    local: Vec<(String, PathBuf)>,
}

impl Sources {
    /// Finds the sources in `workspace`, if the crate is a member of it. Otherwise, the crate's own workspace replaces it.
    pub(crate) fn of(
        cargo: &Cargo<'_>,
        workspace: &mut Option<Metadata>,
    ) -> Result<Self, BuildError> {
        let manifest = cargo.manifest();
        let known = workspace.take().filter(|metadata| {
            let mut members = metadata.workspace_packages().into_iter();
            members.any(|member| member.manifest_path == manifest)
        });
        let metadata = workspace.insert(match known {
            Some(metadata) => metadata,
            None => metadata(cargo)?,
        });
        let package = plugin_package(metadata, manifest)?.clone();
        let local = local(metadata, &package.id);
        Ok(Self {
            package,
            target_dir: metadata.target_directory.clone().into(),
            workspace: metadata.workspace_root.clone().into(),
            local,
        })
    }

    /// Returns the files that determine the plugin's bytes, apart from crates of a registry: those that were compiled, the `Cargo.toml` of
    /// each package, and the workspace's `Cargo.toml` and `Cargo.lock`. Other files of the packages, such as tests, do not affect it.
    pub(crate) fn watched(&self, compiled: Vec<PathBuf>) -> Vec<PathBuf> {
        let files = ["Cargo.toml", "Cargo.lock"].map(|name| self.workspace.join(name));
        let packages = self.local.iter().map(|(_, dir)| dir.join("Cargo.toml"));
        packages.chain(files).chain(compiled).collect()
    }

    /// Returns the flags for every crate, which replace local paths in the compiler's output by names.
    ///
    /// They are the same for every plugin of a workspace, because other flags would compile the standard library again. The workspace's own
    /// packages need none, because cargo passes their files as paths relative to the workspace.
    pub(crate) fn flags(&self, toolchain: &Toolchain, target_dir: &Path) -> Vec<OsString> {
        // The last prefix that matches a path applies.
        let mut flags = Vec::new();
        if let Some(home) = cargo_home() {
            flags.push(remap(&home, "/cargo"));
            // The name of a registry's directory depends on its address, which differs with a mirror.
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

    /// Returns the flags for the plugin's own crate.
    pub(crate) fn last_flags(&self) -> Vec<OsString> {
        let stack = format!("-Clink-arg=-zstack-size={STACK_BYTES}");
        vec![remap(&self.workspace, "/workspace"), stack.into()]
    }
}

/// The size of a plugin's stack in bytes. The sandbox scans all pages of a plugin's memory after each call, and rustc's default of 1 MiB
/// would be most of them.
const STACK_BYTES: u32 = 128 << 10;

/// Returns the package of a Cargo.toml, which must be a plugin's.
pub(crate) fn plugin_package<'m>(
    metadata: &'m Metadata,
    manifest: &Path,
) -> Result<&'m Package, BuildError> {
    let mut packages = metadata.packages.iter();
    let package = packages.find(|package| package.manifest_path == manifest);
    let package = package.ok_or_else(|| BuildError::NoPackage {
        manifest: manifest.to_owned(),
    })?;
    let mut targets = package.targets.iter();
    if targets.any(|target| target.crate_types.contains(&CrateType::CDyLib)) {
        return Ok(package);
    }
    Err(BuildError::NotPlugin {
        package: package.name.to_string(),
    })
}

/// Fetches the crates of the workspace, and returns the output of `cargo metadata`.
fn metadata(cargo: &Cargo<'_>) -> Result<Metadata, BuildError> {
    cargo.fetch()?;
    let metadata = String::from_utf8_lossy(&cargo.metadata()?).into_owned();
    MetadataCommand::parse(metadata).map_err(BuildError::Metadata)
}

fn remap(from: &Path, to: &str) -> OsString {
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(from);
    flag.push("=");
    flag.push(to);
    flag
}

/// Returns the name and version, and the directory, of each local package that is compiled for the plugin, its own first.
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

/// Returns the packages that are compiled for the plugin: the plugin and its dependencies without dev-dependencies.
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
