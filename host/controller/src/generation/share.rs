//! The share of namespaces that a generation is rolled out to.

use sha2::{Digest as _, Sha256};

/// Whether a namespace is in a share of that many percent of all namespaces. It depends on the name alone, so all replicas agree, and a larger
/// share contains every smaller one.
pub(super) fn contains(percent: u8, namespace: &str) -> bool {
    place(namespace) < u64::from(percent)
}

/// Returns the place of a namespace: the first percentage, from 0, whose share it is not in.
fn place(namespace: &str) -> u64 {
    let digest = Sha256::digest(namespace);
    let first = digest.iter().take(size_of::<u64>());
    first.fold(0, |number, byte| number << 8 | u64::from(*byte)) % 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(percent: u8, namespaces: usize) -> usize {
        let names = (0..namespaces).map(|number| format!("team-{number}"));
        names.filter(|name| contains(percent, name)).count()
    }

    #[test]
    fn a_share_of_namespaces_has_the_asked_size() {
        const ALL: usize = 10_000;
        assert_eq!((share(0, ALL), share(100, ALL)), (0, ALL));
        for percent in 1..100 {
            let wanted = ALL * usize::from(percent) / 100;
            let found = share(percent, ALL);
            // More than five standard deviations.
            assert!(found.abs_diff(wanted) <= 250, "{percent}: {found}");
        }
    }

    #[test]
    fn a_larger_share_contains_every_smaller_one() {
        for number in 0..1_000 {
            let name = format!("team-{number}");
            let places: Vec<_> = (0..=100).map(|percent| contains(percent, &name)).collect();
            assert!(places.is_sorted(), "{name}");
        }
    }

    /// Replicas of two releases may run at once.
    #[test]
    fn the_place_of_a_namespace_is_the_same_in_every_release() {
        let places = ["default", "ml", "team-a", "kubeflow-system"].map(place);
        assert_eq!(places, [49, 92, 56, 49]);
    }
}
