//! Where the content of plugins comes from that PolicyPlugins name, for the controller and for commands.
//!
//! - `registries` resolves sources and keeps content, by the client of registries; `refusal` says why there is none.
//! - `content` reads what is kept, and files of the plugin directory, each by its digest.
//! - `replaced` says which plugins take the place of built-in ones.

mod content;
mod refusal;
mod registries;
mod replaced;

pub(crate) use self::{
    content::Content,
    refusal::problem,
    registries::Registries,
    replaced::{LoadedAs, file_of_built_in, loaded_as},
};
