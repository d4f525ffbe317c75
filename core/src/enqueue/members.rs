//! The members of a JSON object with their values as they are written, so that a payload is never rebuilt.

use super::Fields;
use crate::error::{Error, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The members in the order of the text, repeated keys included.
pub(super) struct Members<'a>(Vec<(Key<'a>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members, if the value is an object.
    pub(super) fn read(raw: &'a RawValue) -> Option<Members<'a>> {
        serde_json::from_str(raw.get()).ok()
    }

    /// The members by name; of equal keys the last counts, as in jsonb. A key that is not among `known` is refused.
    pub(super) fn fields(&self, known: &[&'static str], path: &str) -> Result<Fields<'a>> {
        let mut fields = Fields::new();
        let mut unknown: Option<&str> = None;
        for (Key(key), value) in &self.0 {
            match known.iter().find(|name| *name == key) {
                Some(name) => {
                    fields.insert(name, *value);
                }
                None => unknown = Some(unknown.map_or(key, |earlier| earlier.min(key))),
            }
        }
        match unknown {
            None => Ok(fields),
            Some(key) => {
                let shown: String = key.chars().take(100).collect();
                let field = format!("{path}{shown}");
                Err(Error::argument(&field, format!("unknown option: {field}")))
            }
        }
    }
}

/// `jobs[3]`.
pub(super) fn element(list: &str, n: usize) -> String {
    format!("{list}[{n}]")
}

/// A key, borrowed where it holds no escape.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct AnyText;
        impl<'de> Visitor<'de> for AnyText {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(AnyText)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct AnyObject;
        impl<'de> Visitor<'de> for AnyObject {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(AnyObject)
    }
}
