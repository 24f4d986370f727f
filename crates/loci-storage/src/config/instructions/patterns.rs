//! Which files a rule speaks of.
//!
//! Patterns are globs on the path below the rule's directory: `*` stays within a name, `**` crosses names, braces
//! hold alternatives, brackets hold letters. A pattern that is none matches nothing and leaves the others be.
//! Braces that would multiply beyond all bounds are taken letter by letter.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// How many patterns a rule's whole list may stand for, its braces multiplied out.
const MOST_EXPANDED: usize = 1_000;

/// Patterns of files, ready to be asked.
#[derive(Debug, Clone)]
pub struct PathPatterns(GlobSet);

impl PathPatterns {
    /// Reads patterns.
    pub fn new(patterns: &[String]) -> Self {
        Self(compile(patterns))
    }

    /// Tells whether one of them fits a path below their directory.
    pub fn fits(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

/// Tells whether one of the patterns fits a path.
pub(super) fn fits(patterns: &[String], path: &Path) -> bool {
    PathPatterns::new(patterns).fits(path)
}

fn compile(patterns: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    let mut left = MOST_EXPANDED;
    for pattern in patterns {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let n_expanded = expanded(pattern);
        let text = if n_expanded <= left { pattern.to_owned() } else { globset::escape(pattern) };
        left = left.saturating_sub(n_expanded);
        if let Ok(glob) = GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build() {
            set.add(glob);
        }
    }
    set.build().unwrap_or_else(|_| GlobSet::empty())
}

/// Counts the patterns that one with braces stands for: alternatives add up, what follows multiplies.
fn expanded(pattern: &str) -> usize {
    // For each open brace: the alternatives so far, and the product of the one under way.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut product = 1usize;
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '{' => {
                open.push((0, product));
                product = 1;
            }
            ',' if !open.is_empty() => {
                if let Some((sum, _)) = open.last_mut() {
                    *sum = sum.saturating_add(product);
                }
                product = 1;
            }
            '}' => {
                if let Some((sum, before)) = open.pop() {
                    product = before.saturating_mul(sum.saturating_add(product));
                }
            }
            _ => {}
        }
    }
    open.into_iter()
        .fold(product, |product, (sum, before)| before.saturating_mul(sum.saturating_add(product)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patterns: &[&str], path: &str, expected: bool) {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        assert_eq!(fits(&patterns, Path::new(path)), expected, "{patterns:?} {path}");
    }

    #[test]
    fn pattern_matches_the_whole_path() {
        check(&["src/**/*.ts"], "src/a.ts", true);
        check(&["src/**/*.ts"], "src/a/b/c.ts", true);
        check(&["src/**/*.ts"], "lib/src/a.ts", false);
        check(&["*.md"], "README.md", true);
        check(&["*.md"], "docs/README.md", false);
        check(&["**/*.md"], "docs/README.md", true);
        check(&["./src/*"], "src/a", true);
        check(&["src/*"], "src/a/b", false);
        check(&["src/**"], "src/a/b", true);
        check(&["**/*.{ts,tsx}"], "a/b.tsx", true);
        check(&["{src,lib}/**/*.rs"], "lib/a.rs", true);
        check(&["[ab].rs"], "b.rs", true);
        check(&[r"\[ab\].rs"], "[ab].rs", true);
        check(&["a.rs"], "A.rs", false);
    }

    #[test]
    fn bad_pattern_does_not_disable_the_others() {
        check(&["[", "a.rs"], "a.rs", true);
        check(&["["], "[", false);
        check(&["{a"], "a", false);
    }

    #[test]
    fn brace_expansion_is_limited() {
        for (pattern, expected) in [
            ("a", 1),
            ("{a,b}", 2),
            ("{a,b}{c,d,e}", 6),
            ("{a,{b,c}}x{d,e}", 6),
            (r"\{a,b}", 1),
            ("{a,b", 2),
            ("a,b", 1),
        ] {
            assert_eq!(expanded(pattern), expected, "{pattern}");
        }
        let many = "{a,b}".repeat(64);
        check(&[&many, "c.rs"], "c.rs", true);
        check(&[&many], &"a".repeat(64), false);
        check(&[&many], &many, true);
    }
}
