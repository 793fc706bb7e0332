//! A cluster with replicas and API servers, in memory.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    super::{
        material::{Authority, CA_CERTIFICATE, Data, Material},
        plan::{Observed, Plan, SecretState, State, TrustedByWebhooks},
    },
    DAY, SECOND, data, names, start,
};

/// A replica, and what it serves.
pub(super) struct Replica {
    pub(super) state: State,
    pub(super) served: Option<Arc<Material>>,
    pub(super) is_ready: bool,
    /// What it has read and decided, and not written yet.
    pending: Option<(Plan, u64)>,
}

impl Replica {
    pub(super) fn new() -> Self {
        Self {
            state: State::new(names()),
            served: None,
            is_ready: false,
            pending: None,
        }
    }
}

/// The cluster.
pub(super) struct World {
    pub(super) now: SystemTime,
    pub(super) secret: Option<Data>,
    /// The number of changes of the Secret.
    version: u64,
    /// The bundle of both configurations with all earlier ones, by the time of the change.
    pub(super) bundles: [Vec<(SystemTime, String)>; 2],
    pub(super) replicas: Vec<Replica>,
    pub(super) changes: BTreeMap<&'static str, usize>,
}

impl World {
    pub(super) fn new(replicas: usize) -> Self {
        let empty = || vec![(SystemTime::UNIX_EPOCH, String::new())];
        Self {
            now: start(),
            secret: None,
            version: 0,
            bundles: [empty(), empty()],
            replicas: (0..replicas).map(|_| Replica::new()).collect(),
            changes: BTreeMap::new(),
        }
    }

    fn observe(&self) -> Observed {
        let secret = match &self.secret {
            None => SecretState::Absent,
            Some(data) if data.is_empty() => SecretState::Empty,
            Some(data) => match Material::parse(data) {
                Ok(material) => SecretState::Valid(Arc::new(material)),
                Err(error) => SecretState::Invalid {
                    error,
                    authorities: data
                        .get(CA_CERTIFICATE)
                        .map_or_else(Vec::new, |text| Authority::all_of("", text)),
                },
            },
        };
        let configurations = self.bundles.iter().map(|bundles| {
            let bundle = Authority::all_of("", bundles.last().unwrap().1.as_bytes());
            TrustedByWebhooks(vec![bundle.clone(), bundle])
        });
        Observed {
            secret,
            configurations: configurations.collect(),
        }
    }

    /// A replica reads the cluster and decides.
    pub(super) fn decide(&mut self, index: usize) -> SystemTime {
        let (observed, now, version) = (self.observe(), self.now, self.version);
        let replica = &mut self.replicas[index];
        let plan = replica.state.plan(&observed, now);
        if let Some(served) = &plan.serve {
            replica.served = Some(served.clone());
        }
        replica.is_ready = plan.not_ready.is_none();
        let next = plan.next;
        replica.pending = Some((plan, version));
        next
    }

    /// It writes what it decided. Returns whether anything was written or refused.
    pub(super) fn write(&mut self, index: usize) -> bool {
        let now = self.now;
        let Some((plan, version)) = self.replicas[index].pending.take() else {
            return false;
        };
        if let Some(change) = &plan.change {
            if version == self.version {
                *self.changes.entry(change.name()).or_default() += 1;
                let material = change.apply(&names(), now).unwrap();
                self.secret = Some(data(&material));
                self.version += 1;
            }
            return true;
        }
        let mut is_written = false;
        for (bundles, bundle) in self.bundles.iter_mut().zip(plan.bundles) {
            if let Some(bundle) = bundle {
                bundles.push((now, bundle));
                is_written = true;
            }
        }
        is_written
    }

    /// All replicas act until nothing is left to do. Returns when they look again.
    pub(super) fn settle(&mut self) -> SystemTime {
        for _ in 0..50 {
            let mut next = Vec::new();
            for index in 0..self.replicas.len() {
                next.push(self.decide(index));
            }
            self.check();
            let mut is_written = false;
            for index in 0..self.replicas.len() {
                is_written |= self.write(index);
                self.check();
            }
            if !is_written {
                return next.into_iter().min().unwrap_or(self.now + DAY);
            }
        }
        panic!("the replicas write without end: {:?}", self.changes);
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let next = self.settle();
            assert!(next > self.now);
            self.now = next.min(end);
        }
        self.settle();
    }

    /// API servers that are up to date or late trust every replica that is ready.
    pub(super) fn check(&self) {
        for lag in [0, 1, 5, 9] {
            let seen = self.now - lag * SECOND;
            for bundles in &self.bundles {
                let bundle = bundles.iter().rev().find(|(time, _)| *time <= seen);
                let bundle = Authority::all_of("", bundle.unwrap().1.as_bytes());
                for replica in self.replicas.iter().filter(|replica| replica.is_ready) {
                    let leaf = replica.served.as_ref().unwrap().leaf.as_ref().unwrap();
                    assert!(
                        bundle
                            .iter()
                            .any(|it| leaf.is_accepted(it, &names(), self.now)),
                        "{lag} s late, after {:?}, with {:?}",
                        self.now.duration_since(start()),
                        self.changes
                    );
                }
            }
        }
    }

    /// Somebody else changes the Secret.
    pub(super) fn set_secret(&mut self, secret: Option<Data>) {
        self.secret = secret;
        self.version += 1;
    }

    pub(super) fn all_ready(&self) -> bool {
        self.replicas.iter().all(|replica| replica.is_ready)
    }

    pub(super) fn ready(&self) -> usize {
        self.replicas.iter().filter(|it| it.is_ready).count()
    }

    pub(super) fn stored(&self) -> Material {
        Material::parse(self.secret.as_ref().unwrap()).unwrap()
    }

    pub(super) fn started(replicas: usize) -> Self {
        let mut world = Self::new(replicas);
        world.pass(DAY);
        assert!(world.all_ready());
        world
    }
}
