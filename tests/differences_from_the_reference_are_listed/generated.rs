//! Generated TrainJobs and runtimes, as users write them. Most are valid, some are not.

mod flux;
mod gang;
mod job;
#[path = "../../host/api/tests/merge_inputs/parts.rs"]
#[allow(dead_code, unreachable_pub)]
mod parts;
mod pod;
mod runtime;
mod spoilt;
mod torchtune;

use std::{
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

use proptest::{
    prelude::*,
    strategy::{BoxedStrategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Map, Value};
use trainyard_api::yaml;

/// The framework of the runtimes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Framework {
    Torch,
    Torchtune,
    Flux,
    Mpi,
    Jax,
    Xgboost,
    /// Any of the frameworks, with a gang.
    Coscheduling,
    Volcano,
}

impl Framework {
    pub(crate) const ALL: [Self; 8] = [
        Self::Torch,
        Self::Torchtune,
        Self::Flux,
        Self::Mpi,
        Self::Jax,
        Self::Xgboost,
        Self::Coscheduling,
        Self::Volcano,
    ];
}

/// The number from which inputs are generated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed([u8; 32]);

impl Seed {
    /// The seed of the inputs whose answers are checked in.
    pub(crate) const KEPT: Self = Self([12; 32]);

    /// Returns a new seed for each run, or the one in `TRAINYARD_ORACLE_SEED`, and prints it.
    pub(crate) fn of_run() -> Self {
        static NUMBER: LazyLock<u64> = LazyLock::new(|| {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let fresh = || u64::from(since_1970.subsec_nanos()) << 32 | since_1970.as_secs();
            std::env::var("TRAINYARD_ORACLE_SEED")
                .map_or_else(|_| fresh(), |seed| seed.parse().unwrap())
        });
        println!("TRAINYARD_ORACLE_SEED={} repeats this run", *NUMBER);
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&NUMBER.to_le_bytes());
        Self(seed)
    }
}

/// Returns the first `count` inputs of a framework as the texts of files. They depend only on the seed.
pub(crate) fn inputs(
    framework: Framework,
    count: usize,
    seed: Seed,
) -> impl Iterator<Item = String> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed.0);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let claimed = pod::claimed();
    let parts = (
        runtime::runtime(framework),
        job::job(framework),
        flux::settings(),
        spoilt::damage(),
        gang::gang(framework),
        torchtune::settings(framework),
        prop::bool::weighted(0.9),
    );
    let input = parts.prop_map(
        move |(mut runtime, mut job, flux, damage, gang, torchtune, fits)| {
            job["spec"]["runtimeRef"] = runtime::reference(&runtime);
            if fits {
                job::remove_unknown_initializers(&mut job, &runtime);
            }
            if framework == Framework::Flux {
                flux.apply(&mut runtime, &mut job);
            }
            if let Some(torchtune) = torchtune {
                torchtune.apply(&mut runtime, &mut job);
            }
            let of_gang = gang.map(|gang| gang.apply(&mut runtime, &mut job));
            let of_gang = of_gang.unwrap_or_default();
            if let Some(damage) = damage {
                damage.apply(&mut runtime, &mut job);
            }
            let documents = [&runtime, &job].into_iter().chain(&claimed);
            yaml::write_documents(documents.chain(&of_gang))
        },
    );
    (0..count).map(move |_| input.new_tree(&mut runner).unwrap().current())
}

/// Returns an object with some fields, each with a probability by its weight.
fn fields(fields: Vec<(&'static str, f64, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let each: Vec<_> = fields
        .into_iter()
        .map(|(name, weight, value)| {
            prop::option::weighted(weight, value.prop_map(move |value| (name, value)))
        })
        .collect();
    let named = |fields: Vec<Option<(&'static str, Value)>>| {
        let given = fields.into_iter().flatten();
        Value::Object(
            given
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Map<_, _>>(),
        )
    };
    each.prop_map(named).boxed()
}

/// Returns one of some values. Repeated ones are more frequent.
fn one_of(values: Vec<Value>) -> BoxedStrategy<Value> {
    prop::sample::select(values).boxed()
}

/// Returns a list of the items that were drawn.
fn list(items: Vec<(f64, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let each: Vec<_> = items
        .into_iter()
        .map(|(weight, item)| prop::option::weighted(weight, item))
        .collect();
    each.prop_map(|items| items.into_iter().flatten().collect())
        .boxed()
}
