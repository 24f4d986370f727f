//! What lies at a path, and how it changed; both as lines of a log can hold them.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::hex::{from_hex, to_hex};
use crate::ids::{EntryId, ToolUseId};

/// What begins a name that is not text, followed by its bytes in hex.
const HEX: &str = "hex:";

/// What lies at a path; a symlink is itself, not what it points at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum PathState {
    /// Nothing.
    None,
    /// A regular file.
    File {
        /// Where its content can be found.
        content: FileContent,
        /// Its permission bits.
        mode: u32,
        /// Its size.
        size: u64,
    },
    /// A symlink.
    Link {
        /// What it points at.
        to: PathText,
    },
    /// A directory.
    Dir {
        /// Its permission bits.
        mode: u32,
    },
    /// A device, a socket or a FIFO: seen, and never touched.
    Other,
}

impl PathState {
    /// Returns true when two states are of one kind: files with files, directories with directories.
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Returns true when the state can be brought back.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Other | Self::File { content: FileContent::Lost, .. })
    }
}

/// Where the content of a file can be found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FileContent {
    /// In our own store, under its SHA-256.
    Blob([u8; 32]),
    /// In the project's repository, under its object id.
    Git([u8; 20]),
    /// In the shared format, under the name of a backup.
    Backup(String),
    /// Nowhere: it was too large, or there was no room.
    Lost,
}

impl fmt::Display for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blob(digest) => write!(f, "sha256:{}", to_hex(digest)),
            Self::Git(id) => write!(f, "git:{}", to_hex(id)),
            Self::Backup(name) => write!(f, "backup:{name}"),
            Self::Lost => f.write_str("lost"),
        }
    }
}

impl Serialize for FileContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let bad = || de::Error::custom(format!("not a place of content: `{text}`"));
        match text.split_once(':') {
            Some(("sha256", hex)) => digest_from(hex).map(Self::Blob).ok_or_else(bad),
            Some(("git", hex)) => digest_from(hex).map(Self::Git).ok_or_else(bad),
            Some(("backup", name)) => Ok(Self::Backup(name.to_owned())),
            None if text == "lost" => Ok(Self::Lost),
            Some(_) | None => Err(bad()),
        }
    }
}

/// A path as JSON can hold it: text as it is, other bytes in hex behind `hex:`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathText(PathBuf);

impl PathText {
    /// Returns the path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl From<PathBuf> for PathText {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl Serialize for PathText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str().filter(|text| !text.starts_with(HEX)) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_str(&format_args!("{HEX}{}", to_hex(self.0.as_os_str().as_bytes()))),
        }
    }
}

impl<'de> Deserialize<'de> for PathText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let path = match text.strip_prefix(HEX) {
            Some(hex) => {
                let bytes = from_hex(hex).ok_or_else(|| de::Error::custom(format!("not hex: `{hex}`")))?;
                PathBuf::from(OsString::from_vec(bytes))
            }
            None => PathBuf::from(text.into_owned()),
        };
        Ok(Self(path))
    }
}

/// One path before and after something was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    /// The path, absolute.
    pub path: PathText,
    /// What lay there.
    pub before: PathState,
    /// What lies there.
    pub after: PathState,
    /// Where it came from, if it was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PathText>,
}

/// A line of the log of a session's changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum HistoryLine {
    /// A prompt begins: a place to go back to.
    Point {
        /// The prompt.
        prompt: EntryId,
        /// When.
        at: String,
    },
    /// Something was changed.
    Change(Box<ChangeSet>),
}

/// A state with every field that any has. Logs are long, and a tagged enum would be read twice.
#[derive(Deserialize)]
struct WireState<'a> {
    #[serde(borrow)]
    is: Cow<'a, str>,
    content: Option<FileContent>,
    mode: Option<u32>,
    size: Option<u64>,
    to: Option<PathText>,
}

impl<'de> Deserialize<'de> for PathState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = WireState::deserialize(deserializer)?;
        let missing = de::Error::missing_field;
        let mode = || wire.mode.ok_or_else(|| missing("mode"));
        match &*wire.is {
            "none" => Ok(Self::None),
            "other" => Ok(Self::Other),
            "dir" => Ok(Self::Dir { mode: mode()? }),
            "link" => Ok(Self::Link { to: wire.to.ok_or_else(|| missing("to"))? }),
            "file" => Ok(Self::File {
                mode: mode()?,
                size: wire.size.ok_or_else(|| missing("size"))?,
                content: wire.content.ok_or_else(|| missing("content"))?,
            }),
            other => Err(de::Error::unknown_variant(other, &["none", "file", "link", "dir", "other"])),
        }
    }
}

/// A line with every field that any has.
#[derive(Deserialize)]
struct WireLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    prompt: Option<EntryId>,
    call: Option<ToolUseId>,
    by: Option<String>,
    at: Option<String>,
    root: Option<PathText>,
    changes: Option<Vec<PathChange>>,
}

impl<'de> Deserialize<'de> for HistoryLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = WireLine::deserialize(deserializer)?;
        let missing = de::Error::missing_field;
        let at = wire.at.ok_or_else(|| missing("at"))?;
        match &*wire.kind {
            "point" => Ok(Self::Point { prompt: wire.prompt.ok_or_else(|| missing("prompt"))?, at }),
            "change" => Ok(Self::Change(Box::new(ChangeSet {
                prompt: wire.prompt,
                call: wire.call,
                by: wire.by.ok_or_else(|| missing("by"))?,
                at,
                root: wire.root.ok_or_else(|| missing("root"))?,
                changes: wire.changes.ok_or_else(|| missing("changes"))?,
            }))),
            other => Err(de::Error::unknown_variant(other, &["point", "change"])),
        }
    }
}

/// Everything that one call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSet {
    /// The prompt in whose turn it happened.
    pub prompt: Option<EntryId>,
    /// The call, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolUseId>,
    /// What did it: a tool's name, `background`, `rewind`.
    pub by: String,
    /// When it was seen.
    pub at: String,
    /// The project, whose repository holds what is `git:`.
    pub root: PathText,
    /// The paths.
    pub changes: Vec<PathChange>,
}

/// Reads a digest of a certain length.
fn digest_from<const N: usize>(hex: &str) -> Option<[u8; N]> {
    from_hex(hex)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_and_name_survives_a_line() {
        let odd = PathBuf::from(OsString::from_vec(b"/p/\xff\n".to_vec()));
        let states = [
            PathState::None,
            PathState::File { content: FileContent::Blob([7; 32]), mode: 0o755, size: 3 },
            PathState::File { content: FileContent::Git([9; 20]), mode: 0o644, size: 0 },
            PathState::File { content: FileContent::Backup("a@v1".to_owned()), mode: 0o400, size: 1 },
            PathState::File { content: FileContent::Lost, mode: 0o644, size: u64::MAX },
            PathState::Link { to: odd.clone().into() },
            PathState::Dir { mode: 0o700 },
            PathState::Other,
        ];
        for path in [PathBuf::from("/p/a b"), "/p/ä".into(), odd, "hex:61".into()] {
            for state in &states {
                let change = PathChange {
                    path: path.clone().into(),
                    before: state.clone(),
                    after: PathState::None,
                    from: None,
                };
                let line = HistoryLine::Change(Box::new(ChangeSet {
                    prompt: Some("u".into()),
                    call: None,
                    by: "Bash".to_owned(),
                    at: "t".to_owned(),
                    root: PathBuf::from("/p").into(),
                    changes: vec![change],
                }));
                let text = serde_json::to_string(&line).unwrap();
                assert_eq!(serde_json::from_str::<HistoryLine>(&text).unwrap(), line, "{text}");
            }
        }
    }

    #[test]
    fn invalid_history_line_is_refused() {
        for text in [
            r#"{"type":"point","at":"t"}"#,
            r#"{"type":"point","prompt":"u"}"#,
            r#"{"type":"other","prompt":"u","at":"t"}"#,
            r#"{"type":"change","at":"t","by":"Bash","root":"/p"}"#,
            r#"{"type":"change","at":"t","by":"Bash","root":"/p","changes":[{"path":"/p/a","before":{"is":"file","mode":1},"after":{"is":"none"}}]}"#,
            r#"{"type":"change","at":"t","by":"Bash","root":"/p","changes":[{"path":"/p/a","before":{"is":"what"},"after":{"is":"none"}}]}"#,
        ] {
            assert!(serde_json::from_str::<HistoryLine>(text).is_err(), "{text}");
        }
        let later = r#"{"at":"t","new":{"x":1},"prompt":"u\u0041","type":"point"}"#;
        let point = HistoryLine::Point { prompt: "uA".into(), at: "t".to_owned() };
        assert_eq!(
            serde_json::from_str::<HistoryLine>(later).unwrap(),
            point,
            "order and more fields do not matter"
        );
    }

    #[test]
    fn invalid_file_content_is_refused() {
        for text in ["\"sha256:00\"", "\"git:zz\"", "\"elsewhere:1\"", "\"\"", "\"git:é\""] {
            assert!(serde_json::from_str::<FileContent>(text).is_err(), "{text}");
        }
    }
}
