//! The owners of a host port.

use std::{collections::BTreeMap, net::IpAddr};

use trainyard_model::record::Owner;

/// The owners of a host port, by the addresses of the host.
#[derive(Default)]
pub(super) struct HostPort {
    /// An owner at any address.
    somewhere: Option<Owner>,
    /// The owner at all addresses.
    everywhere: Option<Owner>,
    /// The owners at single addresses.
    at: BTreeMap<String, Owner>,
}

impl HostPort {
    /// Adds an owner at an address, and returns an earlier owner at that address. Like for the scheduler and the container runtime, no address
    /// and the unspecified address of a family mean all addresses.
    pub(super) fn take(&mut self, address: &str, owner: Owner) -> Option<Owner> {
        let ip: Option<IpAddr> = address.parse().ok();
        if address.is_empty() || ip.is_some_and(|ip| ip.is_unspecified()) {
            let met = self.somewhere;
            keep(&mut self.everywhere, owner);
            keep(&mut self.somewhere, owner);
            return met;
        }
        let address = ip.map_or_else(|| address.to_owned(), |ip| ip.to_string());
        let mut met = self.at.get(&address).copied();
        if let Some(owner) = self.everywhere {
            keep(&mut met, owner);
        }
        let mut at = met;
        keep(&mut at, owner);
        self.at.extend(at.map(|owner| (address, owner)));
        keep(&mut self.somewhere, owner);
        met
    }
}

/// Sets an owner unless there is one other than the runtime, because conflicts within the runtime are not reported.
fn keep(slot: &mut Option<Owner>, owner: Owner) {
    if matches!(slot, None | Some(Owner::Runtime)) {
        *slot = Some(owner);
    }
}
