//! The changes of the Secret.

use std::{sync::Arc, time::SystemTime};

use super::{
    issue::{self, IssueError},
    material::{Authority, Material},
};

/// The most authorities of a bundle.
pub(super) const MOST_AUTHORITIES: usize = 8;

/// A change of the Secret.
#[derive(Clone)]
pub(super) enum Change {
    /// Creates everything, and keeps trust in authorities of which certificates may still be served.
    Make { keep: Vec<Authority> },
    /// Writes what is in memory.
    Restore(Arc<Material>),
    /// Signs another certificate.
    RenewLeaf(Arc<Material>),
    /// Publishes the authority that will sign next.
    AddAuthority(Arc<Material>),
    /// Signs with the next authority from now on.
    UseNextAuthority(Arc<Material>),
}

impl Change {
    /// Returns its name in the log and in metrics.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Make { .. } => "create",
            Self::Restore(_) => "restore",
            Self::RenewLeaf(_) => "renew",
            Self::AddAuthority(_) => "add-authority",
            Self::UseNextAuthority(_) => "use-next-authority",
        }
    }

    /// Returns the content of the Secret after it.
    pub(super) fn apply(&self, names: &[String], now: SystemTime) -> Result<Material, IssueError> {
        let mut material = match self {
            Self::Make { keep } => Material {
                others: keep.clone(),
                ..issue::make(names, now)?
            },
            Self::Restore(material) => Material::clone(material),
            Self::RenewLeaf(material) => Material {
                leaf: Some(issue::leaf(&material.signer, names, now)?),
                ..Material::clone(material)
            },
            Self::AddAuthority(material) => Material {
                next: Some(issue::authority(now)?),
                ..Material::clone(material)
            },
            Self::UseNextAuthority(material) => {
                let mut material = Material::clone(material);
                if let Some(next) = material.next.take() {
                    let before = std::mem::replace(&mut material.signer, next);
                    material.others.insert(0, before.authority);
                }
                material.leaf = Some(issue::leaf(&material.signer, names, now)?);
                material
            }
        };
        if let Some(leaf) = &material.leaf
            && !matches!(self, Self::AddAuthority(_))
            && !leaf.is_accepted(&material.signer.authority, names, now)
        {
            return Err(IssueError::NotAccepted(names.join(", ")));
        }
        material.others.retain(|other| !other.has_expired(now));
        material.others.truncate(MOST_AUTHORITIES);
        Ok(material)
    }
}
