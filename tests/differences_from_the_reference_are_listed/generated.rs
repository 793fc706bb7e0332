//! Generated TrainJobs and runtimes, as users write them. Most are valid, some are not.

pub(crate) mod gang;
mod job;
#[path = "../../host/api/tests/merge_inputs/parts.rs"]
#[allow(dead_code, unreachable_pub)]
pub(crate) mod parts;
mod pod;
pub(crate) mod runtime;
mod spoilt;

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::{SystemTime, UNIX_EPOCH},
};

use proptest::{
    prelude::*,
    strategy::{BoxedStrategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Map, Value};
use trainyard_api::yaml;

use super::plugins::PLUGINS;

/// How the inputs of a policy are generated.
#[derive(Clone, Copy)]
pub(crate) struct Generator {
    /// Its name, which the names of its inputs contain.
    pub(crate) name: &'static str,
    /// The number of inputs whose answers are checked in.
    pub(crate) kept: usize,
    /// Generates the runtimes.
    pub(crate) runtime: fn() -> BoxedStrategy<Value>,
    /// Env vars that are reserved, some of which TrainJobs set.
    pub(crate) reserved_env: &'static [&'static str],
    /// The end of the numbers of processes that TrainJobs set.
    pub(crate) most_processes: i64,
    /// Further replicated jobs that TrainJobs patch.
    pub(crate) patched: &'static [&'static str],
    /// Generates changes of a runtime and its TrainJob.
    pub(crate) change: fn() -> BoxedStrategy<Change>,
}

impl Generator {
    /// Returns the generator of a policy whose TrainJobs are like those of Torch.
    pub(crate) const fn new(name: &'static str, runtime: fn() -> BoxedStrategy<Value>) -> Self {
        Self {
            name,
            kept: 40,
            runtime,
            reserved_env: &["PET_NNODES"],
            most_processes: 9,
            patched: &[],
            change: || Just(Change::new(|_, _| Vec::new())).boxed(),
        }
    }
}

/// Returns the generators of all plugins.
pub(crate) fn generators() -> impl Iterator<Item = &'static Generator> {
    PLUGINS.iter().flat_map(|(_, generators)| *generators)
}

/// A change of a runtime and its TrainJob, which returns further objects of the input.
#[derive(Clone)]
pub(crate) struct Change(Arc<Apply>);

type Apply = dyn Fn(&mut Value, &mut Value) -> Vec<Value>;

impl Change {
    pub(crate) fn new(apply: impl Fn(&mut Value, &mut Value) -> Vec<Value> + 'static) -> Self {
        Self(Arc::new(apply))
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Change")
    }
}

/// The number from which inputs are generated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed([u8; 32]);

impl Seed {
    /// The seed of the inputs whose answers are checked in.
    pub(crate) const KEPT: Self = Self([12; 32]);

    /// Returns a new seed for each run, or the one in `PROPTEST_RNG_SEED`, and prints it.
    pub(crate) fn of_run() -> Self {
        static NUMBER: LazyLock<u64> = LazyLock::new(|| {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let fresh = || u64::from(since_1970.subsec_nanos()) << 32 | since_1970.as_secs();
            std::env::var("PROPTEST_RNG_SEED")
                .map_or_else(|_| fresh(), |seed| seed.parse().unwrap())
        });
        println!(
            "PROPTEST_RNG_SEED={} make test-reference repeats this run",
            *NUMBER
        );
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&NUMBER.to_le_bytes());
        Self(seed)
    }
}

/// Returns the first `count` inputs of a policy as the texts of files. They depend only on the seed.
pub(crate) fn inputs(
    generator: &Generator,
    count: usize,
    seed: Seed,
) -> impl Iterator<Item = String> + use<> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed.0);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let claimed = pod::claimed();
    let parts = (
        (generator.runtime)(),
        job::job(generator),
        (generator.change)(),
        spoilt::damage(),
        prop::bool::weighted(0.9),
    );
    let input = parts.prop_map(move |(mut runtime, mut job, change, damage, fits)| {
        job["spec"]["runtimeRef"] = runtime::reference(&runtime);
        if fits {
            job::remove_unknown_initializers(&mut job, &runtime);
        }
        let further = (change.0)(&mut runtime, &mut job);
        if let Some(damage) = damage {
            damage.apply(&mut runtime, &mut job);
        }
        let documents = [&runtime, &job].into_iter().chain(&claimed);
        yaml::write_documents(documents.chain(&further))
    });
    (0..count).map(move |_| input.new_tree(&mut runner).unwrap().current())
}

/// Returns an object with some fields, each with a probability by its weight.
pub(crate) fn fields(
    fields: Vec<(&'static str, f64, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Value> {
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
pub(crate) fn one_of(values: Vec<Value>) -> BoxedStrategy<Value> {
    prop::sample::select(values).boxed()
}

/// Returns a list of the items that were drawn.
pub(crate) fn list(items: Vec<(f64, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let each: Vec<_> = items
        .into_iter()
        .map(|(weight, item)| prop::option::weighted(weight, item))
        .collect();
    each.prop_map(|items| items.into_iter().flatten().collect())
        .boxed()
}
