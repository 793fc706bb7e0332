//! Why a TrainJob did not get through its plugins, and the loop that answers what they look up.

use std::{fmt, sync::Arc};

use crate::{
    lookup::{LookupAnswer, LookupKey, Lookups},
    plugin::PluginId,
    policy::Phase,
};

/// Why a rendering has no result, with problems of type `P`.
#[derive(Debug)]
pub enum Stopped<P> {
    /// Plugins look up objects that the host does not hold. Rendering starts over once it holds them.
    Needs(Needs<P>),
    /// The TrainJob can't be rendered.
    Refused(Vec<P>),
}

/// The lookups that a rendering waits for.
///
/// They come before the problems of the same run: a plugin that gets its answer may refuse the TrainJob, too, and the user is to learn
/// of everything at once. The problems count if a lookup can't be answered.
#[derive(Debug)]
pub struct Needs<P> {
    /// What plugins look up, ordered by plugin; at least one.
    pub lookups: Vec<PendingLookup>,
    /// What else is wrong.
    pub problems: Vec<P>,
}

/// A lookup that has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingLookup {
    /// The plugin.
    pub plugin: PluginId,
    /// The phase in which it asked.
    pub phase: Phase,
    /// What it asked for.
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
            "plugin {plugin} in {phase} needs {key} in namespace `{namespace}`"
        )
    }
}

impl<P> Stopped<P> {
    /// The same with another type of problems.
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

    /// The lookups that have no answer; none if the TrainJob is refused.
    #[must_use]
    pub fn lookups(&self) -> &[PendingLookup] {
        match self {
            Self::Needs(needs) => &needs.lookups,
            Self::Refused(_) => &[],
        }
    }

    /// What is wrong beside lookups that have no answer.
    #[must_use]
    pub fn problems(&self) -> &[P] {
        let (Self::Needs(Needs { problems, .. }) | Self::Refused(problems)) = self;
        problems
    }

    /// The same without the lookups.
    #[must_use]
    pub fn into_problems(self) -> Vec<P> {
        let (Self::Needs(Needs { problems, .. }) | Self::Refused(problems)) = self;
        problems
    }
}

impl<P: fmt::Display> Stopped<P> {
    /// Each problem and each lookup in a line of its own.
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

/// Renders until no lookup is left that `answer` knows the answer to. Each rendering starts from the beginning, with the answers so far.
///
/// # Errors
/// Why the last rendering stopped; [`Stopped::Needs`] if no lookup of it has an answer.
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
