//! A JSON value that may be anything, read leniently.
//!
//! Formats that others write, too, are read leniently: another shape than the usual counts as absent. What is not looked
//! at is passed over where it stands, so nothing of a long message is copied to learn its id.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What a look at a value shows.
#[derive(Default)]
pub(crate) enum LenientValue<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Yes or no.
    Flag(bool),
    /// An object, and what two of its fields say if they are texts.
    Object {
        /// Its `id`.
        id: Option<Cow<'a, str>>,
        /// Its `text`.
        text: Option<Cow<'a, str>>,
    },
    /// Anything else, or nothing.
    #[default]
    Other,
}

impl<'a> LenientValue<'a> {
    /// Returns a text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Flag(_) | Self::Object { .. } | Self::Other => None,
        }
    }

    /// Returns an object's id.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Object { id, .. } => id.as_deref(),
            Self::Text(_) | Self::Flag(_) | Self::Other => None,
        }
    }

    /// Takes out what the `text` of an object says.
    pub(crate) fn into_field_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Object { text, .. } => text,
            Self::Text(_) | Self::Flag(_) | Self::Other => None,
        }
    }

    /// Returns true for yes.
    pub(crate) fn is_set(&self) -> bool {
        matches!(self, Self::Flag(true))
    }

    /// Takes a text out.
    pub(crate) fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Flag(_) | Self::Object { .. } | Self::Other => None,
        }
    }
}

/// Read by hand: derived enums without a tag copy the whole value before they look at it.
impl<'de: 'a, 'a> Deserialize<'de> for LenientValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor)
    }
}

struct LenientVisitor;

impl<'de> Visitor<'de> for LenientVisitor {
    type Value = LenientValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(LenientValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(LenientValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(LenientValue::Text(Cow::Owned(text)))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(LenientValue::Flag(flag))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(LenientValue::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(LenientValue::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(LenientValue::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(LenientValue::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LenientValue::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut id, mut text) = (None, None);
        while let Some(key) = map.next_key::<LenientValue<'de>>()? {
            match key.text() {
                Some("id") => id = map.next_value::<LenientValue<'de>>()?.into_text(),
                Some("text") => text = map.next_value::<LenientValue<'de>>()?.into_text(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(LenientValue::Object { id, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(json: &str) -> String {
        match serde_json::from_str::<LenientValue<'_>>(json).unwrap() {
            LenientValue::Text(text) => format!("text {text}"),
            LenientValue::Flag(flag) => format!("{flag}"),
            LenientValue::Object { id, text } => format!("object {id:?} {text:?}"),
            LenientValue::Other => "other".to_owned(),
        }
    }

    #[test]
    fn lenient_value_reads_any_json() {
        for (json, expected) in [
            (r#""a""#, "text a"),
            (r#""a\nb""#, "text a\nb"),
            ("true", "true"),
            ("null", "other"),
            ("17", "other"),
            ("-1", "other"),
            ("1.5", "other"),
            (r#"[1, {"id": "x"}]"#, "other"),
            ("{}", "object None None"),
            (r#"{"id": "m", "text": 1, "content": [{"id": "n"}]}"#, "object Some(\"m\") None"),
            (r#"{"text": "t", "id": {"id": "deep"}}"#, "object None Some(\"t\")"),
        ] {
            assert_eq!(seen(json), expected, "{json}");
        }
    }
}
