//! The volumes of a pod.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use trainyard_api::StackPath;
use trainyard_model::{names::is_dns_subdomain, quantity::Quantity};

use super::{
    FieldProblems, env, names,
    rules::{self, ANY, Rule, Shape},
};
use crate::json::{get, get_at, items, text};

/// The permission bits of a file.
const MODE: Rule = Rule::Check(|problems, at, mode, _| {
    if let Some(mode) = mode.as_i64().filter(|mode| !(0..=0o777).contains(mode)) {
        let message = format!("is {mode}, but must be 0 to 511 (0777 in octal)");
        problems.add(at, message);
    }
});

/// A volume. One without a source is an empty directory.
pub(super) static VOLUME: Shape = Shape {
    members: &[
        ("configMap", &[Rule::Object(&CONFIG_MAP)]),
        ("csi", &[Rule::Object(&CSI)]),
        ("downwardAPI", &[Rule::Object(&DOWNWARD)]),
        ("emptyDir", &[Rule::Check(empty_dir)]),
        ("ephemeral", &[Rule::Object(&EPHEMERAL)]),
        ("hostPath", &[Rule::Object(&HOST_PATH)]),
        ("iscsi", &[Rule::Object(&ISCSI)]),
        ("name", &[Rule::Text(names::label)]),
        ("nfs", &[Rule::Object(&NFS)]),
        ("persistentVolumeClaim", &[Rule::Object(&CLAIM)]),
        ("projected", &[Rule::Object(&PROJECTED)]),
        ("secret", &[Rule::Object(&SECRET)]),
    ],
    whole: Some(rules::one_source),
    ..ANY
};

static CONFIG_MAP: Shape = Shape {
    members: &[
        ("defaultMode", &[MODE]),
        ("items", &[Rule::Items(&KEY_FILE)]),
    ],
    needs: &["name"],
    ..ANY
};

static SECRET: Shape = Shape {
    members: &[
        ("defaultMode", &[MODE]),
        ("items", &[Rule::Items(&KEY_FILE)]),
    ],
    needs: &["secretName"],
    ..ANY
};

static KEY_FILE: Shape = Shape {
    members: &[("mode", &[MODE]), ("path", &[Rule::Text(names::file_path)])],
    needs: &["key", "path"],
    ..ANY
};

static DOWNWARD: Shape = Shape {
    members: &[
        ("defaultMode", &[MODE]),
        ("items", &[Rule::Items(&FIELD_FILE)]),
    ],
    ..ANY
};

static FIELD_FILE: Shape = Shape {
    members: &[
        ("fieldRef", &[Rule::Object(&env::FILE_FIELD)]),
        ("mode", &[MODE]),
        ("path", &[Rule::Text(names::file_path)]),
        ("resourceFieldRef", &[Rule::Object(&env::FILE_RESOURCE)]),
    ],
    needs: &["path"],
    whole: Some(|problems, at, file| {
        rules::one_of(
            problems,
            at,
            file,
            &["fieldRef", "resourceFieldRef"],
            "source",
        );
    }),
};

static PROJECTED: Shape = Shape {
    members: &[
        ("defaultMode", &[MODE]),
        ("sources", &[Rule::Items(&PROJECTION)]),
    ],
    whole: Some(file_twice),
    ..ANY
};

static PROJECTION: Shape = Shape {
    members: &[
        ("configMap", &[Rule::Object(&CONFIG_MAP)]),
        ("downwardAPI", &[Rule::Object(&DOWNWARD)]),
        ("secret", &[Rule::Object(&CONFIG_MAP)]),
        ("serviceAccountToken", &[Rule::Object(&TOKEN)]),
    ],
    whole: Some(rules::one_source),
    ..ANY
};

static TOKEN: Shape = Shape {
    members: &[
        ("expirationSeconds", &[Rule::Range(600, 1 << 32)]),
        ("path", &[Rule::Text(names::file_path)]),
    ],
    needs: &["path"],
    ..ANY
};

static CLAIM: Shape = Shape {
    needs: &["claimName"],
    ..ANY
};

static HOST_PATH: Shape = Shape {
    members: &[
        ("path", &[Rule::Text(names::host_path)]),
        (
            "type",
            &[Rule::Word(&[
                "BlockDevice",
                "CharDevice",
                "Directory",
                "DirectoryOrCreate",
                "File",
                "FileOrCreate",
                "Socket",
            ])],
        ),
    ],
    needs: &["path"],
    ..ANY
};

static NFS: Shape = Shape {
    members: &[("path", &[Rule::Text(names::absolute_path)])],
    needs: &["path", "server"],
    ..ANY
};

static ISCSI: Shape = Shape {
    members: &[("iqn", &[Rule::Text(iqn)]), ("lun", &[Rule::Range(0, 255)])],
    needs: &["iqn", "targetPortal"],
    ..ANY
};

static CSI: Shape = Shape {
    members: &[
        ("driver", &[Rule::Text(driver)]),
        ("nodePublishSecretRef", &[Rule::Object(&SECRET_OF_DRIVER)]),
    ],
    needs: &["driver"],
    ..ANY
};

static SECRET_OF_DRIVER: Shape = Shape {
    needs: &["name"],
    ..ANY
};

static EPHEMERAL: Shape = Shape {
    members: &[("volumeClaimTemplate", &[Rule::Object(&CLAIM_TEMPLATE)])],
    needs: &["volumeClaimTemplate"],
    ..ANY
};

static CLAIM_TEMPLATE: Shape = Shape {
    members: &[("spec", &[Rule::Object(&CLAIM_SPEC)])],
    ..ANY
};

static CLAIM_SPEC: Shape = Shape {
    members: &[
        (
            "accessModes",
            &[Rule::Each(&Rule::Word(&[
                "ReadOnlyMany",
                "ReadWriteMany",
                "ReadWriteOnce",
                "ReadWriteOncePod",
            ]))],
        ),
        ("storageClassName", &[Rule::Text(names::object)]),
        ("volumeMode", &[Rule::Word(&["Block", "Filesystem"])]),
    ],
    needs: &["accessModes"],
    whole: Some(storage),
};

fn empty_dir(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    source: &Value,
    _: &Map<String, Value>,
) {
    let size = get(source, "sizeLimit").and_then(Value::as_str);
    let size = size.and_then(Quantity::parse);
    if let Some(size) = size.filter(|size| size.compare(Quantity::ZERO).is_lt()) {
        problems.add(
            &at.field("sizeLimit"),
            format!("is {size}, but must not be negative"),
        );
    }
}

/// Checks that no two sources of a projected volume write the same file.
fn file_twice(problems: &mut FieldProblems, at: &StackPath<'_>, projected: &Value) {
    let mut known = BTreeSet::new();
    for source in items(projected, "sources") {
        for source in source.as_object().into_iter().flat_map(Map::values) {
            for file in items(source, "items") {
                let path = text(file, "path");
                if !path.is_empty() && !known.insert(path) {
                    let message =
                        format!("two sources have the file `{path}`; rename or remove one");
                    problems.add(at, message);
                }
            }
        }
    }
}

fn iqn(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    if !["iqn", "eui", "naa"]
        .iter()
        .any(|form| name.starts_with(form))
    {
        problems.add(
            at,
            format!(
                "`{name}` is not an iSCSI name, which begins with `iqn`, `eui` or `naa`; correct it"
            ),
        );
    }
}

fn driver(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str) {
    if name.len() > 63 || !is_dns_subdomain(&name.to_ascii_lowercase()) {
        problems.add(
            at,
            format!("`{name}` is not the name of a CSI driver (at most 63 letters, digits, `-` and `.`); correct it"),
        );
    }
}

/// Checks that a claim requests storage.
fn storage(problems: &mut FieldProblems, at: &StackPath<'_>, claim: &Value) {
    let requested = get_at(claim, &["resources", "requests", "storage"]);
    if requested.is_none_or(Value::is_null) {
        let at = at.fields(&["resources", "requests"]);
        problems.add(&at, "has no `storage`; set it");
    }
}
