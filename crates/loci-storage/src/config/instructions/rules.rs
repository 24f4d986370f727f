//! Rules: Markdown files below a `rules` directory, some of them for certain files only.
//!
//! A rule may begin with front matter between two lines `---`. The key `paths` there holds patterns, as one
//! text with commas, a list in brackets, or a list of lines with dashes. Other keys are nobody's.

use std::fs;
use std::path::{Path, PathBuf};

use loci_core::front_matter;

/// How deep directories of rules may lie, which also ends links that go in circles.
const DEPTH_LIMIT: usize = 8;
/// How many rules are taken.
const COUNT_LIMIT: usize = 1_000;

/// Returns the rules below a directory, in the order of their paths.
pub(super) fn rule_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(dir, DEPTH_LIMIT, &mut files);
    files.sort();
    files.truncate(COUNT_LIMIT);
    files
}

fn collect(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if files.len() > COUNT_LIMIT * 2 {
            return;
        }
        if path.extension().is_some_and(|extension| extension == "md") && !path.is_dir() {
            files.push(path);
        } else if depth > 0 && path.is_dir() {
            collect(&path, depth - 1, files);
        }
    }
}

/// Splits a rule into the patterns of the files it is for and the text without front matter.
pub(super) fn split(text: &str) -> (Vec<String>, &str) {
    match front_matter::split(text) {
        Some((head, body)) => (patterns(head), body),
        None => (Vec::new(), text),
    }
}

fn patterns(head: &str) -> Vec<String> {
    let mut lines = head.lines().skip_while(|line| !line.starts_with("paths:"));
    let Some(first) = lines.next() else { return Vec::new() };
    let inline = first["paths:".len()..].trim();
    let items: Vec<&str> = if inline.is_empty() {
        let is_item = |line: &&str| line.trim_start().starts_with("- ") || line.trim().is_empty();
        lines.take_while(is_item).filter_map(|line| line.trim_start().strip_prefix("- ")).collect()
    } else {
        split_list(inline.trim_start_matches('[').trim_end_matches(']'))
    };
    items.into_iter().map(unquoted).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Splits at commas outside braces, since `{a,b}` is one pattern.
fn split_list(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    text.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c == ','
    })
    .collect()
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str], body: &str) {
        let (patterns, rest) = split(text);
        assert_eq!(
            (patterns, rest),
            (expected.iter().map(|text| (*text).to_owned()).collect(), body),
            "{text:?}"
        );
    }

    #[test]
    fn path_patterns_are_parsed_in_three_spellings() {
        check(
            "---\npaths: src/**/*.{ts,tsx}, lib/*\n---\nBe terse.\n",
            &["src/**/*.{ts,tsx}", "lib/*"],
            "Be terse.\n",
        );
        check("---\npaths: [\"a/**\", 'b']\n---\n", &["a/**", "b"], "");
        check(
            "---\r\ndescription: x\r\npaths:\r\n  - \"a/**\"\r\n  - b\r\nother: y\r\n---\r\nz",
            &["a/**", "b"],
            "z",
        );
    }

    #[test]
    fn front_matter_without_paths_is_stripped() {
        check("---\nname: x\n---\nbody", &[], "body");
        check("---\nnever closed", &[], "---\nnever closed");
        check("--- no\n---\n", &[], "--- no\n---\n");
        check("body\n---\npaths: x\n---\n", &[], "body\n---\npaths: x\n---\n");
    }
}
