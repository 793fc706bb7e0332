use std::collections::BTreeSet;

use trainyard_model::{policy::Phase, text::clean};
use wasmparser::{Validator, component_types::ComponentEntityType};

use super::{ScreenError, Sections, contract};

/// The most names that an error lists.
const MAX_NAMES: usize = 20;

/// How a component meets its host.
pub(super) struct Surface {
    /// The methods of the contract that it imports, sorted.
    pub(super) imports: Vec<String>,
    /// The phases that it exports.
    pub(super) phases: BTreeSet<Phase>,
}

impl Surface {
    /// By the types that validation gives: it is made for hostile bytes, as a reader of WIT is not.
    pub(super) fn of(bytes: &[u8], sections: &Sections<'_>) -> Result<Self, ScreenError> {
        let types = Validator::new().validate_all(bytes)?;
        let (mut imports, mut unknown) = (Vec::new(), Vec::new());
        for name in &sections.imports {
            let item = types.as_ref().component_item_for_import(name);
            let (Some(known), Some(ComponentEntityType::Instance(id))) =
                (contract::members(name), item.map(|item| item.ty))
            else {
                unknown.push(clean(name));
                continue;
            };
            for (member, item) in &types[id].exports {
                let whole = format!("{name}#{member}");
                if !known.contains(&member.as_str()) {
                    unknown.push(clean(&whole));
                } else if matches!(item.ty, ComponentEntityType::Func(_)) {
                    imports.push(whole);
                }
            }
        }
        if !unknown.is_empty() {
            unknown.truncate(MAX_NAMES);
            return Err(ScreenError::Imports(unknown));
        }
        let (mut phases, mut others) = (BTreeSet::new(), Vec::new());
        for name in &sections.exports {
            match Phase::ALL
                .into_iter()
                .find(|phase| *name == phase.interface())
            {
                Some(phase) => drop(phases.insert(phase)),
                None => others.push(clean(name)),
            }
        }
        if !others.is_empty() {
            others.truncate(MAX_NAMES);
            return Err(ScreenError::Exports(others));
        }
        imports.sort();
        Ok(Self { imports, phases })
    }
}
