//! What a text is known by.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The SHA-256 of a text, in lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ContentHash(String);

impl ContentHash {
    /// Returns the hash of a text.
    pub fn of(text: &str) -> Self {
        Self(loci_core::hex::to_hex(&Sha256::digest(text.as_bytes())))
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Returns its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ContentHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| "not a SHA-256 in lower-case digits".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_hash_is_sha256_in_hex() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(ContentHash::of("abc").as_str(), abc);
        assert_eq!(ContentHash::parse(abc), Some(ContentHash::of("abc")));
        for bad in ["", "abc", &abc.to_uppercase(), &format!("{abc}0"), &abc.replace('b', "g")] {
            assert_eq!(ContentHash::parse(bad), None, "{bad}");
        }
    }
}
