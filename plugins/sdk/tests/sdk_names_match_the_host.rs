//! The SDK validates names and writes JSON as the host does, since a component cannot call the host's code.

use proptest::prelude::*;
use trainyard_sdk::{json, names};

proptest! {
    #[test]
    fn name_checks_match_the_host(text in prop_oneof!["[a-z0-9.A_-]{0,8}", "[a-z0-9-]{60,66}", "[a-z0-9.]{250,256}"]) {
        prop_assert_eq!(names::is_dns_label(&text), trainyard_model::names::is_dns_label(&text));
        prop_assert_eq!(names::is_dns_subdomain(&text), trainyard_model::names::is_dns_subdomain(&text));
    }

    #[test]
    fn json_quoting_matches_the_host(text in any::<String>()) {
        prop_assert_eq!(serde_json::from_str::<String>(&json::quoted(&text)).unwrap(), text);
    }
}

#[test]
fn rule_for_names_is_described_as_by_the_host() {
    assert_eq!(names::DNS_SUBDOMAIN, trainyard_model::names::DNS_SUBDOMAIN);
}
