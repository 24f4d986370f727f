//! Secrets in a text, by rules that are data (`secrets.txt`).
//!
//! A rule is compiled when one of its words is first met. A rule that cannot be compiled counts as met wherever its words
//! are: what cannot be checked does not leave. What was found is named by rule and place; the secret itself is nowhere in
//! the answer.

use std::sync::{LazyLock, OnceLock};

use regex::Regex;

/// What was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFound {
    /// The rule.
    pub rule: &'static str,
    /// The line, counted from one.
    pub line: usize,
}

/// Finds secrets, at most one for each rule and line.
pub fn find_secrets(text: &str) -> Vec<SecretFound> {
    let lines = text.lines().enumerate();
    lines.flat_map(|(n, line)| rules_met(line).map(move |rule| SecretFound { rule, line: n + 1 })).collect()
}

fn rules_met(line: &str) -> impl Iterator<Item = &'static str> {
    let lower = line.to_ascii_lowercase();
    RULES.iter().filter(move |rule| rule.is_met(line, &lower)).map(|rule| rule.id)
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let lines = include_str!("secrets.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Rule::parse).collect()
});

struct Rule {
    id: &'static str,
    entropy: f64,
    words: Vec<&'static str>,
    pattern: &'static str,
    /// None when it cannot be compiled.
    compiled: OnceLock<Option<Regex>>,
}

impl Rule {
    fn parse(line: &'static str) -> Self {
        let mut columns = line.splitn(4, '\t');
        let mut column = || columns.next().unwrap_or_default();
        let (id, entropy, words) = (column(), column(), column());
        let pattern = column();
        let words = words.split(',').collect();
        Self { id, entropy: entropy.parse().unwrap_or(0.0), words, pattern, compiled: OnceLock::new() }
    }

    fn is_met(&self, line: &str, lower: &str) -> bool {
        if !self.words.iter().any(|word| lower.contains(word)) {
            return false;
        }
        let Some(regex) = self.compiled.get_or_init(|| Regex::new(self.pattern).ok()) else { return true };
        regex.captures_iter(line).any(|found| found.get(1).is_none_or(|found| self.is_secret(found.as_str())))
    }

    /// What is random enough, and neither the name of a secret nor a stand-in for one.
    fn is_secret(&self, found: &str) -> bool {
        self.entropy == 0.0 || (entropy(found) >= self.entropy && !is_stand_in(found))
    }
}

/// Returns the bits each character carries.
fn entropy(text: &str) -> f64 {
    let mut counts = [0usize; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let share = |n: usize| n as f64 / text.len() as f64;
    counts.iter().filter(|n| **n > 0).map(|n| -share(*n) * share(*n).log2()).sum()
}

/// Tells whether a text only stands where a secret would: a variable, an example, a piece of code.
fn is_stand_in(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "example",
        "changeme",
        "change-me",
        "placeholder",
        "redacted",
        "your-",
        "your_",
        "dummy",
        "sample",
        "xxxx",
        "****",
        "....",
    ];
    let lower = text.to_ascii_lowercase();
    let is_variable = text.starts_with(['$', '%', '{', '<', '&', '*']);
    // `self.tokens.next_2`, `std/v1/secret_name`: words with separators, each of letters or of digits alone.
    let is_words = text.split(['.', '_', '-', '/']).all(|word| {
        let n_digits = word.bytes().filter(u8::is_ascii_digit).count();
        let n_letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
        word.is_empty()
            || (word.len() < 24 && n_digits + n_letters == word.len() && (n_digits < 3 || n_letters == 0))
    });
    is_variable
        || (is_words && text.contains(['.', '_', '-', '/']))
        || WORDS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests;
