//! Which files a rule speaks of.
//!
//! Patterns are globs on the path below the rule's directory: `*` stays within a name, `**` crosses names, braces
//! hold alternatives, brackets hold letters. A pattern that is none matches nothing and leaves the others be.
//! Braces that would multiply beyond all bounds are taken letter by letter.
//!
//! Reading patterns costs a thousand times what asking them does, so it is done once for as long as the rules are the same
//! ([`RuleSet`]), and for many rules at a time.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

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

/// How many rules are asked at once.
const RULES_AT_ONCE: usize = 100;

/// The patterns of many rules, ready to be asked which of them fit.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleSet {
    /// Sets, each with the rule that each of its globs belongs to.
    sets: Vec<(GlobSet, Vec<usize>)>,
}

impl RuleSet {
    /// Reads the patterns of rules.
    pub(super) fn compile<'a>(rules: impl IntoIterator<Item = &'a [String]>) -> Self {
        let rules: Vec<(usize, Vec<Glob>)> = rules.into_iter().map(globs).enumerate().collect();
        let mut sets = Vec::new();
        rules.chunks(RULES_AT_ONCE).for_each(|chunk| add_sets(chunk, &mut sets));
        Self { sets }
    }

    /// Returns the numbers of the rules that fit a path, in order.
    pub(super) fn fitting(&self, path: &Path) -> Vec<usize> {
        let mut fitting: Vec<usize> = self
            .sets
            .iter()
            .flat_map(|(set, owners)| set.matches(path).into_iter().map(|at| owners[at]))
            .collect();
        fitting.sort_unstable();
        fitting.dedup();
        fitting
    }
}

/// Makes one set of the rules, or several where one would be too large.
fn add_sets(rules: &[(usize, Vec<Glob>)], sets: &mut Vec<(GlobSet, Vec<usize>)>) {
    let (mut set, mut owners) = (GlobSetBuilder::new(), Vec::new());
    for (rule, globs) in rules {
        for glob in globs {
            set.add(glob.clone());
            owners.push(*rule);
        }
    }
    match set.build() {
        Ok(set) => sets.push((set, owners)),
        Err(_) if rules.len() > 1 => {
            let (before, after) = rules.split_at(rules.len() / 2);
            add_sets(before, sets);
            add_sets(after, sets);
        }
        // A rule that is too large by itself fits nothing.
        Err(_) => {}
    }
}

fn compile(patterns: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in globs(patterns) {
        set.add(glob);
    }
    set.build().unwrap_or_else(|_| GlobSet::empty())
}

/// Reads the patterns of one rule.
fn globs(patterns: &[String]) -> Vec<Glob> {
    #[cfg(test)]
    tests::COMPILED.with(|n| n.set(n.get() + 1));
    let mut globs = Vec::new();
    let mut left = MOST_EXPANDED;
    for pattern in patterns {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let n_expanded = expanded(pattern);
        let text = if n_expanded <= left { pattern.to_owned() } else { globset::escape(pattern) };
        left = left.saturating_sub(n_expanded);
        if let Ok(glob) = GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build() {
            globs.push(glob);
        }
    }
    globs
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
pub(super) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// How many rules this thread has read the patterns of.
        pub(in super::super) static COMPILED: Cell<usize> = const { Cell::new(0) };
    }

    fn check(patterns: &[&str], path: &str, expected: bool) {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let path = Path::new(path);
        assert_eq!(PathPatterns::new(&patterns).fits(path), expected, "{patterns:?} {path:?}");
        let fitting = RuleSet::compile([&[][..], &patterns]).fitting(path);
        assert_eq!(fitting, if expected { vec![1] } else { vec![] }, "{patterns:?} {path:?}");
    }

    #[test]
    fn many_rules_are_asked_at_once() {
        let rules: Vec<Vec<String>> =
            (0..250).map(|n| vec![format!("src/{n}/**/*.rs"), format!("**/{}.md", n % 7)]).collect();
        let set = RuleSet::compile(rules.iter().map(Vec::as_slice));
        assert_eq!(set.sets.len(), 3);
        assert_eq!(set.fitting(Path::new("src/42/a/b.rs")), [42]);
        let of_three: Vec<usize> = (0..250).filter(|n| n % 7 == 3).collect();
        assert_eq!(set.fitting(Path::new("docs/3.md")), of_three);
        assert!(set.fitting(Path::new("docs/8.md")).is_empty());
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
