//! Which addresses `http` handlers may call: patterns with `*`, compared part by part.
//!
//! A `*` in the place of the host never reaches into the path, and the other way round: `https://*.example.com/*` does
//! not allow `https://evil.test/.example.com/`.

/// Tells whether a pattern allows an address.
pub(super) fn matches_url(pattern: &str, url: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let (Some(pattern), Some(url)) = (UrlParts::parse(pattern), UrlParts::parse(url)) else { return false };
    // What stands before an `@` is no host, and hides the one behind it.
    !url.host.contains('@')
        && is_like(pattern.scheme, &url.scheme.to_ascii_lowercase())
        && is_like(&pattern.host.to_ascii_lowercase(), &url.host.to_ascii_lowercase())
        && is_like(pattern.path, url.path)
}

struct UrlParts<'a> {
    scheme: &'a str,
    host: &'a str,
    path: &'a str,
}

impl<'a> UrlParts<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once("://")?;
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(at);
        Some(Self { scheme, host, path: if path.is_empty() { "/" } else { path } })
    }
}

/// Compares texts; `*` stands for any number of characters.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stay_in_their_part_of_the_address() {
        for (pattern, url, expected) in [
            ("https://hooks.example.com/*", "https://hooks.example.com/a/b?c", true),
            ("https://hooks.example.com/*", "https://hooks.example.com", true),
            ("https://hooks.example.com/*", "http://hooks.example.com/a", false),
            ("https://hooks.example.com/*", "https://hooks.example.com.evil.test/a", false),
            ("https://*.example.com/*", "https://a.EXAMPLE.com/x", true),
            ("https://*.example.com/*", "https://evil.test/.example.com/", false),
            ("https://*.example.com/*", "https://evil.test#.example.com/", false),
            ("https://example.com/*", "https://example.com@evil.test/", false),
            ("https://*", "https://user@evil.test/", false),
            ("http://127.0.0.1:*/hook", "http://127.0.0.1:8080/hook", true),
            ("http://127.0.0.1:*/hook", "http://127.0.0.1:8080/hooks", false),
            ("https://a/x*y*z", "https://a/x1y2z", true),
            ("https://a/x*y*z", "https://a/xz", false),
            ("*", "https://anything.test/", true),
            ("nonsense", "https://anything.test/", false),
            ("https://a/*", "nonsense", false),
        ] {
            assert_eq!(matches_url(pattern, url), expected, "{pattern} ~ {url}");
        }
    }
}
