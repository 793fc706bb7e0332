//! Decides what to do: which change the Secret needs, which authorities API servers have to trust, and which certificate is served.
//!
//! No call is made here, and the time is an argument. Every replica decides for itself, and the version of the Secret decides between two of
//! them. No request is refused, because of three rules:
//!
//! 1. An authority stays trusted until it expires.
//! 2. A certificate of another authority is served only when API servers have trusted that authority for [`SETTLED`]. A process that has
//!    nothing to serve is not ready until then.
//! 3. What was in the Secret is kept in memory. If the Secret is deleted or broken, it is written again.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    change::{Change, MOST_AUTHORITIES},
    issue::BACKDATED,
    material::{Authority, Material, MaterialError, bundle},
};

/// How long before it expires a certificate is replaced. It is more than the 90 days of the reference, so that its controller replaces none.
pub(super) const LEAF_EARLY: Duration = Duration::from_secs(120 * DAY);

/// How long before it expires an authority gets a successor.
pub(super) const AUTHORITY_EARLY: Duration = Duration::from_secs(365 * DAY);

/// How long a new authority is published before it signs. Pods that trust it mount a ConfigMap, which takes minutes to arrive.
pub(super) const PUBLISHED: Duration = Duration::from_secs(DAY);

/// How long API servers may take to notice a change of their webhook configurations.
pub(super) const SETTLED: Duration = Duration::from_secs(10);

/// An authority that is this old and is found in all webhook configurations at startup was not written there a moment ago.
const NOT_NEW: Duration = Duration::from_secs(600);

const DAY: u64 = 24 * 3600;

/// What a Secret has.
#[derive(Clone)]
pub(super) enum SecretState {
    Absent,
    /// It has no data, as the reference's chart creates it.
    Empty,
    Valid(Arc<Material>),
    Invalid {
        error: MaterialError,
        /// The authorities that can be read.
        authorities: Vec<Authority>,
    },
    /// It is not ours to change, with the reason.
    Foreign(String),
}

/// The authorities that the webhooks of an existing configuration trust.
#[derive(Clone, Default)]
pub(super) struct TrustedByWebhooks(pub(super) Vec<Vec<Authority>>);

impl TrustedByWebhooks {
    fn all_trust(&self, authority: &Authority) -> bool {
        self.0.iter().all(|bundle| bundle.contains(authority))
    }
}

/// What is found in the cluster.
#[derive(Clone)]
pub(super) struct Observed {
    pub(super) secret: SecretState,
    pub(super) configurations: Vec<TrustedByWebhooks>,
}

/// What to do now.
pub(super) struct Plan {
    /// The change of the Secret. After it, everything is observed again.
    pub(super) change: Option<Change>,
    /// The new bundle of each configuration, in the order in which they were observed; `None` to leave it.
    pub(super) bundles: Vec<Option<String>>,
    /// What to serve from now on; `None` for no change.
    pub(super) serve: Option<Arc<Material>>,
    /// Why requests cannot be answered yet.
    pub(super) not_ready: Option<String>,
    /// When to look again, if nothing changes.
    pub(super) next: SystemTime,
}

/// What a process knows from its earlier observations.
pub(super) struct State {
    names: Vec<String>,
    /// The last valid content of the Secret.
    last: Option<Arc<Material>>,
    served: Option<Arc<Material>>,
    /// Since when all webhook configurations have had an authority.
    trusted: Vec<(Authority, SystemTime)>,
    has_observed: bool,
    is_ready: bool,
}

impl State {
    /// Returns the state of a process that has to serve certificates for those names.
    pub(super) const fn new(names: Vec<String>) -> Self {
        Self {
            names,
            last: None,
            served: None,
            trusted: Vec::new(),
            has_observed: false,
            is_ready: false,
        }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether requests can be answered. An error does not change it while the certificate that is served is valid.
    pub(super) fn is_ready(&mut self, now: SystemTime) -> bool {
        let served = self.served.as_deref();
        self.is_ready &= served.is_some_and(|served| self.is_servable(served, now));
        self.is_ready
    }

    /// Decides what to do.
    pub(super) fn plan(&mut self, observed: &Observed, now: SystemTime) -> Plan {
        if let SecretState::Valid(material) = &observed.secret {
            self.last = Some(material.clone());
        }
        let wanted = self.wanted(now);
        self.note_trust(&wanted, &observed.configurations, now);
        let serve = self.serve(&observed.secret, now);
        let not_ready = self.not_ready(observed, now);
        Plan {
            change: self.change(&observed.secret, now),
            bundles: observed
                .configurations
                .iter()
                .map(|configuration| missing(&wanted, configuration, now))
                .collect(),
            serve,
            not_ready,
            next: self.next(now),
        }
    }

    /// Returns the authorities that have to be trusted.
    fn wanted(&self, now: SystemTime) -> Vec<Authority> {
        let mut wanted = Vec::new();
        for material in [&self.last, &self.served].into_iter().flatten() {
            add(&mut wanted, material.authorities(), now);
        }
        wanted
    }

    fn note_trust(
        &mut self,
        wanted: &[Authority],
        configurations: &[TrustedByWebhooks],
        now: SystemTime,
    ) {
        let mut trusted = Vec::new();
        for authority in wanted {
            if !configurations.iter().all(|it| it.all_trust(authority)) {
                continue;
            }
            let known = self.trusted.iter().find(|(known, _)| known == authority);
            let is_old = authority.not_before + BACKDATED + NOT_NEW <= now;
            let since = match known {
                // The clock may have been set back.
                Some((_, since)) => (*since).min(now),
                None if configurations.is_empty() || (is_old && !self.has_observed) => {
                    SystemTime::UNIX_EPOCH
                }
                None => now,
            };
            trusted.push((authority.clone(), since));
        }
        self.trusted = trusted;
        self.has_observed = true;
    }

    /// Returns when API servers certainly trust an authority; `None` if a webhook configuration does not have it.
    fn settles(&self, authority: &Authority) -> Option<SystemTime> {
        let known = self.trusted.iter().find(|(known, _)| known == authority);
        known.map(|(_, since)| *since + SETTLED)
    }

    fn is_settled(&self, authority: &Authority, now: SystemTime) -> bool {
        self.settles(authority)
            .is_some_and(|settles| settles <= now)
    }

    fn is_servable(&self, material: &Material, now: SystemTime) -> bool {
        let leaf = material.leaf.as_ref();
        // API servers check this of authorities, unlike the library that checks the certificate.
        let is_valid_yet = material.signer.authority.not_before <= now;
        is_valid_yet
            && leaf
                .is_some_and(|leaf| leaf.is_accepted(&material.signer.authority, &self.names, now))
    }

    /// Serves the certificate of the Secret, if clients trust it.
    fn serve(&mut self, secret: &SecretState, now: SystemTime) -> Option<Arc<Material>> {
        let SecretState::Valid(found) = secret else {
            return None;
        };
        let served = self.served.as_deref();
        let served = served.filter(|served| self.is_servable(served, now));
        let may_serve = served.is_none_or(|served| {
            served.signer.authority == found.signer.authority
                || self.is_settled(&found.signer.authority, now)
        });
        let is_same = self.served.as_deref().is_some_and(|served| {
            let chain = |material: &Material| material.leaf.as_ref().map(|it| it.chain.clone());
            chain(served) == chain(found) && served.authorities().eq(found.authorities())
        });
        if is_same || !may_serve || !self.is_servable(found, now) {
            return None;
        }
        self.served = Some(found.clone());
        self.served.clone()
    }

    fn not_ready(&mut self, observed: &Observed, now: SystemTime) -> Option<String> {
        if self.is_ready(now) {
            return None;
        }
        if let SecretState::Foreign(why) = &observed.secret {
            return Some(why.clone());
        }
        let served = self.served.as_deref();
        let served = served.filter(|served| self.is_servable(served, now));
        let Some(served) = served else {
            return Some("no valid certificate has been created yet".to_owned());
        };
        self.is_ready = self.is_settled(&served.signer.authority, now);
        (!self.is_ready).then(|| {
            format!(
                "the webhook configurations got a new authority less than {} s ago",
                SETTLED.as_secs()
            )
        })
    }

    /// Returns the change that the Secret needs.
    fn change(&self, secret: &SecretState, now: SystemTime) -> Option<Change> {
        match secret {
            SecretState::Foreign(_) => None,
            SecretState::Absent | SecretState::Empty => Some(self.replacement(&[], now)),
            SecretState::Invalid { authorities, .. } => Some(self.replacement(authorities, now)),
            SecretState::Valid(material) => self.renewal(material, now),
        }
    }

    fn replacement(&self, found: &[Authority], now: SystemTime) -> Change {
        match &self.last {
            Some(last) if self.is_servable(last, now) => Change::Restore(last.clone()),
            last => {
                let mut keep = Vec::new();
                add(&mut keep, found, now);
                add(&mut keep, last.iter().flat_map(|it| it.authorities()), now);
                Change::Make { keep }
            }
        }
    }

    fn renewal(&self, material: &Arc<Material>, now: SystemTime) -> Option<Change> {
        let signer = &material.signer.authority;
        if signer.not_before > now {
            // A clock was ahead when it was made. Its certificates are refused until then.
            return Some(Change::Make { keep: Vec::new() });
        }
        let next = material.next.as_ref().map(|next| &next.authority);
        match next.filter(|next| !next.has_expired(now)) {
            Some(next) => {
                let is_known = signs_from(next) <= now && self.is_settled(next, now);
                if is_known || signer.has_expired(now) {
                    return Some(Change::UseNextAuthority(material.clone()));
                }
            }
            None if signer.has_expired(now) => return Some(Change::Make { keep: Vec::new() }),
            None if is_near(signer.not_after, AUTHORITY_EARLY, now) => {
                return Some(Change::AddAuthority(material.clone()));
            }
            None => {}
        }
        let is_due = material.leaf.as_ref().is_none_or(|leaf| {
            let would_last = leaf.not_after + Duration::from_secs(DAY) < signer.not_after;
            would_last && is_near(leaf.not_after, LEAF_EARLY, now)
        });
        (is_due || !self.is_servable(material, now)).then(|| Change::RenewLeaf(material.clone()))
    }

    fn next(&self, now: SystemTime) -> SystemTime {
        let settles = self.trusted.iter().map(|(_, since)| *since + SETTLED);
        let last = self.last.iter().flat_map(|last| {
            let next = last.next.as_ref().map(|next| signs_from(&next.authority));
            let leaf = last
                .leaf
                .as_ref()
                .map(|leaf| early(leaf.not_after, LEAF_EARLY));
            let signer = early(last.signer.authority.not_after, AUTHORITY_EARLY);
            [next, leaf, Some(signer)].into_iter().flatten()
        });
        let times = settles.chain(last).filter(|time| *time > now);
        times.min().unwrap_or(now + Duration::from_secs(DAY))
    }
}

/// Returns when an authority signs at the earliest.
fn signs_from(next: &Authority) -> SystemTime {
    next.not_before + BACKDATED + PUBLISHED
}

fn early(end: SystemTime, early: Duration) -> SystemTime {
    end.checked_sub(early).unwrap_or(end)
}

fn is_near(end: SystemTime, before: Duration, now: SystemTime) -> bool {
    early(end, before) <= now
}

/// Adds authorities that have not expired, each once.
fn add<'a>(
    to: &mut Vec<Authority>,
    authorities: impl IntoIterator<Item = &'a Authority>,
    now: SystemTime,
) {
    for authority in authorities {
        if to.len() < MOST_AUTHORITIES && !authority.has_expired(now) && !to.contains(authority) {
            to.push(authority.clone());
        }
    }
}

/// Returns the bundle of a configuration if it does not have all authorities. Others of ours are kept, because another replica may still serve
/// a certificate of them.
fn missing(
    wanted: &[Authority],
    configuration: &TrustedByWebhooks,
    now: SystemTime,
) -> Option<String> {
    if wanted
        .iter()
        .all(|authority| configuration.all_trust(authority))
    {
        return None;
    }
    let mut all = wanted.to_vec();
    let found = configuration.0.iter().flatten();
    add(&mut all, found.filter(|authority| authority.is_ours), now);
    Some(bundle(&all))
}
