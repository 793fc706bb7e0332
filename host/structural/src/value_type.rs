//! The types of values.

/// The type of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ValueType {
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

impl ValueType {
    /// Returns the name of the type in schemas and in an API server's errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntOrString => "integer,string",
        }
    }

    /// Returns whether values of the JSON type `name` are of this type.
    pub(crate) fn has(self, name: &str) -> bool {
        match self {
            Self::IntOrString => name == "integer" || name == "string",
            Self::Any => false,
            kind => kind.name() == name,
        }
    }
}
