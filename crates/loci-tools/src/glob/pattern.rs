//! Reading a file pattern: where the walk starts, how deep it goes, and what matches.
//!
//! A pattern without a slash matches a name at any depth, as in an ignore file; one with a slash is matched
//! against the whole path below the search directory. The leading directories that hold no wildcard are not
//! matched at all: the walk starts inside them.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// A pattern taken apart.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Leading directories without wildcards: relative, absolute or under `~`; empty when there are none.
    pub(super) prefix: String,
    /// How many levels below the prefix can match; `None` when there is no bound.
    pub(super) max_depth: Option<usize>,
    rest: String,
    matcher: GlobMatcher,
}

impl Pattern {
    /// Takes a pattern apart, or says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("`pattern` contains a NUL byte, which no path can".to_owned());
        }
        if text.is_empty() {
            return Err("`pattern` is empty; use `**` for all files".to_owned());
        }
        let (prefix, rest) = split(text);
        let is_any_depth = !text.contains('/');
        let glob = if is_any_depth { format!("**/{rest}") } else { rest.clone() };
        let matcher = GlobBuilder::new(&glob)
            .literal_separator(true)
            .build()
            .map_err(|error| format!("`{text}` is not a valid pattern: {}", error.kind()))?
            .compile_matcher();
        let max_depth = if is_any_depth { None } else { depth(&rest) };
        Ok(Self { prefix, max_depth, rest, matcher })
    }

    /// Returns true when the path, relative to the prefix, is meant. A file whose name is spelled exactly like
    /// the pattern is meant too: `[id].tsx` is a name in some frameworks.
    pub(super) fn matches(&self, path: &Path) -> bool {
        self.matcher.is_match(path) || path == Path::new(&self.rest)
    }
}

/// Splits off the leading directories without wildcards; the last part always stays with the pattern.
fn split(text: &str) -> (String, String) {
    let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let n_literal = parts.iter().take_while(|part| !part.contains(['*', '?', '[', '{', '\\'])).count();
    let (head, tail) = parts.split_at(n_literal.min(parts.len().saturating_sub(1)));
    let slash = if text.starts_with('/') { "/" } else { "" };
    (format!("{slash}{}", head.join("/")), tail.join("/"))
}

fn depth(rest: &str) -> Option<usize> {
    let is_bounded = !rest.contains("**") && !rest.contains('{');
    is_bounded.then(|| rest.split('/').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_starts_at_the_literal_prefix() {
        for (text, prefix, max_depth) in [
            ("*.rs", "", None),
            ("main.rs", "", None),
            ("./*.rs", "", Some(1)),
            ("src/*.rs", "src", Some(1)),
            ("src/main.rs", "src", Some(1)),
            ("src//a/./b/*/c.rs", "src/a/b", Some(2)),
            ("src/**/*.rs", "src", None),
            ("/etc/*.conf", "/etc", Some(1)),
            ("/*.conf", "/", Some(1)),
            ("~/notes/*.md", "~/notes", Some(1)),
            ("../other/*.md", "../other", Some(1)),
            ("{src,tests/it}/*.rs", "", None),
            ("a\\*b/c/*.rs", "", Some(3)),
        ] {
            let pattern = Pattern::parse(text).unwrap();
            assert_eq!((pattern.prefix.as_str(), pattern.max_depth), (prefix, max_depth), "{text}");
        }
    }

    #[test]
    fn patterns_match_paths() {
        for (text, path, expected) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "deep/er/a.rs", true),
            ("./*.rs", "deep/a.rs", false),
            ("src/*.rs", "a.rs", true),
            ("src/*.rs", "deep/a.rs", false),
            ("src/**/*.rs", "a.rs", true),
            ("src/**/*.rs", "deep/er/a.rs", true),
            ("**", "deep/er/a.rs", true),
            ("**/*.{rs,toml}", "x/Cargo.toml", true),
            ("**/*.{rs,toml}", "x/Cargo.lock", false),
            ("{src,tests/it}/*.rs", "tests/it/a.rs", true),
            ("[ab].rs", "b.rs", true),
            ("app/[id].tsx", "[id].tsx", true),
            (".*", "x/.env", true),
            ("A.RS", "a.rs", false),
        ] {
            assert_eq!(Pattern::parse(text).unwrap().matches(Path::new(path)), expected, "{text} {path}");
        }
    }

    #[test]
    fn bad_patterns_are_explained() {
        for (text, needle) in [("a\0b", "NUL"), ("", "empty"), ("a[", "unclosed"), ("{a,b", "unclosed")] {
            let problem = Pattern::parse(text).unwrap_err();
            assert!(problem.contains(needle), "{text}: {problem}");
        }
    }
}
