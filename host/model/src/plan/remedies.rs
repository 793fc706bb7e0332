//! The lines of PolicyPlugins that resolve a conflict of two plugins. They can be pasted into `spec` as they are.

use std::sync::Arc;

/// The lines of PolicyPlugins that resolve a conflict or a cycle, without those that the claims of the two plugins rule out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaysOut {
    /// Pairs that can be ordered: the first after the second.
    pub orders: Vec<(Arc<str>, Arc<str>)>,
    /// Pairs of which one can exclude the other.
    pub exclusions: Vec<(Arc<str>, Arc<str>)>,
    /// Plugins that can be disabled.
    pub disabled: Vec<Arc<str>>,
}

impl WaysOut {
    /// Returns the lines that disable one of some plugins.
    pub(super) fn disabling<'n>(names: impl IntoIterator<Item = &'n Arc<str>>) -> Self {
        Self {
            disabled: names.into_iter().cloned().collect(),
            ..Self::default()
        }
    }

    /// The lines, after what an author of one of the plugins can do.
    #[must_use]
    pub fn of_author_or_operator(&self) -> String {
        let by_author = match self.orders.as_slice() {
            [] => String::new(),
            [(name, other)] => format!(
                "declare `after: [{other}]` in the manifest of `{name}` or `before: [{name}]` in that of `{other}`, or "
            ),
            _ => "declare `after` or `before` in one of the manifests, or ".to_owned(),
        };
        format!("{by_author}{}", self.in_words())
    }

    /// The lines, with what they do.
    #[must_use]
    pub fn in_words(&self) -> String {
        let pairs = |pairs: &[(Arc<str>, Arc<str>)], setting: &str, purpose| {
            let of_pair = |(name, other): &(Arc<str>, Arc<str>)| {
                entry(name, &format!("{setting}: [{}]", plain(other)))
            };
            (pairs.iter().map(of_pair).collect::<Vec<_>>(), purpose)
        };
        let disabled = self.disabled.iter();
        let disabled = disabled.map(|name| entry(name, "disabled: true"));
        let ways = [
            pairs(&self.orders, "after", "to order them"),
            pairs(
                &self.exclusions,
                "excludes",
                "to refuse TrainJobs that use both",
            ),
            (disabled.collect(), "to disable one"),
        ];
        let ways = ways.into_iter().filter(|(entries, _)| !entries.is_empty());
        let ways: Vec<_> = ways
            .map(|(entries, purpose)| format!("{} {purpose}", entries.join(" or ")))
            .collect();
        format!("set one of these in a PolicyPlugin: {}", ways.join(", "))
    }
}

fn entry(name: &str, setting: &str) -> String {
    format!("`{setting}` for `{name}`")
}

/// A plugin's name as a YAML string: quoted if YAML would parse it as a number, a boolean or null.
fn plain(name: &str) -> String {
    let is_word = matches!(
        name,
        "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
    );
    if is_word || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}
