//! Finds the operator's settings: in files and directories, and in the input.

use std::path::{Path, PathBuf};

use serde_json::Value;
use trainyard_api::{
    FieldPath, Inputs, Located, Location, Object, ObjectId, fields_beyond_the_folder,
    inputs::yaml_files_in, is_kustomization,
};
use trainyard_config::{
    ConfigError, ConfigFile, PolicyFile, RenderingSection, TypeMeta,
    policy_plugin::{self, PolicyPlugin},
};
use trainyard_controller::settings::{CONTROLLER_CONFIGURATION, LoadedSettings};
use trainyard_model::{names::sha256_digest, text::clean};
use trainyard_oci::Signers;

use super::Policy;
use crate::{
    output,
    report::{self, ErrorList},
};

/// The kinds of objects that have settings of the operator.
const KINDS: &[TypeMeta] = &[
    policy_plugin::TYPE_META,
    CONTROLLER_CONFIGURATION,
    PolicyFile::TYPE_META,
];

/// What is in the files and directories of `--policy`, and in the input.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub(crate) plugins: Vec<PolicyPlugin>,
    pub(crate) sections: Vec<RenderingSection>,
    /// Whose signatures count, with where the ControllerConfigurations say so.
    signers: Vec<(Location, Signers)>,
    /// Forms that are read for the last release, and Kustomizations whose fields have no effect.
    pub(crate) warnings: Vec<Located>,
    /// The texts of the files.
    texts: Vec<String>,
}

/// Returns the PolicyPlugins of files of `-f`, which have to have one.
pub(crate) fn policy_plugins(files: &[PathBuf]) -> Result<Vec<Object>, ErrorList> {
    let inputs = Inputs::read(files, std::io::stdin());
    ErrorList::from_iter(inputs.errors).or_ok(())?;
    let mut objects = inputs.objects;
    objects.retain(is_policy_plugin);
    match objects.is_empty() {
        true => Err(ErrorList::from_iter([
            "there is no PolicyPlugin in the input; pass one with -f",
        ])),
        false => Ok(objects),
    }
}

/// Whether an object of the input is a PolicyPlugin.
pub(crate) fn is_policy_plugin(object: &Object) -> bool {
    object.is(policy_plugin::API_VERSION, policy_plugin::POLICY_PLUGIN)
}

impl Declared {
    /// Reads files and directories, and PolicyPlugins of the input.
    pub(crate) fn read(paths: &[PathBuf], objects: &[Object]) -> Result<Self, ErrorList> {
        let mut failure = ErrorList::default();
        let mut declared = Self::default();
        for path in paths {
            if let Err(errors) = declared.add_path(path) {
                failure.absorb(errors);
            }
        }
        for object in objects {
            match PolicyPlugin::decode(&object.value, object.location()) {
                Ok(plugin) => declared.plugins.push(plugin),
                Err(errors) => errors.into_iter().for_each(|error| failure.add(error)),
            }
        }
        failure.or_ok(declared)
    }

    /// Returns the policy, and prints the warnings. `signers` are those of flags.
    pub(crate) fn into_policy(self, signers: Option<Signers>) -> Result<Policy, ErrorList> {
        self.warnings.iter().for_each(report::warn);
        let mut places = self.signers.iter().map(|(place, _)| place.clone());
        let place = places.next().filter(|_| signers.is_none());
        let signers = self.signers(signers)?;
        let policy = Policy::new(self.plugins, self.sections)?;
        Ok(policy.with_signers(signers).with_signers_place(place))
    }

    /// Returns whose signatures count: those of flags, or of the ControllerConfigurations. They must not differ, because it would not be clear
    /// which ones the cluster has.
    fn signers(&self, of_flags: Option<Signers>) -> Result<Option<Signers>, ErrorList> {
        let mut first = of_flags.map(|signers| (FLAGS.to_owned(), signers));
        let mut failure = ErrorList::default();
        for (location, signers) in &self.signers {
            match &first {
                None => first = Some((location.to_string(), signers.clone())),
                Some((_, known)) if known == signers => {}
                Some((place, _)) => failure.add(differ(location, place)),
            }
        }
        failure.or_ok(first.map(|(_, signers)| signers))
    }

    /// Returns the digest of the texts of the files; `None` without files.
    pub(crate) fn digest(&self) -> Option<String> {
        (!self.texts.is_empty()).then(|| sha256_digest(self.texts.concat()))
    }

    fn add_path(&mut self, path: &Path) -> Result<(), ErrorList> {
        if !path.is_dir() {
            return self.add_file(path, false);
        }
        let refused =
            |problem: String| ErrorList::from_iter([format!("{}: {problem}", output::path(path))]);
        let files = yaml_files_in(path).map_err(|error| refused(error.to_string()))?;
        if files.is_empty() {
            return Err(refused(
                "the directory has no *.yaml, *.yml or *.json file; pass one with PolicyPlugins"
                    .to_owned(),
            ));
        }
        let mut failure = ErrorList::default();
        for file in files {
            if let Err(errors) = self.add_file(&file, true) {
                failure.absorb(errors);
            }
        }
        failure.or_ok(())
    }

    fn add_file(&mut self, path: &Path, is_of_folder: bool) -> Result<(), ErrorList> {
        let (files, text) = ConfigFile::read_all(path, KINDS).map_err(ErrorList::from_iter)?;
        self.texts.push(text);
        let mut failure = ErrorList::default();
        for file in files {
            let name = path.display().to_string();
            if is_of_folder && is_kustomization(&name, file.value()) {
                self.warnings.extend(not_built(&file));
                continue;
            }
            if let Err(errors) = self.add_document(&file) {
                errors.into_iter().for_each(|error| failure.add(error));
            }
        }
        failure.or_ok(())
    }

    fn add_document(&mut self, file: &ConfigFile) -> Result<(), Vec<ConfigError>> {
        let location = file.location(FieldPath::root());
        match file.type_meta().map_err(|error| vec![error]) {
            Ok(policy_plugin::TYPE_META) => {
                let name = file.value().pointer("/metadata/name");
                let object = name.and_then(Value::as_str).map(|name| ObjectId {
                    kind: policy_plugin::POLICY_PLUGIN.to_owned(),
                    namespace: None,
                    name: clean(name),
                });
                let location = Location { object, ..location };
                self.plugins
                    .push(PolicyPlugin::decode(file.value(), location)?);
            }
            Ok(CONTROLLER_CONFIGURATION) => {
                let settings = LoadedSettings::decode(file)?.settings;
                if !settings.plugins.signers.is_empty() {
                    let location = file.location(FieldPath::of(["plugins"]));
                    self.signers.push((location, settings.plugins.signers));
                }
                self.sections.push(RenderingSection {
                    settings: settings.rendering,
                    location,
                    field: FieldPath::of(["rendering"]),
                });
            }
            // The errors of a policy file without these keys are more helpful.
            Err(errors) if !is_policy_file(file.value()) => return Err(errors),
            _ => {
                let read = PolicyFile::decode(file)?;
                self.plugins.extend(read.plugins);
                self.sections.push(read.rendering);
                self.warnings.push(read.warning);
            }
        }
        Ok(())
    }
}

/// Returns the warning for a Kustomization that does more than list the files of its folder.
fn not_built(file: &ConfigFile) -> Option<Located> {
    let fields = fields_beyond_the_folder(file.value());
    (!fields.is_empty()).then(|| Located {
        location: file.location(FieldPath::root()),
        message: format!(
            "the Kustomization is not built, so its {} has no effect; pass the output of `kubectl kustomize` instead",
            fields.join(", ")
        ),
    })
}

/// The place of signers that no ControllerConfiguration has.
pub(super) const FLAGS: &str = "--signers or --key";

/// Returns the error if two places say differently whose signatures count.
pub(super) fn differ(location: &Location, place: &str) -> Located {
    Located {
        location: location.clone(),
        message: format!("has other signers or repositories than {place}; remove one of the two"),
    }
}

/// Whether a document without a valid header is meant to be a policy file.
fn is_policy_file(document: &Value) -> bool {
    document.get("kind").and_then(Value::as_str) == Some(PolicyFile::TYPE_META.kind)
}
