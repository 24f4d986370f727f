//! What a resumed session takes over from its file besides the messages.

use serde::Deserialize;

use crate::entry::{Entry, EntryKind};
use crate::usage::Usage;

use super::tree::Tree;

/// The names a session was given; the last of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Titles {
    /// The one the user chose; an empty one took it back.
    pub custom: Option<String>,
    /// The one a model made.
    pub generated: Option<String>,
    /// The tag.
    pub tag: Option<String>,
}

impl Titles {
    /// Returns the title to show: the user's before the generated one.
    pub fn best(&self) -> Option<&str> {
        self.custom.as_deref().or(self.generated.as_deref())
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) mode: Option<String>,
    pub(super) titles: Titles,
}

impl Facts {
    pub(super) fn read(tree: &Tree<'_>, path: &[usize]) -> Self {
        let boundary = path.first().copied().filter(|idx| tree.entry(*idx).is_compact_boundary());
        let mut answers =
            path.iter().rev().filter_map(|idx| Some((*idx, ModelAnswer::from_entry(tree.entry(*idx))?)));
        let (model, usage) = match answers.next() {
            // The usage of a preserved answer counted the context before the compaction.
            Some((idx, answer)) => (Some(answer.model), answer.usage.filter(|_| Some(idx) > boundary)),
            None => (None, None),
        };
        Self { model, usage, mode: mode(tree), titles: titles(tree) }
    }
}

#[derive(Deserialize)]
struct ModelAnswer {
    model: String,
    #[serde(default)]
    usage: Option<Usage>,
}

impl ModelAnswer {
    fn from_entry(entry: &Entry) -> Option<Self> {
        let head = entry.head();
        if head.kind != EntryKind::Assistant || head.is_api_error {
            return None;
        }
        entry.fields().read::<Self>("message").filter(|answer| answer.model != "<synthetic>")
    }
}

fn mode(tree: &Tree<'_>) -> Option<String> {
    tree.entries().iter().rev().filter(|entry| may_have_mode(entry)).find_map(|entry| {
        let mode = entry.fields().read::<String>("permissionMode");
        mode.filter(|mode| !mode.is_empty())
    })
}

fn may_have_mode(entry: &Entry) -> bool {
    let head = entry.head();
    match head.kind {
        EntryKind::User => !head.is_sidechain && entry.line().contains("\"permissionMode\""),
        EntryKind::Metadata => head.type_name.as_ref() == "permission-mode",
        EntryKind::Assistant | EntryKind::Attachment | EntryKind::System | EntryKind::Progress => false,
    }
}

fn titles(tree: &Tree<'_>) -> Titles {
    let last = |type_name: &str, field: &str| {
        let named = |entry: &&std::sync::Arc<Entry>| entry.head().type_name.as_ref() == type_name;
        let entry = tree.entries().iter().rev().find(named)?;
        entry.fields().read::<String>(field).filter(|text| !text.is_empty())
    };
    Titles {
        custom: last("custom-title", "customTitle"),
        generated: last("ai-title", "aiTitle"),
        tag: last("tag", "tag"),
    }
}
