//! Resources that a server of the newer era called fresh for a while: they are not read again within it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::content::ContentPart;

/// How many resources are kept, and how large one may be.
const MOST_KEPT: usize = 32;
const LARGEST: usize = 256 << 10;
const LONGEST_FRESH: Duration = Duration::from_secs(60 * 60);

/// What was read and is fresh.
#[derive(Default)]
pub(super) struct ReadCache {
    /// By address; held to look, to add or to forget.
    kept: Mutex<HashMap<String, (Instant, Vec<ContentPart>)>>,
}

impl ReadCache {
    pub(super) fn get(&self, uri: &str, now: Instant) -> Option<Vec<ContentPart>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(uri).filter(|(until, _)| *until > now).map(|(_, parts)| parts.clone())
    }

    pub(super) fn keep(&self, uri: &str, ttl: Duration, parts: &[ContentPart], now: Instant) {
        let size: usize = parts.iter().map(size).sum();
        if ttl.is_zero() || size > LARGEST {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (until, _)| *until > now);
        if kept.len() < MOST_KEPT || kept.contains_key(uri) {
            kept.insert(uri.to_owned(), (now + ttl.min(LONGEST_FRESH), parts.to_vec()));
        }
    }

    /// Forgets what the server says has changed: one resource, or all.
    pub(super) fn forget(&self, uri: Option<&str>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match uri {
            // It may name something within what was read.
            Some(uri) => kept.retain(|held, _| !uri.starts_with(held.as_str())),
            None => kept.clear(),
        }
    }
}

fn size(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(text) => text.len(),
        ContentPart::Image { base64, .. } | ContentPart::Blob { base64, .. } => base64.len(),
        ContentPart::Link { uri, name, description } => {
            uri.len() + name.len() + description.as_ref().map_or(0, String::len)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_kept_while_they_are_fresh() {
        let now = Instant::now();
        let cache = ReadCache::default();
        let parts = vec![ContentPart::Text("x".to_owned())];
        cache.keep("a://b", Duration::from_secs(1), &parts, now);
        cache.keep("a://now", Duration::ZERO, &parts, now);
        cache.keep("a://large", Duration::from_secs(1), &[ContentPart::Text("x".repeat(LARGEST + 1))], now);
        assert_eq!(cache.get("a://b", now), Some(parts.clone()));
        assert_eq!((cache.get("a://now", now), cache.get("a://large", now)), (None, None));
        assert_eq!(cache.get("a://b", now + Duration::from_secs(2)), None);
        cache.keep("a://b", Duration::from_secs(1), &parts, now);
        cache.forget(Some("a://b/c"));
        assert_eq!(cache.get("a://b", now), None);
        for n in 0..2 * MOST_KEPT {
            cache.keep(&format!("a://{n}"), Duration::from_secs(1), &parts, now);
        }
        assert_eq!(cache.kept.lock().unwrap().len(), MOST_KEPT);
    }
}
