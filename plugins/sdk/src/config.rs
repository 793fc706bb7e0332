//! Configuration as a struct. Its JSON Schema is embedded in the manifest, and the host validates the configuration before
//! each call.

use std::collections::BTreeMap;

use crate::{Document, Failure, Job};

/// A configuration struct, implemented by `#[derive(Config)]`.
///
/// Doc comments become descriptions. `#[config(default = ..., minimum = ..., maximum = ..., min_length = ...,
/// max_length = ..., pattern = "...", min_items = ..., max_items = ..., unique_items, rename = "...")]` on a field sets its constraints.
/// `minimum`, `maximum`, `min_length`, `max_length` and `pattern` are those of each item of a `Vec` and of each value of a map; `min_items`,
/// `max_items` and `unique_items` are those of the list. A field is required unless it is an `Option`, a `Vec`, a map or has a default. Names are written in camelCase. Unknown fields are
/// refused.
///
/// ```
/// use std::collections::BTreeMap;
/// use trainyard_sdk::Config;
///
/// /// The configuration in a runtime.
/// #[derive(Config)]
/// struct ProfilerConfig {
///     /// The container's image.
///     #[config(min_length = 1)]
///     image: String,
///     /// How often a sample is taken.
///     #[config(default = "medium")]
///     rate: Rate,
///     /// Labels of the samples.
///     labels: BTreeMap<String, String>,
/// }
///
/// /// How often a sample is taken.
/// #[derive(Config)]
/// enum Rate {
///     Low,
///     Medium,
/// }
///
/// assert!(ProfilerConfig::SCHEMA.contains(r#""required":["image"]"#));
/// ```
///
/// A bound that the field's type cannot hold is refused, because the schema would accept what cannot be read:
///
/// ```compile_fail
/// #[derive(trainyard_sdk::Config)]
/// struct Ports {
///     #[config(maximum = 70000)]
///     all: Vec<u16>,
/// }
/// ```
pub trait Config: Setting {
    /// The JSON Schema.
    const SCHEMA: &'static str;
}

impl Job {
    /// Returns [`Job::config`] as the plugin's configuration struct.
    ///
    /// # Errors
    /// The configuration cannot be decoded. This cannot happen if the same struct is passed to the `plugin!` macro, because the host
    /// then validates the configuration before the call.
    pub fn config_as<C: Config>(&self) -> Result<C, Failure> {
        let error = "the plugin's configuration cannot be decoded; pass the same struct as `config = ...` to `plugin!`";
        C::read(self.config(), "").ok_or_else(|| error.into())
    }

    /// Returns [`Job::operator_config`] as the struct of the operator's configuration.
    ///
    /// # Errors
    /// The same as for [`Job::config_as`].
    pub fn operator_config_as<C: Config>(&self) -> Result<C, Failure> {
        let error = "the plugin's operator configuration cannot be decoded; pass the same struct as `operator_config = ...` to `plugin!`";
        C::read(self.operator_config(), "").ok_or_else(|| error.into())
    }
}

/// A value that a configuration can contain.
pub trait Setting: Sized {
    /// The members of its JSON Schema, without braces, and without bounds that a field may replace.
    const BODY: &'static str;

    /// The schema's member `minimum` after a comma, such as `,"minimum":0`, or nothing. A field's own replaces it.
    const MINIMUM: &'static str = "";

    /// The schema's member `maximum` in the same way.
    const MAXIMUM: &'static str = "";

    /// Reads the value at a pointer. `None` if it does not exist or has another type.
    fn read(document: &Document, at: &str) -> Option<Self>;
}

impl Setting for bool {
    const BODY: &'static str = r#""type":"boolean""#;

    fn read(document: &Document, at: &str) -> Option<Self> {
        document.boolean(at)
    }
}

impl Setting for String {
    const BODY: &'static str = r#""type":"string""#;

    fn read(document: &Document, at: &str) -> Option<Self> {
        document.text(at)
    }
}

macro_rules! integers {
    ($($type:ty: $minimum:literal, $maximum:literal;)+) => {
        $(impl Setting for $type {
            const BODY: &'static str = r#""type":"integer""#;
            const MINIMUM: &'static str = $minimum;
            const MAXIMUM: &'static str = $maximum;

            fn read(document: &Document, at: &str) -> Option<Self> {
                document.integer(at)?.try_into().ok()
            }
        })+
    };
}
integers!(
    i64: "", "";
    i32: r#","minimum":-2147483648"#, r#","maximum":2147483647"#;
    u32: r#","minimum":0"#, r#","maximum":4294967295"#;
    u16: r#","minimum":0"#, r#","maximum":65535"#;
);

/// Reads a list; for the derive macro.
#[doc(hidden)]
pub fn read_list<T: Setting>(document: &Document, at: &str) -> Vec<T> {
    (0..document.len(at))
        .filter_map(|index| T::read(document, &format!("{at}/{index}")))
        .collect()
}

/// Reads a map; for the derive macro.
#[doc(hidden)]
pub fn read_map<T: Setting>(document: &Document, at: &str) -> BTreeMap<String, T> {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    let keys = document.keys(at).into_iter();
    keys.filter_map(|key| Some((T::read(document, &format!("{at}/{}", escaped(&key)))?, key)))
        .map(|(value, key)| (key, value))
        .collect()
}
