/// Who added an entry, or set it last. The order is that in which entries stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The runtime's author.
    Runtime,
    /// A runtime patch.
    Patch,
    /// The TrainJob's author.
    TrainJob,
    /// A plugin, by its place among the plan's plugins sorted by name.
    Plugin(u16),
}

impl Owner {
    /// As the contract's `env-owner` says it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Patch => "patch",
            Self::TrainJob => "trainjob",
            Self::Plugin(_) => "plugin",
        }
    }
}
