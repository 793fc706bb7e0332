//! The search for a signature that counts, among everything that refers to a plugin.
//!
//! Whoever may push to a repository can make any number of manifests refer to a plugin. So there is no limit of their number, only of the
//! bytes that are read and of time; what cannot be read or does not count is passed over; and few of them are in memory at a time.

use futures_util::{StreamExt as _, stream};
use trainyard_text::clean;

use crate::{
    artifact::Blob,
    budget::Budget,
    digest::Digest,
    error::Problem,
    limits::Limits,
    signature::{
        ANY_BUNDLE_TYPE, BUNDLE_TYPE, Envelope, Requirement, SIGNATURE_PREDICATE, SignatureError,
        SignatureProblem, Signers, Statement,
    },
    store::Store,
};

/// The most bytes of a signature, or of its manifest. One of cosign has 1 to 10 KiB.
const SIGNATURE_BYTES: u64 = 64 << 10;

/// How many signatures are read at the same time.
const AT_ONCE: usize = 8;

/// The most reasons in an error.
const REASONS: usize = 8;

/// The annotation by which cosign says what a bundle is, so that large attestations need not be read to find a signature.
const PREDICATE: &str = "dev.sigstore.bundle.predicateType";

/// A signature that counts.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) signer: String,
    /// The descriptor of its manifest.
    pub(crate) referrer: Blob,
}

/// What a bundle says, by whom.
#[derive(Debug)]
pub(crate) struct Attested {
    pub(crate) signer: String,
    pub(crate) predicate: String,
}

/// Why a bundle says nothing that counts.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// By what it is.
    Signature(SignatureProblem),
    /// It could not be read.
    Unreadable(Problem),
}

impl From<SignatureProblem> for Refusal {
    fn from(problem: SignatureProblem) -> Self {
        Self::Signature(problem)
    }
}

impl Refusal {
    fn unreadable(problem: impl Into<Problem>) -> Self {
        Self::Unreadable(problem.into())
    }

    /// Returns the reason for users.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Signature(problem) => problem.to_string(),
            Self::Unreadable(problem) => {
                SignatureProblem::Unreadable(problem.to_string()).to_string()
            }
        }
    }
}

/// What counts for a plugin from a repository, or from a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'w> {
    pub(crate) requirement: &'w Requirement<'w>,
    pub(crate) repository: Option<&'w str>,
}

/// Returns the first signature of a manifest that counts. If the plugin's name is not known yet, it counts for any. None if the plugin may be
/// unsigned.
pub(crate) async fn find(
    store: &Store<'_>,
    digest: &Digest,
    wanted: Wanted<'_>,
    limits: &Limits,
) -> Result<Option<Signature>, Problem> {
    let Requirement { signers, plugin } = *wanted.requirement;
    if signers.permit_unsigned(plugin, wanted.repository) {
        return Ok(None);
    }
    if signers.has_no_keys() {
        return Err(SignatureError::NoSigners.into());
    }
    let mut search = Search::of(wanted);
    let budget = Budget::of(limits.referrer_bytes);
    let mut referrers = store.all_referrers(digest, &budget)?;
    while budget.rest() > 0 {
        let page = match referrers.next().await {
            Ok(Some(page)) => page,
            Ok(None) => break,
            Err(problem) => {
                // The next page may have it.
                search.unreadable.get_or_insert(problem);
                continue;
            }
        };
        let bundles = page.into_iter().filter_map(|blob| search.is_readable(blob));
        let bundles: Vec<_> = bundles.collect();
        let examined = bundles.into_iter().map(async |blob| {
            let attested = attested(store, digest, signers, &blob, SIGNATURE_BYTES, &budget);
            (attested.await, blob)
        });
        let mut examined = stream::iter(examined).buffered(AT_ONCE);
        while budget.rest() > 0
            && let Some((attested, referrer)) = examined.next().await
        {
            if let Some(found) = search.add(attested, referrer) {
                return Ok(Some(found));
            }
        }
    }
    let is_flooded = budget.rest() == 0;
    let flooded = is_flooded.then_some(limits.referrer_bytes);
    Err(search.ended(store, digest, flooded).await)
}

/// What was found so far, of which nothing counts.
struct Search<'w> {
    wanted: Wanted<'w>,
    /// How many signatures do not count.
    refused: usize,
    /// Why the first ones do not.
    reasons: Vec<String>,
    /// The first problem that may pass by itself, or of a list.
    unreadable: Option<Problem>,
}

impl<'w> Search<'w> {
    const fn of(wanted: Wanted<'w>) -> Self {
        Self {
            wanted,
            refused: 0,
            reasons: Vec::new(),
            unreadable: None,
        }
    }

    /// Returns what may be a signature by its descriptor.
    fn is_readable(&mut self, blob: Blob) -> Option<Blob> {
        let kind = blob.artifact_type.as_deref();
        if kind.is_some_and(|kind| !kind.starts_with(ANY_BUNDLE_TYPE)) {
            return None;
        }
        match blob.annotations.get(PREDICATE) {
            Some(predicate) if predicate != SIGNATURE_PREDICATE => {
                let predicate = clean(predicate);
                let problem = SignatureProblem::Attestation { predicate };
                self.refuse(&blob, &problem.to_string());
                None
            }
            _ => Some(blob),
        }
    }

    /// Returns a signature that counts, or notes why it does not.
    fn add(&mut self, attested: Result<Attested, Refusal>, referrer: Blob) -> Option<Signature> {
        let Requirement { signers, plugin } = *self.wanted.requirement;
        let counts = attested.and_then(|attested| {
            if attested.predicate != SIGNATURE_PREDICATE {
                let predicate = clean(&attested.predicate);
                return Err(SignatureProblem::Attestation { predicate }.into());
            }
            signers.permit(&attested.signer, plugin, self.wanted.repository)?;
            Ok(attested.signer)
        });
        match counts {
            Ok(signer) => Some(Signature { signer, referrer }),
            Err(refusal) => {
                self.refuse(&referrer, &refusal.reason());
                if let Refusal::Unreadable(problem) = refusal
                    && problem.is_transient()
                {
                    self.unreadable.get_or_insert(problem);
                }
                None
            }
        }
    }

    fn refuse(&mut self, referrer: &Blob, reason: &str) {
        self.refused += 1;
        if self.reasons.len() < REASONS {
            self.reasons.push(format!("{} {reason}", referrer.digest));
        }
    }

    /// Returns why nothing was found. `flooded` is how many bytes were read if they were not all.
    async fn ended(mut self, store: &Store<'_>, digest: &Digest, flooded: Option<u64>) -> Problem {
        let digest = digest.clone();
        let is_final = |problem: &mut Problem| flooded.is_none() || problem.is_transient();
        if let Some(problem) = self.unreadable.take_if(is_final) {
            return problem;
        }
        let signatures = self.refused;
        if let Some(limit) = flooded {
            return SignatureError::Flooded {
                digest,
                signatures,
                limit,
            }
            .into();
        }
        if signatures > 0 {
            let more = signatures.saturating_sub(REASONS);
            let more = (more > 0).then(|| format!("and {more} more"));
            let listed: Vec<_> = self.reasons.into_iter().chain(more).collect();
            return SignatureError::NoneCounts {
                digest,
                listed: listed.join("; "),
                signatures,
            }
            .into();
        }
        let tag = format!("sha256-{}.sig", digest.hex());
        if let Store::Registry(repository) = store
            && repository.has_tag(&tag).await
        {
            return SignatureError::OldLayout { digest, tag }.into();
        }
        SignatureError::Unsigned { digest }.into()
    }
}

/// Returns what a bundle says of a manifest, if one of the signers signed it.
pub(crate) async fn attested(
    store: &Store<'_>,
    digest: &Digest,
    signers: &Signers,
    referrer: &Blob,
    limit: u64,
    budget: &Budget,
) -> Result<Attested, Refusal> {
    if referrer.size > SIGNATURE_BYTES {
        let limit = SIGNATURE_BYTES;
        return Err(SignatureProblem::TooLarge { limit }.into());
    }
    // The size is only what a list says.
    let manifest = store.referrer(referrer, SIGNATURE_BYTES, budget).await;
    let manifest = manifest.map_err(Refusal::unreadable)?;
    if manifest.subject().as_deref() != Some(digest.as_str()) {
        let problem = "it refers to another manifest";
        return Err(SignatureProblem::Layout(problem).into());
    }
    let blobs = manifest.blobs().map_err(Refusal::unreadable)?;
    let [_, layer] = blobs.as_slice() else {
        let problem = "it does not have exactly one layer, its bundle";
        return Err(SignatureProblem::Layout(problem).into());
    };
    if layer.media_type != BUNDLE_TYPE {
        let problem = "its layer is not a Sigstore bundle of version 0.3; sign with cosign 3";
        return Err(SignatureProblem::Layout(problem).into());
    }
    if layer.size > limit {
        return Err(SignatureProblem::TooLarge { limit }.into());
    }
    let bundle = store.limited(layer, limit, budget).await;
    let bundle = bundle.map_err(Refusal::unreadable)?;
    Ok(verified(&bundle, digest, signers)?)
}

/// Returns what a bundle says of a manifest, if one of the signers signed it. Nothing of the statement is parsed before.
fn verified(
    bundle: &[u8],
    digest: &Digest,
    signers: &Signers,
) -> Result<Attested, SignatureProblem> {
    let envelope = Envelope::parse(bundle)?;
    let signer = signers.who_signed(&envelope.signed_bytes(), &envelope.signature);
    let signer = signer.ok_or(SignatureProblem::OtherKey {
        hint: envelope.hint,
    })?;
    let signer = signer.to_owned();
    let Some(statement) = Statement::parse(&envelope.payload) else {
        return Err(SignatureProblem::Statement { signer });
    };
    if statement.subject != *digest {
        let found = statement.subject;
        return Err(SignatureProblem::OtherDigest { signer, found });
    }
    Ok(Attested {
        signer,
        predicate: statement.predicate_type,
    })
}

/// Returns what a bundle says that it is, which nobody signed.
pub(crate) fn predicate(referrer: &Blob) -> Option<&str> {
    referrer.annotations.get(PREDICATE).map(String::as_str)
}

/// Whether what refers to a manifest is a bundle.
pub(crate) fn is_bundle(referrer: &Blob) -> bool {
    let kind = referrer.artifact_type.as_deref().unwrap_or_default();
    kind.starts_with(ANY_BUNDLE_TYPE)
}
