//! A component that imports, exports or declares anything outside the contract is refused by name before it is compiled, and one with other
//! types before any of its code runs.

use trainyard_model::{
    contract::{VERSION, interface},
    manifest::ManifestError,
};
use trainyard_sandbox::{LinkError, LoadLimits, LoadProblem, Loader, ScreenError};

use crate::common::{
    ENV_CLAIMS, changed_contract, component_in, contract, good, load, loader, loader_with,
    manifest, next_job_renders, transform_core, with_custom,
};

fn problem(loader: &Loader, bytes: Vec<u8>) -> LoadProblem {
    match load(loader, bytes) {
        Ok(_) => panic!("it was loaded"),
        Err(problem) => problem,
    }
}

fn screen_error(bytes: Vec<u8>) -> ScreenError {
    match problem(&loader(), bytes) {
        LoadProblem::Screen(error) => error,
        other => panic!("it was not refused by screening: {other}"),
    }
}

fn with_manifest(component: Vec<u8>) -> Vec<u8> {
    with_custom(
        component,
        "trainyard:manifest",
        manifest("transform", ENV_CLAIMS).as_bytes(),
    )
}

fn imports_of(error: ScreenError) -> Vec<String> {
    match error {
        ScreenError::Imports(names) => names,
        other => panic!("{other}"),
    }
}

#[test]
fn wasi_import_is_refused_by_name() {
    let wasi = "package wasi:cli@0.2.0; interface environment { get-environment: func() -> list<tuple<string, string>>; }";
    let resolve = changed_contract(
        &[wasi],
        &[(
            "world transformer {",
            "world transformer {\n    import wasi:cli/environment@0.2.0;",
        )],
    );
    let import =
        r#"(import "wasi:cli/environment@0.2.0" "get-environment" (func $wasi (param i32)))"#;
    let core = transform_core("", "").replacen("(module", &format!("(module {import}"), 1);
    let names = imports_of(screen_error(with_manifest(component_in(
        &resolve,
        "transformer",
        &core,
    ))));
    assert_eq!(names, ["wasi:cli/environment@0.2.0"]);
    next_job_renders(&loader());
}

#[test]
fn unknown_method_is_refused_by_name() {
    let resolve = changed_contract(
        &[],
        &[(
            "supports: func(feature: string) -> bool;",
            "supports: func(feature: string) -> bool;\n escape: func();",
        )],
    );
    let import = r#"(import "trainyard:policy/context@1.0.0" "[method]context.escape" (func $escape (param i32)))"#;
    let core = transform_core("", "").replacen("(module", &format!("(module {import}"), 1);
    let names = imports_of(screen_error(with_manifest(component_in(
        &resolve,
        "transformer",
        &core,
    ))));
    assert_eq!(
        names,
        [format!("{}#[method]context.escape", interface("context"))]
    );
}

#[test]
fn other_contract_version_is_refused() {
    let resolve = changed_contract(&[], &[(&format!("@{VERSION};"), "@2.0.0;")]);
    let core = transform_core("", "").replace("@1.0.0", "@2.0.0");
    let component = component_in(&resolve, "transformer", &core);
    let names = imports_of(screen_error(with_manifest(component.clone())));
    assert!(names.iter().all(|name| name.contains("@2.0.0")) && !names.is_empty());

    let newer =
        manifest("transform", ENV_CLAIMS).replace(r#""contract":"1.0.0""#, r#""contract":"2.0.0""#);
    let error = screen_error(with_custom(
        component,
        "trainyard:manifest",
        newer.as_bytes(),
    ));
    assert!(
        matches!(&error, ScreenError::Manifest(ManifestError::Newer { theirs, .. }) if theirs == "2.0.0"),
        "{error}"
    );
}

#[test]
fn export_that_is_not_a_phase_is_refused() {
    let resolve = changed_contract(
        &[],
        &[(
            "world transformer {",
            "interface shell { run: func(); }\nworld transformer {\n    export shell;",
        )],
    );
    let core = transform_core(r#"(func (export "trainyard:policy/shell@1.0.0#run"))"#, "");
    let error = screen_error(with_manifest(component_in(&resolve, "transformer", &core)));
    assert!(
        matches!(&error, ScreenError::Exports(names) if names == &[interface("shell")]),
        "{error}"
    );
}

#[test]
fn undeclared_phases_are_refused() {
    let component = component_in(&contract(), "transformer", &transform_core("", ""));
    let error = screen_error(with_custom(
        component,
        "trainyard:manifest",
        manifest("check", "{}").as_bytes(),
    ));
    assert!(matches!(error, ScreenError::Phases { .. }), "{error}");
}

#[test]
fn exactly_one_top_level_manifest_is_required() {
    let bare = component_in(&contract(), "transformer", &transform_core("", ""));
    assert!(matches!(
        screen_error(bare.clone()),
        ScreenError::Manifests(0)
    ));
    assert!(matches!(
        screen_error(with_manifest(good())),
        ScreenError::Manifests(2)
    ));
    let inside = r#"(@custom "trainyard:manifest" "{}")"#;
    let core = transform_core(inside, "");
    let component = component_in(&contract(), "transformer", &core);
    assert!(matches!(screen_error(component), ScreenError::Manifests(0)));
    let huge = vec![b' '; 300 << 10];
    let error = screen_error(with_custom(bare, "trainyard:manifest", &huge));
    assert!(
        matches!(error, ScreenError::Manifest(ManifestError::TooLong(_))),
        "{error}"
    );
}

#[test]
fn export_of_the_wrong_type_is_refused_before_it_is_called() {
    let resolve = changed_contract(
        &[],
        &[(
            "transform: func(ctx: context) -> result<_, failure>;",
            "transform: func(ctx: context) -> u32;",
        )],
    );
    let error = problem(
        &loader(),
        with_manifest(component_in(
            &resolve,
            "transformer",
            &transform_core("", ""),
        )),
    );
    assert!(
        matches!(
            &error,
            LoadProblem::Link {
                problem: LinkError::Types(_),
                ..
            }
        ),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains("mole 0.3.1") && text.contains("transform"),
        "{text}"
    );
}

#[test]
fn import_of_the_wrong_type_is_refused_before_anything_runs() {
    let resolve = changed_contract(
        &[],
        &[(
            "because: func(text: string);",
            "because: func(text: list<u8>);",
        )],
    );
    // A start function that would be seen, did it run.
    let core = transform_core("(func $start unreachable) (start $start)", "");
    let error = problem(
        &loader_with(LoadLimits::default(), None),
        with_manifest(component_in(&resolve, "transformer", &core)),
    );
    assert!(
        matches!(
            &error,
            LoadProblem::Link {
                problem: LinkError::Types(_),
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("because"), "{error}");
}
