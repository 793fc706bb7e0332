//! The digest of a plan, which covers everything that determines the effect of plugins on a TrainJob, for comparing two processes.
//!
//! It is `sha256:` and the SHA-256 of this text in lower-case hexadecimal. Each line ends with a line feed, and the words of a line
//! are separated by one space:
//!
//! ```text
//! trainyard plan 1
//! plugin NAME VERSION CONTENT config CONFIG operator GRANTS CONFIG ORDER
//! facts FACTS
//! excludes NAME NAME
//! exempts NAME EXEMPTIONS
//! order NAME NAME|NAME
//! ```
//!
//! - One `plugin` line for each plugin, by name. `CONTENT` is the digest of its component. `config` is followed by the digest of its
//!   configuration in the runtime, with the defaults of its schema. `operator` is followed by the digests of the operator's settings:
//!   the grants, the configuration, and `after` and `before` ([`PinnedSettings`](crate::plugin_info::PinnedSettings)). These digests are over
//!   JSON without white space and with sorted keys. An unknown word is `-`: without a TrainJob there is no configuration in a runtime,
//!   and a plan of an earlier release pins no settings.
//! - One `facts` line with the digest of the operator's facts, if there are any.
//! - One `excludes` line for each pair that is excluded from running together, in plans without a TrainJob.
//! - One `exempts` line for each plugin that is disabled for some TrainJobs or that TrainJobs may disable, by name, in plans without a
//!   TrainJob, with the digest of its [`Exemptions`](crate::plugin_info::Exemptions).
//! - One `order` line for each order: one for a TrainJob, and otherwise one for each member of `mlPolicy` with a different
//!   order. Members with the same order are joined by `|`.
//!
//! None of these words can contain a space. Limits are not included: they determine whether a call fails, but not what it writes, and a
//! release with a further limit would change every digest.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Generation, Slot};
use crate::{
    digest::canonical_digest,
    facts::Facts,
    names::sha256_digest,
    plugin_info::{PinnedSettings, PluginInfo},
};

/// The first line: the version of the format.
const FORM: &str = "trainyard plan 1";

/// An unknown word.
const UNKNOWN: &str = "-";

/// A plugin's line in the digest's text.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) content: &'a str,
    pub(super) config: Option<&'a Value>,
    pub(super) settings: Option<PinnedSettings>,
}

impl<'a> Line<'a> {
    fn of_loaded(plugin: &'a PluginInfo) -> Self {
        Self {
            name: &plugin.id.name,
            version: &plugin.id.version,
            content: &plugin.id.digest,
            config: None,
            settings: Some(plugin.pinned_settings()),
        }
    }
}

impl Generation {
    /// The digest of all loaded plugins with their orders and the operator's facts. It does not depend on the order of loading.
    #[must_use]
    pub fn digest(&self, facts: &Facts) -> String {
        let plugins = self.plugins().map(|plugin| Line::of_loaded(plugin));
        let excluded = self.excluded().iter();
        let excluded = excluded.map(|(a, b)| format!("excludes {a} {b}"));
        let exempting = self.plugins().filter_map(|plugin| exempts(plugin));
        let orders = self.overview();
        digest(
            plugins.collect(),
            facts,
            excluded.chain(exempting),
            orders.iter().map(|order| words(order)),
        )
    }
}

/// The line of a plugin that does not run for every TrainJob for which its manifest activates it.
fn exempts(plugin: &PluginInfo) -> Option<String> {
    let exemptions = &plugin.settings.exemptions;
    let digest = || canonical_digest(&json!(exemptions));
    (!exemptions.is_empty()).then(|| format!("exempts {} {}", plugin.id.name, digest()))
}

/// An order as one line.
fn words(order: &[Slot]) -> String {
    let slots: Vec<_> = order.iter().map(|slot| slot.names.join("|")).collect();
    slots.join(" ")
}

/// The digest of plugins in their orders. `relations` are the lines between facts and orders.
pub(super) fn digest(
    mut plugins: Vec<Line<'_>>,
    facts: &Facts,
    relations: impl IntoIterator<Item = String>,
    orders: impl IntoIterator<Item = String>,
) -> String {
    plugins.sort_by_key(|line| line.name);
    let mut text = format!("{FORM}\n");
    for plugin in plugins {
        let config = plugin.config.map(canonical_digest);
        let of_settings =
            |part: fn(&PinnedSettings) -> &str| plugin.settings.as_ref().map_or(UNKNOWN, part);
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "plugin {} {} {} config {} operator {} {} {}",
            plugin.name,
            plugin.version,
            plugin.content,
            config.as_deref().unwrap_or(UNKNOWN),
            of_settings(|settings| &settings.grants),
            of_settings(|settings| &settings.operator_config),
            of_settings(|settings| &settings.order),
        );
    }
    let facts = (!facts.is_empty()).then(|| format!("facts {}", facts.digest()));
    let orders = orders.into_iter().map(|order| format!("order {order}"));
    for line in facts.into_iter().chain(relations).chain(orders) {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    sha256_digest(text)
}
