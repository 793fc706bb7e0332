//! Mistakes, one of which is added to some inputs. An API server refuses them or drops the field.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

/// A mistake.
#[derive(Clone, Debug)]
pub(super) struct Damage {
    of_runtime: bool,
    /// The objects with the field.
    path: &'static [&'static str],
    value: Value,
}

impl Damage {
    pub(super) fn apply(self, runtime: &mut Value, job: &mut Value) {
        let mut place = if self.of_runtime { runtime } else { job };
        for field in self.path {
            place = if place.is_array() {
                &mut place[0]
            } else {
                &mut place[*field]
            };
        }
        *place = self.value;
    }
}

/// Adds a mistake to some inputs.
pub(super) fn damage() -> BoxedStrategy<Option<Damage>> {
    let twice = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    let of_job: Vec<(&'static [&'static str], Value)> = vec![
        (&["metadata", "name"], json!("Bert")),
        (&["metadata", "name"], json!("1-bert")),
        (&["metadata", "labels"], json!({"not a key": "x"})),
        (&["spec", "runtimeRef", "name"], json!("other")),
        (&["spec", "runtimeRef", "kind"], json!("Runtime")),
        (&["spec", "suspend"], json!("yes")),
        (&["spec", "managedBy"], json!("kueue.x-k8s.io/multikueue")),
        (&["spec", "managedBy"], json!("example.com/controller")),
        (&["spec", "activeDeadlineSeconds"], json!(0)),
        (
            &["spec", "initializer", "dataset", "storageUri"],
            json!("nowhere"),
        ),
        (&["spec", "trainer", "comand"], json!(["python"])),
        (&["spec", "trainer", "command"], json!("python train.py")),
        (&["spec", "trainer", "numNodes"], json!("two")),
        (&["spec", "trainer", "env"], twice),
        (
            &["spec", "trainer", "resourcesPerNode", "limits"],
            json!({"cpu": "many"}),
        ),
        (
            &["spec", "runtimePatches"],
            json!([{"manager": "example.com/a"}, {"manager": "example.com/a"}]),
        ),
    ];
    let of_runtime: Vec<(&'static [&'static str], Value)> = vec![
        (&["metadata", "name"], json!("Run_time")),
        (&["spec", "mlPolicy"], json!({"torch": {}, "jax": {}})),
        (&["spec", "mlPolicy"], json!({"jax": {}})),
        (&["spec", "mlPolicy", "numNodes"], json!("two")),
        (
            &["spec", "template", "spec", "startupPolicy"],
            json!({"startupPolicyOrder": "InOrder"}),
        ),
        (
            &[
                "spec",
                "template",
                "spec",
                "replicatedJobs",
                "0",
                "template",
                "spec",
                "parallelism",
            ],
            json!("two"),
        ),
        (
            &[
                "spec",
                "template",
                "spec",
                "replicatedJobs",
                "0",
                "template",
                "spec",
                "template",
                "spec",
                "restart",
            ],
            json!("Never"),
        ),
    ];
    let with = |of_runtime| {
        move |(path, value)| Damage {
            of_runtime,
            path,
            value,
        }
    };
    let all: Vec<_> = of_job
        .into_iter()
        .map(with(false))
        .chain(of_runtime.into_iter().map(with(true)))
        .collect();
    prop::option::weighted(0.12, prop::sample::select(all)).boxed()
}
