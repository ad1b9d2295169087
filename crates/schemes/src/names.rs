//! Mechanisms by the names that scenarios give them, their tables, and values of keys that are not given.

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;

/// From a line for each mechanism: the enum of a key's values, and their names.
macro_rules! names {
    ($(#[$about:meta])* pub enum $key:ident { $($(#[$doc:meta])* $mechanism:ident = $name:literal,)* }) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        $(#[$about])*
        pub enum $key { $($(#[$doc])* #[serde(rename = $name)] $mechanism,)* }

        impl $key {
            /// All that there are.
            pub const ALL: &[Self] = &[$(Self::$mechanism),*];

            /// As scenarios write it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$mechanism => $name,)* }
            }
        }
    };
}
pub(crate) use names;

/// From a line for each key: the function that returns its value where it is not given, for `serde`.
macro_rules! default_values {
    ($($key:ident: $type:ty = $value:expr;)*) => { $(pub(super) fn $key() -> $type { $value })* };
}
pub(crate) use default_values;

/// The schema of a table that a scenario may leave out, with the description of its keys.
pub(crate) fn table_schema<K: JsonSchema>(generator: &mut SchemaGenerator) -> serde_json::Value {
    let mut table = generator.subschema_for::<Option<K>>();
    if let Some(description) = K::json_schema(generator).remove("description") {
        table.insert("description".into(), description);
    }
    table.to_value()
}

/// A source of tables.
pub trait Tables {
    /// Why a table cannot be read.
    type Error;

    /// The table of this name; `None` if there is none.
    ///
    /// # Errors
    /// A key that does not exist, or a value of another type.
    fn table<T: DeserializeOwned + JsonSchema>(&self, name: &str) -> Result<Option<T>, Self::Error>;
}
