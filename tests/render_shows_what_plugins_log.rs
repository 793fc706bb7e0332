//! `render` prints what plugins log to standard error, and other commands only print their warnings and errors.

use std::fs;

use crate::common::{command, runtime, stderr, test_plugin};

#[test]
fn log_lines_have_their_plugin_and_train_job() {
    let folder = tempfile::tempdir().unwrap();
    let own = runtime(
        "name: own",
        "plugins: [{name: hostile, config: {does: behave}}],",
        "",
    );
    let job = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: bert}\nspec: {runtimeRef: {name: own}}\n";
    fs::write(folder.path().join("input.yaml"), format!("{own}---\n{job}")).unwrap();
    let hostile = test_plugin("hostile");
    let log = |name: &str, levels: &str| {
        let mut command = command(&[name, "-f", "input.yaml", "--plugin", &hostile]);
        let output = command
            .current_dir(folder.path())
            .env("TRAINYARD_LOG", levels)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let logged = log("render", "");
    assert!(logged.contains("it behaved"), "{logged}");
    assert!(
        logged.contains("hostile 0.1.0") && logged.contains("bert"),
        "{logged}"
    );
    assert_eq!(log("render", "error"), "");
    assert_eq!(log("explain", ""), "");
}
