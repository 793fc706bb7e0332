//! The host provides every method of `wit/` with its types: a component that imports all of them is loaded.

use std::collections::BTreeSet;

use trainyard_sandbox::{LoadLimits, screen::screen};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, WorldItem};

use crate::common::{self, compiler, contract, load, loader, with_custom};

#[test]
fn every_method_of_the_contract_links() {
    let resolve = contract();
    let (world, plugin) = resolve
        .worlds
        .iter()
        .find(|(_, w)| w.name == "plugin")
        .unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let component = ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .encode()
        .unwrap();
    let manifest = common::manifest("transform\",\"build\",\"check", "{}");
    let component = with_custom(component, "trainyard:manifest", manifest.as_bytes());

    let mut all = BTreeSet::new();
    for (key, item) in &plugin.imports {
        if let WorldItem::Interface { id, .. } = item {
            let interface = resolve.name_world_key(key);
            for function in resolve.interfaces[*id].functions.keys() {
                all.insert(format!("{interface}#{function}"));
            }
        }
    }
    let screened = screen(component.clone(), &LoadLimits::default(), &compiler()).unwrap();
    assert_eq!(screened.imports.into_iter().collect::<BTreeSet<_>>(), all);
    assert!(all.len() > 100, "{}", all.len());
    load(&loader(), component).map(drop).unwrap();
}
