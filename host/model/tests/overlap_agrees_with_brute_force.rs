//! Whether claims overlap, cover, read or create around each other agrees with brute force over every field of a small universe, and every
//! path round-trips.

use std::{collections::BTreeSet, sync::LazyLock};

use proptest::prelude::*;
use trainyard_model::{
    claims::{ClaimPath, ClaimScope, KeyPattern, MAX_PATH, PodSetPattern, Variable},
    record::{Field, Level},
    text::clean,
};

/// Every pattern matches at least two keys; `z` matches no literal and no prefix.
const KEYS: [&str; 9] = ["a", "aa", "ab", "aba", "abb", "b", "ba", "bb", "z"];
const NAMES: [&str; 5] = ["a", "ab", "aba", "b", "z"];
/// No plugin claims `u`.
const ANCESTORS: [Option<&str>; 4] = [None, Some("t"), Some("m"), Some("u")];
const FIELDS: [Field; 11] = [
    Field::Labels,
    Field::Annotations,
    Field::Volumes,
    Field::PriorityClass,
    Field::Containers,
    Field::InitContainers,
    Field::Env,
    Field::Ports,
    Field::Image,
    Field::PodRaw,
    Field::ContainerRaw,
];
const LISTS: [Field; 2] = [Field::Containers, Field::InitContainers];

type Set = (&'static str, Option<&'static str>, bool);

/// One place of the universe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    pod_set: Option<Set>,
    /// Its list and name, and whether no plugin added it.
    container: Option<(Field, &'static str, bool)>,
    field: Field,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The one value of a field.
    Value,
    /// The value of a key.
    Key(&'static str),
    /// The set of keys.
    Keys,
}

static UNIVERSE: LazyLock<Vec<Place>> = LazyLock::new(|| {
    let sets: Vec<Set> = NAMES
        .into_iter()
        .flat_map(|name| ANCESTORS.map(|ancestor| (name, ancestor)))
        .flat_map(|(name, ancestor)| [true, false].map(|is_node| (name, ancestor, is_node)))
        .collect();
    let containers: Vec<(Field, &str, bool)> = LISTS
        .into_iter()
        .flat_map(|list| [(list, true), (list, false)])
        .flat_map(|(list, is_base)| NAMES.map(|name| (list, name, is_base)))
        .collect();
    let mut out = Vec::new();
    for field in FIELDS {
        let mut whats = vec![What::Value];
        if field.is_keyed() {
            whats = KEYS.map(What::Key).to_vec();
            whats.push(What::Keys);
        }
        let scopes: Vec<(Option<Set>, Option<(Field, &str, bool)>)> = match field.level() {
            Level::Job => vec![(None, None)],
            Level::PodSet => sets.iter().map(|set| (Some(*set), None)).collect(),
            Level::Container => sets
                .iter()
                .flat_map(|set| containers.iter().map(|c| (Some(*set), Some(*c))))
                .collect(),
        };
        for (pod_set, container) in scopes {
            out.extend(whats.iter().map(|what| Place {
                pod_set,
                container,
                field,
                what: *what,
            }));
        }
    }
    out
});

/// The values of the variables. `None`: each occurrence may be anything.
type Values = Option<(&'static str, &'static str)>;

fn key_means(key: &KeyPattern, text: &str, values: Values) -> bool {
    match key {
        KeyPattern::Any => true,
        KeyPattern::Set | KeyPattern::Base | KeyPattern::Objects(_) => false,
        KeyPattern::Literal(literal) => **literal == *text,
        KeyPattern::Prefix(prefix) => text.starts_with(&**prefix),
        KeyPattern::Variable(variable) => values.is_none_or(|(job, config)| match variable {
            Variable::Job => job == text,
            Variable::Config(_) => config == text,
            Variable::Port { .. } => unreachable!("not generated"),
        }),
    }
}

fn means(path: &ClaimPath, place: &Place, values: Values) -> bool {
    if path.field != place.field {
        return false;
    }
    let in_sets = |sets: &PodSetPattern| {
        let (name, ancestor, is_node) = place.pod_set.unwrap();
        match sets {
            PodSetPattern::Named(key) => key_means(key, name, values),
            PodSetPattern::Ancestor(wanted) => ancestor == Some(&**wanted),
            PodSetPattern::Nodes => is_node,
        }
    };
    let in_scope = match &path.scope {
        ClaimScope::Job => true,
        ClaimScope::PodSet(sets) => in_sets(sets),
        ClaimScope::Container {
            pod_sets,
            list,
            name,
        } => {
            let (place_list, place_name, is_base) = place.container.unwrap();
            let is_named = match name {
                KeyPattern::Base => is_base,
                name => key_means(name, place_name, values),
            };
            in_sets(pod_sets) && *list == place_list && is_named
        }
    };
    in_scope
        && match (&path.key, place.what) {
            (None, What::Value) => true,
            (Some(KeyPattern::Set), What::Keys) => true,
            (Some(key), What::Key(text)) => key_means(key, text, values),
            _ => false,
        }
}

fn places(path: &ClaimPath, values: Values) -> BTreeSet<Place> {
    let meant = UNIVERSE.iter().filter(|place| means(path, place, values));
    meant.copied().collect()
}

/// What a write changes: its places, and the sets of keys that they are in.
fn changed(write: &ClaimPath) -> BTreeSet<Place> {
    let written = places(write, None);
    let sets = written
        .iter()
        .filter(|place| matches!(place.what, What::Key(_)))
        .map(|place| Place {
            what: What::Keys,
            ..*place
        });
    written.iter().copied().chain(sets).collect()
}

/// The fields that `create` of a container covers: the container, the keys of its lists, and everything in it.
fn around(create: &ClaimPath) -> BTreeSet<Place> {
    let created = places(create, None);
    let is_inside = |place: &&Place| match place.container {
        Some((list, name, false)) => created.contains(&Place {
            container: None,
            field: list,
            what: What::Key(name),
            ..**place
        }),
        _ => false,
    };
    let inside = UNIVERSE.iter().filter(is_inside).copied();
    changed(create).into_iter().chain(inside).collect()
}

fn literal() -> impl Strategy<Value = KeyPattern> {
    prop::sample::select(vec!["a", "ab", "aba", "b"])
        .prop_map(|text| KeyPattern::Literal(text.into()))
}

fn name() -> impl Strategy<Value = KeyPattern> {
    prop_oneof![
        1 => Just(KeyPattern::Any),
        3 => literal(),
        2 => prop::sample::select(vec!["a", "ab"]).prop_map(|text| KeyPattern::Prefix(text.into())),
        1 => Just(KeyPattern::Variable(Variable::Job)),
        1 => Just(KeyPattern::Variable(Variable::Config("/x".into()))),
    ]
}

fn container() -> impl Strategy<Value = KeyPattern> {
    prop_oneof![6 => name(), 1 => Just(KeyPattern::Base)]
}

fn pod_sets() -> impl Strategy<Value = PodSetPattern> {
    prop_oneof![
        2 => name().prop_map(PodSetPattern::Named),
        1 => prop::sample::select(vec!["t", "m"]).prop_map(|text| PodSetPattern::Ancestor(text.into())),
        1 => Just(PodSetPattern::Nodes),
    ]
}

fn path_of(
    fields: Vec<Field>,
    key: impl Strategy<Value = KeyPattern> + Clone + 'static,
) -> impl Strategy<Value = ClaimPath> {
    let scope = (
        pod_sets(),
        prop::sample::select(LISTS.to_vec()),
        container(),
    );
    (prop::sample::select(fields), scope, key).prop_map(|(field, (pod_sets, list, name), key)| {
        ClaimPath {
            scope: match field.level() {
                Level::Job => ClaimScope::Job,
                Level::PodSet => ClaimScope::PodSet(pod_sets),
                Level::Container => ClaimScope::Container {
                    pod_sets,
                    list,
                    name,
                },
            },
            field,
            key: field.is_keyed().then_some(key),
        }
    })
}

fn write() -> impl Strategy<Value = ClaimPath> {
    path_of(FIELDS.to_vec(), name().boxed())
}

fn read() -> impl Strategy<Value = ClaimPath> {
    path_of(
        FIELDS.to_vec(),
        prop_oneof![4 => name(), 1 => Just(KeyPattern::Set)].boxed(),
    )
}

fn create() -> impl Strategy<Value = ClaimPath> {
    path_of(LISTS.to_vec(), name().boxed())
}

/// A second path that often speaks of the same field as the first.
fn pair(first: impl Strategy<Value = ClaimPath>) -> impl Strategy<Value = (ClaimPath, ClaimPath)> {
    (first, read(), any::<bool>()).prop_map(|(first, mut second, same)| {
        if same && first.field.level() == second.field.level() {
            second.field = first.field;
            second.key = match (first.field.is_keyed(), second.key) {
                (false, _) => None,
                (true, key) => Some(key.unwrap_or(KeyPattern::Any)),
            };
        }
        (first, second)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn paths_overlap_if_both_match_one_field((a, b) in pair(read())) {
        let expected = UNIVERSE.iter().any(|it| means(&a, it, None) && means(&b, it, None));
        prop_assert_eq!(a.overlaps(&b), expected, "{} and {}", a, b);
        prop_assert_eq!(b.overlaps(&a), expected, "{} and {}", b, a);
    }

    #[test]
    fn path_covers_another_if_it_matches_all_its_fields((a, b) in pair(read())) {
        // Both are claims of one plugin, whose variables have the same values.
        let values = ["a", "ab", "z"];
        let expected = values.into_iter().flat_map(|job| values.map(|config| Some((job, config))))
            .all(|values| UNIVERSE.iter().all(|it| !means(&b, it, values) || means(&a, it, values)));
        prop_assert_eq!(a.covers(&b), expected, "{} over {}", a, b);
    }

    #[test]
    fn reads_overlap_writes_that_change_them((write, read) in pair(write())) {
        let expected = !places(&read, None).is_disjoint(&changed(&write));
        prop_assert_eq!(read.sees_write(&write), expected, "{} sees {}", read, write);
    }

    #[test]
    fn create_claims_contain_claims_on_the_container(create in create(), other in read()) {
        let expected = !places(&other, None).is_disjoint(&around(&create));
        prop_assert_eq!(create.creates_around(&other), expected, "{} around {}", create, other);
    }

    #[test]
    fn paths_round_trip(path in any_path()) {
        let text = path.to_string();
        let mut compared = path;
        compared.key = compared.key.map(|key| key.in_field(compared.field));
        prop_assert_eq!(text.parse::<ClaimPath>(), Ok(compared), "{}", text);
    }

    #[test]
    fn intersection_is_matched_by_both_paths((a, b) in pair(read())) {
        if a.overlaps(&b) {
            let place = a.meet(&b);
            prop_assert!(place.overlaps(&a) && place.overlaps(&b), "{} of {} and {}", place, a, b);
            prop_assert!(!(a.covers(&b) && place != b && !b.covers(&a)), "{} of {} and {}", place, a, b);
        }
    }
}

/// Texts that no pattern cuts short.
fn text(pattern: &'static str, not: &'static [char]) -> impl Strategy<Value = Box<str>> {
    prop::string::string_regex(pattern)
        .unwrap()
        .prop_filter("control characters are refused", |text| {
            clean(text) == *text
        })
        .prop_filter("not in this place", move |text| !text.contains(not))
        .prop_map(Into::into)
}

fn any_key() -> impl Strategy<Value = KeyPattern> {
    prop_oneof![
        3 => text(r#"[ -~é\[\]"\\*$@#.]{0,20}"#, &[]).prop_map(KeyPattern::Literal),
        1 => text("[a-zA-Z_/.-][!-~]{0,12}", &[']', '"', '*']).prop_map(KeyPattern::Prefix),
        1 => text("/[!-~]{0,12}", &[']', '"']).prop_map(|pointer| KeyPattern::Variable(Variable::Config(pointer))),
        1 => Just(KeyPattern::Variable(Variable::Job)),
        1 => Just(KeyPattern::Any),
    ]
}

fn any_path() -> impl Strategy<Value = ClaimPath> {
    let sets = prop_oneof![
        any_key().prop_map(PodSetPattern::Named),
        text("[a-z][!-~]{0,12}", &[']', '"', '*', '@']).prop_map(PodSetPattern::Ancestor),
        Just(PodSetPattern::Nodes),
    ];
    let key = prop_oneof![4 => any_key(), 1 => Just(KeyPattern::Set)];
    let field = prop::sample::select(Field::ALL.to_vec());
    (
        field,
        sets,
        prop::sample::select(LISTS.to_vec()),
        prop_oneof![6 => any_key(), 1 => Just(KeyPattern::Base)],
        key,
    )
        .prop_map(|(field, pod_sets, list, name, key)| ClaimPath {
            scope: match field.level() {
                Level::Job => ClaimScope::Job,
                Level::PodSet => ClaimScope::PodSet(pod_sets),
                Level::Container => ClaimScope::Container {
                    pod_sets,
                    list,
                    name,
                },
            },
            field,
            key: field.is_keyed().then_some(key),
        })
}

#[test]
fn invalid_paths_are_refused_with_a_reason() {
    let long = format!("labels[{}]", "x".repeat(512));
    for (path, problem) in [
        ("", "name is missing"),
        ("nodes[a]", "valid fields are labels"),
        ("labels", "needs a key"),
        ("labels[]", "the key is empty"),
        ("labels[a", "is not closed"),
        ("labels[\"a]", "is not closed"),
        ("labels[a]b", "must follow"),
        ("labels[a].x", "has no fields below it"),
        ("labels[a*b]", "only at the end"),
        ("labels[**]", "only at the end"),
        ("labels[$x]", "a variable is"),
        ("labels[$config.x]", "a variable is"),
        ("labels[a\u{1b}]", "control characters"),
        ("pod-sets.volumes[a]", "needs a key"),
        ("pod-sets[a]", "a field must follow"),
        ("pod-sets[a].priority-class[x]", "takes no key"),
        ("pod-sets[#].volumes[a]", "the set of keys"),
        ("pod-sets[@].volumes[a]", "`@` must be followed by"),
        ("pod-sets[@@a].volumes[a]", "`@` must be followed by"),
        ("pod-sets[@a*].volumes[a]", "`@` must be followed by"),
        ("pod-sets[a].containers[#].image", "the set of keys"),
        (
            "pod-sets[a].containers[@trainer].image",
            "the only container name that begins with `@`",
        ),
        ("pod-sets[a].containers.image", "needs a key"),
        (
            "pod-sets[a].containers[b].volumes[c]",
            "valid fields are image",
        ),
        ("pod-sets[a].volumes[b].image", "has no fields below it"),
        (&long, "longer than 512 bytes"),
    ] {
        let error = path.parse::<ClaimPath>().unwrap_err().to_string();
        assert!(error.contains(problem), "{path}: {error}");
        assert!(!error.contains('\u{1b}'));
    }
    let longest = format!("labels[{}]", "x".repeat(MAX_PATH - "labels[]".len()));
    assert_eq!(longest.parse::<ClaimPath>().unwrap().to_string(), longest);
}
