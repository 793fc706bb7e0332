//! Replicas and API servers over years, without calls: a [`World`] has a Secret, webhook configurations whose changes API servers notice
//! later, and replicas that run the decisions of [`super::plan`].
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod errors;
mod world;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use proptest::prelude::*;
use trainyard_api::yaml;
use world::{Replica, World};
use zeroize::Zeroizing;

use super::{
    change::Change,
    issue::{self, AUTHORITY_LIFETIME, LEAF_LIFETIME},
    material::{
        Authority, CA_CERTIFICATE, CA_KEY, CERTIFICATE, Data, KEY, Leaf, Material, NEXT_CA_KEY,
        PrivateKey,
    },
    plan::{AUTHORITY_EARLY, LEAF_EARLY, Observed, PUBLISHED, SETTLED, SecretState, State},
};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + 57 * YEAR
}

fn names() -> Vec<String> {
    vec!["webhooks.a.svc".to_owned(), "manager.a.svc".to_owned()]
}

fn data(material: &Material) -> Data {
    let texts = material.data().into_iter();
    let texts = texts.filter_map(|(name, text)| Some((name.to_owned(), text?)));
    texts
        .map(|(name, text)| (name, Zeroizing::new(text.as_bytes().to_vec())))
        .collect()
}

#[test]
fn replicas_that_start_at_once_agree() {
    let mut world = World::new(3);
    world.settle();
    assert_eq!(world.changes, BTreeMap::from([("create", 1)]));
    let served = |world: &World, index: usize| world.replicas[index].served.clone().unwrap();
    for index in 0..3 {
        let (one, first) = (served(&world, index), served(&world, 0));
        assert!(one.authorities().eq(first.authorities()));
    }
    assert_eq!(world.ready(), 0);
    world.pass(SETTLED);
    assert!(world.all_ready());
}

#[test]
fn certificates_are_renewed_long_before_they_expire() {
    let mut world = World::started(2);
    world.pass(12 * YEAR);
    assert_eq!(world.changes["create"], 1);
    assert_eq!(world.changes["add-authority"], 1);
    assert_eq!(world.changes["use-next-authority"], 1);
    let renewals = world.changes["renew"] + 1;
    let least = usize::try_from(12 * YEAR.as_secs() / LEAF_LIFETIME.as_secs()).unwrap();
    assert!(renewals >= least && renewals <= 2 * least, "{renewals}");
    // The first authority has expired.
    let stored = world.stored();
    assert_eq!(stored.authorities().count(), 1);
    assert!(world.all_ready());
}

#[test]
fn a_certificate_is_renewed_in_time_and_by_the_same_authority() {
    let mut world = World::started(1);
    let before = world.stored();
    world.pass(LEAF_LIFETIME - LEAF_EARLY - 2 * DAY);
    assert_eq!(world.changes.get("renew"), None);
    world.pass(2 * DAY);
    assert_eq!(world.changes["renew"], 1);
    let after = world.stored();
    assert!(before.authorities().eq(after.authorities()));
    assert!(after.leaf.unwrap().not_after > before.leaf.unwrap().not_after);
}

#[test]
fn an_authority_is_trusted_a_day_before_it_signs() {
    let mut world = World::started(2);
    world.pass(AUTHORITY_LIFETIME - AUTHORITY_EARLY - DAY);
    let next = world.stored().next.unwrap().authority;
    for bundles in &world.bundles {
        assert!(Authority::all_of("", bundles.last().unwrap().1.as_bytes()).contains(&next));
    }
    let first = world.stored().signer.authority;
    world.pass(PUBLISHED - SECOND);
    assert_eq!(world.stored().signer.authority, first);
    world.pass(SECOND);
    assert_eq!(world.stored().signer.authority, next);
    assert!(world.stored().authorities().any(|it| *it == first));
    assert!(world.all_ready());
}

#[test]
fn a_deleted_or_broken_secret_is_written_again_from_memory() {
    let mut world = World::started(2);
    let before = data(&world.stored());
    for broken in [
        None,
        Some(Data::default()),
        Some(Data::from([(
            CA_KEY.to_owned(),
            Zeroizing::new(b"x".to_vec()),
        )])),
    ] {
        world.set_secret(broken);
        world.pass(DAY);
        assert_eq!(world.secret.as_ref(), Some(&before));
        assert!(world.all_ready());
    }
    assert_eq!(world.changes["restore"], 3);
}

#[test]
fn parts_of_a_secret_that_are_broken_are_replaced_and_its_authorities_stay_trusted() {
    let valid = data(&World::started(1).stored());
    let text = |text: &str| Zeroizing::new(text.as_bytes().to_vec());
    let other = issue::make(&names(), start()).unwrap();
    let other_leaf = data(&other);
    /// A key of the Secret, its new text, and the change that repairs it.
    type Case = (&'static str, Option<Zeroizing<Vec<u8>>>, &'static str);
    let cases: [Case; 10] = [
        (CERTIFICATE, None, "renew"),
        (KEY, None, "renew"),
        (KEY, Some(text("x")), "renew"),
        (KEY, Some(other_leaf[KEY].clone()), "renew"),
        (
            CERTIFICATE,
            Some(text(
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            )),
            "renew",
        ),
        (CA_KEY, None, "create"),
        (CA_KEY, Some(text("x")), "create"),
        (CA_KEY, Some(other_leaf[CA_KEY].clone()), "create"),
        (CA_CERTIFICATE, Some(valid[CERTIFICATE].clone()), "create"),
        (
            CA_CERTIFICATE,
            Some(Zeroizing::new(vec![0xff; 9])),
            "create",
        ),
    ];
    for (key, broken, change) in cases {
        let mut world = World::new(2);
        let mut secret = valid.clone();
        match broken {
            None => drop(secret.remove(key)),
            Some(broken) => drop(secret.insert(key.to_owned(), broken)),
        }
        world.secret = Some(secret);
        world.pass(DAY);
        assert_eq!(world.changes, BTreeMap::from([(change, 1)]), "{key}");
        assert!(world.all_ready());
        if key == CA_KEY {
            let trusted = Material::parse(&valid).unwrap().signer.authority;
            assert!(world.stored().authorities().any(|it| *it == trusted));
        }
    }
}

#[test]
fn a_new_replica_cannot_displace_an_authority_that_others_serve() {
    let mut world = World::started(1);
    let first = world.stored();
    // A new replica notices that the Secret is deleted before the old one does.
    world.set_secret(None);
    world.replicas.push(Replica::new());
    world.decide(1);
    world.write(1);
    assert_eq!(world.changes["create"], 2);
    world.settle();
    let old = world.replicas[0].served.clone().unwrap();
    assert_eq!(old.signer.authority, first.signer.authority);
    assert_eq!(world.ready(), 1);
    world.pass(SETTLED);
    let old = world.replicas[0].served.clone().unwrap();
    assert_eq!(old.signer.authority, world.stored().signer.authority);
    assert!(world.all_ready());
}

#[test]
fn an_emptied_bundle_gets_the_authority_that_is_still_served() {
    let mut world = World::started(1);
    let served = world.stored().signer.authority;
    let other = issue::make(&names(), start()).unwrap();
    world.set_secret(Some(data(&other)));
    for bundles in &mut world.bundles {
        bundles.push((world.now, String::new()));
    }
    world.decide(0);
    world.write(0);
    for bundles in &world.bundles {
        let bundle = Authority::all_of("", bundles.last().unwrap().1.as_bytes());
        assert!(bundle.contains(&served) && bundle.contains(&other.signer.authority));
    }
}

#[test]
fn a_secret_of_another_owner_is_left_alone() {
    let mut state = State::new(names());
    let observed = Observed {
        secret: SecretState::Foreign("cert-manager owns it".to_owned()),
        configurations: Vec::new(),
    };
    let plan = state.plan(&observed, start());
    assert!(plan.change.is_none() && plan.serve.is_none());
    assert_eq!(plan.not_ready.as_deref(), Some("cert-manager owns it"));
}

#[test]
fn without_webhook_configurations_a_process_is_ready_at_once() {
    let mut state = State::new(names());
    let material = Arc::new(issue::make(&names(), start()).unwrap());
    let observed = Observed {
        secret: SecretState::Valid(material),
        configurations: Vec::new(),
    };
    let plan = state.plan(&observed, start());
    assert!(plan.change.is_none() && plan.serve.is_some() && plan.not_ready.is_none());
}

#[test]
fn a_bundle_is_only_written_if_an_authority_is_missing() {
    let mut world = World::started(2);
    let writes = |world: &World| world.bundles[0].len();
    let before = writes(&world);
    let ours = world.bundles[0].last().unwrap().1.clone();
    let other = issue::authority(start()).unwrap().authority;
    // Another authority of ours and garbage beside it do not matter.
    let more = format!("{}x\n{ours}", other.pem());
    world.bundles[0].push((world.now, more));
    world.pass(DAY);
    assert_eq!(writes(&world), before + 1);
    world.bundles[0].push((world.now, other.pem()));
    // API servers do not trust the replicas until this is repaired, which is at once.
    world.replicas.iter_mut().for_each(|it| it.is_ready = false);
    let index = 0;
    world.decide(index);
    world.write(index);
    let repaired = Authority::all_of("", world.bundles[0].last().unwrap().1.as_bytes());
    assert!(repaired.contains(&other) && repaired.contains(&world.stored().signer.authority));
}

#[test]
fn an_expired_certificate_is_replaced_after_a_long_stop() {
    for stopped in [2, 9, 11, 40] {
        let mut world = World::started(1);
        world.now += stopped * YEAR;
        let first = world.replicas[0].state.is_ready(world.now);
        assert!(!first, "{stopped}");
        world.replicas = vec![Replica::new()];
        world.pass(2 * DAY);
        assert!(world.all_ready(), "{stopped}");
    }
}

/// The data of a Secret that the reference made, with RSA keys.
fn reference() -> Data {
    let text = include_str!("../../../../tests/stub/reference-secret.yaml");
    let mut documents = yaml::read(text).into_iter();
    let secret = documents.next().unwrap().unwrap().value;
    let texts = secret["data"].as_object().unwrap().iter();
    texts
        .map(|(name, text)| {
            let text = BASE64_STANDARD.decode(text.as_str().unwrap()).unwrap();
            (name.clone(), Zeroizing::new(text))
        })
        .collect()
}

#[test]
fn an_authority_of_the_reference_signs_certificates_with_further_names() {
    let mut world = World::new(2);
    world.secret = Some(reference());
    let before = world.stored();
    world.now = before.signer.authority.not_before + DAY;
    let ca = before.signer.authority.pem();
    world.bundles = [(); 2].map(|()| vec![(SystemTime::UNIX_EPOCH, ca.clone())]);
    world.settle();
    // It was trusted before, so nobody has to wait.
    assert!(world.all_ready());
    assert_eq!(world.changes, BTreeMap::from([("renew", 1)]));
    assert_eq!(world.secret.as_ref().unwrap()[CA_KEY], reference()[CA_KEY]);
    world.pass(20 * YEAR);
    assert!(world.all_ready());
}

#[test]
fn what_is_stored_is_what_was_made() {
    let mut material = issue::make(&names(), start()).unwrap();
    material.next = Some(issue::authority(start()).unwrap());
    material.others = vec![issue::authority(start()).unwrap().authority];
    let stored = data(&material);
    let read = Material::parse(&stored).unwrap();
    assert_eq!(data(&read), stored);
    assert!(read.authorities().eq(material.authorities()));
    let keys: Vec<_> = stored.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [CA_CERTIFICATE, CA_KEY, NEXT_CA_KEY, CERTIFICATE, KEY]
    );
}

#[test]
fn a_certificate_is_for_its_names_and_time_only() {
    let material = issue::make(&names(), start()).unwrap();
    let (leaf, ca) = (material.leaf.unwrap(), material.signer.authority);
    let accepts = |name: &str, now| leaf.is_accepted(&ca, &[name.to_owned()], now);
    assert!(accepts("webhooks.a.svc", start()));
    assert!(!accepts("webhooks.b.svc", start()));
    assert!(!accepts("webhooks.a.svc", start() - 2 * 3600 * SECOND));
    assert!(!accepts("webhooks.a.svc", start() + LEAF_LIFETIME + SECOND));
    let other = issue::authority(start()).unwrap().authority;
    assert!(!leaf.is_accepted(&other, &names(), start()));
    // An authority is not a certificate of a server.
    let signer = issue::authority(start()).unwrap();
    let chain = vec![signer.authority.der.clone()];
    let as_leaf = Leaf::parse(chain, PrivateKey::new(signer.key.pem().to_owned())).unwrap();
    assert!(!as_leaf.is_accepted(&signer.authority, &names(), start()));
}

#[test]
fn changes_have_no_effect_on_what_they_replace() {
    let material = Arc::new(issue::make(&names(), start()).unwrap());
    for change in [
        Change::RenewLeaf(material.clone()),
        Change::AddAuthority(material.clone()),
    ] {
        let changed = change.apply(&names(), start()).unwrap();
        assert_eq!(changed.signer.authority, material.signer.authority);
        assert!(material.next.is_none());
    }
}

/// What happens to the cluster.
#[derive(Debug, Clone)]
enum Happening {
    Passes(u32),
    DeletesSecret,
    EmptiesSecret,
    BreaksSecret(u8),
    Starts,
    Stops(usize),
    /// A replica reads now and writes late.
    Decides(usize),
    Writes(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => prop_oneof![0_u32..20, 0_u32..200_000, 0_u32..100_000_000].prop_map(Happening::Passes),
        1 => Just(Happening::DeletesSecret),
        1 => Just(Happening::EmptiesSecret),
        1 => (0_u8..5).prop_map(Happening::BreaksSecret),
        2 => Just(Happening::Starts),
        1 => (0_usize..4).prop_map(Happening::Stops),
        3 => (0_usize..4).prop_map(Happening::Decides),
        3 => (0_usize..4).prop_map(Happening::Writes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever happens to the Secret and to replicas, API servers that are late trust every replica that is ready, and all get ready.
    #[test]
    fn no_request_is_refused(happenings in prop::collection::vec(happening(), 1..24)) {
        let mut world = World::started(2);
        for happening in happenings {
            match happening {
                Happening::Passes(seconds) => world.pass(Duration::from_secs(seconds.into())),
                Happening::DeletesSecret => world.set_secret(None),
                Happening::EmptiesSecret => world.set_secret(Some(Data::default())),
                Happening::BreaksSecret(key) => {
                    let keys = [CA_CERTIFICATE, CA_KEY, NEXT_CA_KEY, CERTIFICATE, KEY];
                    let mut data = world.secret.clone().unwrap_or_default();
                    data.insert(keys[usize::from(key)].to_owned(), Zeroizing::new(b"x".to_vec()));
                    world.set_secret(Some(data));
                }
                Happening::Starts if world.replicas.len() < 4 => world.replicas.push(Replica::new()),
                Happening::Starts => {}
                // Without any replica, requests are refused anyway.
                Happening::Stops(index) => {
                    if world.ready() > 1 && index < world.replicas.len() {
                        world.replicas.remove(index);
                    }
                }
                Happening::Decides(index) => {
                    if index < world.replicas.len() {
                        world.decide(index);
                    }
                }
                Happening::Writes(index) => {
                    if index < world.replicas.len() {
                        world.write(index);
                    }
                }
            }
            world.check();
        }
        world.pass(Duration::from_secs(60));
        prop_assert!(world.all_ready());
    }
}
