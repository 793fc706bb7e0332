//! Which plugins take the place of built-in ones.

use trainyard_controller::plugins::{PluginCondition, Problem, is_newer};
use trainyard_model::manifest::Manifest;

use super::refusal::problem;
use crate::built_ins;

/// What the plugin of a source is loaded as.
#[derive(Debug)]
pub(crate) enum LoadedAs {
    /// A plugin beside the built-in ones.
    Added,
    /// In the place of the built-in plugin with this manifest, which decides its default grants.
    Replaces(Box<Manifest>),
    /// Not at all: the built-in plugin of its name is used, for this reason.
    BuiltIn(String),
}

/// Decides what a plugin of this version is loaded as.
///
/// # Errors
/// It has the name of a built-in plugin, but is not signed.
pub(crate) fn loaded_as(
    name: &str,
    version: Option<&str>,
    is_signed: bool,
) -> Result<LoadedAs, Problem> {
    match built_ins::manifest(name) {
        None => Ok(LoadedAs::Added),
        Some(shipped) => replacing(shipped, version, is_signed),
    }
}

/// Decides the same for a plugin with the name of the built-in plugin with the manifest `shipped`.
fn replacing(
    shipped: Manifest,
    version: Option<&str>,
    is_signed: bool,
) -> Result<LoadedAs, Problem> {
    if !is_newer(version, Some(&shipped.version)) {
        return Ok(LoadedAs::BuiltIn(format!(
            "version {} is not newer than {} of the built-in plugin, which is used instead; remove `source`, or use a newer version",
            version.unwrap_or("unknown"),
            shipped.version
        )));
    }
    if !is_signed {
        return Err(problem(
            PluginCondition::Verified,
            "NotSigned",
            format!(
                "`{}` is a built-in plugin, and only a signed plugin may replace it; sign it, or name it differently",
                shipped.name
            ),
        ));
    }
    Ok(LoadedAs::Replaces(Box::new(shipped)))
}

/// Fails for the name of a built-in plugin, which no file may replace, because it is not signed.
pub(crate) fn file_of_built_in(name: &str) -> Result<(), Problem> {
    match built_ins::manifest(name) {
        None => Ok(()),
        Some(_) => Err(problem(
            PluginCondition::Verified,
            "NotSigned",
            format!(
                "`{name}` is a built-in plugin, and only a signed plugin of a registry may replace it; use a source in a registry, or name the plugin differently"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Returns the manifest of a build with this version of a built-in plugin.
    fn shipped(version: &str) -> Manifest {
        Manifest {
            version: version.to_owned(),
            ..built_ins::manifest("torch").unwrap()
        }
    }

    #[test]
    fn built_in_plugin_is_used_from_the_release_on_that_is_as_new() {
        let with = |built_in: &str| replacing(shipped(built_in), Some("2.0.0"), true).unwrap();
        let is_replaced = |built_in| matches!(with(built_in), LoadedAs::Replaces(_));
        // The image is upgraded, and rolled back.
        let images = ["1.9.9", "2.0.0", "2.0.1", "1.9.9"];
        assert_eq!(images.map(is_replaced), [true, false, false, true]);
        let LoadedAs::BuiltIn(why) = with("2.0.1") else {
            unreachable!()
        };
        assert!(why.starts_with("version 2.0.0 is not newer than 2.0.1"));
        let other_build = replacing(shipped("2.0.0"), Some("2.0.0+z"), true).unwrap();
        assert!(matches!(other_build, LoadedAs::BuiltIn(_)));
    }

    #[test]
    fn only_a_signed_plugin_replaces_a_built_in_one() {
        let unsigned = replacing(shipped("1.0.0"), Some("2.0.0"), false);
        assert_eq!(unsigned.unwrap_err().reason, "NotSigned");
        // Nothing is replaced, so it does not matter.
        let older = replacing(shipped("1.0.0"), Some("0.9.0"), false);
        assert!(matches!(older, Ok(LoadedAs::BuiltIn(_))));
        for version in [None, Some("new"), Some("1.0.0-rc.1")] {
            let found = replacing(shipped("1.0.0"), version, true);
            assert!(matches!(found, Ok(LoadedAs::BuiltIn(_))), "{version:?}");
        }
        assert!(matches!(
            loaded_as("stamp", None, false),
            Ok(LoadedAs::Added)
        ));
    }
}
