//! What Write and Edit share: look at what is there, keep a copy, replace it as a whole.

use std::io::Read;
use std::path::Path;
use std::sync::PoisonError;
use std::time::SystemTime;

use loci_core::tool::{PathEffect, ToolOutcome};
use tokio_util::sync::CancellationToken;

use crate::files::disk_file::{Identity, OpenError, check_regular, open_regular};
use crate::files::editor_file::{self, EditorAnswer};
use crate::files::safe_write::{Expected, SafeWriteError, safe_write};
use crate::files::text_file::{Charset, LfView, TextFile, to_lf};
use crate::{FileState, Host, ToolCall};

/// Files beyond this are not changed by tools that hold them in memory.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Texts beyond this are left out of the structured result as `originalFile`; the checkpoint has them.
const MAX_ORIGINAL_BYTES: usize = 10 * 1024 * 1024;

/// Why a change was not made.
#[derive(Debug)]
pub(crate) enum ChangeError {
    /// It was refused before anything was done.
    Refuse(String),
    /// It was tried and failed.
    Fail(String),
}

impl ChangeError {
    /// The model would change what it has not seen.
    pub(crate) fn unread(shown: &str) -> Self {
        Self::Refuse(format!("`{shown}` was not read in this conversation. Read it before changing it."))
    }
}

impl From<ChangeError> for ToolOutcome {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Refuse(message) => Self::refusal(message),
            ChangeError::Fail(message) => Self::error(message),
        }
    }
}

/// A file before the change.
pub(crate) struct Original {
    /// Its text, unless it is binary or cannot be written back as it was.
    pub(crate) file: Option<TextFile>,
    pub(crate) modified: SystemTime,
    identity: Identity,
    /// Whether the text is the editor's, and differs from what is on disk.
    is_unsaved: bool,
}

impl Original {
    /// Returns the text as the model sees it.
    pub(crate) fn text(&self) -> Option<String> {
        self.file.as_ref().map(|file| LfView::new(&file.stored).text.into_owned())
    }

    /// Returns true when the file is no longer what the model saw.
    pub(crate) fn has_changed_since(&self, seen: &FileState) -> bool {
        let is_same_text = || seen.is_whole() && self.text().as_deref() == Some(seen.content.as_str());
        // What is not saved has no time of its own.
        (self.is_unsaved || self.modified != seen.modified) && !is_same_text()
    }
}

/// Refuses paths whose reading is denied: what may not be read may not be changed either.
pub(crate) fn check_denied(path: &PathEffect, host: &dyn Host) -> Result<(), ChangeError> {
    if host.is_read_denied(&path.requested) || host.is_read_denied(&path.real) {
        return Err(ChangeError::Refuse(format!(
            "`{}` is not changed: a permission rule forbids reading it.",
            path.requested.display()
        )));
    }
    Ok(())
}

/// Returns what the conversation knows of a file.
pub(crate) fn last_seen(path: &PathEffect, host: &dyn Host) -> Option<FileState> {
    host.files().lock().unwrap_or_else(PoisonError::into_inner).find(path).cloned()
}

/// Loads a file that may be there, with what the editor has not saved of it.
pub(crate) async fn load(
    path: &PathEffect,
    host: &dyn Host,
    cancel: &CancellationToken,
) -> Result<Option<Original>, ChangeError> {
    let Some(mut original) = load_saved(path).await? else { return Ok(None) };
    let Some(file) = original.file.as_mut().filter(|file| file.charset == Charset::UTF_8) else {
        return Ok(Some(original));
    };
    match editor_file::read(path, host, cancel).await {
        EditorAnswer::Left => {}
        EditorAnswer::Done(text) => {
            if to_lf(&text) != to_lf(&file.stored) {
                file.stored = text;
                original.is_unsaved = true;
            }
        }
        EditorAnswer::Unknown(why) => {
            let shown = path.requested.display();
            return Err(ChangeError::Fail(format!("`{shown}` is not changed: {why}")));
        }
    }
    Ok(Some(original))
}

/// Loads a file that may be there, as it is on disk.
pub(crate) async fn load_saved(path: &PathEffect) -> Result<Option<Original>, ChangeError> {
    let shown = path.requested.display().to_string();
    let path = path.clone();
    let loaded = tokio::task::spawn_blocking(move || load_now(&path)).await;
    match loaded {
        Ok(Ok(original)) => Ok(Some(original)),
        Ok(Err(OpenError::Missing)) => Ok(None),
        Ok(Err(
            error @ (OpenError::Directory
            | OpenError::Special(_)
            | OpenError::ProcessSecret
            | OpenError::Moved),
        )) => Err(ChangeError::Refuse(format!("`{shown}` is not changed: {error}."))),
        Ok(Err(OpenError::Io(error))) => Err(ChangeError::Fail(format!("Failed to read `{shown}`: {error}"))),
        Err(panic) => Err(ChangeError::Fail(format!("Failed to read `{shown}`: {panic}"))),
    }
}

fn load_now(path: &PathEffect) -> Result<Original, OpenError> {
    let (mut file, metadata) = open_regular(path)?;
    if metadata.len() > MAX_BYTES {
        let message = format!("it has {} bytes, too many to change at once; use Bash", metadata.len());
        return Err(OpenError::Io(std::io::Error::other(message)));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Original {
        file: if crate::files::text_file::binary_kind(&bytes).is_some() {
            None
        } else {
            TextFile::decode(&bytes)
        },
        modified: metadata.modified()?,
        identity: Identity::of(&metadata),
        is_unsaved: false,
    })
}

/// Keeps a copy of the file and replaces it; returns its new modification time.
pub(crate) async fn replace(
    call: &ToolCall,
    path: &PathEffect,
    original: Option<&Original>,
    bytes: Vec<u8>,
    host: &dyn Host,
) -> Result<SystemTime, ChangeError> {
    let shown = path.requested.display().to_string();
    if let Err(error) = host.checkpoint(&call.id, &path.real).await {
        return Err(ChangeError::Fail(format!(
            "`{shown}` was not changed: failed to keep a copy of it: {error}"
        )));
    }
    if call.cancel.is_cancelled() {
        return Err(ChangeError::Fail(format!("Interrupted before `{shown}` was changed")));
    }
    if let Some(modified) = replace_in_editor(call, path, original, &bytes, host).await? {
        return Ok(modified);
    }
    let real = path.real.clone();
    let expected = original.map_or(Expected::Absent, |original| Expected::Unchanged(original.identity));
    // Never abandoned half-way: a replacement is one short step.
    match tokio::task::spawn_blocking(move || safe_write(&real, &bytes, expected)).await {
        Ok(Ok(modified)) => Ok(modified),
        Ok(Err(error @ (SafeWriteError::Changed | SafeWriteError::Appeared))) => Err(ChangeError::Fail(
            format!("`{shown}` was not changed: {error}. Read it again and repeat the change."),
        )),
        Ok(Err(error)) => Err(ChangeError::Fail(format!("`{shown}` was not changed: {error}"))),
        Err(panic) => Err(ChangeError::Fail(format!("Failed to write `{shown}`: {panic}"))),
    }
}

/// Has the editor replace a file, where it has a say in it; returns the file's time afterwards.
async fn replace_in_editor(
    call: &ToolCall,
    path: &PathEffect,
    original: Option<&Original>,
    bytes: &[u8],
    host: &dyn Host,
) -> Result<Option<SystemTime>, ChangeError> {
    let shown = path.requested.display();
    let failed = |why: &str| ChangeError::Fail(format!("`{shown}` was not changed: {why}"));
    let is_unsaved = original.is_some_and(|original| original.is_unsaved);
    if is_unsaved && editor_file::is_read_only(path, host) {
        return Err(failed("it has changes in the editor that are not saved. Ask the user to save them."));
    }
    let found = check_regular(path).map(|metadata| Identity::of(&metadata));
    let is_as_loaded = match (original, &found) {
        (Some(original), Ok(identity)) => *identity == original.identity,
        (None, Err(OpenError::Missing)) => true,
        _ => false,
    };
    if !is_as_loaded {
        // Whoever writes to the disk says what is wrong with it.
        return Ok(None);
    }
    match editor_file::write(path, bytes, host, &call.cancel).await {
        EditorAnswer::Done(()) => {
            let now = check_regular(path).and_then(|metadata| Ok(metadata.modified()?));
            Ok(Some(now.unwrap_or_else(|_| SystemTime::from(host.env().clock.now()))))
        }
        EditorAnswer::Left if is_unsaved => {
            Err(failed("the editor, which has unsaved changes of it, refused."))
        }
        EditorAnswer::Left => Ok(None),
        EditorAnswer::Unknown(why) => {
            Err(failed(&format!("{why}. It may have been written all the same: read it again.")))
        }
    }
}

/// Remembers what the model now knows of a file.
pub(crate) fn remember(path: &Path, state: FileState, host: &dyn Host) {
    host.files().lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_path_buf(), state);
}

/// Returns a text for the `originalFile` field.
pub(crate) fn original_field(text: Option<&str>) -> Option<&str> {
    text.filter(|text| text.len() <= MAX_ORIGINAL_BYTES)
}

#[cfg(test)]
mod tests;
