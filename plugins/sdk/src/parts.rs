//! The items that the [`plugin!`](crate::plugin) macro adds to a plugin.

#[cfg(not(target_family = "wasm"))]
use crate::contract::{Context, Failure};

/// The parts of a plugin's manifest, and its phases as functions.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct PluginParts {
    /// The content of `manifest.json`.
    pub manifest: &'static str,
    /// The members that the macro adds, as JSON: version, contract, phases and schemas.
    pub parts: &'static str,
    /// The phases.
    #[cfg(not(target_family = "wasm"))]
    pub phases: Phases,
}

/// A phase that can write: transform or build.
#[cfg(not(target_family = "wasm"))]
pub type Writing = fn(&Context) -> Result<(), Failure>;

/// The phases of a plugin as functions.
#[cfg(not(target_family = "wasm"))]
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    /// The transform phase.
    pub transform: Option<Writing>,
    /// The build phase.
    pub build: Option<Writing>,
    /// The check phase.
    pub check: Option<fn(&Context)>,
}

#[cfg(not(target_family = "wasm"))]
impl Phases {
    /// No phases.
    pub const NONE: Self = Self {
        transform: None,
        build: None,
        check: None,
    };
}

#[cfg(target_family = "wasm")]
impl From<crate::guest::RawContext> for crate::contract::Context {
    fn from(raw: crate::guest::RawContext) -> Self {
        crate::give::Give::give(raw)
    }
}

/// Returns the name of a plugin whose manifest sets none: the package's name without `trainyard-plugin-`.
#[doc(hidden)]
#[must_use]
pub const fn plugin_name(package: &'static str) -> &'static str {
    let mut rest = package.as_bytes();
    let mut prefix = b"trainyard-plugin-".as_slice();
    while let ([first, more @ ..], [expected, others @ ..]) = (rest, prefix) {
        if *first != *expected {
            return package;
        }
        (rest, prefix) = (more, others);
    }
    if !prefix.is_empty() {
        return package;
    }
    package.split_at(package.len() - rest.len()).1
}

/// Defines a plugin from a type: exports only the phases that it names, and embeds the manifest.
///
/// ```ignore
/// trainyard_sdk::plugin!(Torch: transform, check; config = TorchConfig);
/// trainyard_sdk::plugin!(Tracer: transform, build; config = TracerConfig; operator_config = Collector);
/// ```
///
/// `manifest.json`, next to `Cargo.toml`, declares the rest: the description, what activates the plugin, and its claims. The
/// macro also defines `PLUGIN`, which native tests and hosts run.
#[macro_export]
macro_rules! plugin {
    ($type:ty : $($phase:ident),+ $(; config = $config:ty)? $(; operator_config = $operator:ty)? $(;)?) => {
        /// This plugin, for a mock host and for hosts that run it natively.
        pub const PLUGIN: $crate::PluginParts = $crate::PluginParts {
            manifest: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/manifest.json")),
            parts: $crate::const_format::concatcp!(
                r#"{"name":""#, $crate::plugin_name(env!("CARGO_PKG_NAME")),
                r#"","version":""#, env!("CARGO_PKG_VERSION"), r#"","contract":""#,
                $crate::CONTRACT, r#"","phases":["#,
                $crate::__phases!($($phase),+), "]"
                $(, r#","configSchema":"#, <$config as $crate::Config>::SCHEMA)?
                $(, r#","operatorConfigSchema":"#, <$operator as $crate::Config>::SCHEMA)?
                , "}"
            ),
            #[cfg(not(target_family = "wasm"))]
            phases: $crate::__native_phases!($type; $($phase),+),
        };
        $crate::__embed!(PLUGIN);
        $($crate::__export!($phase, $type);)+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __phases {
    ($first:ident $(, $rest:ident)*) => {
        concat!("\"", stringify!($first), "\"" $(, ",\"", stringify!($rest), "\"")*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __native_phases {
    ($type:ty; $($phase:ident),+) => {{
        #[allow(unused_mut)]
        let mut phases = $crate::Phases::NONE;
        $($crate::__native_phase!(phases, $phase, $type);)+
        phases
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __native_phase {
    ($phases:ident, transform, $type:ty) => {
        $phases.transform = Some(<$type as $crate::Transform>::transform)
    };
    ($phases:ident, build, $type:ty) => {
        $phases.build = Some(<$type as $crate::Build>::build)
    };
    ($phases:ident, check, $type:ty) => {
        $phases.check = Some(<$type as $crate::Check>::check)
    };
}

/// Embeds the manifest's parts as custom sections of the core module, from which `trainyard plugin build` reads them.
#[cfg(target_family = "wasm")]
#[doc(hidden)]
#[macro_export]
macro_rules! __embed {
    ($plugin:ident) => {
        const _: () = {
            // SAFETY: the names are of custom sections, which hold data that nothing executes.
            #[unsafe(link_section = "trainyard:manifest-json")]
            #[used]
            static MANIFEST: [u8; $plugin.manifest.len()] = $crate::guest::bytes($plugin.manifest);
            // SAFETY: as above.
            #[unsafe(link_section = "trainyard:manifest-parts")]
            #[used]
            static PARTS: [u8; $plugin.parts.len()] = $crate::guest::bytes($plugin.parts);
        };
    };
}

#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __embed {
    ($plugin:ident) => {};
}

#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($phase:ident, $type:ty) => {};
}

/// Exports one phase through the world that has only this phase.
#[cfg(target_family = "wasm")]
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    (transform, $type:ty) => {
        const _: () = {
            struct Exported;
            impl $crate::guest::transformer::exports::trainyard::policy::transform::Guest for Exported {
                fn transform(ctx: $crate::guest::RawContext) -> Result<(), $crate::guest::RawFailure> {
                    $crate::guest::set_panic_hook();
                    <$type as $crate::Transform>::transform(&ctx.into()).map_err(Into::into)
                }
            }
            $crate::guest::transformer::export_transformer!(Exported with_types_in $crate::guest::transformer);
        };
    };
    (build, $type:ty) => {
        const _: () = {
            struct Exported;
            impl $crate::guest::builder::exports::trainyard::policy::build::Guest for Exported {
                fn build(ctx: $crate::guest::RawContext) -> Result<(), $crate::guest::RawFailure> {
                    $crate::guest::set_panic_hook();
                    <$type as $crate::Build>::build(&ctx.into()).map_err(Into::into)
                }
            }
            $crate::guest::builder::export_builder!(Exported with_types_in $crate::guest::builder);
        };
    };
    (check, $type:ty) => {
        const _: () = {
            struct Exported;
            impl $crate::guest::checker::exports::trainyard::policy::check::Guest for Exported {
                fn check(ctx: $crate::guest::RawContext) {
                    $crate::guest::set_panic_hook();
                    <$type as $crate::Check>::check(&ctx.into());
                }
            }
            $crate::guest::checker::export_checker!(Exported with_types_in $crate::guest::checker);
        };
    };
}
