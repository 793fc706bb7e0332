//! A component's surface: its imports and exports.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trainyard_model::{plugin::Phase, text::clean};
use wasmparser::{
    BinaryReaderError, Parser, Payload, Validator, component_types::ComponentEntityType,
};

use crate::{contract::Contract, engine::guest_features, error::ScreenError};

/// The most names that an error lists.
const MAX_NAMES: usize = 20;

/// The imports and exports of a component. It is read in the compiler process with its limits, because the number of bytes does not bound
/// the memory for validation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Surface {
    /// The methods of the contract that it imports, sorted.
    imports: Vec<String>,
    /// The phases that it exports.
    phases: BTreeSet<Phase>,
    /// Imports that the contract does not have.
    unknown_imports: Vec<String>,
    /// Exports that are not phases.
    unknown_exports: Vec<String>,
    /// Why it is not a valid component.
    malformed: Option<String>,
}

impl Surface {
    /// Reads the surface from the types of validation, which, unlike a parser of WIT, is made for hostile input.
    pub(crate) fn of(bytes: &[u8], contract: &Contract) -> Self {
        Self::read(bytes, contract).unwrap_or_else(|error| Self {
            malformed: Some(clean(&error.to_string())),
            ..Self::default()
        })
    }

    /// Whether the component can be compiled.
    pub(crate) fn is_whole(&self) -> bool {
        self.malformed.is_none()
            && self.unknown_imports.is_empty()
            && self.unknown_exports.is_empty()
    }

    /// The methods that the component imports, if it is a plugin with those phases.
    ///
    /// # Errors
    /// Why it is not such a plugin.
    pub(crate) fn imports_of(self, declared: &[Phase]) -> Result<Vec<String>, ScreenError> {
        if let Some(problem) = self.malformed {
            return Err(ScreenError::Malformed(problem));
        }
        if !self.unknown_imports.is_empty() {
            return Err(ScreenError::Imports(self.unknown_imports));
        }
        if !self.unknown_exports.is_empty() {
            return Err(ScreenError::Exports(self.unknown_exports));
        }
        let declared: BTreeSet<Phase> = declared.iter().copied().collect();
        if declared != self.phases {
            let list = |phases: &BTreeSet<Phase>| {
                let names: Vec<_> = phases.iter().map(|phase| phase.name()).collect();
                names.join(", ")
            };
            return Err(ScreenError::Phases {
                exported: list(&self.phases),
                declared: list(&declared),
            });
        }
        Ok(self.imports)
    }

    fn read(bytes: &[u8], contract: &Contract) -> Result<Self, BinaryReaderError> {
        let (imports, exports) = names(bytes)?;
        let types = Validator::new_with_features(guest_features()).validate_all(bytes)?;
        let mut surface = Self::default();
        for name in imports {
            let item = types.as_ref().component_item_for_import(name);
            let (Some(known), Some(ComponentEntityType::Instance(id))) =
                (contract.members(name), item.map(|item| item.ty))
            else {
                surface.add_unknown_import(name);
                continue;
            };
            for (member, item) in &types[id].exports {
                let whole = format!("{name}#{member}");
                if !known.contains(&member.as_str()) {
                    surface.add_unknown_import(&whole);
                } else if matches!(item.ty, ComponentEntityType::Func(_)) {
                    surface.imports.push(whole);
                }
            }
        }
        for name in exports {
            match contract.phase(name) {
                Some(phase) => drop(surface.phases.insert(phase)),
                None if surface.unknown_exports.len() < MAX_NAMES => {
                    surface.unknown_exports.push(clean(name));
                }
                None => {}
            }
        }
        surface.imports.sort();
        Ok(surface)
    }

    fn add_unknown_import(&mut self, name: &str) {
        if self.unknown_imports.len() < MAX_NAMES {
            self.unknown_imports.push(clean(name));
        }
    }
}

/// The names of the imports and exports at the top level.
fn names(bytes: &[u8]) -> Result<(Vec<&str>, Vec<&str>), BinaryReaderError> {
    let (mut depth, mut imports, mut exports) = (0u32, Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    imports.push(import?.name.name);
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    exports.push(export?.name.name);
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}
