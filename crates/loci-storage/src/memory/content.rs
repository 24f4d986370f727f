//! What a memory's file holds, byte for byte.
//!
//! People and other programs write these files, in whatever encoding they like. In the journal a text is a string, and
//! what is not UTF-8 an object, so that it comes back as it was:
//!
//! ```json
//! {"base64": "Y2Fm6Q=="}
//! ```

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The key of what is not text.
const BASE64: &str = "base64";

/// The bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryContent(Vec<u8>);

impl MemoryContent {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text; `None` when it is not UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns the text for people; what is not UTF-8 is shown as well as can be.
    pub fn to_text_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<Vec<u8>> for MemoryContent {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<String> for MemoryContent {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<&str> for MemoryContent {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Serialize for MemoryContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(text) = self.as_text() {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(BASE64, &STANDARD.encode(&self.0))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for MemoryContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Stored)
    }
}

/// Reads either form; texts, which nearly all are, are copied once.
struct Stored;

impl<'de> Visitor<'de> for Stored {
    type Value = MemoryContent;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, or an object with `base64`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<MemoryContent, E> {
        Ok(text.into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<MemoryContent, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MemoryContent, A::Error> {
        let mut bytes = None;
        while let Some((key, value)) = map.next_entry::<String, serde_json::Value>()? {
            if key == BASE64 {
                let text = value.as_str().ok_or_else(|| A::Error::custom("`base64` is no text"))?;
                bytes = Some(STANDARD.decode(text).map_err(A::Error::custom)?);
            }
        }
        bytes.map(MemoryContent).ok_or_else(|| A::Error::missing_field(BASE64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(json: &str) -> Option<MemoryContent> {
        serde_json::from_str(json).ok()
    }

    #[test]
    fn texts_are_strings_and_all_else_is_encoded() {
        let written = |bytes: &[u8]| serde_json::to_string(&MemoryContent::from(bytes.to_vec())).unwrap();
        assert_eq!(written("caf\u{e9}\r\n".as_bytes()), r#""café\r\n""#);
        assert_eq!(written(b"caf\xe9"), r#"{"base64":"Y2Fm6Q=="}"#);
        assert_eq!(read(r#"{"later": 1, "base64": "Y2Fm6Q=="}"#), Some(b"caf\xe9".to_vec().into()));
        for broken in ["1", "{}", r#"{"base64": 1}"#, r#"{"base64": "?"}"#, "null"] {
            assert_eq!(read(broken), None, "{broken}");
        }
        assert_eq!(MemoryContent::from(b"caf\xe9".to_vec()).to_text_lossy(), "caf\u{fffd}");
    }

    proptest! {
        #[test]
        fn memory_content_round_trips_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let content = MemoryContent::from(bytes);
            prop_assert_eq!(read(&serde_json::to_string(&content).unwrap()), Some(content.clone()));
            let value = serde_json::to_value(&content).unwrap();
            prop_assert_eq!(serde_json::from_value::<MemoryContent>(value).ok(), Some(content));
        }
    }
}
