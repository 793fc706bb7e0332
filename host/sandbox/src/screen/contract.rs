//! What the contract of `wit/` lets a component import, by the table that the build script makes of it.

include!(concat!(env!("OUT_DIR"), "/contract.rs"));

/// The functions and types of an interface of the contract; none where it has no such interface.
pub(super) fn members(interface: &str) -> Option<&'static [&'static str]> {
    let known = CONTRACT.iter().find(|(name, _)| *name == interface);
    known.map(|(_, members)| *members)
}

/// A number that differs between contracts: what fits one may not fit the other.
pub(crate) fn fingerprint() -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    CONTRACT.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use trainyard_model::manifest::interface;

    use super::*;

    #[test]
    fn the_contract_is_known_to_the_method() {
        let pods = members(&interface("pod-set-info")).unwrap();
        assert!(pods.contains(&"[method]container.put-env"));
        assert!(members(&interface("panics")).unwrap().contains(&"message"));
        assert_eq!(members("wasi:cli/stdout@0.2.0"), None);
    }
}
