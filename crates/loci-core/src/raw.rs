//! JSON objects kept as they were written: keys in their order, values as untouched text.
//!
//! Formats shared with other programs must survive a round trip through loci with nothing lost: fields we do
//! not know, numbers wider than ours, the order of keys. [`RawObject`] splits only the top level of an object
//! and lends each value as raw JSON; replacing one field leaves all others byte for byte as they were.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON object, split at its top level into keys and raw values, in the order written.
#[derive(Debug, Clone, Default)]
pub struct RawObject<'a> {
    fields: Vec<(Cow<'a, str>, Cow<'a, RawValue>)>,
}

impl<'a> RawObject<'a> {
    /// Splits a JSON text; anything but an object is an error.
    pub fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Returns the last value under `key`, as JSON readers do.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.fields.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_ref())
    }

    /// Reads the value under `key` as `T`; `None` when it is absent or of another shape.
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Replaces the value under `key` in its place, or adds it at the end.
    pub fn set<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), serde_json::Error> {
        let raw = serde_json::value::to_raw_value(value)?;
        match self.fields.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, slot)) => *slot = Cow::Owned(raw),
            None => self.fields.push((Cow::Owned(key.to_owned()), Cow::Owned(raw))),
        }
        Ok(())
    }

    /// Removes every value under `key`.
    pub fn remove(&mut self, key: &str) {
        self.fields.retain(|(name, _)| name != key);
    }

    /// Iterates over keys and raw values in the order written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.fields.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Writes the object as compact JSON (values keep their own spacing).
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(
            self.fields.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum::<usize>() + 2,
        );
        out.push('{');
        for (idx, (name, value)) in self.fields.iter().enumerate() {
            if idx > 0 {
                out.push(',');
            }
            out.push_str(&json_string(name));
            out.push(':');
            out.push_str(value.get());
        }
        out.push('}');
        out
    }
}

impl<'de> Deserialize<'de> for RawObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = RawObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(map.size_hint().unwrap_or(16));
                while let Some(name) = map.next_key::<Name<'de>>()? {
                    fields.push((name.0, Cow::Borrowed(map.next_value::<&'de RawValue>()?)));
                }
                Ok(RawObject { fields })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// A key, borrowed when it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A JSON value as text, shared and never re-serialised: its bytes are what is stored and what is sent.
#[derive(Clone)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Serialises a value once.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self(text.into()))
    }

    /// Writes a value that is already JSON, which cannot fail.
    pub(crate) fn from_text_of(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }

    /// Keeps a text that is JSON already; one that is not is kept as a JSON string.
    pub(crate) fn from_text(text: &str) -> Self {
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) => Self::from_raw(raw),
            Err(_) => Self(json_string(text).into()),
        }
    }

    /// Keeps a raw value's text.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(raw.get().into())
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the text as `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for RawJson {}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self::from_raw(&raw))
    }
}

/// Returns `text` as a JSON string literal.
pub fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untouched_fields_keep_their_bytes() {
        let line = r#"{"b":1.50,"a":{"x": 1,"y":[ ]},"n":123456789012345678901234567890,"s":"é\u00e9"}"#;
        let mut object = RawObject::parse(line).unwrap();
        assert_eq!(object.to_json(), line);
        object.set("a", "new").unwrap();
        object.set("z", &true).unwrap();
        assert_eq!(
            object.to_json(),
            r#"{"b":1.50,"a":"new","n":123456789012345678901234567890,"s":"é\u00e9","z":true}"#
        );
    }

    #[test]
    fn last_duplicate_wins_and_all_survive() {
        let object = RawObject::parse(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(object.read::<u32>("a"), Some(2));
        assert_eq!(object.to_json(), r#"{"a":1,"a":2}"#);
    }

    #[test]
    fn json_that_is_no_object_is_refused() {
        for json in ["null", "[]", "1", "\"x\"", "{", ""] {
            assert!(RawObject::parse(json).is_err(), "{json}");
        }
    }
}
