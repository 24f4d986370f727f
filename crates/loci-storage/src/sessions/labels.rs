//! Naming a session, and keeping its names within reach of those who read only the ends of files.
//!
//! A title or tag is one appended line; the last of each kind counts. Listings read the last 64 KiB, so in a session
//! that goes on and on a name would move out of sight. [`LabelWatch`] repeats the names in force whenever more than
//! 48 KiB have been written since. It looks at the file first: what another process appended meanwhile (a rename
//! from a second terminal, or from an SDK) is newer than what we remember.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use loci_core::entry::BadEntry;
use loci_core::entry::draft::{AGENT_SETTING, Metadata};
use loci_stdx::{AppendError, AppendFile, open_regular};

use crate::layout::SessionPlace;
use crate::sessions::listing::Labels;
use crate::sessions::listing::scan::leading_type;

/// How far a label may lie from the end of the file.
const REACH: u64 = 48 * 1024;
/// What listings read of the end.
const WINDOW: u64 = 64 * 1024;
/// The most of a file that is searched for what others appended.
const MOST_SEARCHED: u64 = 1024 * 1024;

/// Why a session could not be given a name.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// There is nothing left of the title once spaces are gone.
    #[error("A title needs at least one visible character")]
    EmptyTitle,
    /// The same for a tag.
    #[error("A tag needs at least one visible character")]
    EmptyTag,
    /// The line could not be made.
    #[error("Failed to write the label as JSON")]
    Seal(#[from] BadEntry),
    /// The line could not be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Gives a session a title, and returns it as it was written.
pub fn rename_session(place: &SessionPlace, title: &str) -> Result<String, LabelError> {
    let title = title.trim();
    if title.is_empty() {
        return Err(LabelError::EmptyTitle);
    }
    append(place, &Metadata::CustomTitle { title: title.to_owned() })?;
    Ok(title.to_owned())
}

/// Gives a session a tag, and returns it as it was written.
pub fn tag_session(place: &SessionPlace, tag: &str) -> Result<String, LabelError> {
    let visible: String = tag.chars().filter(|char| !is_invisible(*char)).collect();
    let tag = visible.trim();
    if tag.is_empty() {
        return Err(LabelError::EmptyTag);
    }
    append(place, &Metadata::Tag { tag: tag.to_owned() })?;
    Ok(tag.to_owned())
}

/// Takes a session's tag away, by an empty one.
pub fn untag_session(place: &SessionPlace) -> Result<(), LabelError> {
    append(place, &Metadata::Tag { tag: String::new() })
}

fn append(place: &SessionPlace, label: &Metadata) -> Result<(), LabelError> {
    let entry = label.seal(place.id(), "")?;
    let mut file = AppendFile::open(place.file(), AppendFile::PRIVATE)?;
    file.append_lines(entry.line().as_bytes())?;
    file.sync()?;
    Ok(())
}

/// Characters that change how a text looks without being seen, and private ones; tags go without them.
fn is_invisible(char: char) -> bool {
    matches!(u32::from(char),
        0..=0x1f | 0x7f..=0x9f | 0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0x180e
        | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb
        | 0x110bd | 0x110cd | 0x13430..=0x1343f | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe007f
        | 0xf_0000..=0x10_ffff)
}

/// Returns the agent that a session runs as, by the last line near an end of its file that names one.
pub fn session_agent(file: &Path) -> Option<String> {
    let file = open_regular(file).ok()?;
    let end = file.metadata().ok()?.len();
    let named_in = |start: u64, end: u64| {
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).ok()?];
        file.read_exact_at(&mut bytes, start).ok()?;
        loci_stdx::lines_at(start, &bytes).filter_map(|line| agent_of_line(line.bytes)).last()
    };
    let start = end.saturating_sub(WINDOW);
    named_in(start, end).or_else(|| named_in(0, start.min(WINDOW))).filter(|name| !name.is_empty())
}

/// Returns the agent that a line names.
fn agent_of_line(line: &[u8]) -> Option<String> {
    let is_it = leading_type(line) == Some(AGENT_SETTING.as_bytes());
    let value: serde_json::Value = is_it.then(|| serde_json::from_slice(line).ok())??;
    value["agentSetting"].as_str().map(str::to_owned)
}

/// Keeps a session's names near the end of its file.
#[derive(Debug, Clone, Default)]
pub struct LabelWatch {
    custom: Watched,
    generated: Watched,
    tag: Watched,
    /// The agent that the session runs as.
    agent: Watched,
    /// The file was searched up to here.
    searched: u64,
}

/// One kind of label.
#[derive(Debug, Clone, Default)]
struct Watched {
    text: Option<String>,
    /// Where it was last seen or put.
    at: Option<u64>,
}

impl LabelWatch {
    /// Starts with what is known of a session.
    pub fn new(labels: &Labels) -> Self {
        let watched = |text: &Option<String>| Watched { text: text.clone(), at: None };
        Self {
            custom: watched(&labels.custom),
            generated: watched(&labels.generated),
            tag: watched(&labels.tag),
            agent: Watched::default(),
            searched: 0,
        }
    }

    /// Keeps the name of the agent that the session runs as within reach, too.
    pub fn with_agent(self, agent: Option<String>) -> Self {
        Self { agent: Watched { text: agent, at: None }, ..self }
    }

    /// Returns the title in force, the user's before the generated one.
    pub fn title(&self) -> Option<&str> {
        let labels = [&self.custom, &self.generated];
        labels.into_iter().filter_map(|label| label.text.as_deref()).find(|text| !text.is_empty())
    }

    /// Returns the labels to append to the file now, for each has been left too far behind.
    pub fn overdue(&mut self, file: &Path) -> io::Result<Vec<Metadata>> {
        let file = match open_regular(file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let end = file.metadata()?.len();
        let reach = if self.searched == 0 { WINDOW } else { MOST_SEARCHED };
        self.search(&file, self.searched.max(end.saturating_sub(reach)), end)?;
        let title = |text: String| Metadata::CustomTitle { title: text };
        let generated = |text: String| Metadata::GeneratedTitle { title: text };
        let tag = |text: String| Metadata::Tag { tag: text };
        let agent = |text: String| Metadata::AgentSetting { agent: text };
        Ok([
            self.custom.overdue(end).map(title),
            self.generated.overdue(end).map(generated),
            self.tag.overdue(end).map(tag),
            self.agent.overdue(end).map(agent),
        ]
        .into_iter()
        .flatten()
        .collect())
    }

    fn search(&mut self, file: &File, start: u64, end: u64) -> io::Result<()> {
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, start)?;
        for line in loci_stdx::lines_at(start, &bytes) {
            let labels = Labels::of_line(line.bytes);
            let slots = [&mut self.custom, &mut self.generated, &mut self.tag];
            for (slot, text) in slots.into_iter().zip([labels.custom, labels.generated, labels.tag]) {
                if text.is_some() {
                    *slot = Watched { text, at: Some(line.offset) };
                }
            }
            if let Some(agent) = agent_of_line(line.bytes) {
                self.agent = Watched { text: Some(agent), at: Some(line.offset) };
            }
        }
        self.searched = end;
        Ok(())
    }
}

impl Watched {
    fn overdue(&mut self, end: u64) -> Option<String> {
        let is_near = self.at.is_some_and(|at| end.saturating_sub(at) <= REACH);
        let text = self.text.clone().filter(|text| !text.is_empty() && !is_near)?;
        self.at = Some(end);
        Some(text)
    }
}
