//! The CRDs of all kinds, on a control plane.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::sync::OnceCell;
use trainyard_schema::documents::Kind;

use crate::{
    control_plane::ControlPlane,
    crds::{Install, install},
    resource::Resource,
};

/// The definitions of all kinds, by kind.
#[derive(Debug)]
pub struct Definitions {
    kinds: BTreeMap<String, Definition>,
    installed: OnceCell<Result<(), String>>,
}

/// The definition of one kind.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The CustomResourceDefinition.
    pub crd: Value,
    /// The paths of objects of the kind.
    pub resource: Resource,
}

impl Definitions {
    /// Generates the definitions from the schema documents.
    ///
    /// # Errors
    /// A document is invalid, or a definition does not name its kind.
    pub fn read() -> Result<Self> {
        let mut kinds = BTreeMap::new();
        for kind in Kind::ALL {
            let crd = kind.crd()?;
            let kind = crd.pointer("/spec/names/kind").and_then(Value::as_str);
            let kind = kind.context("the definition has no kind")?.to_owned();
            let resource = Resource::defined_by(&crd)?;
            kinds.insert(kind, Definition { crd, resource });
        }
        Ok(Self {
            kinds,
            installed: OnceCell::new(),
        })
    }

    /// Returns each kind with its definition.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Definition)> {
        self.kinds
            .iter()
            .map(|(kind, definition)| (kind.as_str(), definition))
    }

    /// Returns the definition of a kind after all are installed, which the first caller does.
    ///
    /// # Errors
    /// The API server refused one, or the kind does not exist.
    pub async fn on(&self, plane: &ControlPlane, kind: &str) -> Result<&Definition> {
        let installed = self.installed.get_or_init(async || {
            for definition in self.kinds.values() {
                let served = install(plane, &definition.crd, Install::ServerSide).await;
                served.map_err(|error| format!("{error:#}"))?;
            }
            Ok(())
        });
        if let Err(error) = installed.await {
            bail!("the definitions cannot be installed: {error}");
        }
        self.kinds
            .get(kind)
            .with_context(|| format!("no definition of kind {kind:?}"))
    }
}
