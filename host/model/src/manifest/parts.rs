//! A manifest from two parts: the author's `manifest.json`, and what the SDK's macro derives from the code.

use std::fmt;

use serde_json::{Map, Value, json};

use super::{Manifest, ManifestError};
use crate::{
    claims::{ClaimError, CompiledClaims, Grants},
    contract::VERSION,
    record::ObeyedDomains,
    text::join,
};

/// The custom section of the core module that holds the crate's `manifest.json` unchanged.
pub const FILE_SECTION: &str = "trainyard:manifest-json";

/// The custom section of the core module with what the SDK's macro adds: version, contract, phases, schemas, and the
/// crate's name as the plugin's unless `manifest.json` has one.
pub const PARTS_SECTION: &str = "trainyard:manifest-parts";

/// The keys of a manifest that are in [`PARTS_SECTION`]. Of these, `manifest.json` can have only `name`.
pub const FROM_CODE: [&str; 4] = ["name", "version", "contract", "phases"];

/// Why two parts cannot be merged to a manifest.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// A part is not a JSON object.
    #[error("{origin} is not a JSON object: {error}")]
    Json {
        /// The part.
        origin: Origin,
        /// What is wrong with it.
        #[source]
        error: serde_json::Error,
    },
    /// Two plugins are in one module: the linker joined their sections.
    #[error(
        "two plugins are linked into one module; call `trainyard_sdk::plugin!` in only one of the linked crates"
    )]
    TwoPlugins,
    /// `manifest.json` has a key that is derived from the code.
    #[error(
        "manifest.json has `{key}`, which is derived from the code; remove it from manifest.json"
    )]
    Double {
        /// The key.
        key: String,
    },
    /// The merged manifest is invalid.
    #[error("the plugin's manifest (manifest.json and what the build adds) is not valid: {0}")]
    Manifest(#[from] ManifestError),
    /// Claims that no plugin can have: all of them.
    #[error("manifest.json: {}", join(.0, "; "))]
    Claims(Vec<ClaimError>),
}

/// The source of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The author's file.
    File,
    /// The SDK's macro.
    Macro,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "manifest.json",
            Self::Macro => "the manifest section that `trainyard_sdk::plugin!` writes",
        })
    }
}

impl Manifest {
    /// Merges both parts and checks the result.
    ///
    /// # Errors
    ///
    /// A part that is not a JSON object, a key in both parts (other than `name`, for which the file takes precedence), or an error of
    /// [`Manifest::parse`].
    pub fn from_parts(file: &[u8], from_macro: &[u8]) -> Result<Self, PartsError> {
        let mut merged = object(Origin::File, file)?;
        for (key, value) in object(Origin::Macro, from_macro)? {
            if !merged.contains_key(&key) {
                merged.insert(key, value);
            } else if key != "name" {
                return Err(PartsError::Double { key });
            }
        }
        let merged = Value::Object(merged).to_string();
        let manifest = Self::parse(merged.as_bytes())?;
        // Errors that remain with all claims granted cannot be fixed by an operator.
        CompiledClaims::new(
            &manifest.claims,
            &Grants::AsClaimed,
            &ObeyedDomains::default(),
        )
        .map_err(PartsError::Claims)?;
        Ok(manifest)
    }

    /// Checks a `manifest.json` without the code, before anything is compiled.
    ///
    /// # Errors
    ///
    /// As of [`Self::from_parts`].
    pub fn check_file(file: &[u8]) -> Result<(), PartsError> {
        let stand_in = json!({
            "name": "plugin", "version": "0.0.0", "contract": VERSION, "phases": ["transform"],
        });
        Self::from_parts(file, stand_in.to_string().as_bytes()).map(drop)
    }
}

fn object(origin: Origin, text: &[u8]) -> Result<Map<String, Value>, PartsError> {
    serde_json::from_slice(text).map_err(|error| {
        let mut objects =
            serde_json::Deserializer::from_slice(text).into_iter::<Map<String, Value>>();
        match (objects.next(), objects.next()) {
            (Some(Ok(_)), Some(Ok(_))) => PartsError::TwoPlugins,
            _ => PartsError::Json { origin, error },
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::phase::Phase;

    fn merge(file: &[u8], from_macro: &[u8]) -> Result<Manifest, PartsError> {
        Manifest::from_parts(file, from_macro)
    }

    const FILE: &[u8] = br#"{
        "activeWhen": "plugins",
        "claims": {"writes": ["pod-sets[*].pod-labels[team]"]},
        "description": "Adds the team's label."
    }"#;
    const PARTS: &[u8] =
        br#"{"name": "team-label", "version": "1.2.3", "contract": "1.0.0", "phases": ["transform"]}"#;

    #[test]
    fn both_parts_are_in_the_manifest_in_one_order() {
        let manifest = merge(FILE, PARTS).unwrap();
        assert_eq!(manifest.phases, [Phase::Transform]);
        let text = serde_json::to_string(&manifest).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"name":"team-label","version":"1.2.3","contract":"1.0.0","description":"Adds the team's label.","#,
                r#""activeWhen":"plugins","phases":["transform"],"claims":{"writes":["pod-sets[*].pod-labels[team]"]}}"#
            )
        );
        assert_eq!(Manifest::parse(text.as_bytes()).unwrap(), manifest);
    }

    #[test]
    fn the_authors_name_goes_before_the_crates() {
        let manifest = merge(br#"{"name": "label", "activeWhen": "always"}"#, PARTS).unwrap();
        assert_eq!(manifest.name, "label");
    }

    #[test]
    fn what_the_code_decides_can_not_be_written_by_hand() {
        for key in ["version", "contract", "phases"] {
            let file = format!(r#"{{"activeWhen": "always", "{key}": "9"}}"#);
            let error = merge(file.as_bytes(), PARTS).unwrap_err();
            assert!(
                matches!(&error, PartsError::Double { key: double } if double == key),
                "{error}"
            );
        }
    }

    #[test]
    fn a_wrong_file_is_named_with_the_place() {
        let error = merge(b"{\n  \"activeWhen\": plugins\n}", PARTS)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("manifest.json") && error.contains("line 2"),
            "{error}"
        );
        let error = merge(b"[]", PARTS).unwrap_err();
        assert!(
            matches!(
                error,
                PartsError::Json {
                    origin: Origin::File,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn the_models_rules_hold() {
        let error = merge(br#"{"activeWhen": "sometimes"}"#, PARTS).unwrap_err();
        assert!(matches!(error, PartsError::Manifest(_)), "{error}");
        let error = merge(br#"{"activeWhen": "always", "claim": {}}"#, PARTS).unwrap_err();
        assert!(error.to_string().contains("claim"), "{error}");
    }

    #[test]
    fn a_file_is_checked_before_there_is_code() {
        for (file, problem) in [
            (&br#"{"activeWhen": "always", "claims": {"write": []}}"#[..],
                "`claims.write`: unknown field; did you mean `writes`?"),
            (br#"{"activeWhen": "always", "claims": {"writes": ["pod-sets[@trainr].volumes[x]"]}}"#,
                "manifest.json: the claim `pod-sets[@trainr].volumes[x]` in `claims.writes`: no pod set is `@trainr`; did you mean `@trainer`?"),
            (br#"{"activeWhen": "always", "version": "1.0.0"}"#, "manifest.json has `version`, which is derived from the code"),
            (b"{\n  \"activeWhen\": always\n}", "manifest.json is not a JSON object: expected value at line 2 column 17"),
        ] {
            let error = Manifest::check_file(file).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        Manifest::check_file(FILE).unwrap();
        let named = br#"{"$schema": "../manifest.schema.json", "activeWhen": "always"}"#;
        Manifest::check_file(named).unwrap();
        assert!(merge(named, PARTS).is_ok());
    }

    #[test]
    fn two_plugins_in_one_module_are_told_apart_from_bad_json() {
        let twice = [PARTS, PARTS].concat();
        assert!(matches!(
            merge(FILE, &twice).unwrap_err(),
            PartsError::TwoPlugins
        ));
    }
}
