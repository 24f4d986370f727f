//! Memories that need a look: in each other's way, about what is gone, or malformed.

use std::collections::{BTreeSet, HashMap};

use super::file::MemoryFile;

/// Why a memory needs a look.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// Its form is wrong.
    Malformed(String),
    /// Another one has its name, or is about the same; the newest of them probably holds.
    SameSubject(String),
    /// An older memory that a newer one on the same subject probably replaces.
    Superseded(String),
    /// Another one has another value for the same key.
    Contradicted {
        /// The other.
        other: String,
        /// The words of the key.
        key: String,
        /// What this one says.
        ours: String,
        /// What the other says.
        theirs: String,
    },
    /// It names a file, a program or a symbol that is not there.
    Stale(String),
    /// The index does not lead to it.
    NotInIndex,
}

impl std::fmt::Display for Flag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(what) => f.write_str(what),
            Self::SameSubject(other) => write!(f, "it is about the same as `{other}`"),
            Self::Superseded(other) => write!(f, "`{other}` is newer and about the same"),
            Self::Contradicted { other, key, ours, theirs } => {
                write!(f, "it says `{ours}` for `{key}`, `{other}` says `{theirs}`")
            }
            Self::Stale(what) => write!(f, "it names `{what}`, which is not there"),
            Self::NotInIndex => f.write_str("MEMORY.md has no line for it"),
        }
    }
}

/// What a memory is about: its type, and words of it.
type Subject = (Option<super::MemoryKind>, String);

/// Finds memories on the same subject: the same name, the same words in it, or the same description. Returns for each
/// of them a flag that names another; the one written last is superseded by none.
pub fn same_subject<'a>(files: impl IntoIterator<Item = (&'a str, &'a MemoryFile)>) -> Vec<(String, Flag)> {
    let mut groups: HashMap<Subject, Vec<(&str, &str)>> = HashMap::new();
    for (path, file) in files {
        let modified = file.modified.as_deref().unwrap_or_default();
        let keys: BTreeSet<String> =
            [&file.name, &file.description].into_iter().flatten().map(|it| words(it)).collect();
        for key in keys.into_iter().filter(|key| !key.is_empty()) {
            groups.entry((file.kind, key)).or_default().push((path, modified));
        }
    }
    let mut flags = BTreeSet::new();
    for group in groups.values_mut().filter(|group| group.len() > 1) {
        group.sort_by_key(|(path, modified)| (*modified, *path));
        let Some((newest, stamp)) = group.last().copied() else { continue };
        for (path, modified) in group.iter().filter(|(path, _)| *path != newest) {
            let is_older = !stamp.is_empty() && *modified < stamp;
            let other = newest.to_owned();
            flags.insert((
                (*path).to_owned(),
                if is_older { Flag::Superseded(other) } else { Flag::SameSubject(other) },
            ));
            flags.insert((newest.to_owned(), Flag::SameSubject((*path).to_owned())));
        }
    }
    flags.into_iter().collect()
}

/// Words that carry no meaning of their own.
const SMALL: &[&str] = &["a", "an", "the", "of", "for", "in", "on", "to", "and", "is", "are", "with"];

/// Returns the words of a text that carry its meaning, in an order of their own.
fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words: BTreeSet<&str> = meaningful(&lower).collect();
    words.into_iter().collect::<Vec<_>>().join(" ")
}

/// Returns the same words for singular and plural, each by itself.
pub(super) fn content_words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    meaningful(&lower).map(|word| singular(word).to_owned()).collect()
}

/// Returns a word without the mark of a plural.
pub(super) fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem,
        _ => word,
    }
}

/// Returns the words of a text in lower case that carry its meaning.
pub(super) fn meaningful(lower: &str) -> impl Iterator<Item = &str> {
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty() && !SMALL.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(name: &str, description: &str, kind: &str, modified: &str) -> MemoryFile {
        MemoryFile::parse(&format!(
            "---\nname: {name}\ndescription: {description}\ntype: {kind}\nmodified: {modified}\n---\n"
        ))
    }

    /// Invariant 8 of `docs/design/memory.md`.
    #[test]
    fn memories_in_each_others_way_are_found() {
        let files = [
            ("a.md", memory("test-command", "how tests run", "project", "2026-01-01")),
            ("b.md", memory("the Command, for test", "other words", "project", "2026-02-01")),
            ("c.md", memory("test-command", "not this", "user", "2026-03-01")),
            ("d.md", memory("one", "prefers tabs", "feedback", "")),
            ("e.md", memory("two", "Prefers tabs!", "feedback", "")),
            ("f.md", memory("three", "alone", "feedback", "")),
        ];
        let found = same_subject(files.iter().map(|(path, file)| (*path, file)));
        let said: Vec<String> = found.iter().map(|(path, flag)| format!("{path}: {flag}")).collect();
        assert_eq!(
            said,
            [
                "a.md: `b.md` is newer and about the same",
                "b.md: it is about the same as `a.md`",
                "d.md: it is about the same as `e.md`",
                "e.md: it is about the same as `d.md`",
            ]
        );
    }
}
