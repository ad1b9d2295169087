//! Schemes that are not built in: a crate outside of this repository hands them to `xoff::main_with`,
//! and they are read, run and reported as those of the registry are. Their calls are dynamic.

use super::device::WholeDevice;
use super::keys::{Keys, Reader, Table, Unread};
use super::seam::{Machine, Parameters, Pulled, Scheme};
use super::seen::{Credits, Roots};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use xoff_outcome::report::{Facts, Records};

/// Reads a table of a scenario, but for some keys.
type Read = fn(&dyn Reader, &[&'static str]) -> Result<Arc<dyn AnyKeys>, Unread>;

/// A scheme that is not built in: the content of a line of the registry.
#[derive(Clone, Copy)]
pub struct OwnScheme {
    /// The name by which scenarios ask for it.
    pub name: &'static str,
    about: &'static str,
    names: fn() -> [&'static [&'static str]; 2],
    read: Read,
    schema: fn(&mut SchemaGenerator) -> Schema,
    facts: Option<&'static Facts>,
}

impl OwnScheme {
    /// The scheme `name`, with the keys `K` and the state machine `M`; `about` is its text in `xoff schemes`
    /// and the JSON Schema.
    pub const fn new<K, M: Machine>(name: &'static str, about: &'static str) -> Self
    where
        K: Table + Keys + JsonSchema + Serialize + Debug + PartialEq + Send + Sync + 'static,
    {
        Self {
            name,
            about,
            names: K::names,
            read: |reader, passed| Ok(Arc::new(K::read(reader, passed)?)),
            schema: |generator| generator.subschema_for::<K>(),
            facts: M::FACTS,
        }
    }

    pub(super) fn names(&self) -> [&'static [&'static str]; 2] {
        (self.names)()
    }

    pub(super) fn read(&self, reader: &dyn Reader, passed: &[&'static str]) -> Result<OwnKeys, Unread> {
        Ok(OwnKeys { name: self.name, keys: (self.read)(reader, passed)? })
    }
}

static SCHEMES: OnceLock<Vec<OwnScheme>> = OnceLock::new();

/// Makes `schemes` known to this process. To be called once, before any scenario is read.
///
/// # Panics
/// It has been called before, or two schemes have one name.
pub fn register(schemes: &[OwnScheme]) {
    let mut names = super::FlowControlKeys::names();
    for scheme in schemes {
        assert!(!names.contains(&scheme.name), "there are two schemes called `{}`", scheme.name);
        names.push(scheme.name);
    }
    assert!(SCHEMES.set(schemes.to_vec()).is_ok(), "schemes have been registered before");
}

/// The schemes of [`register`].
pub(super) fn schemes() -> &'static [OwnScheme] {
    SCHEMES.get().map_or(&[], Vec::as_slice)
}

pub(super) fn find(name: &str) -> Option<&'static OwnScheme> {
    schemes().iter().find(|scheme| scheme.name == name)
}

pub(super) fn facts() -> impl Iterator<Item = &'static Facts> {
    schemes().iter().filter_map(|scheme| scheme.facts)
}

/// Adds the schemes of [`register`] to the schema of the registry's.
pub(super) fn add_schemas(schema: &mut Schema, generator: &mut SchemaGenerator) {
    for scheme in schemes() {
        let mut own = (scheme.schema)(generator);
        let tag = json_schema!({
            "type": "object",
            "description": scheme.about,
            "properties": { "scheme": { "type": "string", "const": scheme.name } },
            "required": ["scheme"]
        });
        own.ensure_object().extend(tag.as_object().cloned().unwrap_or_default());
        if let Some(all) = schema.get_mut("oneOf").and_then(|all| all.as_array_mut()) {
            all.push(own.to_value());
        }
    }
}

/// The keys of a scheme that is not built in.
#[derive(Clone, Debug)]
pub struct OwnKeys {
    pub(super) name: &'static str,
    pub(super) keys: Arc<dyn AnyKeys>,
}

impl PartialEq for OwnKeys {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.keys.equals(&*other.keys)
    }
}

impl Serialize for OwnKeys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut keys = self.keys.to_json().map_err(serde::ser::Error::custom)?;
        keys["scheme"] = self.name.into();
        keys.serialize(serializer)
    }
}

/// The resolved parameters of a scheme that is not built in.
#[derive(Clone, Debug)]
pub struct OwnParams {
    pub(super) name: &'static str,
    pub(super) params: Arc<dyn AnyParameters>,
}

impl OwnParams {
    /// Those of the scheme called `name` ([`Setting::scheme`](super::keys::Setting::scheme)).
    pub fn new(
        name: &'static str,
        params: impl Parameters + Debug + PartialEq + Send + Sync + 'static,
    ) -> Self {
        Self { name, params: Arc::new(params) }
    }
}

impl PartialEq for OwnParams {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.params.equals(&*other.params)
    }
}

impl Eq for OwnParams {}

/// [`Keys`] of any type.
pub trait AnyKeys: Keys + Any + Debug + Send + Sync {
    /// Whether `other` is the same.
    fn equals(&self, other: &dyn Any) -> bool;
    /// As a scenario has them, without the name of the scheme.
    ///
    /// # Errors
    /// They cannot be written.
    fn to_json(&self) -> serde_json::Result<serde_json::Value>;
}

impl<K: Keys + Serialize + Debug + PartialEq + Send + Sync + 'static> AnyKeys for K {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn to_json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self)
    }
}

/// [`Parameters`] of any type.
pub trait AnyParameters: Parameters + Any + Debug + Send + Sync {
    /// Whether `other` is the same.
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<P: Parameters + Debug + PartialEq + Send + Sync + 'static> AnyParameters for P {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}

/// A state machine of any type: [`Scheme`], and the methods of [`Machine`].
pub trait AnyMachine: for<'d> Scheme<dyn WholeDevice + 'd> + Debug + Send + Sync {
    /// As [`Machine::timers`].
    fn timers(&self) -> usize;
    /// As [`Machine::records`].
    fn records(&self) -> Records;
    /// As [`Machine::credits`].
    fn credits(&self) -> Option<&dyn Credits>;
    /// As [`Machine::roots`].
    fn roots(&self) -> Option<&dyn Roots>;
    /// As [`Machine::pulled`].
    fn pulled(&self) -> Option<&Pulled>;
}

impl<M: Machine + for<'d> Scheme<dyn WholeDevice + 'd> + Debug + Send + Sync> AnyMachine for M {
    fn timers(&self) -> usize {
        Machine::timers(self)
    }

    fn records(&self) -> Records {
        Machine::records(self)
    }

    fn credits(&self) -> Option<&dyn Credits> {
        Machine::credits(self)
    }

    fn roots(&self) -> Option<&dyn Roots> {
        Machine::roots(self)
    }

    fn pulled(&self) -> Option<&Pulled> {
        Machine::pulled(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_control::none::{NoKeys, NoParams};

    /// Plans are compared without a scheme's type being known.
    #[test]
    fn keys_and_parameters_of_any_type_are_compared() {
        let (params, keys): (&dyn AnyParameters, &dyn AnyKeys) = (&NoParams, &NoKeys {});
        assert!(params.equals(&NoParams) && !params.equals(&0));
        assert!(keys.equals(&NoKeys {}) && !keys.equals(&0));
    }
}
