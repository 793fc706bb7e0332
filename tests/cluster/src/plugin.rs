//! Builds plugins as their authors do.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::trainyard::Trainyard;

/// Builds the component of a plugin's crate, with these environment variables for the compiler. All guests share a target folder, which
/// is separate from that of native builds.
///
/// # Errors
/// `trainyard` was not built, or fails to build the crate: with its output.
pub fn build_plugin(
    crate_folder: &Path,
    component: &Path,
    variables: &[(&str, &str)],
) -> Result<()> {
    let program = Trainyard::program()?;
    let target = program.ancestors().nth(2);
    let target = target.context("the program is not in a folder of target/")?;
    let mut build = Command::new(&program);
    build
        .env("CARGO_TARGET_DIR", target)
        .args(["plugin", "build"])
        .arg(crate_folder)
        .arg("--output")
        .arg(component);
    // The variables that cargo sets for this test.
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PKG"))
    {
        build.env_remove(name);
    }
    build.env_remove("CARGO_MANIFEST_DIR");
    let built = build.envs(variables.iter().copied()).output()?;
    ensure!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    Ok(())
}

/// The name of the section that has the manifest.
const SECTION: &[u8] = b"trainyard:manifest";

/// The length of the magic number, the version and the layer.
const HEADER: usize = 8;

/// Returns the manifest of a component.
///
/// # Errors
/// The component cannot be read, or has no manifest.
pub fn manifest_of(component: &[u8]) -> Result<&[u8]> {
    let header = component.split_at_checked(HEADER);
    let (_, mut rest) = header.context("the component is truncated")?;
    while let Some((id, after)) = rest.split_first() {
        let section = Section::read(*id, after)?;
        if let Some(manifest) = section.manifest {
            return Ok(manifest);
        }
        rest = section.next;
    }
    anyhow::bail!("the component has no manifest")
}

/// Returns a component with another manifest, like a vendor's plugin with arbitrary claims.
///
/// # Errors
/// The component cannot be read, or has no manifest.
pub fn with_manifest(component: &[u8], manifest: &str) -> Result<Vec<u8>> {
    let mut out = component
        .get(..HEADER)
        .context("the component is truncated")?
        .to_vec();
    let mut rest = component
        .get(HEADER..)
        .context("the component is truncated")?;
    let mut found = false;
    while let Some((id, after)) = rest.split_first() {
        let Section {
            manifest: found_now,
            next,
        } = Section::read(*id, after)?;
        if found_now.is_some() {
            let name = [&leb128(SECTION.len())[..], SECTION].concat();
            let body = [&name[..], manifest.as_bytes()].concat();
            out.push(0);
            out.extend(leb128(body.len()));
            out.extend(body);
            found = true;
        } else {
            out.extend(rest.iter().take(rest.len() - next.len()));
        }
        rest = next;
    }
    ensure!(found, "the component has no manifest");
    Ok(out)
}

/// A section of a component.
struct Section<'c> {
    /// The manifest, if it is the section that has it.
    manifest: Option<&'c [u8]>,
    /// What follows.
    next: &'c [u8],
}

impl<'c> Section<'c> {
    /// Reads the section of this kind.
    fn read(id: u8, after: &'c [u8]) -> Result<Self> {
        let (length, body) = number(after)?;
        let (body, next) = body
            .split_at_checked(length)
            .context("the component is truncated")?;
        let manifest = match id {
            0 => {
                let (length, named) = number(body)?;
                let is_manifest = length == SECTION.len();
                named.strip_prefix(SECTION).filter(|_| is_manifest)
            }
            _ => None,
        };
        Ok(Self { manifest, next })
    }
}

/// Parses a number in LEB128, and returns it with the rest.
fn number(bytes: &[u8]) -> Result<(usize, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, bytes.get(at + 1..).unwrap_or_default()));
        }
    }
    anyhow::bail!("the component is truncated within a number")
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}
