//! Files, folders and standard input are read in a stable order, and each object keeps its location.

use std::{
    fs,
    io::{self, Read},
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
    process::Command,
};

use trainyard_api::{
    Inputs,
    error::InputProblem,
    inputs::{MAX_FILE_BYTES, read_file},
};

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

fn shown(inputs: &Inputs) -> Vec<String> {
    inputs
        .objects
        .iter()
        .map(|object| object.location().to_string())
        .collect()
}

fn errors(paths: &[PathBuf], stdin: impl Read) -> Vec<String> {
    let errors = Inputs::read(paths, stdin)
        .into_result()
        .expect_err("the input is bad");
    errors.into_iter().map(|error| error.to_string()).collect()
}

#[test]
fn folder_yields_its_manifests_sorted_by_name() {
    let folder = tempfile::tempdir().unwrap();
    // kubectl reads `.yaml`, too.
    fs::write(folder.path().join(".yaml"), config_map("hidden")).unwrap();
    for name in ["b.yaml", "a.yml", "c.json", "ignored.txt", "README"] {
        let text = if name == "c.json" {
            r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}"#.to_owned()
        } else {
            config_map(&name[..1])
        };
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::create_dir(folder.path().join("inside.yaml")).unwrap();
    fs::write(
        folder.path().join("inside.yaml").join("d.yaml"),
        config_map("d"),
    )
    .unwrap();
    let inputs = Inputs::read(&[folder.path().to_owned()], io::empty())
        .into_result()
        .unwrap();
    let names: Vec<_> = inputs
        .objects
        .iter()
        .map(|object| object.metadata.name.as_str())
        .collect();
    assert_eq!(names, ["hidden", "a", "b", "c"]);
    assert_eq!(
        inputs.objects[1].source.file,
        folder.path().join("a.yml").display().to_string()
    );
}

/// kubectl refuses a folder with a Kustomization. Here it lists exactly the other files of the folder.
/// kubectl takes any object with `items` for a list, and applies the items alone.
#[test]
fn object_with_items_is_refused() {
    let items = "items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: hidden}}]\n";
    for items in [items, "items: null\n"] {
        let read = Inputs::read_text("a.yaml", &format!("{}{items}", config_map("a")));
        assert!(read.objects.is_empty());
        let errors: Vec<_> = read.errors.iter().map(ToString::to_string).collect();
        assert!(
            errors.len() == 1 && errors[0].contains("kubectl ignores everything else in it"),
            "{errors:?}"
        );
    }
}

#[test]
fn kustomization_in_a_folder_is_skipped() {
    let read = |paths: &[&Path], stdin: &str| {
        let paths: Vec<_> = paths.iter().map(|path| path.to_path_buf()).collect();
        Inputs::read(&paths, stdin.as_bytes())
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kustomization.yaml");
    fs::write(folder.path().join("a.yaml"), config_map("a")).unwrap();
    let header = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n";
    let whole = format!("{header}resources: [a.yaml]\n");
    for text in [&*whole, "resources: [a.yaml]\n", "metadata: {name: all}\n"] {
        fs::write(&file, text).unwrap();
        let inputs = read(&[folder.path()], "");
        assert!(inputs.errors.is_empty() && inputs.warnings.is_empty());
        assert_eq!(inputs.objects.len(), 1, "{text}");
    }

    let changes = format!("{header}namePrefix: a-\nresources: [a.yaml, ../base]\n");
    fs::write(&file, changes).unwrap();
    let inputs = read(&[folder.path()], "");
    assert_eq!(inputs.objects.len(), 1);
    let warned: Vec<_> = inputs.warnings.iter().map(ToString::to_string).collect();
    let wanted = format!(
        "{}:1: the Kustomization is not built, so its namePrefix, resources has no effect; pipe the output of `kubectl kustomize` into `-f -` instead",
        file.display()
    );
    assert_eq!(warned, [wanted]);

    let refused = "is a Kustomization, which only lists other files; pass its directory, or pipe the output of `kubectl kustomize` into `-f -`";
    for (paths, stdin, place) in [
        (&[&*file][..], "", file.display().to_string()),
        (&[folder.path(), &file], "", file.display().to_string()),
        (&[Path::new("-")], &*whole, "standard input".to_owned()),
    ] {
        let inputs = read(paths, stdin);
        let errors: Vec<_> = inputs.errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, [format!("{place}:1: {refused}")]);
    }

    // Flux's are objects of a cluster.
    let of_flux =
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\n";
    let inputs = read(&[Path::new("-")], of_flux);
    assert!(inputs.errors.is_empty() && inputs.objects.len() == 1);
}

#[test]
fn standard_input_keeps_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, config_map("a")).unwrap();
    let stdin = format!("{}---\n---\n{}", config_map("x"), config_map("z"));
    let inputs = Inputs::read(&[PathBuf::from("-"), file.clone()], stdin.as_bytes())
        .into_result()
        .unwrap();
    let wanted = [
        "standard input:1: ConfigMap x".to_owned(),
        "standard input:6: ConfigMap z".to_owned(),
        format!("{}:1: ConfigMap a", file.display()),
    ];
    assert_eq!(shown(&inputs), wanted);
    let twice = errors(&[PathBuf::from("-"), PathBuf::from("-")], stdin.as_bytes());
    assert_eq!(
        twice,
        ["standard input: can be read only once; pass `-f -` once"]
    );
}

/// The lines of fields are found in YAML of any form, after other documents, and in one JSON value. If a line is unknown, the number of
/// the document is printed.
#[test]
fn fields_have_line_numbers() {
    let place = |text: &str, at: usize, field: &str| {
        let inputs = Inputs::read_text("a", text).into_result().unwrap();
        let place = inputs.objects[at].location();
        let place = place.at(field.parse().unwrap()).to_string();
        place.split_once(": ").unwrap().0.to_owned()
    };
    let config_map = "# a comment
%YAML 1.2
---
apiVersion: v1
kind: ConfigMap
metadata: &metadata
  name: a
data:
  \"a.b\": |
    kind: no field
  list:
  - {x: 1}
  -
    name: y
    <<: {z: 2}
  copied: *metadata
";
    for (text, at, field, wanted) in [
        (config_map, 0, "", "a:4"),
        (config_map, 0, "metadata.name", "a:7"),
        (config_map, 0, "data[a.b]", "a:9"),
        (config_map, 0, "data.list", "a:11"),
        (config_map, 0, "data.list[0].x", "a:12"),
        (config_map, 0, "data.list[1].name", "a:14"),
        (config_map, 0, "data.list[y].name", "a:14"),
        // A missing field has the line of its nearest parent.
        (config_map, 0, "data.list[1].z", "a:14"),
        (config_map, 0, "data.list[7]", "a:11"),
        (config_map, 0, "data.copied.name", "a:16"),
        (config_map, 0, "kind.of", "a:5"),
        (
            "\u{feff}apiVersion: v1\nkind: A\nmetadata: {name: a}\n",
            0,
            "kind",
            "a:2",
        ),
        (
            "{\"apiVersion\": \"v1\",\n\"kind\": \"A\",\n\"metadata\": {\"name\":\n\"a\"}}",
            0,
            "metadata.name",
            "a:3",
        ),
        (
            "{\"kind\": \"A\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"a\"}}\n{\"kind\": \"A\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"b\"}}",
            1,
            "kind",
            "a",
        ),
    ] {
        assert_eq!(place(text, at, field), wanted, "{field}");
    }
    // Two documents with a directive between them, and one before them.
    let ended = "kind: A\napiVersion: v1\nmetadata: {name: a}\n...\n";
    let text = format!("a: 1\n---\n{ended}%YAML 1.1\n---\n{ended}");
    let objects = Inputs::read_text("a", &text).objects;
    let places: Vec<_> = objects
        .iter()
        .map(|object| {
            object
                .location()
                .at("apiVersion".parse().unwrap())
                .to_string()
        })
        .collect();
    assert_eq!(places, ["a:4: A a: apiVersion", "a:10: A a: apiVersion"]);
}

/// A run can have errors in hundreds of documents, each of which is parsed again.
#[test]
fn lines_are_only_searched_in_short_documents() {
    let long = "x".repeat(300 << 10);
    let text = format!("{}data: {{a: {long}}}\n", config_map("a"));
    let inputs = Inputs::read_text("a", &text).into_result().unwrap();
    assert_eq!(shown(&inputs), ["a: document 1: ConfigMap a"]);
    let comments = format!("# {long}\n---\n").repeat(30);
    let text = format!("{}---\n{comments}{}", config_map("a"), config_map("b"));
    let inputs = Inputs::read_text("a", &text).into_result().unwrap();
    assert_eq!(
        shown(&inputs),
        ["a: document 1: ConfigMap a", "a: document 32: ConfigMap b"]
    );
}

#[test]
fn lists_are_unpacked() {
    let text = "apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ml}}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - {metadata: {name: b}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
---
{apiVersion: v1, kind: List}
---
{apiVersion: example.com/v1, kind: AllowList, metadata: {name: no-list}}
";
    let inputs = Inputs::read_text("f.yaml", text).into_result().unwrap();
    let wanted = [
        "f.yaml:4: items[0]: ConfigMap ml/a",
        "f.yaml:8: items[1]: items[0]: ConfigMap b",
        "f.yaml:9: items[1]: items[1]: ConfigMap c",
        "f.yaml:13: AllowList no-list",
    ];
    assert_eq!(shown(&inputs), wanted);
    assert_eq!(inputs.objects[1].api_version, "v1");
}

#[test]
fn all_unreadable_inputs_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("utf16.yaml"), [0xff, 0xfe, b'a', 0]).unwrap();
    fs::write(path("bytes.yaml"), [b'a', 0xc3]).unwrap();
    fs::create_dir(path("empty")).unwrap();
    let paths = [
        path("missing.yaml"),
        path("utf16.yaml"),
        path("bytes.yaml"),
        path("empty"),
    ];
    let found = errors(&paths, io::empty());
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(
        found[0].contains("missing.yaml: cannot be read: "),
        "{}",
        found[0]
    );
    assert!(
        found[1]
            .ends_with("utf16.yaml: is not UTF-8 text (it starts like UTF-16); save it as UTF-8"),
        "{}",
        found[1]
    );
    assert!(
        found[2].ends_with("bytes.yaml: is not UTF-8 text; save it as UTF-8"),
        "{}",
        found[2]
    );
    assert!(
        found[3].contains("empty: contains no .yaml, .yml or .json file"),
        "{}",
        found[3]
    );
}

#[test]
fn endless_input_is_bounded() {
    let found = errors(&[PathBuf::from("-")], io::repeat(b'#'));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with(&format!(
            "standard input: is larger than {MAX_FILE_BYTES} bytes"
        )),
        "{}",
        found[0]
    );
}

/// Opening a FIFO without a writer would block, and a device can be endless.
#[test]
fn special_files_are_refused_without_opening_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let made = Command::new("mkfifo").arg(path("a.yaml")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(path("b.json")).unwrap();
    symlink("/dev/zero", path("c.yml")).unwrap();
    fs::write(path("d.txt"), config_map("d")).unwrap();
    symlink(path("d.txt"), path("d.yaml")).unwrap();
    let inputs = Inputs::read(&[folder.path().to_owned()], io::empty());
    assert_eq!(inputs.objects.len(), 1, "a link to a file is a file");
    let errors: Vec<_> = inputs.errors.iter().map(ToString::to_string).collect();
    let wanted = ["a.yaml", "b.json", "c.yml"].map(|name| {
        let file = path(name).display().to_string();
        format!("{file}: is not a regular file; pass a file, or a link to one")
    });
    assert_eq!(errors, wanted);
    for name in ["a.yaml", "b.json", "c.yml"] {
        let read = read_file(&path(name), 100);
        assert!(matches!(read, Err(InputProblem::NotAFile)), "{name}");
    }
}

#[test]
fn number_of_listed_errors_is_limited() {
    let inputs = Inputs::read_text("a.yaml", &"a: b\n---\n".repeat(5000));
    assert_eq!(inputs.errors.len(), 1001);
    let last = inputs.errors.last().unwrap();
    assert!(matches!(last.problem, InputProblem::More));
}

/// Each of these texts is far below the limit; all of them together exceed it.
#[test]
fn aliases_of_all_files_share_one_limit() {
    let folder = tempfile::tempdir().unwrap();
    let data = "x".repeat(1000);
    let aliases = "*a, ".repeat(1000);
    let text = format!("{}data: &a {data}\nall: [{aliases}]\n", config_map("a"));
    for file in 0..100 {
        fs::write(folder.path().join(format!("{file:03}.yaml")), &text).unwrap();
    }
    let inputs = Inputs::read(&[folder.path().to_owned()], io::empty());
    let read = inputs.objects.len();
    assert!((50..70).contains(&read), "{read}");
    for error in &inputs.errors {
        let text = error.to_string();
        assert!(
            text.contains("expand to more than 67108864 bytes"),
            "{text}"
        );
    }
    assert_eq!(read + inputs.errors.len(), 100);
}
