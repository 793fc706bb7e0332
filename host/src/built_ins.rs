//! The built-in plugins, as components that `build.rs` builds.

use trainyard_sandbox::BuiltIn;

include!(concat!(env!("OUT_DIR"), "/built_ins.rs"));

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn embedded_digest_and_manifest_are_those_of_the_component() {
        for built_in in BUILT_INS {
            let read = BuiltIn::read(built_in.name(), built_in.component().to_vec()).unwrap();
            assert_eq!(built_in.digest(), read.digest());
            assert_eq!(built_in.manifest(), read.manifest());
        }
    }
}
