//! A plugin declares the version of the contract in wit/, and its manifest is in the section that the host reads.

use trainyard_model::{
    contract::VERSION,
    manifest::{FILE_SECTION, PARTS_SECTION},
};

#[test]
fn contract_version_matches_the_host() {
    assert_eq!(trainyard_sdk::CONTRACT, VERSION);
}

/// A `link_section` takes a literal only.
#[test]
fn section_names_match_the_host() {
    let macros = include_str!("../src/parts.rs");
    for section in [FILE_SECTION, PARTS_SECTION] {
        let attribute = format!("link_section = \"{section}\"");
        assert_eq!(macros.matches(&attribute).count(), 1, "{section}");
    }
}
