//! The volumes of a pod, as folders of this machine.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, DownwardAPIVolumeFile, KeyToPath, Secret, Volume, VolumeProjection,
};

use super::{facts::Facts, problem::Problem};

/// The mode of files without one.
const FILE_MODE: u32 = 0o644;

/// The contents of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// An empty folder that containers can write to.
    Empty,
    /// Files that containers can only read.
    Files(Vec<VolumeFile>),
    /// A file or folder of this machine.
    Host(PathBuf),
    /// The folder of a claim of the namespace, which outlives the pod.
    Claim(String),
}

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VolumeFile {
    pub(super) path: String,
    pub(super) data: Vec<u8>,
    pub(super) mode: u32,
}

/// Returns the contents of a volume.
pub(super) fn contents(volume: &Volume, facts: &Facts<'_>) -> Result<Contents, Problem> {
    if volume.empty_dir.is_some() {
        return Ok(Contents::Empty);
    }
    if let Some(host) = &volume.host_path {
        return Ok(Contents::Host(PathBuf::from(&host.path)));
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        return Ok(Contents::Claim(claim.claim_name.clone()));
    }
    let objects = facts.objects;
    let files = if let Some(of) = &volume.config_map {
        let object = objects.config_maps.get(&of.name);
        let data = Data::of(("ConfigMap", &of.name), object.map(entries), of.optional);
        data.files(of.items.as_deref(), mode(of.default_mode))
    } else if let Some(of) = &volume.secret {
        let name = of.secret_name.as_deref().unwrap_or_default();
        let object = objects.secrets.get(name);
        let data = Data::of(("Secret", name), object.map(secrets), of.optional);
        data.files(of.items.as_deref(), mode(of.default_mode))
    } else if let Some(of) = &volume.downward_api {
        downward(of.items.as_deref(), mode(of.default_mode), facts)
    } else if let Some(of) = &volume.projected {
        let sources = of.sources.iter().flatten();
        let files = sources.map(|source| projected(source, mode(of.default_mode), facts));
        let files: Result<Vec<_>, _> = files.collect();
        files.map(|files| files.into_iter().flatten().collect())
    } else {
        return Err(Problem::Unsupported(format!(
            "the fake kubelet can't mount the volume {}; use an emptyDir, ConfigMap, Secret, downwardAPI, projected, hostPath or \
             persistentVolumeClaim volume",
            volume.name
        )));
    };
    files.map(Contents::Files)
}

fn projected(
    source: &VolumeProjection,
    default: u32,
    facts: &Facts<'_>,
) -> Result<Vec<VolumeFile>, Problem> {
    let objects = facts.objects;
    if let Some(of) = &source.config_map {
        let object = objects.config_maps.get(&of.name);
        let data = Data::of(("ConfigMap", &of.name), object.map(entries), of.optional);
        data.files(of.items.as_deref(), default)
    } else if let Some(of) = &source.secret {
        let object = objects.secrets.get(&of.name);
        let data = Data::of(("Secret", &of.name), object.map(secrets), of.optional);
        data.files(of.items.as_deref(), default)
    } else if let Some(of) = &source.downward_api {
        downward(of.items.as_deref(), default, facts)
    } else if let Some(of) = &source.service_account_token {
        let audience = of.audience.clone().unwrap_or_default();
        let token = objects.tokens.get(&audience);
        let token =
            token.ok_or_else(|| Problem::Missing("no token of the ServiceAccount".into()))?;
        Ok(vec![VolumeFile {
            path: of.path.clone(),
            data: token.clone().into_bytes(),
            mode: default,
        }])
    } else {
        Err(Problem::Unsupported(format!(
            "the fake kubelet does not know this source of a projected volume: {source:?}"
        )))
    }
}

fn downward(
    items: Option<&[DownwardAPIVolumeFile]>,
    default: u32,
    facts: &Facts<'_>,
) -> Result<Vec<VolumeFile>, Problem> {
    let file = |item: &DownwardAPIVolumeFile| {
        let data = if let Some(field) = &item.field_ref {
            facts.field(field)?
        } else if let Some(resource) = &item.resource_field_ref {
            let name = resource.container_name.as_deref().unwrap_or_default();
            facts.resource(resource, &container(facts, name)?)?
        } else {
            String::new()
        };
        Ok(VolumeFile {
            path: item.path.clone(),
            data: data.into_bytes(),
            mode: item.mode.map_or(default, |it| mode(Some(it))),
        })
    };
    items.unwrap_or_default().iter().map(file).collect()
}

fn container(facts: &Facts<'_>, name: &str) -> Result<Container, Problem> {
    let spec = facts.pod.spec.clone().unwrap_or_default();
    let inits = spec.init_containers.unwrap_or_default();
    let mut all = spec.containers.into_iter().chain(inits);
    all.find(|container| container.name == name)
        .ok_or_else(|| Problem::Unsupported(format!("the pod has no container {name}")))
}

/// The values of a ConfigMap or Secret, by key.
type Entries = Vec<(String, Vec<u8>)>;

/// A ConfigMap or Secret in a volume.
struct Data<'a> {
    kind: &'static str,
    name: &'a str,
    entries: Option<Entries>,
    is_optional: bool,
}

impl<'a> Data<'a> {
    fn of(of: (&'static str, &'a str), entries: Option<Entries>, optional: Option<bool>) -> Self {
        let ((kind, name), is_optional) = (of, optional == Some(true));
        Self {
            kind,
            name,
            entries,
            is_optional,
        }
    }

    /// Returns the selected keys as files, or all of them if none is selected.
    fn files(self, items: Option<&[KeyToPath]>, default: u32) -> Result<Vec<VolumeFile>, Problem> {
        let (kind, name) = (self.kind, self.name);
        let entries = match self.entries {
            Some(entries) => entries,
            None if self.is_optional => return Ok(Vec::new()),
            None => return Err(Problem::Missing(format!("{kind} {name} does not exist"))),
        };
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            let all = entries.into_iter();
            let file = |(path, data)| VolumeFile {
                path,
                data,
                mode: default,
            };
            return Ok(all.map(file).collect());
        };
        let mut files = Vec::new();
        for item in items {
            let found = entries.iter().find(|(key, _)| *key == item.key);
            match found {
                Some((_, data)) => files.push(VolumeFile {
                    path: item.path.clone(),
                    data: data.clone(),
                    mode: item.mode.map_or(default, |it| mode(Some(it))),
                }),
                None if self.is_optional => {}
                None => {
                    let key = &item.key;
                    return Err(Problem::Missing(format!("{kind} {name} has no key {key}")));
                }
            }
        }
        Ok(files)
    }
}

fn entries(object: &ConfigMap) -> Entries {
    let text = object.data.iter().flatten();
    let binary = object.binary_data.iter().flatten();
    text.map(|(key, value)| (key.clone(), value.clone().into_bytes()))
        .chain(binary.map(|(key, value)| (key.clone(), value.0.clone())))
        .collect()
}

fn secrets(object: &Secret) -> Entries {
    let data = object.data.iter().flatten();
    data.map(|(key, value)| (key.clone(), value.0.clone()))
        .collect()
}

fn mode(of: Option<i32>) -> u32 {
    of.and_then(|mode| u32::try_from(mode).ok())
        .unwrap_or(FILE_MODE)
}

/// Writes a volume to a folder, which is empty or does not exist. With an `fsGroup`, files belong to this group, which can read
/// them, and write to them if containers can.
pub(super) fn write(
    contents: &Contents,
    folder: &Path,
    fs_group: Option<u32>,
) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    set_mode(folder, 0o777)?;
    let Contents::Files(files) = contents else {
        return own(folder, 0o777 | 0o2770, fs_group);
    };
    for file in files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.data)?;
        set_mode(&path, file.mode)?;
        own(&path, file.mode | 0o440, fs_group)?;
        for parent in path.ancestors().skip(1).take_while(|it| *it != folder) {
            own(parent, 0o755 | 0o2550, fs_group)?;
        }
    }
    own(folder, 0o777 | 0o2550, fs_group)
}

fn own(path: &Path, mode: u32, fs_group: Option<u32>) -> anyhow::Result<()> {
    let Some(group) = fs_group else {
        return Ok(());
    };
    chown(path, None, Some(group))?;
    // Changing the owner clears the set-group-ID bit.
    set_mode(path, mode)
}

fn set_mode(path: &Path, mode: u32) -> anyhow::Result<()> {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
