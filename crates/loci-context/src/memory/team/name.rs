//! Names of entries: plain on every system that may receive them, and harmless there.
//!
//! A name travels from one person's machine to everybody else's, so it is held to what all file systems read alike:
//! few characters, no reserved word, no second spelling, and nothing that another program takes for instructions.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

const MOST_BYTES: usize = 200;
const MOST_PARTS: usize = 4;

/// Devices on Windows, with any extension.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul"];
/// Files that programs follow as instructions, wherever they lie.
const INSTRUCTIONS: &[&str] =
    &["claude.md", "claude.local.md", "agents.md", "agent.md", "gemini.md", "skill.md"];

/// The name of an entry: a relative path with `/`, of a Markdown file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct EntryName(String);

/// Why a name is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Not a name for a team's memory, because {why}: `{name}`")]
pub struct EntryNameError {
    /// The name, with what does not print made visible.
    pub name: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl EntryName {
    /// Takes a name, if it is one.
    pub fn parse(name: &str) -> Result<Self, EntryNameError> {
        match objection(name) {
            None => Ok(Self(name.to_owned())),
            Some(why) => {
                let shown: String = name.chars().take(MOST_BYTES).flat_map(char::escape_default).collect();
                Err(EntryNameError { name: shown, why })
            }
        }
    }

    /// Returns it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns what it shares with names that some systems take for the same file.
    pub fn case_key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for EntryName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for EntryName {
    type Error = EntryNameError;

    fn try_from(name: String) -> Result<Self, EntryNameError> {
        Self::parse(&name)
    }
}

/// Returns the names that differ from another only by case, which not every system can keep apart. A directory and a
/// file of the same name do not meet, because files end in `.md` and directories must not.
pub fn case_clashes<'a>(names: impl IntoIterator<Item = &'a EntryName>) -> Vec<EntryName> {
    let mut by_key: BTreeMap<String, Vec<&EntryName>> = BTreeMap::new();
    for name in names {
        by_key.entry(name.case_key()).or_default().push(name);
    }
    by_key.into_values().filter(|alike| alike.len() > 1).flatten().cloned().collect()
}

fn objection(name: &str) -> Option<&'static str> {
    let parts: Vec<&str> = name.split('/').collect();
    let Some((file, dirs)) = parts.split_last() else { return Some("it is empty") };
    let whole = [
        (name.is_empty(), "it is empty"),
        (name.len() > MOST_BYTES, "it is longer than 200 bytes"),
        (name.starts_with('/'), "it is absolute"),
        (parts.len() > MOST_PARTS, "it is more than three directories deep"),
        (!file.ends_with(".md"), "it does not end in `.md`"),
        (dirs.iter().any(|dir| dir.to_ascii_lowercase().ends_with(".md")), "a directory of it ends in `.md`"),
        (is_instruction(file), "programs take such files for instructions"),
    ];
    let of_whole = whole.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why);
    of_whole.or_else(|| parts.iter().find_map(|part| part_objection(part)))
}

fn is_instruction(file: &str) -> bool {
    INSTRUCTIONS.contains(&file.to_ascii_lowercase().as_str())
}

fn part_objection(part: &str) -> Option<&'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    let objections = [
        (part.is_empty(), "a part of it is empty"),
        (part == "..", "`..` leads out"),
        (part.starts_with('.'), "a part of it is hidden"),
        (part.ends_with('.'), "a part of it ends in a dot"),
        (!part.bytes().all(is_plain), "only letters, digits and `-_.+` are read alike everywhere"),
        (is_device(part), "it is the name of a device"),
    ];
    objections.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
}

fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    DEVICES.contains(&stem.as_str())
        || numbered.is_some_and(|n| n.len() == 1 && n != "0" && n.as_bytes()[0].is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Invariant 1 of `docs/design/team-memory.md`.
    #[test]
    fn names_that_lead_out_or_are_read_differently_are_refused() {
        for name in ["a.md", "MEMORY.md", "feedback/small-commits_2.md", "a/b/c/d.md", "v1.2+x.md", "com0.md"]
        {
            assert_eq!(EntryName::parse(name).map(|it| it.0), Ok(name.to_owned()));
        }
        for (name, why) in [
            ("", "it is empty"),
            ("/etc/x.md", "it is absolute"),
            ("../x.md", "`..` leads out"),
            ("a/../../x.md", "`..` leads out"),
            ("./x.md", "a part of it is hidden"),
            (".git/x.md", "a part of it is hidden"),
            ("a//x.md", "a part of it is empty"),
            ("a\\x.md", "only letters, digits and `-_.+` are read alike everywhere"),
            ("C:x.md", "only letters, digits and `-_.+` are read alike everywhere"),
            ("a\0.md", "only letters, digits and `-_.+` are read alike everywhere"),
            ("a\n.md", "only letters, digits and `-_.+` are read alike everywhere"),
            ("naïve.md", "only letters, digits and `-_.+` are read alike everywhere"),
            ("a./x.md", "a part of it ends in a dot"),
            ("x.sh", "it does not end in `.md`"),
            ("x.MD", "it does not end in `.md`"),
            ("x.md/y.md", "a directory of it ends in `.md`"),
            ("NUL.md", "it is the name of a device"),
            ("com7/x.md", "it is the name of a device"),
            ("a/b/c/d/e.md", "it is more than three directories deep"),
            ("docs/Claude.md", "programs take such files for instructions"),
            ("AGENTS.md", "programs take such files for instructions"),
        ] {
            assert_eq!(EntryName::parse(name).map_err(|it| it.why), Err(why), "{name:?}");
        }
        let long = format!("{}.md", "x".repeat(200));
        assert_eq!(EntryName::parse(&long).map_err(|it| it.why), Err("it is longer than 200 bytes"));
    }

    #[test]
    fn invalid_entry_name_is_shown_escaped() {
        let error = EntryName::parse("a\0b.md").unwrap_err();
        assert!(error.to_string().ends_with("`a\\u{0}b.md`"), "{error}");
    }

    #[test]
    fn names_that_differ_by_case_clash() {
        let names = ["a.md", "b/A.md", "B/a.md", "A.md", "c.md"].map(|it| EntryName::parse(it).unwrap());
        let clashes: Vec<String> = case_clashes(&names).into_iter().map(|it| it.0).collect();
        assert_eq!(clashes, ["a.md", "A.md", "b/A.md", "B/a.md"]);
    }

    proptest! {
        /// Invariant 1 of `docs/design/team-memory.md`.
        #[test]
        fn no_name_that_is_taken_leaves_its_directory(name in "[a.A/\\\\:~ .]{0,12}(\\.md)?") {
            if let Ok(name) = EntryName::parse(&name) {
                let path = std::path::Path::new(name.as_str());
                let is_normal = |part| matches!(part, std::path::Component::Normal(_));
                prop_assert!(path.is_relative() && path.components().all(is_normal));
            }
        }
    }
}
