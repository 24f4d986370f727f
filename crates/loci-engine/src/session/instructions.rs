//! Instruction files in a session: shown at the start, met on the way, known to the tools that change files.

use std::path::PathBuf;

use loci_context::{Instruction, prose_tokens};
use loci_core::entry::{Attachment, AttachmentKind, Entry, NestedMemoryContent};
use loci_core::message::Block;
use loci_core::tool::ToolAttachment;
use loci_storage::config::{
    InstructionFile, InstructionScope, Instructions, LazyInstructions, TriggeredInstructions,
};
use loci_tools::{FileState, FileStates};

// Instruction files may be long, and how full the context is gets asked several times for every request. So the words
// are counted where they are made, and whoever asks gets the figure.

/// The first words of a conversation, and about how many tokens they are.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    block: Block,
    tokens: u64,
}

impl Opening {
    /// Makes the opening of a text, and weighs it.
    pub(crate) fn new(text: &str) -> Self {
        Self { block: Block::new_text(text), tokens: prose_tokens(text) }
    }

    /// Returns it as it is sent.
    pub(crate) fn block(&self) -> &Block {
        &self.block
    }

    /// Returns about how many tokens it is.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }
}

/// Returns the instruction files as the model is shown them at the start.
pub fn render_instructions(found: &Instructions) -> Vec<Instruction> {
    let shown = found.files.iter().map(|file| Instruction {
        path: file.path.display().to_string(),
        scope: match file.scope {
            InstructionScope::Managed => "instructions of this machine's administrator",
            InstructionScope::User => "the user's own instructions, for all projects",
            InstructionScope::Project => "project instructions, checked into the code base",
            InstructionScope::Local => "the user's own instructions for this project, not checked in",
        },
        text: file.content.clone(),
    });
    shown.collect()
}

/// Returns what a file is to the tools that change files once the model was shown it.
pub(crate) fn file_state(file: &InstructionFile) -> Option<(PathBuf, FileState)> {
    let state = FileState {
        content: file.content.replace("\r\n", "\n"),
        modified: file.modified?,
        offset: None,
        limit: None,
        is_partial_view: file.is_partial,
    };
    Some((file.path.clone(), state))
}

/// Remembers files that the model was shown, unless it has read them itself.
pub(crate) fn remember<'a>(states: &mut FileStates, files: impl IntoIterator<Item = &'a InstructionFile>) {
    for (path, state) in files.into_iter().filter_map(file_state) {
        if states.get(&path).is_none() {
            states.insert(path, state);
        }
    }
}

/// Returns instructions that were met as the transcript holds them; `cwd` is where paths are shown from.
pub(crate) fn note(met: &TriggeredInstructions, cwd: &std::path::Path) -> ToolAttachment {
    let file = &met.file;
    let scope = match file.scope {
        InstructionScope::Managed => "Managed",
        InstructionScope::User => "User",
        InstructionScope::Project => "Project",
        InstructionScope::Local => "Local",
    };
    let path = file.path.display().to_string();
    let content = NestedMemoryContent {
        path: path.clone(),
        scope: scope.to_owned(),
        content: file.content.clone(),
        content_differs_from_disk: file.is_partial,
        globs: met.patterns.clone(),
        parent: file.imported_by.as_ref().map(|parent| parent.display().to_string()),
    };
    let shown = file.path.strip_prefix(cwd).unwrap_or(&file.path).display().to_string();
    ToolAttachment { attachment: Attachment::NestedMemory { path, content, display_path: Some(shown) } }
}

/// Tells instructions that wait what the conversation has already.
pub(crate) fn resume<'a>(lazy: &mut LazyInstructions, path: impl IntoIterator<Item = &'a Entry>) {
    for entry in path {
        let met = entry.attachment_of_kind(AttachmentKind::NestedMemory);
        if let Some(Attachment::NestedMemory { path, .. }) = met {
            lazy.mark_loaded(path.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figure is the one that the words would be estimated at, whatever they are.
    #[test]
    fn an_opening_weighs_what_its_words_do() {
        for text in ["", "Say please.", "Bitte \"höflich\" sein.\nImmer.", &"Say please. ".repeat(4_000)] {
            let opening = Opening::new(text);
            let sent = opening.block().text().unwrap();
            assert_eq!((sent.as_str(), opening.tokens()), (text, prose_tokens(text)));
        }
    }
}
