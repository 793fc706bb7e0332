/// Who added an entry, or set it last. Entries are sorted in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The runtime's author.
    Runtime,
    /// A runtime patch.
    Patch,
    /// The TrainJob's author.
    TrainJob,
    /// A plugin, by its position among the plan's plugins sorted by name.
    Plugin(u16),
}

impl Owner {
    /// The name in the contract's `env-owner`.
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
