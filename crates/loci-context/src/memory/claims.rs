//! Memories that say different things about the same, as far as that can be told without understanding them.
//!
//! A claim is a line `key: value` or `key = value`. Two memories of one type contradict each other where their names share
//! half of their words, both have a claim with the same key, and neither value holds all words of the other. What is said
//! under different keys, or in whole sentences, is not found.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::file::{MemoryFile, MemoryKind};
use super::flags::{Flag, content_words};

/// Words that begin a line of a memory without being a key of its own.
const NO_KEYS: &[&str] = &["why", "apply how", "note", "example", "see", "todo", "warning", "http", "https"];
/// Words of a key.
const MOST_WORDS: usize = 4;
/// Letters of a value that are shown.
const MOST_LETTERS: usize = 60;
/// Memories with the same key that are compared, the newest first.
const MOST_COMPARED: usize = 100;

/// A claim, and where it was made.
struct KeyValueClaim<'a> {
    modified: &'a str,
    path: &'a str,
    /// The words of the memory's name.
    subject: Rc<BTreeSet<String>>,
    value: &'a str,
}

/// A claim that is compared with others, with the words of its value.
struct ComparedClaim<'a> {
    claim: KeyValueClaim<'a>,
    words: BTreeSet<String>,
}

/// Finds memories that contradict each other; both are flagged.
pub fn contradictions<'a>(files: impl IntoIterator<Item = (&'a str, &'a MemoryFile)>) -> Vec<(String, Flag)> {
    let mut groups: BTreeMap<(Option<MemoryKind>, String), Vec<KeyValueClaim<'a>>> = BTreeMap::new();
    for (path, file) in files {
        let Some(name) = &file.name else { continue };
        let modified = file.modified.as_deref().unwrap_or_default();
        let subject = LazyCell::new(|| Rc::new(content_words(name)));
        for (key, value) in claims(&file.body) {
            let claim = KeyValueClaim { modified, path, subject: Rc::clone(&subject), value };
            groups.entry((file.kind, key)).or_default().push(claim);
        }
    }
    let mut flags = BTreeSet::new();
    for ((_, key), mut group) in groups.into_iter().filter(|(_, group)| group.len() > 1) {
        group.sort_by(|a, b| (b.modified, b.path).cmp(&(a.modified, a.path)));
        group.truncate(MOST_COMPARED);
        let sides = group.into_iter().map(|claim| ComparedClaim { words: content_words(claim.value), claim });
        let sides: Vec<ComparedClaim<'a>> = sides.collect();
        for (n, one) in sides.iter().enumerate() {
            for other in sides[n + 1..].iter().filter(|other| is_contradiction(one, other)) {
                let (one, other) = (&one.claim, &other.claim);
                flags.insert((one.path.to_owned(), flag(&key, one, other)));
                flags.insert((other.path.to_owned(), flag(&key, other, one)));
            }
        }
    }
    flags.into_iter().collect()
}

fn is_contradiction(one: &ComparedClaim<'_>, other: &ComparedClaim<'_>) -> bool {
    let (subject, others) = (&one.claim.subject, &other.claim.subject);
    let shared = subject.intersection(others).count();
    one.claim.path != other.claim.path
        && shared > 0
        && shared * 2 >= subject.len().min(others.len())
        && !one.words.is_subset(&other.words)
        && !other.words.is_subset(&one.words)
}

fn flag(key: &str, ours: &KeyValueClaim<'_>, theirs: &KeyValueClaim<'_>) -> Flag {
    let shown = |value: &str| value.chars().take(MOST_LETTERS).collect::<String>();
    Flag::Contradicted {
        other: theirs.path.to_owned(),
        key: key.to_owned(),
        ours: shown(ours.value),
        theirs: shown(theirs.value),
    }
}

/// Returns the claims of a text, each key in words of its own order.
fn claims(body: &str) -> impl Iterator<Item = (String, &str)> {
    let mut is_code = false;
    body.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let line = line.trim_start_matches(['-', '*', '+', ' ']);
        let (key, value) = line.split_once(": ").or_else(|| line.split_once(" = "))?;
        let key = content_words(key);
        let value = value.trim().trim_end_matches('.').trim_matches(['*', '`', ' ']);
        let words = key.into_iter().collect::<Vec<_>>();
        let is_key = (1..=MOST_WORDS).contains(&words.len()) && !NO_KEYS.contains(&words.join(" ").as_str());
        (is_key && !is_code && !value.is_empty()).then(|| (words.join(" "), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(name: &str, kind: &str, modified: &str, body: &str) -> MemoryFile {
        MemoryFile::parse(&format!(
            "---\nname: {name}\ndescription: d\ntype: {kind}\nmodified: {modified}\n---\n{body}\n"
        ))
    }

    fn check(one: (&str, &str, &str), other: (&str, &str, &str), expected: &[&str]) {
        let files = [
            ("a.md", memory(one.0, one.1, "2026-01-01", one.2)),
            ("b.md", memory(other.0, other.1, "2026-02-01", other.2)),
        ];
        let found = contradictions(files.iter().map(|(path, file)| (*path, file)));
        let said: Vec<String> = found.iter().map(|(path, flag)| format!("{path}: {flag}")).collect();
        assert_eq!(said, expected, "{one:?} {other:?}");
    }

    /// Invariant 8 of `docs/design/memory.md`.
    #[test]
    fn memories_that_say_otherwise_are_found() {
        check(
            ("staging-server", "project", "It is slow.\n- **Port**: 8080"),
            ("the server for staging", "project", "port = `9090`."),
            &[
                "a.md: it says `8080` for `port`, `b.md` says `9090`",
                "b.md: it says `9090` for `port`, `a.md` says `8080`",
            ],
        );
        check(
            ("running-tests", "feedback", "Test command: cargo nextest run"),
            ("how tests run", "feedback", "Command of the test: make check"),
            &[
                "a.md: it says `cargo nextest run` for `command test`, `b.md` says `make check`",
                "b.md: it says `make check` for `command test`, `a.md` says `cargo nextest run`",
            ],
        );
    }

    /// Invariant 8 of `docs/design/memory.md`.
    #[test]
    fn memories_that_may_both_hold_are_not_flagged() {
        let server = ("staging-server", "project", "Port: 8080");
        for other in [
            ("staging-server", "project", "Port: 8080 (http)"),
            ("staging-server", "project", "Host: example.com"),
            ("staging-server", "reference", "Port: 9090"),
            ("mail-relay", "project", "Port: 9090"),
            ("staging-server", "project", "```\nPort: 9090\n```"),
            ("staging-server", "project", "The port is 9090 these days"),
        ] {
            check(server, other, &[]);
        }
        let why = |text: &'static str| ("tests", "feedback", text);
        check(
            why("Why: they are slow\nHow to apply: always"),
            why("Why: they are flaky\nHow to apply: never"),
            &[],
        );
    }
}
