//! Counting the devices of a claim, by the requests of its ResourceClaim or ResourceClaimTemplate.

use trainyard_sdk::{Document, ResourceClaimUse};

use crate::{
    config::{DeviceKind, DraConfig},
    made::API,
};

/// The devices of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The request's name.
    pub(crate) request: String,
    /// The number of devices. `None` if it is known only after scheduling.
    pub(crate) count: Option<u32>,
    /// The kind of the devices.
    pub(crate) kind: DeviceKind,
    /// The device classes that it names.
    pub(crate) classes: Vec<String>,
}

/// The requests of a claim that a container uses.
///
/// # Errors
/// The claim does not have the request that it names.
pub(crate) fn used(one: &ResourceClaimUse, requests: &[Counted]) -> Result<Vec<Counted>, String> {
    let Some(named) = &one.request else {
        return Ok(requests.to_vec());
    };
    let mut of_name = requests.iter().filter(|counted| counted.request == *named);
    let Some(counted) = of_name.next() else {
        let names: Vec<_> = requests
            .iter()
            .map(|counted| format!("`{}`", counted.request))
            .collect();
        // Containers cannot use an alternative, such as `REQUEST/ALTERNATIVE`: the API server rejects such a pod.
        return Err(format!(
            "uses the request `{named}`, which the resource claim `{}` does not have; its requests are {}",
            one.name,
            names.join(", ")
        ));
    };
    Ok(vec![counted.clone()])
}

/// Reads the requests at a pointer of a ResourceClaim or ResourceClaimTemplate.
///
/// # Errors
/// The first request that cannot be counted, with its path in the object.
pub(crate) fn requests(
    object: &Document,
    at: &str,
    config: &DraConfig,
) -> Result<Vec<Counted>, String> {
    let requests = format!("{at}/devices/requests");
    (0..object.len(&requests))
        .map(|index| {
            let place = requests.trim_start_matches('/').replace('/', ".");
            request(object, &format!("{requests}/{index}"), config)
                .map_err(|problem| format!("{place}[{index}]{problem}"))
        })
        .collect()
}

fn request(object: &Document, at: &str, config: &DraConfig) -> Result<Counted, String> {
    let one_of = format!("{at}/firstAvailable");
    let places: Vec<_> = match object.len(&one_of) {
        0 => vec!["exactly".to_owned()],
        len => (0..len)
            .map(|index| format!("firstAvailable/{index}"))
            .collect(),
    };
    if places.len() == 1
        && object.kind(&format!("{at}/{}", places.concat())).as_deref() != Some("object")
    {
        return Err(format!(
            ": has neither `exactly` nor `firstAvailable`, so the devices cannot be counted; use the format of {API}, with the class and the count under `exactly`"
        ));
    }
    let text = |member: &str| object.text(&format!("{at}/{member}"));
    let mut kinds = Vec::new();
    let mut counts = Vec::new();
    for place in &places {
        let (count, kind) = devices(object, &format!("{at}/{place}"), config)
            .map_err(|problem| format!(".{}{problem}", place.replace('/', ".")))?;
        counts.push(count);
        kinds.push(kind);
    }
    let is_one = |kinds: &[DeviceKind]| kinds.windows(2).all(|pair| pair.first() == pair.last());
    let same = counts.windows(2).all(|pair| pair.first() == pair.last()) && is_one(&kinds);
    Ok(Counted {
        request: text("name").unwrap_or_default(),
        count: counts.first().copied().flatten().filter(|_| same),
        kind: kinds.into_iter().max().unwrap_or(DeviceKind::Unknown),
        classes: places
            .iter()
            .filter_map(|place| text(&format!("{place}/deviceClassName")))
            .collect(),
    })
}

/// The number and the kind of the devices of one alternative.
fn devices(
    object: &Document,
    at: &str,
    config: &DraConfig,
) -> Result<(Option<u32>, DeviceKind), String> {
    let text = |member: &str| object.text(&format!("{at}/{member}"));
    let class = text("deviceClassName").unwrap_or_default();
    let exact = || {
        let count = format!("{at}/count");
        match object.kind(&count) {
            None => Some(1),
            Some(_) => object.integer(&count).and_then(|n| u32::try_from(n).ok()),
        }
    };
    let count = match text("allocationMode").as_deref() {
        // Admin access does not allocate devices.
        _ if object.boolean(&format!("{at}/adminAccess")) == Some(true) => Some(0),
        None | Some("" | "ExactCount") => exact(),
        Some("All") => None,
        Some(mode) => {
            return Err(format!(
                ".allocationMode: unknown mode `{mode}`, so the devices cannot be counted; supported modes are ExactCount and All"
            ));
        }
    };
    Ok((count, config.kind(&class)))
}
