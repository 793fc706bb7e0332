//! Every file in a test folder is a module of one of the folder's programs; otherwise it would never run. What runs only outside of CI is named
//! where a promise rests on it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::common::{root, sources};

/// The test programs of host/controller. One counts what its whole process allocates.
const OF_THE_CONTROLLER: [&str; 2] = ["main", "train_jobs_that_are_gone_leave_no_memory"];

/// The folders of tests, with the programs in each.
fn folders() -> Vec<(PathBuf, Vec<String>)> {
    let root = root();
    let crates = ["host", "plugins", "tools"]
        .into_iter()
        .flat_map(|rooms| fs::read_dir(root.join(rooms)).unwrap())
        .map(|entry| entry.unwrap().path().join("tests"));
    crates
        .chain([
            root.join("tests"),
            root.join("tests/cluster/tests"),
            root.join("tests/fuzz/tests"),
            root.join("tests/pods/tests"),
        ])
        .filter(|folder| folder.is_dir())
        .map(|folder| match folder.ends_with("controller/tests") {
            true => (folder, OF_THE_CONTROLLER.map(str::to_owned).into()),
            false => (folder, vec!["main".to_owned()]),
        })
        .collect()
}

#[test]
fn every_test_file_is_a_module_of_a_program() {
    let folders = folders();
    assert!(folders.len() > 8, "{folders:?}");
    let mut missing = Vec::new();
    for (folder, programs) in folders {
        let of = |name: &String| fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        let lists: String = programs.iter().map(of).collect();
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let is_module =
                path.extension().is_some_and(|end| end == "rs") && !programs.contains(&name);
            if is_module && !lists.contains(&format!("\nmod {name};")) {
                missing.push(path);
            }
        }
    }
    assert!(
        missing.is_empty(),
        "these are no `mod` of a program of their folder: {missing:#?}"
    );
}

/// Returns the groups of tests/cluster that `make test-cluster` runs.
fn groups_of_make_test_cluster() -> Vec<String> {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let (_, groups) = makefile.split_once("\nCLUSTER := ").unwrap();
    let groups = groups.lines().next().unwrap().split(' ');
    groups.map(str::to_owned).collect()
}

/// Cargo runs none of them by itself.
#[test]
fn every_group_of_tests_of_the_cluster_has_a_target() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let (makefile, program) = (read("Makefile"), read("tests/cluster/tests/main.rs"));
    let (_, groups) = program.split_once("\nconst GROUPS: ").unwrap();
    let (groups, _) = groups.split_once("\n];").unwrap();
    let groups: Vec<_> = groups.split('"').skip(1).step_by(2).collect();
    assert!(groups.len() > 8, "{groups:?}");
    let of_cluster = groups_of_make_test_cluster();
    let words: Vec<_> = makefile.split_whitespace().collect();
    for group in groups {
        let mut commands = words.windows(4);
        let is_named = commands.any(|words| words == ["--test", "cluster", "--", group]);
        assert!(
            is_named || of_cluster.iter().any(|of_cluster| of_cluster == group),
            "no target runs {group}"
        );
    }
}

/// A library with `test = false` has no tests of its own, so no program is built for them.
#[test]
fn libraries_without_a_test_program_have_no_tests() {
    let mut found = Vec::new();
    for folder in ["host", "plugins", "tests", "tools"] {
        sources(&root().join(folder), &mut found);
    }
    let has_no_program = |package: &Path| {
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap_or_default();
        let library = manifest
            .split("\n[")
            .find(|table| table.starts_with("lib]"));
        library.is_some_and(|table| table.contains("\ntest = false"))
    };
    let of_library = |file: &&PathBuf| {
        let mut folders = file.ancestors();
        let source = folders.find(|folder| folder.ends_with("src"));
        source.and_then(Path::parent).is_some_and(has_no_program)
    };
    let of_libraries: Vec<_> = found.iter().filter(of_library).collect();
    assert!(of_libraries.len() > 50, "{of_libraries:?}");
    let has_test = |file: &&&PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    };
    let never_run: Vec<_> = of_libraries.iter().filter(has_test).collect();
    assert!(
        never_run.is_empty(),
        "these are never run, because the library has `test = false`: {never_run:?}"
    );
}

/// The suites of `make test-nightly` are those of which docs/guarantees.md says when they last ran.
#[test]
fn suites_outside_of_ci_say_when_they_last_ran() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let (makefile, page) = (read("Makefile"), read("docs/guarantees.md"));
    let (_, recipe) = makefile.split_once("\ntest-nightly: ").unwrap();
    let (_, recipe) = recipe.split_once("--keep-going ").unwrap();
    let (targets, _) = recipe.split_once('\n').unwrap();
    let targets: Vec<_> = targets.split_whitespace().collect();
    assert!(targets.len() > 10, "{targets:?}");
    let (_, section) = page
        .split_once("\n## Suites outside of `.ci/run`\n")
        .unwrap();
    let is_said = |target: &&&str| section.contains(&format!("\n| `make {target}` |"));
    let unsaid: Vec<_> = targets.iter().filter(|target| !is_said(target)).collect();
    assert!(
        unsaid.is_empty(),
        "docs/guarantees.md does not say when these ran: {unsaid:?}"
    );
}

/// Returns the files of the groups of tests/cluster that `make test-cluster` does not run.
fn files_of_other_groups() -> BTreeSet<String> {
    let program = fs::read_to_string(root().join("tests/cluster/tests/main.rs")).unwrap();
    let of_ci = groups_of_make_test_cluster();
    let (mut inside, mut outside) = (BTreeSet::new(), BTreeSet::new());
    for function in program.split("\nfn ").skip(1) {
        let (name, body) = function.split_once('(').unwrap();
        let words = body.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_file = |word: &&str| program.contains(&format!("\nmod {word};"));
        let files = words.filter(is_file).map(str::to_owned);
        match of_ci.iter().any(|group| group == name) {
            true => inside.extend(files),
            false => outside.extend(files),
        }
    }
    assert!(inside.len() > 30 && outside.len() > 10, "{inside:?}");
    &outside - &inside
}

/// Returns whether `make test` ignores all tests of a file.
fn is_ignored(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let count = |attribute: &str| text.matches(attribute).count();
    let tests = count("#[test]") + count("#[tokio::test");
    tests > 0 && count("#[ignore") == tests
}

#[test]
fn rows_of_the_guarantees_say_which_command_runs_their_tests() {
    let outside = files_of_other_groups();
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let (rows, _) = page.split_once("\n## Suites outside").unwrap();
    let mut unsaid = Vec::new();
    for row in rows.lines().filter(|line| line.starts_with('|')) {
        let links = row.split("](../").skip(1).map(|rest| {
            let (path, _) = rest.split_once(')').unwrap();
            path.split('#').next().unwrap()
        });
        let is_elsewhere = |path: &&str| {
            let name = Path::new(path).file_stem().unwrap().to_str().unwrap();
            path.starts_with("tests/cluster/tests/") && outside.contains(name)
                || path.ends_with(".rs") && is_ignored(&root().join(path))
        };
        let elsewhere: Vec<_> = links.filter(is_elsewhere).collect();
        if !elsewhere.is_empty() && !row.contains("`make ") {
            unsaid.push(elsewhere.join(", "));
        }
    }
    assert!(
        unsaid.is_empty(),
        "`make test` and `make test-cluster` do not run these, so their rows have to name the command: {unsaid:#?}"
    );
}
