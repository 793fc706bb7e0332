//! Why a rendering stopped, and the loop that answers lookups.

use std::{fmt, sync::Arc};

use crate::{
    lookup::{LookupAnswer, LookupKey, Lookups},
    plugin::Phase,
    plugin_info::PluginId,
};

/// Why a rendering has no result, with problems of type `P`.
#[derive(Debug)]
pub enum Stopped<P> {
    /// Plugins look up objects that the host does not have. Rendering starts over once it has them.
    Needs(Needs<P>),
    /// The TrainJob cannot be rendered.
    Refused(Vec<P>),
}

/// The lookups that a rendering waits for.
///
/// They are answered before problems are reported: a plugin that gets its answer may report problems, too, and the user should see all of
/// them at once. The problems are reported if a lookup cannot be answered.
#[derive(Debug)]
pub struct Needs<P> {
    /// The lookups, ordered by plugin; at least one.
    pub lookups: Vec<PendingLookup>,
    /// The problems of the same run.
    pub problems: Vec<P>,
}

/// A lookup that has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingLookup {
    /// The plugin.
    pub plugin: PluginId,
    /// The phase.
    pub phase: Phase,
    /// The lookup.
    pub key: LookupKey,
    /// The TrainJob's namespace.
    pub namespace: Arc<str>,
}

impl fmt::Display for PendingLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plugin,
            phase,
            key,
            namespace,
        } = self;
        write!(
            f,
            "plugin {plugin} in {phase} needs {key} for namespace `{namespace}`"
        )
    }
}

impl<P> Stopped<P> {
    /// Converts the problems to another type.
    pub fn map<Q>(self, convert: impl Fn(P) -> Q) -> Stopped<Q> {
        let all = |problems: Vec<P>| problems.into_iter().map(&convert).collect();
        match self {
            Self::Needs(Needs { lookups, problems }) => Stopped::Needs(Needs {
                lookups,
                problems: all(problems),
            }),
            Self::Refused(problems) => Stopped::Refused(all(problems)),
        }
    }

    /// The lookups without an answer; empty if the TrainJob cannot be rendered.
    #[must_use]
    pub fn lookups(&self) -> &[PendingLookup] {
        match self {
            Self::Needs(needs) => &needs.lookups,
            Self::Refused(_) => &[],
        }
    }

    /// The problems.
    #[must_use]
    pub fn problems(&self) -> &[P] {
        let (Self::Needs(Needs { problems, .. }) | Self::Refused(problems)) = self;
        problems
    }

    /// The problems, to be changed.
    pub fn problems_mut(&mut self) -> &mut [P] {
        let (Self::Needs(Needs { problems, .. }) | Self::Refused(problems)) = self;
        problems
    }

    /// Drops the lookups.
    #[must_use]
    pub fn into_problems(self) -> Vec<P> {
        let (Self::Needs(Needs { problems, .. }) | Self::Refused(problems)) = self;
        problems
    }
}

impl<P: fmt::Display> Stopped<P> {
    /// Each problem and each lookup as one line.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let problems = self.problems().iter().map(ToString::to_string);
        let lookups = self.lookups().iter().map(ToString::to_string);
        problems.chain(lookups).collect()
    }
}

impl<P> From<Vec<P>> for Stopped<P> {
    fn from(problems: Vec<P>) -> Self {
        Self::Refused(problems)
    }
}

/// Renders until `answer` cannot answer any further lookup. Each rendering starts from the beginning, with the answers so far.
///
/// # Errors
/// Why the last rendering stopped; [`Stopped::Needs`] if none of its lookups has an answer.
pub fn with_answers<T, P>(
    answer: impl Fn(&LookupKey) -> Option<LookupAnswer>,
    mut render: impl FnMut(&Arc<Lookups>) -> Result<T, Stopped<P>>,
) -> Result<T, Stopped<P>> {
    let mut lookups = Arc::new(Lookups::default());
    loop {
        let needs = match render(&lookups) {
            Err(Stopped::Needs(needs)) => needs,
            ended => return ended,
        };
        let known = Arc::make_mut(&mut lookups);
        let mut is_answered = false;
        for PendingLookup { key, .. } in &needs.lookups {
            if let Some(answer) = answer(key) {
                known.insert(key.clone(), answer);
                is_answered = true;
            }
        }
        if !is_answered {
            return Err(Stopped::Needs(needs));
        }
    }
}
