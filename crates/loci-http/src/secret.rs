//! A credential that cannot be printed by accident and does not outlive its use in memory.

use std::fmt;
use std::sync::Arc;

/// A key, token or passphrase. Clones share one copy, which is overwritten when the last one goes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<Wiped>);

#[derive(PartialEq, Eq)]
struct Wiped(String);

impl Secret {
    /// Takes over a credential.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Arc::new(Wiped(text.into())))
    }

    /// Lends the credential; the name is loud so that every use can be found.
    pub fn expose(&self) -> &str {
        &self.0.0
    }

    /// Returns `text` with every occurrence of the credential masked.
    pub fn redact(&self, text: &str) -> String {
        if self.expose().is_empty() {
            return text.to_owned();
        }
        text.replace(self.expose(), "[redacted]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.fill(0);
        // Says that the zeroes are looked at, so that the compiler keeps the writes.
        std::hint::black_box(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_lent_but_never_shown() {
        let secret = Secret::new("sk-123");
        assert_eq!(secret.expose(), "sk-123");
        assert_eq!(format!("{secret:?}"), "Secret([redacted])");
        assert_eq!(secret.redact("bad key sk-123!"), "bad key [redacted]!");
        assert_eq!(Secret::new("").redact("abc"), "abc");
    }
}
