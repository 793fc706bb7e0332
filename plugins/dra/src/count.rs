//! The devices of a claim, as its requests say them.

use trainyard_sdk::Document;

use crate::{config::DraConfig, made::API};

/// What one request gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The request's name.
    pub(crate) request: String,
    /// None where it is known only once the pod is scheduled.
    pub(crate) count: Option<u32>,
    /// Whether the devices are accelerators.
    pub(crate) accelerator: bool,
}

/// Reads the requests at a pointer of a ResourceClaim or ResourceClaimTemplate.
///
/// # Errors
/// What of the requests nothing can count, with its place in the object.
pub(crate) fn requests(
    object: &Document,
    at: &str,
    config: &DraConfig,
) -> Result<Vec<Counted>, String> {
    let requests = format!("{at}/devices/requests");
    (0..object.len(&requests))
        .map(|index| {
            let counted = request(object, &format!("{requests}/{index}"), config);
            let place = requests.trim_start_matches('/').replace('/', ".");
            counted.ok_or_else(|| {
                format!(
                    "{place}[{index}]: has neither `exactly` nor `firstAvailable`, so that nothing says how many devices it is; {API} has the class and the count under `exactly`"
                )
            })
        })
        .collect()
}

/// One request; none where it says no number.
fn request(object: &Document, at: &str, config: &DraConfig) -> Option<Counted> {
    let one_of = format!("{at}/firstAvailable");
    let alternatives: Vec<_> = match object.len(&one_of) {
        0 => {
            let exactly = format!("{at}/exactly");
            object.kind(&exactly).filter(|kind| kind == "object")?;
            vec![devices(object, &exactly, config)]
        }
        len => (0..len)
            .map(|index| devices(object, &format!("{one_of}/{index}"), config))
            .collect(),
    };
    let accelerator = alternatives.iter().any(|(_, accelerator)| *accelerator);
    let mut counts = alternatives.into_iter().map(|(count, _)| count);
    let first = counts.next().flatten();
    Some(Counted {
        request: object.text(&format!("{at}/name")).unwrap_or_default(),
        count: first.filter(|first| counts.all(|other| other == Some(*first))),
        accelerator,
    })
}

/// How many devices one alternative is, and whether they are accelerators.
fn devices(object: &Document, at: &str, config: &DraConfig) -> (Option<u32>, bool) {
    let text = |member: &str| object.text(&format!("{at}/{member}"));
    let accelerator = text("deviceClassName").is_some_and(|class| config.is_accelerator(&class));
    let count = if object.boolean(&format!("{at}/adminAccess")) == Some(true) {
        // It looks at devices that others use.
        Some(0)
    } else if text("allocationMode").as_deref() == Some("All") {
        None
    } else {
        let count = format!("{at}/count");
        match object.kind(&count) {
            None => Some(1),
            Some(_) => object.integer(&count).and_then(|n| u32::try_from(n).ok()),
        }
    };
    (count, accelerator)
}
