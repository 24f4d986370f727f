//! Files of the session's directories as the editor has them, with what is not saved yet.
//!
//! The editor has a say in plain UTF-8 text alone, and only where the session works; everything else is the disk's. What
//! was judged stays judged: a path goes to the editor by where it leads, and only after the disk was looked at. An editor
//! that refuses leaves the file to the disk; one that says nothing makes the call fail, since its user may have typed what
//! nobody has seen.

use std::future::Future;
use std::time::Duration;

use loci_core::tool::PathEffect;
use tokio_util::sync::CancellationToken;

use crate::{EditorAbilities, EditorError, EditorHost, Host};

/// How long an editor may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of asking the editor.
pub(crate) enum EditorAnswer<T> {
    /// It did it.
    Done(T),
    /// It has no say here, or leaves it to the disk.
    Left,
    /// It cannot be known what it has; why, as a clause.
    Unknown(String),
}

/// Returns the text of a file as the editor has it.
pub(crate) async fn read(
    path: &PathEffect,
    host: &dyn Host,
    cancel: &CancellationToken,
) -> EditorAnswer<String> {
    match editor_of(path, host, |abilities| abilities.reads_files) {
        Some(editor) => settled(editor.read_text(&path.real), cancel).await,
        None => EditorAnswer::Left,
    }
}

/// Has the editor replace the text of a file.
pub(crate) async fn write(
    path: &PathEffect,
    bytes: &[u8],
    host: &dyn Host,
    cancel: &CancellationToken,
) -> EditorAnswer<()> {
    let editor = editor_of(path, host, |abilities| abilities.writes_files);
    match editor.zip(plain_text(bytes)) {
        Some((editor, text)) => settled(editor.write_text(&path.real, text), cancel).await,
        None => EditorAnswer::Left,
    }
}

/// Tells whether the editor reads files that it cannot write.
pub(crate) fn is_read_only(path: &PathEffect, host: &dyn Host) -> bool {
    editor_of(path, host, |abilities| abilities.reads_files && !abilities.writes_files).is_some()
}

/// Returns bytes as text that an editor writes as the same bytes.
fn plain_text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.starts_with('\u{feff}'))
}

fn editor_of<'a>(
    path: &PathEffect,
    host: &'a dyn Host,
    can: impl Fn(EditorAbilities) -> bool,
) -> Option<&'a dyn EditorHost> {
    host.editor().filter(|editor| can(editor.abilities()) && host.workspace().contains(path))
}

async fn settled<T>(
    asked: impl Future<Output = Result<T, EditorError>>,
    cancel: &CancellationToken,
) -> EditorAnswer<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => EditorAnswer::Unknown("the call was interrupted".to_owned()),
        answer = tokio::time::timeout(PATIENCE, asked) => match answer {
            Ok(Ok(value)) => EditorAnswer::Done(value),
            Ok(Err(EditorError::Refused(why))) => {
                tracing::debug!(target: "loci::tools", "the editor leaves a file to the disk: {why}");
                EditorAnswer::Left
            }
            Ok(Err(EditorError::Gone)) => EditorAnswer::Unknown("the editor is gone".to_owned()),
            Err(_) => EditorAnswer::Unknown(format!("the editor did not answer within {} s", PATIENCE.as_secs())),
        },
    }
}
